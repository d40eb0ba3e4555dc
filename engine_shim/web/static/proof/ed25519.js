// Ed25519 (RFC 8032): whether a key has signed a message, and which of a file of public keys are given. Pure.

import { Point, sha512 } from "../vendor/ed25519.js";
import { need, readBase64, sameBytes } from "./fault.js";
import { sha256, toHex } from "./sha256.js";

const PEM = /-----BEGIN PUBLIC KEY-----([^-]*)-----END PUBLIC KEY-----/g;
const PREFIX = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const { n: ORDER } = Point.CURVE();

/** The keys of a file by their ids: {kid, raw, told}, where `told` is what stands in front of the key. Fault for a text
 *  without any. */
export function readKeys(text) {
  const keys = new Map();
  let end = 0;
  for (const block of text.matchAll(PEM)) {
    const told = readLines(text.slice(end, block.index));
    end = block.index + block[0].length;
    const der = readBase64(block[1].replace(/\s/g, ""));
    need(der.length === PREFIX.length + 32 && PREFIX.every((byte, n) => der[n] === byte), "the file has a key that is not Ed25519");
    const raw = der.slice(PREFIX.length);
    const kid = `ed25519:${toHex(sha256(raw)).slice(0, 16)}`;
    need((told.get("key") ?? kid) === kid, "the file calls a key by the id of another one");
    keys.set(kid, { kid, raw, told });
  }
  need(keys.size > 0, "the file has no public key");
  return keys;
}

function readLines(text) {
  const lines = text.split(/\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/).filter((line) => line.trim() && !line.startsWith("#"));
  return new Map(lines.map((line) => [line.split(":", 1)[0].trim(), line.slice(line.indexOf(":") + 1).trim()]));
}

/** Fault for a key that is revoked, or was not valid at a time. */
export function checkValid({ kid, told }, at) {
  need(!told.has("revoked since"), `the key ${kid} is revoked, since ${told.get("revoked since")}`);
  if (at !== null) need((told.get("valid from") ?? at) <= at && at <= (told.get("valid until") ?? at), `the key ${kid} was not valid at ${at}`);
}

/** Whether a key of 32 bytes has signed a message. As OpenSSL does it, the equation is not multiplied by the cofactor: the
 *  programs that check excerpts must not differ, also not about the signature of somebody who wants them to. */
export function isSigned(raw, signature, message) {
  if (signature.length !== 64) return false;
  const [r, s] = [signature.slice(0, 32), readNumber(signature.slice(32))];
  if (s >= ORDER) return false;
  try {
    const key = Point.fromBytes(raw, true);
    const hash = readNumber(sha512(Uint8Array.of(...r, ...raw, ...message))) % ORDER;
    return sameBytes(Point.BASE.multiply(s, false).add(key.negate().multiply(hash, false)).toBytes(), r);
  } catch {
    return false; // the key is no point of the curve
  }
}

/** A number that begins with its lowest byte. */
const readNumber = (bytes) => BigInt(`0x${toHex(bytes.toReversed())}`);
