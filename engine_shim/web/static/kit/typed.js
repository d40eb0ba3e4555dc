// What somebody types for a value: read with every digit, and a fault for a number that no run would read as it is typed.

import { findLossy, isObject, parseJson, readNumber } from "./json.js";
import { t } from "./words.js";

/** A value as it was typed: {value}, with a `fault` if a run would read one of its numbers as another one. */
export function checkDigits(value) {
  const found = findLossy(value);
  return found ? { value, fault: describeLossy(found) } : { value };
}

function describeLossy({ text, read }) {
  return read === null
    ? t("{text} is larger than a number can be.", { text })
    : t("{text} has more digits than a decimal number can keep: it would be read as {read}. A text keeps them all.", { text, read });
}

/** The value of a JSON text that is to be sent as it was typed. An Error for what cannot be. */
export function readJsonToSend(text) {
  const { value, fault } = checkDigits(parseTyped(text));
  if (fault) throw new Error(fault);
  return value;
}

function parseTyped(text) {
  try {
    return parseJson(text);
  } catch (error) {
    throw new Error(t("This is not JSON: {why}", { why: error.message }));
  }
}

/** The same for a text that has to be an object. */
export function readObjectToSend(text) {
  const value = readJsonToSend(text);
  if (!isObject(value)) throw new Error(t("This has to be an object: {example}", { example: '{"name": "value"}' }));
  return value;
}

/** The number of a text that is to be sent; undefined for an empty one. An Error for what is none. */
export function readNumberToSend(text) {
  const { value, fault } = checkDigits(readNumber(text));
  if (fault) throw new Error(fault);
  if (typeof value === "string") throw new Error(t("{text} is not a number.", { text: value }));
  return value;
}
