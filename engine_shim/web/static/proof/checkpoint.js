// Checkpoints of a log, as C2SP's tlog-checkpoint has them: its name, its size and its root, signed. Pure.

import { checkValid, isSigned } from "./ed25519.js";
import { bytesOf, Fault, need, readBase64, sameBytes } from "./fault.js";
import { sha256 } from "./sha256.js";

const SPACE = "\\u0000-\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const NAME = new RegExp(`^[^+${SPACE}]{1,255}$`, "u");
const LINE = new RegExp(`^— ([^${SPACE}]+) ([A-Za-z0-9+/=]+)$`, "u");
const MOST_SIGNATURES = 100;

/** The log of a signed note: {origin, size, root}. Fault for one that none of the keys has signed; without keys its
 *  signatures are not looked at. */
export function readCheckpoint(note, keys) {
  const blank = note.lastIndexOf("\n\n");
  const text = `${note.slice(0, Math.max(blank, 0))}\n`;
  const [origin, size, root, ...rest] = text.split("\n");
  const lines = note.slice(blank + 2).split("\n");
  need(blank >= 0 && rest.join("\n") === "" && rest.length === 1 && lines.pop() === "" && lines.length > 0 && lines.length <= MOST_SIGNATURES, "the checkpoint is no signed note");
  need(NAME.test(origin), "the log has a name that none can have");
  need(/^(0|[1-9][0-9]{0,18})$/.test(size) && Number(size) <= Number.MAX_SAFE_INTEGER, "the log has a size that none can have");
  const signatures = lines.map(readLine);
  if (keys !== null) checkSigned({ origin, text, signatures }, keys);
  return { origin, size: Number(size), root: readBase64(root, 32) };
}

function readLine(line) {
  const found = LINE.exec(line);
  need(found !== null && NAME.test(found[1]), "a line of the checkpoint is no signature");
  const code = readBase64(found[2]);
  need(code.length > 4, "a line of the checkpoint is no signature");
  return { name: found[1], code };
}

function checkSigned({ origin, text, signatures }, keys) {
  let refused = null;
  for (const key of keys.values()) {
    const tag = sha256(bytesOf(`${origin}\n`), Uint8Array.of(1), key.raw).slice(0, 4);
    const own = signatures.filter(({ name, code }) => name === origin && sameBytes(code.slice(0, 4), tag));
    if (own.length === 0 || !own.every(({ code }) => isSigned(key.raw, code.slice(4), bytesOf(text)))) continue;
    try {
      return checkValid(key, null);
    } catch (fault) {
      refused = fault;
    }
  }
  throw refused ?? new Fault("the checkpoint is signed with no key that is given");
}
