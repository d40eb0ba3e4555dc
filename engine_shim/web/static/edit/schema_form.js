// A form made from a JSON Schema: each value of the definition in the control that fits it.

import { html, useRef, useState } from "../vendor/preact.js";
import { isNumber, isObject, sameJson, writeJson } from "../kit/json.js";
import { Button } from "../kit/parts.js";
import { show } from "../kit/text.js";
import { t } from "../kit/words.js";
import { ChoiceField, JsonField, NullSwitch, NumberField } from "./controls.js";
import { keyOf } from "./faults.js";
import { emptyOf, fieldsOf, hasPlaceholder, readSchema, resolve, showDefault, variantOf } from "./schema.js";
import { Said, Slot } from "./slot.js";
import { TextField } from "./text_field.js";

const LONG = /prompt|text|body|message|template|content|description|query|expression|data|code|sql/i;
const SHORTLY = 6;

/** The fields of an object. `only` are the keys to show; `skip` those to leave out. */
export function SchemaForm({ schema, root, value: given, path, edit, only, skip = [], unrequired = false }) {
  const value = isObject(given) ? given : undefined;
  const read = resolve(schema, root);
  const all = fieldsOf(unrequired ? { ...read, required: [] } : read).filter(({ key }) => (only ? only.includes(key) : !skip.includes(key)));
  const ordered = only ? only.flatMap((key) => all.filter((each) => each.key === key)) : all;
  const [late] = useState(() => (only || ordered.length <= SHORTLY ? [] : ordered.filter(({ key, required }) => !required && value?.[key] === undefined).map(({ key }) => key)));
  const draw = (each) => html`<${SchemaField} key=${each.key} schema=${each.schema} root=${root} label=${each.key} required=${each.required} value=${value?.[each.key]}
    path=${[...path, each.key]} edit=${edit} />`;
  const others = only ? [] : Object.keys(value ?? {}).filter((key) => !(key in (read.properties ?? {})) && !skip.includes(key));
  return html`<div class="stack">
    ${ordered.filter(({ key }) => !late.includes(key)).map(draw)}
    ${others.map((key) => html`<${OtherField} key=${key} name=${key} value=${value[key]} path=${[...path, key]} edit=${edit} schema=${read.additionalProperties} root=${root} />`)}
    ${late.length > 0 && html`<details class="more"><summary>${t("More settings ({n})", { n: late.length })}</summary>
      <div class="stack">${ordered.filter(({ key }) => late.includes(key)).map(draw)}</div></details>`}
  </div>`;
}

/** A key that the schema does not name. */
function OtherField({ name, value, path, edit, schema, root }) {
  const known = schema !== null && typeof schema === "object" ? schema : {};
  return html`<div class="row top nowrap"><div class="grow"><${SchemaField} schema=${known} root=${root} label=${name} value=${value} path=${path} edit=${edit} /></div>
    <${Button} kind="quiet small" disabled=${edit.disabled} aria-label=${t("Remove {name}", { name: show(name) })} onClick=${() => edit.write(path, undefined)}>✕<//></div>`;
}

/** One value of any schema, with its label. */
export function SchemaField({ schema: given, root, label, required = false, value, path, edit }) {
  const { kind, schema, nullable, variants } = readSchema(given, root);
  const help = schema.description ?? "";
  const write = (wanted) => edit.write(path, wanted === "" && !required ? undefined : wanted);
  const shared = { edit, path, label, help, required };
  if (kind === "object" && !hasPlaceholder(value)) return html`<${ObjectField} ...${shared} schema=${schema} root=${root} value=${value} />`;
  if (kind === "list" && (Array.isArray(value) || value === undefined || value === null)) return html`<${ListField} ...${shared} schema=${schema} root=${root} value=${value} nullable=${nullable} />`;
  if (kind === "map" && (value === undefined || isObject(value))) return html`<${MapField} ...${shared} schema=${schema} root=${root} value=${value} />`;
  if (kind === "variants") return html`<${VariantField} ...${shared} variants=${variants} root=${root} value=${value} nullable=${nullable} />`;
  const isNull = value === null;
  const hasSwitch = nullable && (isNull || required || (schema.default !== undefined && schema.default !== null));
  return html`<${Slot} ...${shared} below=${kind === "json"} render=${(props) => html`<div class="row nowrap top">
    <${Control} kind=${kind} schema=${schema} value=${isNull ? undefined : value} onValue=${write} label=${label} required=${required} path=${path} edit=${edit} props=${{ ...props, disabled: props.disabled || isNull || undefined }} />
    ${hasSwitch && html`<${NullSwitch} label=${label} isNull=${isNull} disabled=${edit.disabled} onNull=${(on) => edit.write(path, on ? null : undefined)} />`}
  </div>`} />`;
}

/** The bare control of a single value. */
function Control({ kind, schema, value, onValue, label, required, path, edit, props }) {
  const { variables } = edit;
  const onFault = edit.tellFault && ((fault) => edit.tellFault(path, fault));
  const common = { ...props, label, value, variables, onValue };
  if (kind === "number" || kind === "integer") return html`<${NumberField} ...${common} onFault=${onFault} schema=${schema} />`;
  if (kind === "boolean") return html`<${ChoiceField} ...${common} schema=${schema} required=${required} options=${[true, false]} />`;
  if (kind === "choice") return html`<${ChoiceField} ...${common} schema=${schema} required=${required} options=${schema.enum} />`;
  if (kind === "constant") return html`<${ChoiceField} ...${common} schema=${schema} required=${required} options=${[schema.const]} />`;
  if (kind === "text" && (typeof value !== "object" || isNumber(value))) return html`<${PlainText} ...${common} schema=${schema} list=${edit.lists?.[label]} />`;
  return html`<div class="grow"><${JsonField} ...${common} onFault=${onFault} /></div>`;
}

/** A text: on several lines where it is one to write, or has been written on several. */
export function PlainText({ value, schema, onValue, label, variables, isLong, ...props }) {
  const long = useRef(isLong ?? (LONG.test(label) || String(value ?? "").length > 70 || String(value ?? "").includes("\n")));
  return html`<${TextField} ...${props} label=${label} value=${value === undefined ? "" : String(value)} onText=${onValue} variables=${variables} isLong=${long.current} placeholder=${showDefault(schema)} />`;
}

const Name = ({ label, required }) => html`${show(label)}${required && html`<span class="required" aria-hidden="true"> *</span>`}`;

function ObjectField({ edit, path, label, help, required, schema, root, value }) {
  const isOpen = useRef(required || value !== undefined);
  return html`<details class="nested" open=${isOpen.current} data-path=${keyOf(path)}><summary><span class="nested-name"><${Name} label=${label} required=${required} /></span></summary>
    ${help && html`<p class="help">${show(t(help))}</p>`}
    <${Said} edit=${edit} path=${path} /><${SchemaForm} schema=${schema} root=${root} value=${isObject(value) ? value : undefined} path=${path} edit=${edit} />
  </details>`;
}

function ListField({ edit, path, label, help, required, schema, root, value, nullable }) {
  const items = Array.isArray(value) ? value : [];
  const { kind, schema: each } = readSchema(schema.items, root);
  const setAll = (wanted) => edit.write(path, wanted.length || required || (schema.default?.length ?? 0) ? wanted : undefined);
  if (kind === "choice") return html`<${ChecksField} ...${{ edit, path, label, help, required, options: each.enum, items, setAll }} />`;
  return html`<fieldset class="list" data-path=${keyOf(path)} tabindex="-1"><legend><${Name} label=${label} required=${required} /></legend>
    ${help && html`<p class="help">${show(t(help))}</p>`}<${Said} edit=${edit} path=${path} />
    ${items.map((item, at) => html`<div class="row nowrap top" key=${at}><div class="grow">
      <${SchemaField} schema=${schema.items} root=${root} label=${`${label} ${at + 1}`} required value=${item} path=${[...path, at]} edit=${edit} /></div>
      <${Button} kind="quiet small" disabled=${edit.disabled} aria-label=${t("Remove {name}", { name: `${show(label)} ${at + 1}` })} onClick=${() => setAll(items.filter((_, n) => n !== at))}>✕<//></div>`)}
    <div class="row"><${Button} kind="small" disabled=${edit.disabled} aria-label=${t("Add to {name}", { name: show(label) })} onClick=${() => edit.write(path, [...items, emptyOf(schema.items, root)])}>${t("Add")}<//>
      ${nullable && value === null && html`<span class="soft">null</span>`}</div>
  </fieldset>`;
}

function ChecksField({ edit, path, label, help, required, options, items, setAll }) {
  const has = (option) => items.some((item) => sameJson(item, option));
  const toggle = (each, on) => setAll(options.filter((option) => (sameJson(option, each) ? on : has(option))));
  return html`<fieldset class="checks" data-path=${keyOf(path)} tabindex="-1"><legend><${Name} label=${label} required=${required} /></legend>
    ${options.map((each) => html`<label><input type="checkbox" disabled=${edit.disabled} checked=${has(each)} onChange=${(event) => toggle(each, event.target.checked)} />${show(typeof each === "string" ? each : writeJson(each))}</label>`)}
    ${help && html`<p class="help wide">${show(t(help))}</p>`}<${Said} edit=${edit} path=${path} below />
  </fieldset>`;
}

function MapField({ edit, path, label, help, required, schema, root, value }) {
  const [name, setName] = useState("");
  const wanted = name.trim();
  const isFree = wanted !== "" && !Object.hasOwn(value ?? {}, wanted); // what is there already is not written over
  const add = () => isFree && (edit.write([...path, wanted], emptyOf(schema.additionalProperties, root)), setName(""));
  return html`<fieldset class="list" data-path=${keyOf(path)} tabindex="-1"><legend><${Name} label=${label} required=${required} /></legend>
    ${help && html`<p class="help">${show(t(help))}</p>`}<${Said} edit=${edit} path=${path} />
    ${Object.entries(value ?? {}).map(([key, each]) => html`<${OtherField} key=${key} name=${key} value=${each} path=${[...path, key]} edit=${edit} schema=${schema.additionalProperties} root=${root} />`)}
    <div class="row"><input type="text" class="short" aria-label=${t("Name of a new entry of {name}", { name: show(label) })} placeholder=${t("name")} value=${name} disabled=${edit.disabled} onInput=${(event) => setName(event.target.value)}
      onKeyDown=${(event) => event.key === "Enter" && (event.preventDefault(), add())} />
      <${Button} kind="small" disabled=${edit.disabled || !isFree} onClick=${add}>${t("Add")}<//></div>
  </fieldset>`;
}

function VariantField({ edit, path, label, help, required, variants, root, value, nullable }) {
  const [picked, setPicked] = useState(null);
  const at = value === undefined || value === null ? (picked ?? 0) : hasPlaceholder(value) ? variants.findIndex(({ type }) => type === "string") : variantOf(value, variants);
  const choose = (n) => (setPicked(n), edit.write(path, required || value !== undefined ? emptyOf(variants[n], root) : undefined));
  const names = variants.map((each, n) => each.title ?? each.const ?? each.type ?? t("form {n}", { n: n + 1 }));
  return html`<fieldset class="list" data-path=${keyOf(path)} tabindex="-1"><legend><${Name} label=${label} required=${required} /></legend>
    ${help && html`<p class="help">${show(t(help))}</p>`}
    <div class="row"><select aria-label=${t("Form of {name}", { name: show(label) })} disabled=${edit.disabled} value=${String(Math.max(at, 0))} onChange=${(event) => choose(Number(event.target.value))}>
      ${names.map((name, n) => html`<option value=${String(n)}>${show(name)}</option>`)}</select>
      ${nullable && value !== undefined && value !== null && html`<${Button} kind="quiet small" onClick=${() => edit.write(path, undefined)}>${t("Clear")}<//>`}</div>
    <${SchemaField} key=${at} schema=${variants[Math.max(at, 0)]} root=${root} label=${label} required=${required} value=${value ?? undefined} path=${path} edit=${edit} />
  </fieldset>`;
}
