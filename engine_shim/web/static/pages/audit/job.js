// The audit of many runs. It goes on while its user looks at another page, until he stops it or closes the tab.

import { useEffect, useState } from "../../vendor/preact.js";
import { address, ask, LONG_S, Problem } from "../../kit/api.js";
import { asQuery } from "../runs/filters.js";
import { failRun, judgeRun } from "./verdicts.js";

const AT_ONCE = 2;
const PAGE = 200;
const DRAW_MS = 200;

const listeners = new Set();
let job = null;
let drawing = null;

/** The audit: null before the first, else {filters, policy, runs, rows, state, error}; `state` is seeking, running, stopped,
 *  done or failed. The order of `rows` is that of the list. */
export function useAudit() {
  const [, draw] = useState(0);
  useEffect(() => {
    const listener = () => draw((n) => n + 1);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, []);
  return job;
}

/** Verify and replay the runs that fit the filters; with a `policy`, as if that had been in force. */
export function startAudit(filters, policy) {
  stopAudit();
  const own = { filters, policy, runs: [], rows: [], state: "seeking", error: null, control: new AbortController() };
  job = own;
  tell();
  work(own).then(
    () => end(own, "done"),
    (error) => end(own, own.control.signal.aborted ? "stopped" : "failed", error),
  );
}

/** Begin no further run. */
export function stopAudit() {
  if (job && (job.state === "seeking" || job.state === "running")) job.control.abort();
}

function end(own, state, error = null) {
  if (own.state === "stopped") return;
  Object.assign(own, { state, error: state === "failed" ? error : null });
  if (state === "failed") own.control.abort();
  tell();
}

async function work(own) {
  const { signal } = own.control;
  own.runs = await collect(own.filters, signal);
  own.state = "running";
  tell();
  const found = new Array(own.runs.length);
  let next = 0;
  const turn = async () => {
    while (next < own.runs.length) {
      signal.throwIfAborted();
      const at = next++;
      found[at] = await check(own.runs[at], own.policy, signal);
      own.rows = found.filter(Boolean);
      tellSoon();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, turn));
}

async function collect(filters, signal) {
  const runs = [];
  const query = asQuery(filters, Date.now());
  for (let before = ""; before !== null; ) {
    const answer = await ask(address("runs", { ...query, limit: PAGE, before }), { signal });
    runs.push(...answer.runs);
    before = answer.next ?? null;
  }
  return runs;
}

/** The row of one run. A policy that no run can have ends the audit. */
async function check(run, policy, signal) {
  const path = `runs/${encodeURIComponent(run.run_id)}`;
  try {
    const verified = await ask(`${path}/verify`, { signal, limit: LONG_S });
    const replayed = await ask(`${path}/replay`, { body: policy ? { policy } : {}, signal, limit: LONG_S });
    return judgeRun(run, verified, replayed);
  } catch (error) {
    if (signal.aborted || (error instanceof Problem && [401, 403, 422].includes(error.status))) throw error;
    return failRun(run, error);
  }
}

function tellSoon() {
  drawing ??= setTimeout(tell, DRAW_MS);
}

function tell() {
  clearTimeout(drawing);
  drawing = null;
  for (const listener of listeners) listener();
}
