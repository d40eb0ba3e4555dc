// Placeholders in the texts of a definition: found, renamed, and put in where somebody types. Pure.

import { writeJson } from "../kit/json.js";

const PLAIN = /^[A-Za-z_][\w]*$/;
const INSIDE = /\{\{([^{}]*)\}\}/g;

/** `nodes.ID` and what follows in a text of a definition, with another id. */
export function renameInText(text, old, renamed) {
  return text.replace(INSIDE, (whole, inner) => `{{${renameInPath(inner, old, renamed)}}}`);
}

/** The same in a condition or the inside of a placeholder, where paths stand bare. */
export function renameInPath(text, old, renamed) {
  const id = old.replace(/[.*+?^${}()|[\]\\-]/g, "\\$&");
  const dotted = new RegExp(`\\bnodes\\.(?:${id}(?![\\w-])|"${id}")`, "g");
  const quoted = new RegExp(`\\bnodes\\["${id}"\\]`, "g");
  return text.replace(dotted, (found) => `nodes.${found.endsWith('"') ? writeJson(renamed) : renamed}`).replace(quoted, `nodes["${renamed}"]`);
}

/** The names `external.NAME` that the texts of a value ask for. */
export function externalNames(value) {
  const found = new Set();
  for (const [, inner] of writeJson(value ?? null).matchAll(INSIDE))
    for (const [, name] of inner.matchAll(/\bexternal\.([\w-]+)/g)) found.add(name);
  return [...found];
}

/** Where a placeholder is being typed: {from, filter} if `{{` stands open before the cursor, else null. */
export function openBraces(text, cursor) {
  const from = text.lastIndexOf("{{", cursor);
  if (from < 0 || from + 2 > cursor) return null;
  const inner = text.slice(from + 2, cursor);
  return /[{}\n]/.test(inner) ? null : { from, filter: inner.trim() };
}

/** The text with `path` put in at the cursor, as a placeholder or bare, in place of what was begun there: {text, cursor}. */
export function putIn(text, cursor, path, { bare = false } = {}) {
  const written = bare ? path : `{{${path}}}`;
  const open = bare ? null : openBraces(text, cursor);
  const [from, to] = open ? [open.from, text.startsWith("}}", cursor) ? cursor + 2 : cursor] : [cursor, cursor];
  return { text: text.slice(0, from) + written + text.slice(to), cursor: from + written.length };
}

/** A path of names, each quoted where it is no plain one. */
export function joinPath(names) {
  return names.map((name, at) => (at === 0 ? name : PLAIN.test(name) ? `.${name}` : `["${name}"]`)).join("");
}
