// Who waited for what in a run: its questions, calls and waits as spans of time. Pure.

import { callsOf } from "./steps.js";

/** The spans of a run: {begin, end, lanes: [{name, spans: [{kind, label, from, to, strand, n, open}]}]}, times in
 *  milliseconds. `kind` is model, tool, failed or wait; `now` closes what is not answered yet. */
export function readSpans(items, now) {
  const lanes = new Map();
  let begin = Infinity;
  let last = null;
  for (const item of items) {
    const at = time(item.at);
    if (at !== null) begin = Math.min(begin, at - 1000 * (item.seconds ?? 0));
    for (const span of spansOf(item, last ?? at, now)) {
      const name = item.node ?? (item.agent || item.root);
      if (!lanes.has(name)) lanes.set(name, []);
      lanes.get(name).push(span);
      begin = Math.min(begin, span.from);
    }
    last = latest(item, last);
  }
  const all = [...lanes.values()].flat();
  const end = Math.max(begin, ...all.slice(-5000).map(({ to }) => to), last ?? begin);
  return { begin: Number.isFinite(begin) ? begin : 0, end: Number.isFinite(end) ? end : 0, lanes: [...lanes].map(([name, spans]) => ({ name, spans })) };
}

function* spansOf(item, before, now) {
  const { strand, n } = item;
  if (item.kind === "step" && item.at !== null && item.seconds !== null)
    yield { kind: item.problem ? "failed" : "model", label: item.model ?? "", from: time(item.at) - 1000 * item.seconds, to: time(item.at), strand, n, open: false };
  else if (item.kind === "step" && item.state === "asking" && before !== null)
    yield { kind: "model", label: item.model ?? "", from: before, to: now, strand, n, open: true };
  for (const call of callsOf(item)) yield* spansOfCall(call, item, before, now);
}

function* spansOfCall(call, item, before, now) {
  const place = { strand: call.strand ?? item.strand, n: call.n ?? item.n };
  const first = time(item.at) ?? before;
  if (call.waits && first !== null) {
    const decided = time(call.decisions.at(-1)?.at);
    yield { kind: "wait", label: call.tool, from: first, to: decided ?? now, ...place, open: decided === null };
  }
  const since = time(call.awaits?.since);
  if (since !== null)
    yield { kind: "wait", label: call.tool, from: since, to: time(call.awaits.came) ?? now, ...place, open: call.awaits.came === null };
  const answered = time(call.answeredAt);
  if (answered !== null)
    yield { kind: call.state === "failed" ? "failed" : "tool", label: call.tool, from: answered - 1000 * call.seconds, to: answered, ...place, open: false };
}

function latest(item, last) {
  const times = [item.at, ...callsOf(item).flatMap((call) => [call.answeredAt, call.awaits?.came])].map(time).filter((each) => each !== null);
  return times.length ? Math.max(last ?? 0, ...times) : last;
}

function time(iso) {
  const found = iso ? Date.parse(iso) : NaN;
  return Number.isNaN(found) ? null : found;
}
