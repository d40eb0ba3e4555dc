export { parseDocument, isMap, isSeq, isScalar, isPair } from "yaml";
