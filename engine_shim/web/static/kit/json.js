// JSON whose numbers keep every digit: a number of the script holds about 16, and forgets that 1.0 was no 1. Pure.

const MAYBE_EXACT = /\d[\d.]{15}|\d[eE]|\d\.\d*0(?!\d)|-0/;
const TOKEN = /[\s,:]*(?:([[\]{}])|(")|(-?\d[\d.eE+-]*)|(true|false|null))/y;
const WORDS = { true: true, false: false, null: null };
const DECIMAL = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;

/** A number that the script would write otherwise than it was written, such as 1234567890123456789, 0.50 or 1e400. It
 *  counts as the nearest number, and is written as it was. */
export class ExactNumber extends Number {
  #text;

  constructor(text) {
    super(text);
    this.#text = text;
  }

  toString() {
    return this.#text;
  }
}

/** The value of a number as JSON writes it. */
export const exactNumber = (text) => (String(Number(text)) === text ? Number(text) : new ExactNumber(text));

export const isNumber = (value) => typeof value === "number" || value instanceof ExactNumber;

/** Whether a value is an object of JSON: no list, and no number either. */
export const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof ExactNumber);

/** The value of a JSON text. `writeJson` writes it again as it was. */
export function parseJson(text) {
  const value = JSON.parse(text); // it also says what is wrong with a text that is none
  return typeof value !== "string" && MAYBE_EXACT.test(text) ? readValue(new Tokens(text)) : value;
}

/** The value of a JSON text in which each object has a key once; an error for any other text. */
export function parseUnambiguous(text) {
  JSON.parse(text);
  return readValue(new Tokens(text, true));
}

/** A value as JSON, as `JSON.stringify` writes it, with each number as it was written. */
export function writeJson(value, indent = "") {
  return write(value, typeof indent === "number" ? " ".repeat(indent) : indent, "\n");
}

/** Whether two values are written alike. */
export const sameJson = (one, other) => one === other || writeJson(one) === writeJson(other);

/** What is typed for a number: the number, nothing, or the text where it is no number (a placeholder, or not one yet). */
export function readNumber(text) {
  const typed = text.trim();
  if (typed === "") return undefined;
  return DECIMAL.test(typed) ? exactNumber(asJsonNumber(typed)) : typed;
}

/** A decimal number as JSON writes it: +5, 007, .5 and 5. become 5, 7, 0.5 and 5. */
export function asJsonNumber(text) {
  const [, sign, whole, fraction, exponent] = /^([-+]?)0*(\d*)(?:\.(\d*))?(.*)$/.exec(text);
  return `${sign === "-" ? "-" : ""}${whole || "0"}${fraction ? `.${fraction}` : ""}${exponent}`;
}

/** A number in a value that a run would read as another one, since it has more digits than a number with a point can
 *  have, or is too large: {text, read}; null without any. Integers have as many digits as they like. */
export function findLossy(value) {
  if (value instanceof ExactNumber) return isLossy(String(value)) ? { text: String(value), read: Number.isFinite(Number(value)) ? String(Number(value)) : null } : null;
  if (value === null || typeof value !== "object") return null;
  for (const each of Object.values(value)) {
    const found = findLossy(each);
    if (found) return found;
  }
  return null;
}

const isLossy = (text) => /[.eE]/.test(text) && digitsOf(text) !== digitsOf(String(Number(text)));

/** A number as its sign, its digits without zeros around them, and their place, so that equal ones are equal texts. */
function digitsOf(text) {
  const [, sign, whole, fraction = "", exponent = "0"] = /^(-?)(\w*?)(?:\.(\d*))?(?:[eE]([-+]?\d+))?$/.exec(text) ?? [];
  const all = `${whole}${fraction}`.replace(/^0+/, "");
  const digits = all.replace(/0+$/, "");
  return digits === "" ? "0" : `${sign}${digits}e${BigInt(exponent) - BigInt(fraction.length) + BigInt(all.length - digits.length)}`;
}

/** The tokens of a text that is known to be JSON, one after another: [, mark, text, number, word], one of which is there. */
class Tokens {
  #text;
  #at = 0;
  /** Whether a key may be there once alone. */
  isOnce;

  constructor(text, isOnce = false) {
    this.#text = text;
    this.isOnce = isOnce;
  }

  next() {
    TOKEN.lastIndex = this.#at;
    const found = TOKEN.exec(this.#text);
    this.#at = TOKEN.lastIndex;
    if (found[2]) found[2] = this.#readString();
    return found;
  }

  /** A text whose first quote is read; it may be long, so that no expression looks for its end. */
  #readString() {
    let end = this.#text.indexOf('"', this.#at);
    while (this.#isEscaped(end)) end = this.#text.indexOf('"', end + 1);
    const quoted = this.#text.slice(this.#at - 1, end + 1);
    this.#at = end + 1;
    return quoted.includes("\\") ? JSON.parse(quoted) : quoted.slice(1, -1);
  }

  #isEscaped(at) {
    let n = 0;
    while (this.#text[at - 1 - n] === "\\") n += 1;
    return n % 2 === 1;
  }
}

function readValue(tokens, [, mark, text, number, word] = tokens.next()) {
  if (mark === "{") return readObject(tokens);
  if (mark === "[") return readList(tokens);
  if (text !== undefined) return text;
  return number === undefined ? WORDS[word] : exactNumber(number);
}

function readObject(tokens) {
  const found = {};
  for (let token = tokens.next(); token[1] !== "}"; token = tokens.next()) {
    if (tokens.isOnce && Object.hasOwn(found, token[2])) throw new SyntaxError("it has a key twice");
    setOwn(found, token[2], readValue(tokens));
  }
  return found;
}

/** Set a key of an object; "__proto__" is one as well. */
function setOwn(found, key, value) {
  if (key === "__proto__") Object.defineProperty(found, key, { value, enumerable: true, configurable: true, writable: true });
  else found[key] = value;
}

function readList(tokens) {
  const found = [];
  for (let token = tokens.next(); token[1] !== "]"; token = tokens.next()) found.push(readValue(tokens, token));
  return found;
}

function write(value, indent, line) {
  if (value instanceof ExactNumber) return String(value);
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const deeper = line + indent;
  const isList = Array.isArray(value);
  const gap = indent === "" ? "" : " ";
  const items = isList
    ? value.map((each) => write(each, indent, deeper) ?? "null")
    : Object.entries(value).flatMap(([key, each]) => (each === undefined ? [] : [`${JSON.stringify(key)}:${gap}${write(each, indent, deeper)}`]));
  const [open, close] = isList ? "[]" : "{}";
  if (items.length === 0 || indent === "") return `${open}${items.join(",")}${close}`;
  return `${open}${deeper}${items.join(`,${deeper}`)}${line}${close}`;
}
