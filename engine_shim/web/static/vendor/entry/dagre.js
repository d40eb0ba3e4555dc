import { Graph, layout } from "@dagrejs/dagre";
export { Graph, layout };
