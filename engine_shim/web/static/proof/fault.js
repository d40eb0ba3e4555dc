// What does not hold of an excerpt, and in which part of it; and its texts as bytes. Pure.

const encoder = new TextEncoder();

/** What does not hold. `part` is where: excerpt, seal, records or ledger. */
export class Fault extends Error {
  part = "excerpt";
}

/** Throw a Fault unless something holds. */
export function need(holds, why) {
  if (!holds) throw new Fault(why);
}

/** What `check` gives; a Fault in it is one of this part. */
export function within(part, check) {
  try {
    return check();
  } catch (error) {
    if (error instanceof Fault) error.part = part;
    throw error;
  }
}

/** The bytes of a text. */
export function bytesOf(text) {
  need(typeof text === "string" && text.isWellFormed(), "there is half a character in it");
  return encoder.encode(text);
}

/** The bytes of a text in the one form of Base64. */
export function readBase64(text, length = null) {
  need(typeof text === "string" && /^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.length % 4 === 0, "a text in Base64 is none");
  let binary = "";
  try {
    binary = atob(text);
  } catch {
    throw new Fault("a text in Base64 is none");
  }
  need(btoa(binary) === text, "a text in Base64 is not in its one form");
  need(length === null || binary.length === length, "a text in Base64 has another length than it must");
  return Uint8Array.from(binary, (sign) => sign.charCodeAt(0));
}

export const sameBytes = (one, other) => one.length === other.length && one.every((byte, n) => byte === other[n]);
