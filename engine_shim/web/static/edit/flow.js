// A workflow's definition as a graph: its nodes and edges, also of one that is not finished. Pure.

import { isObject, writeJson } from "../kit/json.js";
import { nameOf, readEdges } from "../run/graph_layout.js";

/** The code of the tool that is an agent. */
export const AGENT = "agent_core";

/** The parts of a definition that can be drawn: {nodes, edges?, entry?} in the form of one without faults. */
export function drawable(data) {
  const nodes = [];
  const known = new Set();
  for (const { name, node } of listNodes(data)) if (name && !known.has(name)) known.add(name), nodes.push({ ...node, id: name, tool: asText(node.tool) ?? "" });
  const edges = Array.isArray(data?.edges) ? listEdges(data).filter(({ from, to }) => known.has(from) && known.has(to)) : undefined;
  const entry = [data?.entry ?? []].flat().filter((name) => known.has(name));
  return { nodes, ...(edges && { edges: edges.map(({ edge }) => ({ ...edge, when: asText(edge.when), ask: asText(edge.ask) })) }), ...(entry.length && { entry }), indices: edges?.map(({ index }) => index) };
}

const asText = (value) => (value === undefined || value === null ? undefined : typeof value === "string" ? value : writeJson(value));

/** The nodes as they stand: [{name, index, node}]. */
export function listNodes(data) {
  const nodes = Array.isArray(data?.nodes) ? data.nodes : [];
  return nodes.flatMap((node, index) => (isObject(node) ? [{ name: idOf(node), index, node }] : []));
}

/** The id of a node: its own, or what its tool's code makes. */
export function idOf(node) {
  return String(node.id ?? String(node.tool ?? "").replaceAll(".", "_").replaceAll(":", "_"));
}

/** The edges as they stand: [{from, to, index, edge}]. */
export function listEdges(data) {
  const edges = Array.isArray(data?.edges) ? data.edges : [];
  return edges.flatMap((edge, index) => (isObject(edge) ? [{ from: edge.from, to: edge.to, index, edge }] : []));
}

/** The edges that are drawn, those that placeholders imply too: [{from, to, back, …}]. */
export const drawnEdges = (data) => readEdges(drawable(data));

/** The names of the nodes whose outputs a node may read: those before it, and in a loop the ones of the round before. */
export function nodesBefore(data, name) {
  const names = listNodes(data).map((each) => each.name);
  const edges = drawnEdges(data);
  if (Array.isArray(data?.edges)) return reach(name, edges.map(({ from, to }) => [to, from]));
  const after = reach(name, edges.map(({ from, to }) => [from, to]));
  return new Set(names.filter((each) => each !== name && !after.has(each)));
}

function reach(start, pairs) {
  const found = new Set();
  const left = [start];
  while (left.length) {
    const at = left.pop();
    for (const [from, to] of pairs) if (from === at && !found.has(to)) found.add(to), left.push(to);
  }
  return found;
}

/** An id that no node has: `wanted`, or with a number. */
export function freeId(data, wanted) {
  const taken = new Set(listNodes(data).map(({ name }) => name));
  const base = wanted.replace(/[^\w-]/g, "_").replace(/^-+/, "") || "node";
  for (let n = 1; ; n++) {
    const id = n === 1 ? base : `${base}_${n}`;
    if (!taken.has(id)) return id;
  }
}

export { nameOf };
