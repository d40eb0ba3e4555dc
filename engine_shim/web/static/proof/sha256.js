// SHA-256 (FIPS 180-4) of bytes, as a page needs it that was opened from a file, where browsers offer no other.

const PRIMES = [];
for (let n = 2; PRIMES.length < 64; n++) if (PRIMES.every((p) => n % p)) PRIMES.push(n);
const fraction = (x) => ((x - Math.floor(x)) * 2 ** 32) >>> 0;
const K = new Uint32Array(PRIMES.map((p) => fraction(Math.cbrt(p))));
const START = PRIMES.slice(0, 8).map((p) => fraction(Math.sqrt(p)));
const rotate = (x, n) => (x >>> n) | (x << (32 - n));

/** A digest as it is written. */
export const toHex = (digest) => [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** The digest of some pieces of bytes, one after another: 32 bytes. */
export function sha256(...pieces) {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const padded = new Uint8Array(((length + 72) >> 6) << 6);
  let at = 0;
  for (const piece of pieces) {
    padded.set(piece, at);
    at += piece.length;
  }
  padded[length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(length / 2 ** 29));
  view.setUint32(padded.length - 4, (length << 3) >>> 0);
  const state = new Uint32Array(START);
  const words = new Uint32Array(64);
  for (let block = 0; block < padded.length; block += 64) digestBlock(view, block, state, words);
  const digest = new Uint8Array(32);
  state.forEach((word, n) => new DataView(digest.buffer).setUint32(n * 4, word));
  return digest;
}

function digestBlock(view, block, state, w) {
  for (let t = 0; t < 16; t++) w[t] = view.getUint32(block + t * 4);
  for (let t = 16; t < 64; t++) {
    const s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ (w[t - 15] >>> 3);
    const s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ (w[t - 2] >>> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let t = 0; t < 64; t++) {
    const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const one = (h + s1 + ((e & f) ^ (~e & g)) + K[t] + w[t]) | 0;
    const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const two = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, n) => (state[n] += word));
}
