import { Point } from "@noble/ed25519";
import { sha512 } from "@noble/hashes/sha2.js";
export { Point, sha512 };
