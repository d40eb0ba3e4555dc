// How far each node of a workflow came in a run, and which edges were taken. Pure.

import { callsOf, isOpen } from "./steps.js";

/** The state of each node by its name: {state, visits}: running, waiting, done, failed, skipped, cancelled; nodes that were not
 *  visited are left out, and `state` of all is "skipped" or "ahead" as the run has ended or goes on. */
export function readNodeStates(items) {
  const goOn = nodesThatGoOn(items);
  const found = new Map();
  for (const item of items) {
    if (item.node === null || item.edge || item.root !== "flow") continue;
    const known = found.get(item.node);
    const isAgain = known === undefined || item.visit > known.visits || item.attempt > known.attempt;
    const node = isAgain ? { visits: item.visit, attempt: item.attempt, own: "running", isEach: false, isOpen: false, hasFailed: false } : known;
    if (item.below.length === 0) Object.assign(node, { own: ownState(item), isEach: item.kind === "batch" });
    node.isOpen ||= callsOf(item).some(isOpen);
    node.hasFailed ||= ITEM.test(item.below.join("/")) && endState(item) === "failed";
    found.set(item.node, node);
  }
  return new Map([...found].map(([name, node]) => [name, { visits: node.visits, state: stateOf(node, goOn.has(name)) }]));
}

/** The strand of an item of `foreach`, below that of its node. */
const ITEM = /^\d+\.\d+$/;

/** The nodes that go on when one of their items fails. */
function nodesThatGoOn(items) {
  const begin = items.find((item) => item.kind === "begin" && item.loop === "flow" && item.depth === 0);
  const nodes = begin?.record.definition?.nodes ?? [];
  return new Set(nodes.filter((each) => each.on_item_error === "continue").map((each) => each.id ?? each.tool));
}

function stateOf({ own, isEach, isOpen, hasFailed }, goesOn) {
  if (own === "running" && isOpen) return "waiting";
  return isEach && own === "done" && hasFailed && !goesOn ? "failed" : own;
}

/** The state of a node as far as an item of its own strand says it. */
function ownState(item) {
  if (item.kind === "batch") return item.batchSeconds === undefined ? "running" : "done";
  return endState(item);
}

function endState(item) {
  if (item.kind === "end") return { final: "done", completed: "done", cancelled: "cancelled" }[item.reason] ?? "failed";
  if (item.kind !== "call") return "running";
  return { done: "done", skipped: "skipped", failed: "failed", denied: "failed", refused: "failed", cancelled: "cancelled" }[item.call.state] ?? "running";
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
