// The faults of a definition, by the places that they are about. Pure.

/** A place as a key: ["nodes", 0, "id"] is "nodes/0/id". */
export const keyOf = (path) => path.join("/");

/** The faults of an answer of the check: [{path, key, line, node, message, kind: bad | warn}], each once. */
export function listFaults(answer) {
  if (!answer) return [];
  const all = [...(answer.problems ?? []).map((each) => ({ ...each, kind: "bad" })), ...(answer.warnings ?? []).map((each) => ({ ...each, kind: "warn" }))];
  return all.map((each) => ({ ...each, path: each.path ?? [], key: keyOf(each.path ?? []) }));
}

/** What is said of a place itself; with `below`, of everything within it too. Problems before warnings. */
export function faultsAt(faults, path, { below = false } = {}) {
  const key = keyOf(path);
  return faults.filter((each) => each.key === key || (below && (key === "" || each.key.startsWith(`${key}/`))));
}

/** The texts of faults as one text, or "" without any. */
export const textOf = (faults) => faults.map(({ message }) => message).join("\n");

/** How many problems and warnings each node has, and each edge's source: a Map from node to {bad, warn}. */
export function countByNode(faults, nodes, edges) {
  const found = new Map();
  for (const { path, kind } of faults) {
    const name = path[0] === "nodes" ? nodes.find(({ index }) => index === path[1])?.name : path[0] === "edges" ? edges.find(({ index }) => index === path[1])?.from : undefined;
    if (name === undefined) continue;
    const counts = found.get(name) ?? { bad: 0, warn: 0 };
    counts[kind] += 1;
    found.set(name, counts);
  }
  return found;
}

/** The lines with faults: a Map from line number to {kind, text}. */
export function faultyLines(faults) {
  const found = new Map();
  for (const { line, kind, message } of faults) {
    if (!line) continue;
    const before = found.get(line);
    found.set(line, { kind: before?.kind === "bad" ? "bad" : kind, text: before ? `${before.text}\n${message}` : message });
  }
  return found;
}

/** Where the form shows a place: the node that it belongs to, or "" for the workflow itself. */
export function nodeOfPath(path, nodes, edges) {
  if (path[0] === "nodes") return nodes.find(({ index }) => index === path[1])?.name ?? "";
  if (path[0] === "edges") return edges.find(({ index }) => index === path[1])?.from ?? "";
  return "";
}
