// The entries of an agent's allowed_tools: a tool's code or a pattern, or an object that binds it. Pure.

import { isObject, readNumber, writeJson } from "../kit/json.js";

/** The tool that an entry names. */
export const toolOf = (entry) => (typeof entry === "string" ? entry : String(entry?.tool ?? ""));

/** Whether an entry is a pattern for several tools. */
export const isPattern = (name) => /[*?[]/.test(name);

/** What an entry binds its tool by, in a few words each. */
export function boundsOf(entry) {
  if (!isObject(entry)) return [];
  const said = [];
  const preset = Object.keys(entry.preset ?? {});
  if (preset.length) said.push(["preset", preset.join(", ")]);
  for (const key of ["approval", "max_calls", "rate_limit", "timeout"]) if (entry[key] !== undefined && entry[key] !== null) said.push([key, String(entry[key])]);
  if (entry.args) said.push(["args", Object.keys(entry.args.properties ?? entry.args).join(", ")]);
  if (entry.provenance && writeJson(entry.provenance) !== "{}") said.push(["provenance", isObject(entry.provenance) ? Object.keys(entry.provenance).join(", ") : [entry.provenance].flat().join(", ")]);
  if (entry.trusted) said.push(["trusted", ""]);
  return said;
}

/** The list with a tool, or without it. */
export function toggleTool(entries, name, on) {
  const others = entries.filter((entry) => toolOf(entry) !== name);
  return on ? (others.length < entries.length ? entries : [...entries, name]) : others;
}

/** Change one bound of the entry at a place: it becomes an object with the first, and a name again without the last.
 *  `keys` is the place in the entry. */
export function writeBound(target, path, keys, value) {
  const entry = target.get(path);
  if (!isObject(entry)) {
    if (value === undefined) return;
    target.set(path, { tool: toolOf(entry) });
  }
  if (value === undefined) removeBound(target, path, keys);
  else target.set([...path, ...keys], value);
}

function removeBound(target, path, keys) {
  if (target.get([...path, ...keys]) !== undefined) target.remove([...path, ...keys]);
  for (let at = keys.length - 1; at > 0; at--) {
    const left = target.get([...path, ...keys.slice(0, at)]);
    if (!isObject(left) || Object.keys(left).length) break;
    target.remove([...path, ...keys.slice(0, at)]);
  }
  const left = target.get(path);
  if (isObject(left) && Object.keys(left).join() === "tool") target.set(path, left.tool);
}

/** What `args` allows for an argument, as the form shows it: {kind: any | values | pattern | range | other, …}. */
export function readNarrowing(schema) {
  if (schema === undefined) return { kind: "any" };
  const keys = Object.keys(isObject(schema) ? schema : { other: 1 }).sort().join();
  if (keys === "enum" && Array.isArray(schema.enum)) return { kind: "values", values: schema.enum };
  if (keys === "const") return { kind: "values", values: [schema.const] };
  if (keys === "pattern") return { kind: "pattern", pattern: schema.pattern };
  if (["minimum", "maximum", "maximum,minimum"].includes(keys)) return { kind: "range", minimum: schema.minimum, maximum: schema.maximum };
  return { kind: "other" };
}

/** The values that a text lists, one a line, as the type of an argument has them. */
export function readValues(text, type) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return lines.map((line) => (type === "integer" || type === "number" ? readNumber(line) : type === "boolean" ? line === "true" : line));
}
