// The controls of a form for single values: numbers, choices, JSON. Each takes a placeholder as well.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { parseJson, readNumber, sameJson, writeJson } from "../kit/json.js";
import { Button } from "../kit/parts.js";
import { show } from "../kit/text.js";
import { checkDigits } from "../kit/typed.js";
import { t } from "../kit/words.js";
import { hasPlaceholder, showDefault } from "./schema.js";
import { TextField } from "./text_field.js";

/** What is typed stays as it is typed, also while it says the same as the value, or cannot be read yet. `read` gives
 *  {value}, {fault}, or both for a value that is not what a run would read; `onFault` is told of a fault, and of its end. */
export function useTyped(value, write, read, onRead, onFault) {
  const [typed, setTyped] = useState(null);
  const last = useRef(value);
  useEffect(() => {
    if (!sameJson(last.current, value)) setTyped(null);
    last.current = value;
  }, [value]);
  const type = (text) => {
    setTyped(text);
    const found = read(text);
    if (!("value" in found)) return;
    last.current = found.value;
    onRead(found.value);
  };
  const text = typed ?? write(value);
  const fault = (typed === null ? checkDigits(value) : read(typed)).fault ?? "";
  useEffect(() => onFault?.(fault), [fault]);
  useEffect(() => () => onFault?.(""), []);
  return { text, fault, type };
}

/** A number, or a placeholder. */
export function NumberField({ value, schema = {}, onValue, onFault, variables, label, placeholder = showDefault(schema), ...props }) {
  const typed = useTyped(value, (found) => (found === undefined || found === null ? "" : String(found)), (text) => checkDigits(readNumber(text)), onValue, onFault);
  return html`<div class="grow"><${TextField} ...${props} label=${label} value=${typed.text} onText=${typed.type} variables=${variables} inputmode="decimal" placeholder=${placeholder} />
    <${Fault} text=${typed.fault} /></div>`;
}

const Fault = ({ text }) => text && html`<p class="fault" role="alert">${show(text)}</p>`;


/** One of some values, or a placeholder. */
export function ChoiceField({ value, options, schema, required, onValue, variables, label, ...props }) {
  const [isText, setText] = useState(false);
  if (hasPlaceholder(value) || isText)
    return html`<div class="row nowrap"><${TextField} ...${props} label=${label} value=${value ?? ""} onText=${onValue} variables=${variables} />
      <${Button} kind="quiet small" onClick=${() => (setText(false), onValue(undefined))}>${t("Choose from the list")}<//></div>`;
  const at = options.findIndex((each) => sameJson(each, value));
  const preset = schema.default === undefined || schema.default === null ? t("not set") : t("default: {value}", { value: showDefault(schema) || "—" });
  const onChange = ({ target }) => (target.value === "text" ? setText(true) : onValue(target.value === "" ? undefined : options[Number(target.value)]));
  return html`<select ...${props} value=${at < 0 ? (value === undefined ? "" : "other") : String(at)} onChange=${onChange}>
    <option value="">${required && schema.default === undefined ? t("choose…") : preset}</option>
    ${at < 0 && value !== undefined && html`<option value="other">${show(writeJson(value))}</option>`}
    ${options.map((each, n) => html`<option value=${String(n)}>${show(typeof each === "string" ? each : writeJson(each))}</option>`)}
    ${variables.length > 0 && html`<option value="text">${t("by a variable…")}</option>`}
  </select>`;
}

/** Any value, as JSON; a text with a placeholder stands for itself. */
export function JsonField({ value, onValue, onFault, variables, label, rows, ...props }) {
  const typed = useTyped(value, showJson, readJson, onValue, onFault);
  return html`<${TextField} ...${props} label=${label} value=${typed.text} onText=${typed.type} isLong isCode variables=${variables} />
    <${Fault} text=${typed.fault} />`;
}

const showJson = (value) => (value === undefined ? "" : hasPlaceholder(value) ? value : writeJson(value, 2));

function readJson(text) {
  const trimmed = text.trim();
  if (trimmed === "") return { value: undefined };
  if (/^\{\{[^{}]*\}\}$/.test(trimmed)) return { value: trimmed };
  try {
    return checkDigits(parseJson(trimmed));
  } catch (error) {
    return { fault: t("This is not JSON yet: {why}", { why: error.message }) };
  }
}

/** Yes or no to “no value at all”, which is something else than leaving it as by default. */
export function NullSwitch({ label, isNull, disabled, onNull }) {
  return html`<label class="null-switch"><input type="checkbox" checked=${isNull} disabled=${disabled} aria-label=${t("{name}: none (null)", { name: label })}
    onChange=${(event) => onNull(event.target.checked)} /> ${t("none")}</label>`;
}
