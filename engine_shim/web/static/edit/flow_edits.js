// What is done to a workflow's graph, as edits of its text: nodes and edges are added, renamed, removed. Pure.

import { drawnEdges, idOf, listEdges, listNodes } from "./flow.js";
import { renameInPath, renameInText } from "./placeholders.js";

/** A new node at the end; with `after` an edge leads to it from there. */
export function addNode(target, { id, tool, config = {}, after = null }) {
  const data = target.get([]);
  target.set(["nodes", listNodes(data).length ? data.nodes.length : 0], { id, tool, config });
  if (after !== null) connect(target, after, id);
}

/** Without a node, and without the edges that lead to and from it. */
export function removeNode(target, index) {
  const data = target.get([]);
  const name = idOf(data.nodes[index]);
  const isOnly = listNodes(data).filter((each) => each.name === name).length === 1;
  target.remove(["nodes", index]);
  if (!isOnly) return;
  for (const { from, to, index: at } of listEdges(data).reverse()) if (from === name || to === name) target.remove(["edges", at]);
  for (const key of ["entry", "ends"]) dropName(target, key, data[key], name);
}

function dropName(target, key, value, name) {
  if (value === name) target.remove([key]);
  else if (Array.isArray(value) && value.includes(name)) {
    const left = value.filter((each) => each !== name);
    if (left.length) target.set([key], left);
    else target.remove([key]);
  }
}

/** A node under another id, with all that names it. */
export function renameNode(target, index, renamed) {
  const data = target.get([]);
  const old = idOf(data.nodes[index]);
  target.mapStrings((text) => renameInText(text, old, renamed));
  target.set(["nodes", index, "id"], renamed);
  for (const { from, to, index: at, edge } of listEdges(data)) {
    if (from === old) target.set(["edges", at, "from"], renamed);
    if (to === old) target.set(["edges", at, "to"], renamed);
    if (typeof edge.when === "string") target.set(["edges", at, "when"], renameInPath(edge.when, old, renamed));
  }
  for (const key of ["entry", "ends"]) {
    if (data[key] === old) target.set([key], renamed);
    else if (Array.isArray(data[key])) data[key].forEach((name, at) => name === old && target.set([key, at], renamed));
  }
}

/** A further edge. Edges that only placeholders implied are written down first, so that they stay. An edge that would lead
 *  back to the beginning makes the entry be named. */
export function connect(target, from, to) {
  const data = target.get([]);
  if (!Array.isArray(data.edges)) target.set(["edges"], drawnEdges(data).map((edge) => ({ from: edge.from, to: edge.to })));
  const now = target.get([]);
  const entries = entriesOf(now);
  target.set(["edges", now.edges.length], { from, to });
  const left = entriesOf(target.get([]));
  if (!now.entry && left.length === 0 && entries.length) target.set(["entry"], entries.length === 1 ? entries[0] : entries);
}

function entriesOf(data) {
  const reached = new Set(listEdges(data).map(({ to }) => to));
  return listNodes(data).map(({ name }) => name).filter((name) => !reached.has(name));
}

/** Without an edge. */
export function disconnect(target, index) {
  target.remove(["edges", index]);
}

/** An edge that is taken always, `when` a condition holds, when a model says yes to what it is asked (`ask`), or on `error`. */
export function setEdgeKind(target, index, kind) {
  const edge = target.get(["edges", index]);
  for (const key of ["when", "ask", "on", "model"]) if (key in edge && !(key === kind || (kind === "ask" && key === "model"))) target.remove(["edges", index, key]);
  if (kind === "error") target.set(["edges", index, "on"], "error");
  else if (kind !== "always" && !(kind in edge)) target.set(["edges", index, kind], kind === "when" ? "output" : "");
}

/** always, when, ask or error. */
export const edgeKind = (edge) => (edge.on === "error" ? "error" : edge.ask !== undefined ? "ask" : edge.when !== undefined ? "when" : "always");

/** Set a value at a place; `undefined` takes it away, with the objects above it that are then empty. */
export function writeAt(target, path, value) {
  if (value !== undefined) return target.set(path, value);
  if (target.get(path) === undefined) return;
  target.remove(path);
  for (let at = path.length - 1; at > 0; at--) {
    const above = path.slice(0, at);
    const left = target.get(above);
    const mayGo = typeof above.at(-1) === "string" && !["config", "nodes", "edges"].includes(above.at(-1));
    if (!mayGo || left === null || typeof left !== "object" || Object.keys(left).length) return;
    target.remove(above);
  }
}
