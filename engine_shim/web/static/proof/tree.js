// Trees of hashes (RFC 6962): what a leaf and the hashes beside its path lead to. Pure.

import { need, readBase64 } from "./fault.js";
import { sha256 } from "./sha256.js";

/** The hash of a leaf. */
export const hashLeaf = (...pieces) => sha256(Uint8Array.of(0), ...pieces);

/** The hashes of a proof. */
export function readHashes(hashes) {
  need(Array.isArray(hashes), "a proof is no list of hashes");
  return hashes.map((each) => readBase64(each, 32));
}

/** The root that the hashes beside its path give a leaf, the lowest first. */
export function climb(index, size, leaf, hashes) {
  need(index >= 0 && index < size, "a place is outside of its tree");
  const sides = findSides(index, size).reverse();
  need(sides.length === hashes.length, "a proof has another number of hashes than it must");
  return sides.reduce((digest, isRight, n) => sha256(Uint8Array.of(1), ...(isRight ? [hashes[n], digest] : [digest, hashes[n]])), leaf);
}

/** From the root down: whether the leaf is on the right. */
function findSides(index, size) {
  const sides = [];
  for (let begin = 0, end = size; end - begin > 1; ) {
    let half = 1;
    while (half * 2 < end - begin) half *= 2;
    const isRight = index >= begin + half;
    sides.push(isRight);
    [begin, end] = isRight ? [begin + half, end] : [begin, begin + half];
  }
  return sides;
}
