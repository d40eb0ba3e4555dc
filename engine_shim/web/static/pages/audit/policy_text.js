// A policy for all runs of an audit, as it is written in a form. Pure.

import { parseJson, writeJson } from "../../kit/json.js";
import { checkDigits, readNumberToSend } from "../../kit/typed.js";

/** {policy, fault}: null without any. `text` is a JSON object, or a line key=value for each key. */
export function readPolicy({ text, denied, maxSteps }) {
  const { values, fault } = readText(text.trim());
  const { steps, fault: stepsFault } = readSteps(maxSteps);
  const codes = denied.split(/[\s,]+/).filter(Boolean);
  const policy = { ...values, ...(codes.length > 0 ? { deny_tools: codes } : {}), ...(steps === undefined ? {} : { max_steps: steps }) };
  return { policy: Object.keys(policy).length > 0 ? policy : null, fault: fault || stepsFault || (checkDigits(values).fault ?? "") };
}

function readSteps(text) {
  try {
    return { steps: readNumberToSend(text), fault: "" };
  } catch (error) {
    return { steps: undefined, fault: error.message };
  }
}

function readText(text) {
  if (text === "") return { values: {}, fault: "" };
  if (text.startsWith("{")) return readObject(text);
  const values = {};
  for (const line of text.split("\n").filter((each) => each.trim())) {
    const [, key, value] = /^\s*([\w]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (key === undefined) return { values: {}, fault: line.trim() };
    values[key] = readValue(value);
  }
  return { values, fault: "" };
}

function readObject(text) {
  try {
    const values = parseJson(text);
    return Array.isArray(values) ? { values: {}, fault: text } : { values, fault: "" };
  } catch (error) {
    return { values: {}, fault: error.message };
  }
}

function readValue(text) {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

/** How a policy is kept in an address, and read from there. */
export const writeTerm = (policy) => (policy ? writeJson(policy) : "");

/** The form of a policy in an address. */
export function readTerm(term) {
  const { values } = readText((term ?? "").trim());
  const { deny_tools: denied = [], max_steps: steps = "", ...rest } = values;
  const isPlain = Array.isArray(denied);
  const other = isPlain ? rest : { ...rest, deny_tools: denied };
  return { text: Object.keys(other).length > 0 ? writeJson(other) : "", denied: isPlain ? denied.join(", ") : "", maxSteps: String(steps) };
}
