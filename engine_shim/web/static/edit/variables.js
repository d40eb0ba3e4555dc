// The variables that a text may use, as the helper lists them. Pure.

import { joinPath } from "./placeholders.js";

/** The variables for a place: those of the check that `before` (a Set of node names, or null for all) lets through, and in a
 *  node with foreach its item: [{path, write, type, certain, group}]. `write` is what a placeholder says. */
export function listVariables(answer, { before = null, hasItem = false } = {}) {
  const all = (answer?.variables ?? []).filter(({ node }) => !node || before === null || before.has(node));
  const listed = all.map((each) => ({ ...each, write: each.certain === false ? `${each.path}?` : each.path, group: groupOf(each.path) }));
  const items = hasItem ? ["item", "index"].map((path) => ({ path, write: path, type: path === "index" ? "integer" : "", certain: true, group: "item" })) : [];
  return [...items, ...listed];
}

/** The same for a condition of an edge: paths stand bare, and the output of the node that it leaves is `output`. */
export function listBareVariables(answer, source) {
  const prefix = joinPath(["nodes", source]);
  const own = (answer?.variables ?? []).filter(({ node }) => node === source).map((each) => ({ ...each, path: each.path.replace(prefix, "output") }));
  const others = (answer?.variables ?? []).filter(({ node, path }) => node !== source && !path.startsWith("env.") && !path.startsWith("run."));
  return [...own, ...others].map((each) => ({ ...each, write: each.path, group: groupOf(each.path) }));
}

/** Those whose path has all words of a filter, the ones that begin with it first. */
export function filterVariables(variables, filter) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const found = variables.filter(({ path }) => words.every((word) => path.toLowerCase().includes(word)));
  const begins = ({ path }) => path.toLowerCase().startsWith(words[0] ?? "");
  return [...found.filter(begins), ...found.filter((each) => !begins(each))];
}

const groupOf = (path) => /^\w+/.exec(path)?.[0] ?? "";
