// The steps of a run by its records: what was asked, judged, decided and answered, one item for each step of a person's
// reading. Pure.

import { own } from "../kit/own.js";
import { readStrand, strandOfBatch } from "./strands.js";

/** The items of a run in the order of its records.
 *
 *  Each has `kind` (begin, step, call, batch, message, signal, control, end, sealed, record), `strand`, `n`, `refs` (the records
 *  that it tells of, as {strand, n}), `at`, and `hidden`: how many records before it are missing, as they are in an excerpt. What
 *  follows on missing ones is an item of its own, since it may be the answer to one of them. A step has `step`, `model`, `thought`, `calls`, `problem`, `plan`, `usage`, `seconds`;
 *  a call of a plain node has one `call`.
 */
export function readSteps(rows) {
  const reader = new Reader();
  for (const row of rows) reader.read(row);
  return reader.items;
}

/** Where each record is told of: "strand:n" to the index of its item. */
export function indexItems(items) {
  const found = new Map();
  items.forEach((item, index) => {
    for (const { strand, n } of item.refs) found.set(`${strand}:${n}`, index);
  });
  return found;
}

/** The calls of an item. */
export const callsOf = (item) => item.calls ?? (item.call ? [item.call] : []);

/** Whether a call waits: for a person, or for a time or a signal. */
export const isOpen = (call) => call.state === "waiting" || call.state === "in_doubt" || call.state === "awaiting";

/** Whether an item tells of something that went wrong, was refused or was repaired. */
export function isProblem(item) {
  const bad = new Set(["refused", "failed", "denied", "cancelled", "in_doubt"]);
  const isBadEnd = item.kind === "end" && !["final", "completed"].includes(item.reason);
  return Boolean(item.problem) || Boolean(item.limit) || isBadEnd || callsOf(item).some((call) => bad.has(call.state));
}

class Reader {
  items = [];
  #strands = new Map();

  read({ strand, n, record }) {
    const hidden = n - (this.#strands.get(strand)?.next ?? 0);
    if (hidden !== 0) this.#strands.delete(strand);
    const state = this.#state(strand);
    state.next = n + 1;
    const item = own(READERS, record.kind)?.(this, state, record, { strand, n }) ?? this.add("record", { strand, n }, { record });
    if (item.refs.length === 0) item.hidden = Math.max(hidden, 0);
    item.refs.push({ strand, n });
    if (item.at === null && record.at) item.at = record.at;
  }

  /** Begin an item. */
  add(kind, { strand, n }, fields) {
    const item = { kind, strand, n, refs: [], at: null, ...readStrand(strand), ...fields };
    this.items.push(item);
    return item;
  }

  #state(strand) {
    if (!this.#strands.has(strand)) this.#strands.set(strand, { strand, step: null, calls: new Map(), open: null, plan: null });
    return this.#strands.get(strand);
  }

  /** The call of an id, with its item: of this strand, or of that whose batch this one is an item of. A new item if none. */
  call(state, record, place) {
    for (const path of [state.strand, strandOfBatch(state.strand)]) {
      const found = this.#strands.get(path)?.calls.get(record.id);
      if (found) return found;
    }
    const call = { id: record.id, tool: record.tool, args: record.args, effect: record.effect, state: "judged", decisions: [], ...place };
    const entry = { call, item: this.add("call", place, { call }) };
    state.calls.set(record.id, entry);
    return entry;
  }
}

const READERS = {
  run_started(reader, state, record, place) {
    return reader.add("begin", place, { record, loop: record.loop, at: record.at, agent: record.agent?.name ?? null });
  },

  asked(reader, state, record, place) {
    if (record.ask === "model") {
      state.step = reader.add("step", place, { step: record.step, model: record.model, calls: [], state: "asking", seconds: null });
      state.calls.clear();
      state.open = { item: state.step };
      return state.step;
    }
    if (record.ask === "batch") {
      state.open = { item: state.step ?? reader.add("batch", place, { tools: record.tools }) };
      return state.open.item;
    }
    const { call, item } = reader.call(state, record, place);
    Object.assign(call, { args: record.args, state: "running", asked: place });
    state.open = { item, call };
    return item;
  },

  answered(reader, state, record, place) {
    const { item, call } = state.open ?? beginAnswered(reader, state, record, place);
    if (record.reply === "said") Object.assign(item, { state: "answered", reply: record.content, usage: record.usage, seconds: record.seconds, at: record.at, requests: record.requests, finish: record.finish_reason, native: record.calls ?? null });
    else if (record.reply === "batch") item.batchSeconds = record.seconds;
    else if (call) answerCall(call, record);
    else Object.assign(item, { state: "failed", problem: { kind: record.reason, message: record.message }, seconds: record.seconds, at: record.at });
    state.open = null;
    return item;
  },

  decided(reader, state, record, place) {
    const item = state.step ?? reader.add("step", place, { step: record.step, calls: [], state: "answered", seconds: null });
    item.step ??= record.step;
    state.step = item;
    if (record.thought) item.thought = record.thought;
    if (record.final) item.state = "final";
    if (record.limit) item.limit = record.limit;
    const problem = record.unreadable ?? record.refused;
    if (problem) Object.assign(item, { problem, state: record.unreadable ? "repaired" : "refused" });
    if (record.plan) item.plan = state.plan = record.plan.map((each) => ({ ...each, status: "planned" }));
    if (record.plan_step) notePlanStep(state.plan, record.plan_step);
    for (const judged of record.calls ?? []) judgeCall(state, item, judged);
    return item;
  },

  waiting(reader, state, record, place) {
    if (record.reason === "awaiting_event") return awaitEvent(reader, state, record, place);
    if (!record.id) {
      state.open = { item: state.step ?? reader.add("batch", place, { tools: record.tools ?? [] }) };
      return state.open.item;
    }
    const { call, item } = reader.call(state, record, place);
    const inDoubt = record.reason === "in_doubt";
    Object.assign(call, { args: record.args, state: inDoubt ? "in_doubt" : "waiting", waits: place, reason: record.reason, doubt: record.message ?? null, origins: record.origins ?? call.origins });
    state.open = { item, call };
    return item;
  },

  resolved(reader, state, record, place) {
    if (state.strand === "control") return reader.add("control", place, { decision: record.decision, by: record.by, at: record.at });
    const { item, call } = state.open ?? {};
    if (record.decision === "batch" || !item) return item ?? state.step;
    if (call?.state === "awaiting") noteEvent(call, record);
    else if (call) decideCall(call, record, place);
    else item.decisions = [...(item.decisions ?? []), { ...record, ...place }];
    return item;
  },

  cancelled(reader, state, record, place) {
    const { item, call } = state.open ?? {};
    if (call) call.state = "cancelled";
    else if (item) Object.assign(item, { state: "cancelled" });
    return item ?? reader.add("control", place, { decision: "cancelled", by: record.by ?? null, at: record.at });
  },

  message: (reader, state, record, place) => reader.add("message", place, { role: record.role, content: record.content, by: record.by, at: record.at }),

  signal: (reader, state, record, place) => reader.add("signal", place, { name: record.name, data: record.data, by: record.by, at: record.at }),

  received: (reader, state, record, place) => reader.add("message", place, { received: record.messages }),

  run_finished(reader, state, record, place) {
    return reader.add("end", place, { at: record.at, reason: record.status ?? record.finish_reason, answer: record.final_answer ?? null, error: record.error, usage: record.usage ?? null, path: record.path ?? null, loop: record.status ? "flow" : "agent" });
  },

  sealed: (reader, state, record, place) => reader.add("sealed", place, { kid: record.kid }),
};

/** The item of an answer that nothing was asked for: of a call that could not be made, or whose question is missing. */
function beginAnswered(reader, state, record, place) {
  if (record.reply === "said") return { item: (state.step = reader.add("step", place, { step: null, calls: [], state: "answered", seconds: null })) };
  const item = reader.add("call", place, { call: { tool: "", args: null, state: "judged", decisions: [], ...place } });
  item.call.tool = item.node ?? "";
  return { item, call: item.call };
}

function answerCall(call, record) {
  Object.assign(call, { seconds: record.seconds, answeredAt: record.at, cached: record.cached ?? false, spent: record.usage ?? null });
  if (record.reply === "failed") Object.assign(call, { state: "failed", error: record.message, kind: record.reason });
  else Object.assign(call, { state: record.success ? "done" : "failed", output: record.output, error: record.error });
}

/** A node waits: `awaits` has the time, `until`, and the name of the signal, each null where it waits for none; and when
 *  it began to wait, `since`, and what it waited for `came`. */
function awaitEvent(reader, state, record, place) {
  const last = [...state.calls.values()].at(-1);
  const { item, call } = last ?? beginAnswered(reader, state, record, place);
  Object.assign(call, { tool: record.tool, args: record.args, state: "awaiting", output: null, awaits: { until: record.until ?? null, signal: record.signal ?? null, since: call.answeredAt ?? null, came: null, ...place } });
  state.open = { item, call };
  return item;
}

function noteEvent(call, { decision, signal, data, by, at }) {
  const came = decision === "signalled" ? { signal, data, by, at } : { signal: null, at };
  Object.assign(call, { state: "done", output: came, awaits: { ...call.awaits, came: at } });
}

function judgeCall(state, item, judged) {
  const known = state.calls.get(judged.id);
  const fresh = { decisions: [], strand: item.strand, n: item.n };
  const call = known?.call ?? fresh;
  const states = { run: "judged", wait: "waiting", refuse: "refused" };
  Object.assign(call, judged, { state: own(states, judged.verdict) ?? "judged" });
  if (!known) {
    item.calls.push(call);
    state.calls.set(judged.id, { call, item });
  }
}

function decideCall(call, record, place) {
  call.decisions.push({ decision: record.decision, by: record.by, at: record.at, message: record.message ?? null, args: record.args ?? null, ...place });
  const states = { approve: "approved", edit: "approved", retry: "approved", deny: "denied", skip: "skipped", done: "done", fail: "failed", cancel: "cancelled" };
  call.state = own(states, record.decision) ?? call.state;
  if (record.decision === "done") call.output = record.output;
  if (record.decision === "late" && record.answer) answerCall(call, record.answer);
}

function notePlanStep(plan, { step, status, message }) {
  const found = plan?.find((each) => each.step === step);
  if (found) Object.assign(found, { status, message: message ?? null });
}
