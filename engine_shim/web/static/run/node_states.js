// How far each node of a workflow came in a run, and which edges were taken. Pure.

import { callsOf, isOpen } from "./steps.js";

/** The state of each node by its name: {state, visits}: running, waiting, done, failed, cancelled; nodes that were not
 *  visited are left out, and `state` of all is "skipped" or "ahead" as the run has ended or goes on. */
export function readNodeStates(items) {
  const found = new Map();
  for (const item of items) {
    if (item.node === null || item.edge || item.root !== "flow") continue;
    const known = found.get(item.node) ?? { state: "running", visits: 0, seconds: 0 };
    known.visits = Math.max(known.visits, item.visit);
    known.state = stateAfter(item, known.state);
    found.set(item.node, known);
  }
  return found;
}

function stateAfter(item, before) {
  if (item.below.length > 0) return callsOf(item).some(isOpen) ? "waiting" : before === "waiting" ? "running" : before;
  if (item.kind === "end") return { final: "done", completed: "done", cancelled: "cancelled" }[item.reason] ?? "failed";
  const calls = callsOf(item);
  if (calls.some(isOpen)) return "waiting";
  if (item.kind !== "call") return "running";
  return { done: "done", failed: "failed", denied: "failed", refused: "failed", cancelled: "cancelled" }[item.call.state] ?? "running";
}

/** The edges that were taken, as "from\0to": those between a node that was visited and one visited right after it. */
export function readTaken(path, edges) {
  const taken = new Set();
  const seen = new Map();
  (path ?? []).forEach((name, at) => {
    for (const edge of edges) if (edge.to === name && seen.has(edge.from)) taken.add(`${edge.from}\0${edge.to}`);
    seen.set(name, at);
  });
  return taken;
}
