// Strands by their names: which node of the workflow one belongs to, and how deep it lies.

/** A strand as a person names it: {node, edge, visit, attempt, below, depth}. `node` is null for the run's own strand. */
export function readStrand(path) {
  const [root, visit, ...below] = path.split("/");
  if (visit === undefined) return { node: null, edge: false, visit: 1, attempt: 0, below, depth: 0, root };
  const found = /^(.*)\.(\d+)(?:~(\d+))?$/.exec(visit);
  const name = decode(found?.[1] ?? visit);
  const isItem = found !== null && found[1] === "";
  const isPlain = /^\d+\.\d+/.test(visit);
  return {
    node: isItem || isPlain || root !== "flow" ? null : name,
    edge: /[>!]/.test(name),
    visit: Number(found?.[2] ?? 1),
    attempt: Number(found?.[3] ?? 0),
    below: root === "flow" ? below : [visit, ...below],
    depth: below.filter((part) => !/^\d+\.\d+$/.test(part)).length + (root === "flow" ? 0 : isPlain ? 0 : 1),
    root,
  };
}

/** The strand in which the batch stands that a strand is an item of; itself when it is none. */
export function strandOfBatch(path) {
  return path.replace(/\/\d+\.\d+$/, "");
}

/** The agent's run that a strand belongs to: the strand itself, without the item of a batch. */
export const nameOfStrand = (path) => path.split("/").map(decode).join(" / ");

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
