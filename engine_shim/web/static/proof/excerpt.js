// Excerpts of runs: whether some records stand in a run that was sealed, and the run in a log, as `agent-core verify` and
// `verify_evidence.py` check it. Pure.

import { ExactNumber, isObject, parseJson, parseUnambiguous, writeJson } from "../kit/json.js";
import { readCheckpoint } from "./checkpoint.js";
import { checkValid, isSigned } from "./ed25519.js";
import { bytesOf, Fault, need, readBase64, sameBytes, within } from "./fault.js";
import { toHex } from "./sha256.js";
import { climb, hashLeaf, readHashes } from "./tree.js";

const FORMAT = "agent-core/excerpt/1";
const TIME = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$/;
const TEXTS = ["kind", "head", "kid", "at", "sig", "root"];
const UNSIGNED = ["kind", "sig", "timestamp"];

/** What an excerpt proves: {ok, isSigned, part, why, run, shown, count, kid, at, hasTimestamp, log}. `keys` are those that
 *  the reader trusts, as `readKeys` gives them; without them (null) `ok` says only that the parts fit each other, and
 *  `isSigned` is false. `log` is {origin, size, status}, null where the excerpt says nothing of one; what does not hold is in
 *  `part` and `why`. */
export function verifyExcerpt(text, keys) {
  try {
    return { ok: true, isSigned: keys !== null, part: null, why: null, ...check(readExcerpt(text), keys) };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { ok: false, isSigned: false, part: error.part, why: error.message };
  }
}

/** The fields of an excerpt. Fault for a text that is none. */
export function readExcerpt(text) {
  const excerpt = readJson(text);
  need(hasKeys(excerpt, ["format", "run", "seal", "records", "ledger"]), "it is no excerpt");
  need(excerpt.format === FORMAT && typeof excerpt.run === "string", "it is no excerpt of this format");
  return excerpt;
}

function readJson(text) {
  try {
    return parseUnambiguous(text);
  } catch {
    throw new Fault("it is no JSON, or has a key twice");
  }
}

function check({ run, seal, records, ledger }, keys) {
  const root = within("seal", () => checkSeal(run, seal, keys));
  const count = readInt(seal.count);
  within("records", () => checkRecords(records, root, count));
  const log = ledger === null ? null : within("ledger", () => checkLedger(ledger, run, seal, keys));
  return { run, shown: records.length, count, kid: seal.kid, at: seal.at, hasTimestamp: "timestamp" in seal, log };
}

/** The root of the tree over the run's records, as a key has signed it. */
function checkSeal(run, seal, keys) {
  const known = [...TEXTS, "count", "store", "tenant", "timestamp"];
  need(isObject(seal) && [...TEXTS, "count"].every((name) => Object.hasOwn(seal, name)) && Object.keys(seal).every((name) => known.includes(name)), "the seal has other fields");
  const areTexts = TEXTS.every((name) => typeof seal[name] === "string") && ["store", "tenant"].every((name) => ["string", "undefined"].includes(typeof (seal[name] ?? undefined)));
  need(areTexts && readInt(seal.count) !== null && typeof (seal.timestamp ?? "") === "string" && seal.timestamp !== null, "the seal has other values");
  need(seal.kind === "sealed" && TIME.test(seal.at) && /^[0-9a-f]{64}$/.test(seal.root), "the seal has other values");
  if (keys !== null) checkSignature(run, seal, keys);
  return Uint8Array.from(seal.root.match(/../g), (pair) => parseInt(pair, 16));
}

function checkSignature(run, seal, keys) {
  const key = keys.get(seal.kid);
  need(key !== undefined, `it is signed with the key ${seal.kid}, which is not given`);
  const signed = Object.entries({ ...seal, run }).filter(([name]) => !UNSIGNED.includes(name));
  const message = `agent-core/seal/1\n${writeJson(Object.fromEntries(signed.sort(([one], [other]) => (one < other ? -1 : 1))))}`;
  for (const [, value] of signed) if (typeof value === "string") bytesOf(value); // JSON writes half a character as an escape
  need(isSigned(key.raw, readBase64(seal.sig, 64), bytesOf(message)), `its signature was not made with the key ${seal.kid}`);
  checkValid(key, seal.at);
}

function checkRecords(records, root, count) {
  need(Array.isArray(records) && records.length > 0, "it shows no record");
  const places = records.map((entry) => checkRecord(entry, root, count));
  need(places.every((place, n) => n === 0 || places[n - 1] < place), "its records are not in their order");
}

/** The place of a record among all of its run, once it is proven to stand there. */
function checkRecord(entry, root, count) {
  need(hasKeys(entry, ["strand", "n", "index", "salt", "record", "hashes"]), "a record has other fields");
  const [n, index] = [readInt(entry.n), readInt(entry.index)];
  need(typeof entry.strand === "string" && typeof entry.record === "string" && n !== null && index !== null, "a record has other values");
  const found = climb(index, count, leafOf(entry), readHashes(entry.hashes));
  need(sameBytes(found, root), `record ${n} of strand ${entry.strand} does not stand in the run that was sealed`);
  return index;
}

/** The hash of the leaf that a record of an excerpt is. */
export function leafOf({ strand, n, salt, record }) {
  bytesOf(strand); // JSON writes half a character as an escape
  return hashLeaf(readBase64(salt, 16), bytesOf(`${writeJson([strand, readInt(n)])}\n`), bytesOf(record));
}

/** What a log signed by a key says of the run. */
function checkLedger(ledger, run, seal, keys) {
  need(hasKeys(ledger, ["entry", "index", "hashes", "checkpoint"]), "the part about the log has other fields");
  const index = readInt(ledger.index);
  need(typeof ledger.entry === "string" && typeof ledger.checkpoint === "string" && index !== null, "the log has other values");
  const { origin, size, root } = readCheckpoint(ledger.checkpoint, keys);
  const found = climb(index, size, hashLeaf(bytesOf(ledger.entry)), readHashes(ledger.hashes));
  need(sameBytes(found, root), "the log that was signed does not have the entry");
  const entry = readJson(ledger.entry);
  need(isObject(entry) && entry.run === run, "the entry of the log is about another run");
  need(entry.root === seal.root, "the log has the run with other records");
  return { origin, size, status: typeof entry.status === "string" ? entry.status : null };
}

/** The rows of the records that are shown, as the page's steps are read from them; none of a text that is no excerpt. */
export function readRows(text) {
  try {
    return readExcerpt(text).records.map((entry) => ({ strand: entry.strand, n: readInt(entry.n) ?? 0, raw: entry.record, hash: toHex(leafOf(entry)), record: readRecord(entry.record) }));
  } catch {
    return []; // the verdict says what is wrong with it
  }
}

function readRecord(text) {
  try {
    const record = parseJson(text);
    if (isObject(record) && typeof record.kind === "string") return record;
  } catch {
    // it is shown as a text
  }
  return { kind: "unreadable", text };
}

const hasKeys = (value, names) => isObject(value) && Object.keys(value).length === names.length && names.every((name) => Object.hasOwn(value, name));

/** A whole number of JSON; null for another value. */
function readInt(value) {
  if (value instanceof ExactNumber && String(value) === "-0") return 0;
  return Number.isSafeInteger(value) ? value : null;
}
