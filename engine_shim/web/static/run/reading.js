// All that the page shows of a run, read from its rows once for each change of them.

import { useMemo } from "../vendor/preact.js";
import { indexItems, isProblem, readSteps } from "./steps.js";
import { readEdges } from "./graph_layout.js";
import { readNodeStates, readTaken } from "./node_states.js";
import { openCalls, openWaits, readBudgets, readDecisions, readSummary } from "./summary.js";

/** {items, index, rowOf, summary, budgets, decisions, open, waits, states, taken, fault}. Records that are none of ours may say
 *  anything: where they cannot be read, `fault` says why, and the rest is empty. */
export function useReading(rows) {
  return useMemo(() => {
    try {
      return readAll(rows);
    } catch (error) {
      return { ...readAll([]), fault: error.message };
    }
  }, [rows]);
}

function readAll(rows) {
  const items = readSteps(rows);
  const summary = readSummary(rows, items);
  const byPlace = new Map(rows.map((row) => [`${row.strand}:${row.n}`, row]));
  const end = items.findLast((item) => item.kind === "end" && item.loop === "flow" && item.node === null);
  const path = end?.path ?? visitsOf(items);
  return {
    items,
    summary,
    index: indexItems(items),
    rowOf: (strand, n) => byPlace.get(`${strand}:${n}`),
    budgets: readBudgets(rows),
    decisions: readDecisions(items),
    open: openCalls(items),
    waits: openWaits(items),
    states: readNodeStates(items),
    fault: "",
    taken: summary.definition ? readTaken(path, readEdges(summary.definition)) : new Set(),
  };
}

/** The nodes in the order in which they were begun, in a run that has not ended. */
function visitsOf(items) {
  const found = new Map();
  for (const item of items) if (item.node !== null && !item.edge) found.set(`${item.node}.${item.visit}`, item.node);
  return [...found.values()];
}

/** The items that a reader wants to see: of a node, with problems alone, with a text in them. */
export function filterItems(items, { node, only, text }, rowOf) {
  if (!node && !only && !text) return items;
  const wanted = text.toLowerCase();
  return items.filter(
    (item) =>
      (!node || item.node === node) &&
      (only !== "problems" || isProblem(item)) &&
      (!wanted || item.refs.some(({ strand, n }) => rowOf(strand, n)?.raw.toLowerCase().includes(wanted))),
  );
}
