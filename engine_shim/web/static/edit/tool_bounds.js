// What binds one allowed tool: values that the author sets, approval, how often, which arguments and from where.

import { html, useState } from "../vendor/preact.js";
import { writeJson } from "../kit/json.js";
import { Field } from "../kit/parts.js";
import { show } from "../kit/text.js";
import { t } from "../kit/words.js";
import { JsonField, NumberField } from "./controls.js";
import { fieldsOf, readSchema, resolve } from "./schema.js";
import { SchemaField, SchemaForm } from "./schema_form.js";
import { Said, Slot } from "./slot.js";
import { readNarrowing, readValues, toolOf, writeBound } from "./whitelist_edits.js";

const PLAIN = ["approval", "max_calls", "rate_limit", "timeout", "trusted"];

/** The form of an entry of allowed_tools. A name becomes an object when the first bound is set. */
export function ToolBounds({ entry, tool, path, edit: outer, schema, root }) {
  const value = entry !== null && typeof entry === "object" ? entry : { tool: toolOf(entry) };
  const write = (place, wanted) => outer.apply((target) => writeBound(target, path, place.slice(path.length), wanted), place.join("/"));
  const edit = { ...outer, write };
  const own = tool?.config_schema ?? {};
  return html`<div class="bounds">
    <div class="field-grid">${PLAIN.filter((key) => schema.properties?.[key]).map((key) => html`<${SchemaField} key=${key} schema=${schema.properties[key]} root=${root} label=${key} value=${value[key]} path=${[...path, key]} edit=${{ ...edit, variables: [] }} />`)}</div>
    <${Folded} title=${t("Preset: values that no model sees or sets")} isSet=${value.preset !== undefined}><${Said} edit=${edit} path=${[...path, "preset"]} />
      ${tool ? html`<${SchemaForm} schema=${own} root=${own} value=${value.preset} path=${[...path, "preset"]} edit=${edit} unrequired />` : html`<${SchemaField} schema=${{ type: "object" }} root=${{}} label="preset" value=${value.preset} path=${[...path, "preset"]} edit=${edit} />`}<//>
    <${Folded} title=${t("Narrowing: what may be sent")} isSet=${value.args !== undefined}><${Said} edit=${edit} path=${[...path, "args"]} below />
      ${fieldsOf(resolve(own, own)).map((field) => html`<${Narrow} key=${field.key} field=${field} own=${own} args=${value.args} path=${[...path, "args"]} edit=${edit} />`)}
      <${Slot} edit=${edit} path=${[...path, "args"]} label="args" help=${schema.properties?.args?.description} render=${(props) => html`<div><${JsonField} ...${props} label="args" value=${value.args ?? undefined} variables=${[]} onValue=${(wanted) => edit.write([...path, "args"], wanted)} /></div>`} /><//>
    <${Folded} title=${t("Provenance: where arguments must come from")} isSet=${value.provenance !== undefined}><${Said} edit=${edit} path=${[...path, "provenance"]} below />
      <p class="help">${show(t(schema.properties?.provenance?.description ?? ""))}</p>
      ${["*", ...fieldsOf(resolve(own, own)).map(({ key }) => key)].map((key) => html`<${Origins} key=${key} name=${key} value=${value.provenance} path=${[...path, "provenance"]} edit=${edit} />`)}<//>
  </div>`;
}

function Folded({ title, isSet, children }) {
  const [open] = useState(isSet);
  return html`<details class="nested" open=${open}><summary><span class="nested-name">${title}</span></summary><div class="stack">${children}</div></details>`;
}

/** What may be sent for one argument. */
function Narrow({ field: { key, schema }, own, args, path, edit }) {
  const { kind: type } = readSchema(schema, own);
  const now = readNarrowing(args?.properties?.[key]);
  const place = [...path, "properties", key];
  const isNumber = type === "number" || type === "integer";
  const start = { any: undefined, values: { enum: [] }, pattern: { pattern: "" }, range: { minimum: 0 } };
  const setRange = (bound, value) => edit.write(place, { ...args?.properties?.[key], [bound]: value });
  const bound = (name, label, hint) => html`<${NumberField} label=${label} aria-label=${label} placeholder=${hint} value=${now[name]} variables=${[]} disabled=${edit.disabled} onValue=${(value) => setRange(name, value)} />`;
  return html`<div class="pair"><${Field} label=${show(key)} render=${(props) => html`<div class="row top">
    <select ...${props} class="short" value=${now.kind} disabled=${edit.disabled} onChange=${(event) => edit.write(place, start[event.target.value])}>
      <option value="any">${t("anything")}</option><option value="values">${t("one of these values")}</option>
      ${type === "text" && html`<option value="pattern">${t("what fits a pattern")}</option>`}${isNumber && html`<option value="range">${t("from … to …")}</option>`}
      ${now.kind === "other" && html`<option value="other">${t("as written in args")}</option>`}</select>
    ${now.kind === "values" && html`<${Values} label=${t("Values of {name}, one a line", { name: show(key) })} values=${now.values} disabled=${edit.disabled} onText=${(text) => edit.write(place, { enum: readValues(text, type) })} />`}
    ${now.kind === "pattern" && html`<input type="text" class="grow code" aria-label=${t("Pattern of {name}", { name: show(key) })} value=${now.pattern} disabled=${edit.disabled} onInput=${(event) => edit.write(place, { pattern: event.target.value })} />`}
    ${now.kind === "range" && html`${bound("minimum", t("{name} at least", { name: show(key) }), t("at least"))}${bound("maximum", t("{name} at most", { name: show(key) }), t("at most"))}`}
  </div>`} /></div>`;
}

function Values({ label, values, disabled, onText }) {
  const [text, setText] = useState(values.map((each) => (typeof each === "string" ? each : writeJson(each))).join("\n"));
  return html`<textarea class="grow" rows="2" aria-label=${label} value=${text} disabled=${disabled} onInput=${(event) => (setText(event.target.value), onText(event.target.value))}></textarea>`;
}

/** The origins that will do for one argument; `*` is all of them. */
function Origins({ name, value, path, edit }) {
  const rules = value === undefined || value === null ? {} : typeof value === "string" || Array.isArray(value) ? { "*": value } : value;
  const now = rules[name];
  const isOther = now !== null && typeof now === "object" && !Array.isArray(now);
  const [text, setText] = useState(isOther ? writeJson(now) : [now ?? []].flat().join(", "));
  const set = (typed) => {
    setText(typed);
    const names = typed.split(",").map((each) => each.trim()).filter(Boolean);
    const { [name]: _, ...others } = rules;
    const next = names.length ? { ...others, [name]: names.length === 1 ? names[0] : names } : others;
    edit.write(path, Object.keys(next).length ? next : undefined);
  };
  return html`<div class="pair"><${Field} label=${name === "*" ? t("all arguments") : show(name)} render=${(props) => html`<input type="text" ...${props} class="code" list="origins" value=${text} readonly=${isOther || undefined} disabled=${edit.disabled} placeholder=${t("any origin")} onInput=${(event) => set(event.target.value)} />`} /></div>`;
}
