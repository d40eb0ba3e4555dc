// A run's journal file: its lines, read byte for byte, and whether they are what was written.

import { parseJson } from "../kit/json.js";
import { sha256, toHex } from "./sha256.js";

const LINE = /^\{"run":("(?:[^"\\]|\\.)*"),"strand":("(?:[^"\\]|\\.)*"),"n":(0|[1-9][0-9]{0,17}),"hash":"([0-9a-f]{64})"(?:,"stored":"([A-Za-z0-9+/]*={0,2})","key":"[A-Za-z0-9+/]*={0,2}")?,"record":(\{.*\})\}$/s;
const FORMAT = 1;
const KINDS = ["run_started", "decided", "waiting", "resolved", "asked", "answered", "cancelled", "message", "signal", "received", "run_finished", "sealed"];
/** Strands beside those of the run itself: who stopped it and let it go on, and its signatures. */
const BESIDE = ["control", "seal"];
const encoder = new TextEncoder();
const bytes = (text) => encoder.encode(text);

/** The rows of a journal file in the order of their writing: {strand, n, hash, raw, hashed, isEncrypted, record}; and the lines
 *  that are none. `hashed` are the bytes in the chain: of an encrypted record those of its ciphertext. */
export function readJournal(text) {
  const lines = text.split("\n");
  const faults = [];
  if (lines.pop() !== "") faults.push({ line: lines.length + 1, why: "the last line has no end" });
  const rows = [];
  let run = null;
  lines.forEach((line, at) => {
    const row = readLine(line);
    if (row === null) faults.push({ line: at + 1, why: "it is no line of a journal" });
    else if (run !== null && row.run !== run) faults.push({ line: at + 1, why: "it is of another run" });
    else rows.push(row);
    run = run ?? row?.run ?? null;
  });
  return { run: run ?? "", rows, faults };
}

function readLine(line) {
  const found = LINE.exec(line);
  if (found === null) return null;
  try {
    const [, run, strand, n, hash, stored, raw] = found;
    const hashed = stored === undefined ? bytes(raw) : Uint8Array.from(atob(stored), (each) => each.charCodeAt(0));
    return { run: parseJson(run), strand: parseJson(strand), n: parseJson(n), hash, raw, hashed, isEncrypted: stored !== undefined, record: parseJson(raw) };
  } catch {
    return null;
  }
}

/** Whether the rows are whole: {ok, complete, head, count, kid, isEncrypted, faults}; `kid` is the key that the last seal names, and of those that a store keeps encrypted it is not checked that they are what was encrypted. Chains, closing records, the end, and that nothing
 *  else stands among them are checked, as `agent-core verify` checks them. */
export function verifyJournal({ run, rows, faults }) {
  const strands = new Map();
  for (const row of rows) {
    if (!strands.has(row.strand)) strands.set(row.strand, []);
    strands.get(row.strand).push(row);
  }
  const own = new Map([...strands].filter(([path]) => !BESIDE.includes(path)));
  const root = [...own.keys()].find((path) => !path.includes("/")) ?? "";
  const found = [...faults];
  for (const [path, chain] of strands) found.push(...checkChain(run, path, chain));
  for (const path of own.keys())
    if (path !== root && !path.startsWith(`${root}/`)) found.push({ strand: path, n: 0, why: "its strand does not belong to the run" });
  found.push(...checkClosings(own, root));
  for (const path of BESIDE) if (strands.has(path)) found.push(...checkClosings(new Map([[path, strands.get(path)]]), path));
  const complete = own.get(root)?.at(-1).record.kind === "run_finished";
  const { head, count } = headOf(own);
  const seal = strands.get("seal")?.at(-1).record;
  const isEncrypted = rows.some((row) => row.isEncrypted);
  return { ok: found.length === 0 && complete, complete, head, count, kid: seal ? String(seal.kid) : null, isEncrypted, faults: found };
}

function checkChain(run, path, chain) {
  let previous = sha256(bytes(`${run}\0${path}`));
  for (const [n, row] of chain.entries()) {
    const digest = sha256(previous, row.hashed);
    const ended = n > 0 && chain[n - 1].record.kind === "run_finished";
    if (row.n !== n) return [{ strand: path, n, why: `record ${row.n} stands in the place of ${n}` }];
    if (toHex(digest) !== row.hash)
      return [{ strand: path, n, why: "its hash does not follow from its bytes and the record before it" }];
    if (!KINDS.includes(row.record.kind)) return [{ strand: path, n, why: "it is no record" }];
    if (ended) return [{ strand: path, n, why: "it follows the end of its run" }];
    if (row.record.kind === "run_started" && Number.isInteger(row.record.format) && row.record.format > FORMAT) return [{ strand: path, n, why: "a newer version has written it" }];
    previous = digest;
  }
  return [];
}

function checkClosings(own, root) {
  const faults = [];
  const closed = new Set([root]);
  for (const [path, chain] of own) {
    for (const row of chain) {
      for (const [below, head, count] of readClosings(row.record.closes)) {
        closed.add(below);
        const end = own.get(below);
        if (typeof below !== "string" || !below.startsWith(`${path}/`) || !end || end.at(-1).hash !== head || end.length !== count)
          faults.push({ strand: path, n: row.n, why: `it closes ${below} at another head and count than it has` });
      }
    }
  }
  const isFinished = own.get(root)?.at(-1).record.kind === "run_finished";
  for (const path of isFinished ? own.keys() : [])
    if (!closed.has(path)) faults.push({ strand: path, n: 0, why: "no record of the finished run closes it" });
  return faults;
}

/** What a record says that it closes: [strand, head, count] of each. */
function readClosings(closes) {
  if (closes === undefined) return [];
  return (Array.isArray(closes) ? closes : [closes]).map((each) => (Array.isArray(each) ? each : []));
}

function headOf(own) {
  const pieces = [];
  let count = 0;
  for (const [path, chain] of [...own].sort(([a], [b]) => compareCodePoints(a, b))) {
    pieces.push(bytes(`${path}\0${chain.length}\0`), fromHex(chain.at(-1).hash));
    count += chain.length;
  }
  return { head: toHex(sha256(...pieces)), count };
}

function compareCodePoints(a, b) {
  const [left, right] = [[...a], [...b]];
  for (let n = 0; n < Math.min(left.length, right.length); n++)
    if (left[n] !== right[n]) return left[n].codePointAt(0) - right[n].codePointAt(0);
  return left.length - right.length;
}

const fromHex = (text) => new Uint8Array(text.match(/../g).map((pair) => parseInt(pair, 16)));
