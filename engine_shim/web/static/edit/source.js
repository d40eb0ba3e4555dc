// The text of a definition, YAML or JSON: read, and changed so that comments, order and a writer's own lines stay. Pure.

import { isMap, isScalar, isSeq, parseDocument } from "../vendor/yaml.js";
import { asJsonNumber, exactNumber, ExactNumber, isNumber, isObject, parseJson, sameJson, writeJson } from "../kit/json.js";
import { keepLines } from "./lines.js";

/** What a text says: {data, error}; error is {message, line} of a text that cannot be read, and data then null. */
export function readText(text, format) {
  if (last?.text !== text || last.format !== format) last = { text, format, read: checkForm(format === "json" ? readJson(text) : readYaml(text)) };
  return last.read;
}

/** A text that says nothing is an empty definition. */
function checkForm({ data, error }) {
  if (!error && (data === null || data === undefined)) return { data: {}, error };
  return error || isObject(data) ? { data, error } : { data: null, error: { message: "a definition is an object with id and nodes", line: 1 } };
}

let last = null;
/** The text that was read last: a text that was just written is read again at once, to be shown. */

function readJson(text) {
  try {
    return { data: parseJson(text), error: null };
  } catch (error) {
    const [, at] = /position (\d+)/.exec(error.message) ?? [];
    return { data: null, error: { message: error.message, line: at === undefined ? null : lineAt(text, Number(at)) } };
  }
}

function readYaml(text) {
  try {
    const document = parseYaml(text);
    const [error] = document.errors;
    if (error) return { data: null, error: { message: error.message.split("\n")[0].replace(/:$/, ""), line: error.linePos?.[0].line ?? null } };
    return { data: document.toJS({ maxAliasCount: 100 }), error: null };
  } catch (error) {
    return { data: null, error: { message: error.message, line: null } };
  }
}

/** Numbers of YAML's core schema with every digit; those of other bases too, once a number of the script cannot hold them. */
const EXACT = [
  {
    tag: "tag:yaml.org,2002:float",
    default: true,
    test: /^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$/,
    identify: (value) => value instanceof ExactNumber,
    resolve: (text) => exactNumber(asJsonNumber(text)),
    stringify: ({ value }) => String(value),
  },
  { tag: "tag:yaml.org,2002:int", default: true, test: /^0(?:x[0-9a-fA-F]{13,}|o[0-7]{17,})$/, resolve: (text) => exactNumber(String(BigInt(text))), stringify: ({ value }) => String(value) },
];

const parseYaml = (text) => parseDocument(text, { customTags: (tags) => [...EXACT, ...tags] });

/** A value for `createNode`, which takes apart what it knows as a number. */
function withNumbers(document, value) {
  if (value instanceof ExactNumber) return Object.assign(document.createNode(0), { value });
  if (Array.isArray(value)) return value.map((each) => withNumbers(document, each));
  return isObject(value) ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withNumbers(document, each)])) : value;
}

const lineAt = (text, at) => text.slice(0, at).split("\n").length;

/** The text after `edit(target)`, where the target has get, set, remove, insert, setAfter (a key of the top,
 *  behind another), and mapStrings. An Error for a text that
 *  cannot be read, or a place that cannot be reached. */
export function changeText(text, format, edit) {
  if (format === "json") {
    const data = parseJson(text);
    const before = writeLike(data, text);
    edit(new JsonTarget(data));
    return keepMeaning(keepLines(text, before, writeLike(data, text)), writeLike(data, text), format);
  }
  const document = parseYaml(text);
  if (document.errors.length) throw document.errors[0];
  const style = styleOf(text);
  const before = document.toString(style);
  edit(new YamlTarget(document));
  const after = document.toString(style);
  return keepMeaning(keepLines(text, before, after), after, format);
}

/** The merged text, if it says what the written one says, else the written one. */
function keepMeaning(merged, written, format) {
  if (merged === written) return written;
  const [other, one] = [readText(written, format), readText(merged, format)];
  return !one.error && sameJson(one.data, other.data) ? merged : written;
}

/** A value as JSON with the indent of a text. */
const writeLike = (data, text) => `${writeJson(data, /^\{\n?(?:\t)/.test(text) ? "\t" : 2)}\n`;

/** How the writer of a YAML text writes. */
function styleOf(text) {
  const indent = /^[^\s#-][^\n]*:\n( +)[^\s#-]/m.exec(text)?.[1].length ?? 2;
  return {
    lineWidth: 0,
    blockQuote: "literal",
    indent: Math.min(8, Math.max(2, indent)),
    indentSeq: !/^[^\s#-][^\n]*:\n- /m.test(text),
    flowCollectionPadding: /\{ \S/.test(text),
  };
}

class JsonTarget {
  constructor(data) {
    this.data = data;
  }

  get(path) {
    return path.reduce((value, key) => value?.[key], this.data);
  }

  set(path, value) {
    const parent = this.#reach(path);
    parent[path.at(-1)] = value;
  }

  remove(path) {
    const parent = this.get(path.slice(0, -1));
    if (Array.isArray(parent)) parent.splice(path.at(-1), 1);
    else if (parent) delete parent[path.at(-1)];
  }

  insert(path, value) {
    this.#reach(path).splice(path.at(-1), 0, value);
  }

  setAfter(before, key, value) {
    const entries = Object.entries(this.data).filter(([name]) => name !== key);
    const at = entries.findIndex(([name]) => name === before);
    entries.splice(key in this.data ? Object.keys(this.data).indexOf(key) : at + 1, 0, [key, value]);
    for (const name of Object.keys(this.data)) delete this.data[name];
    Object.assign(this.data, Object.fromEntries(entries));
  }

  mapStrings(change) {
    for (const [key, value] of Object.entries(this.data)) this.data[key] = mapValue(value, change);
  }

  #reach(path) {
    let value = this.data;
    path.slice(0, -1).forEach((key, at) => (value = value[key] ??= typeof path[at + 1] === "number" ? [] : {}));
    return value;
  }
}

class YamlTarget {
  constructor(document) {
    this.document = document;
    if (document.contents === null || (isScalar(document.contents) && document.contents.value === null)) document.contents = document.createNode({});
  }

  get(path) {
    const node = this.document.getIn(path, true);
    return node?.toJS ? node.toJS(this.document) : node;
  }

  set(path, value) {
    this.#reach(path);
    const old = this.document.getIn(path, true);
    if (isScalar(old) && canKeepScalar(old, value)) old.value = value;
    else this.document.setIn(path, this.#make(path, value));
  }

  remove(path) {
    this.document.deleteIn(path);
  }

  insert(path, value) {
    this.#reach(path);
    this.document.getIn(path.slice(0, -1), true).items.splice(path.at(-1), 0, this.#make(path, value));
  }

  setAfter(before, key, value) {
    const isNew = !this.document.has(key);
    this.set([key], value);
    const { items } = this.document.contents;
    const at = items.findIndex((pair) => pair.key?.value === before);
    if (isNew && at >= 0) items.splice(at + 1, 0, items.pop());
  }

  mapStrings(change) {
    mapNode(this.document.contents, change);
  }

  /** A value as a node that is written as its neighbours in the list are; small objects without any stand on one line. */
  #make(path, value) {
    const node = this.document.createNode(withNumbers(this.document, value));
    if (isSeq(node)) for (const item of node.items) if (isSmall(item)) item.flow = true;
    const list = this.document.getIn(path.slice(0, -1), true);
    const last = isSeq(list) ? list.items.findLast(isMap) : null;
    if (isMap(node) && isSeq(list)) node.flow = last ? (last.flow ?? false) : isSmall(node);
    return node;
  }

  /** Make the collections above a place that are not there, or empty. */
  #reach(path) {
    for (let at = 1; at < path.length; at++) {
      const node = this.document.getIn(path.slice(0, at), true);
      const isEmpty = node === undefined || node === null || (isScalar(node) && node.value === null);
      if (isEmpty) this.document.setIn(path.slice(0, at), this.document.createNode(typeof path[at] === "number" ? [] : {}));
    }
  }
}

/** Whether a scalar keeps its way of writing, and its comment, with another value. */
function canKeepScalar(old, value) {
  if (isNumber(value) && isNumber(old.value)) return delete old.source, delete old.format, delete old.minFractionDigits;
  if (value !== null && typeof value === "object") return false;
  return typeof value === typeof old.value && (typeof value !== "string" || old.type !== "PLAIN" || !value.includes("\n"));
}

const isSmall = (node) => isMap(node) && node.items.length <= 4 && node.items.every((pair) => isScalar(pair.value) && String(pair.value.value).length < 40);

function mapNode(node, change) {
  if (isScalar(node)) {
    if (typeof node.value === "string") node.value = change(node.value);
  } else if (isMap(node)) for (const pair of node.items) mapNode(pair.value, change);
  else if (isSeq(node)) for (const item of node.items) mapNode(item, change);
}

/** A value of JSON with all its texts changed; keys stay. */
export function mapValue(value, change) {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((each) => mapValue(each, change));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, mapValue(each, change)]));
}

/** Write what is different in `wanted` to a target, place by place, so that the rest stays as it is written. */
export function writeDifferences(target, wanted, path = []) {
  const now = target.get(path);
  if (sameJson(now, wanted)) return;
  if (path.length && !(isObject(now) && isObject(wanted)) && !(Array.isArray(now) && Array.isArray(wanted))) return target.set(path, wanted);
  if (Array.isArray(wanted)) return writeItems(target, now, wanted, path);
  for (const key of Object.keys(now ?? {})) if (!(key in wanted)) target.remove([...path, key]);
  for (const [key, value] of Object.entries(wanted)) {
    if (key in (now ?? {})) writeDifferences(target, value, [...path, key]);
    else target.set([...path, key], value);
  }
}

/** Items are the same at the beginning and the end of a list, and those with the same id or tool are compared. */
function writeItems(target, now, wanted, path) {
  const keyOf = (item) => (isObject(item) ? (item.id ?? item.tool ?? null) : null);
  const left = [...now];
  wanted.forEach((item, at) => {
    const found = left.findIndex((each, n) => n >= at && (sameJson(each, item) || (keyOf(item) !== null && keyOf(each) === keyOf(item))));
    const isAtHand = at < left.length && keyOf(item) === null && found < 0 && left.length === wanted.length;
    if (found > at && found >= 0) for (let n = found - 1; n >= at; n--) left.splice(n, 1), target.remove([...path, n]);
    if (found >= 0 || isAtHand) return writeDifferences(target, item, [...path, at]), (left[at] = item);
    target.insert([...path, at], item);
    left.splice(at, 0, item);
  });
  for (let n = left.length - 1; n >= wanted.length; n--) target.remove([...path, n]);
}

/** A value as a text of a format. */
export function writeText(data, format) {
  if (format === "json") return writeLike(data, "");
  const document = parseYaml("");
  document.contents = document.createNode(withNumbers(document, data));
  return document.toString({ lineWidth: 0 });
}
