// Where the nodes and edges of a workflow's definition are drawn. Pure.

import { Graph, layout } from "../vendor/dagre.js";
import { writeJson } from "../kit/json.js";

const NODE_HEIGHT = 44;
const CHARACTER = 7.4;
const SMALL = 5.8;
/** How many characters of an edge's condition are drawn. */
export const LONGEST_LABEL = 22;
const [NARROWEST, WIDEST] = [96, 210];
const REFERENCE = /\{\{[^{}]*?\bnodes(?:\.([\w-]+)|\["([^"]+)"\])/g;

/** The edges of a definition: {from, to, label, error, back}; without any, those that its placeholders imply. */
export function readEdges(definition) {
  const names = new Set(definition.nodes.map(nameOf));
  const edges = definition.edges
    ? definition.edges.map((edge) => ({ from: edge.from, to: edge.to, label: edge.when ?? edge.ask ?? "", error: edge.on === "error" }))
    : impliedEdges(definition.nodes, names);
  const known = edges.filter(({ from, to }) => names.has(from) && names.has(to));
  return markBackEdges(definition, known);
}

/** The name of a node: its id, or its tool. */
export const nameOf = (node) => node.id ?? node.tool ?? "";

/** Places of all nodes and lines of all edges: {width, height, nodes: [{name, tool, x, y, width, height}], edges}. */
export function layOut(definition, direction = "TB") {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: direction, nodesep: 24, ranksep: 34, marginx: 8, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of definition.nodes) {
    const longest = Math.max(nameOf(node).length, (node.tool ?? "").length);
    graph.setNode(keyOf(nameOf(node)), { width: Math.min(WIDEST, Math.max(NARROWEST, longest * CHARACTER + 40)), height: NODE_HEIGHT });
  }
  const edges = readEdges(definition);
  edges.forEach((edge, at) => {
    const size = edge.label || edge.error ? { width: 12 + SMALL * Math.min(LONGEST_LABEL, edge.label.length || 8), height: 14, labelpos: "c" } : {};
    graph.setEdge(keyOf(edge.from), keyOf(edge.to), size, String(at));
  });
  layout(graph);
  const { width, height } = graph.graph();
  return {
    width: Math.ceil(width) || 0,
    height: Math.ceil(height) || 0,
    nodes: definition.nodes.map((node) => ({ name: nameOf(node), tool: node.tool ?? "", ...placeOf(graph.node(keyOf(nameOf(node)))) })),
    edges: edges.map((edge, at) => ({ ...edge, ...lineOf(graph.edge(keyOf(edge.from), keyOf(edge.to), String(at))) })),
  };
}

/** A node's key in the graph: the library keeps nodes in plain objects, which have a "constructor" of their own. */
const keyOf = (name) => `node ${name}`;

const placeOf = ({ x, y, width, height }) => ({ x: x - width / 2, y: y - height / 2, width, height });

function lineOf({ points, x, y }) {
  const middle = points[Math.floor(points.length / 2)];
  return { points, x: x ?? middle.x, y: y ?? middle.y };
}

/** A smooth line through points, as the `d` of an SVG path. */
export function drawLine(points) {
  const [first, ...rest] = points;
  if (rest.length < 2) return `M${at(first)}L${rest.map(at).join(" ")}`;
  const pieces = [`M${at(first)}`];
  for (let n = 0; n < rest.length - 1; n++) {
    const end = n === rest.length - 2 ? rest[n + 1] : { x: (rest[n].x + rest[n + 1].x) / 2, y: (rest[n].y + rest[n + 1].y) / 2 };
    pieces.push(`Q${at(rest[n])} ${at(end)}`);
  }
  return pieces.join("");
}

const at = ({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`;

function impliedEdges(nodes, names) {
  const found = new Map();
  for (const node of nodes) {
    for (const [, plain, quoted] of writeJson(node.config ?? {}).replaceAll('\\"', '"').matchAll(REFERENCE)) {
      const from = plain ?? quoted;
      if (names.has(from) && from !== nameOf(node)) found.set(`${from}\0${nameOf(node)}`, { from, to: nameOf(node), label: "", error: false });
    }
  }
  return [...found.values()];
}

/** Edges whose target is on the depth-first path from the entries lead back. */
function markBackEdges(definition, edges) {
  const outgoing = new Map(definition.nodes.map((node) => [nameOf(node), []]));
  const targets = new Set();
  for (const edge of edges) {
    outgoing.get(edge.from).push(edge);
    targets.add(edge.to);
  }
  const entries = definition.entry ? [definition.entry].flat() : [...outgoing.keys()].filter((name) => !targets.has(name));
  const left = new Set();
  const back = new Set();
  const visit = (name, path) => {
    for (const edge of outgoing.get(name) ?? []) {
      if (path.has(edge.to)) back.add(edge);
      else if (!left.has(edge.to)) visit(edge.to, new Set([...path, edge.to]));
    }
    left.add(name);
  };
  for (const entry of entries) if (!left.has(entry)) visit(entry, new Set([entry]));
  return edges.map((edge) => ({ ...edge, back: back.has(edge) }));
}
