// The panel of the workflow itself: what it is called, what it takes and gives, and how it is bounded.

import { html, useState } from "../vendor/preact.js";
import { isObject } from "../kit/json.js";
import { Button } from "../kit/parts.js";
import { show } from "../kit/text.js";
import { t } from "../kit/words.js";
import { JsonField } from "./controls.js";
import { LIMITS_SCHEMA, NAME_SCHEMA } from "./own_schemas.js";
import { SchemaForm } from "./schema_form.js";
import { Said, Slot } from "./slot.js";
import { TextField } from "./text_field.js";

const TYPES = ["string", "integer", "number", "boolean", "array", "object"];
/** The keys of a workflow besides its nodes and edges. */
export function WorkflowPanel({ edit }) {
  const { data } = edit;
  const plain = { ...edit, variables: [] };
  return html`<div class="panel stack">
    <header class="panel-head"><h2>${t("The workflow")}</h2></header>
    <${Said} edit=${edit} path=${[]} /><${Said} edit=${edit} path=${["nodes"]} />
    <section class="group" aria-label=${t("Name")}><${SchemaForm} schema=${NAME_SCHEMA} root=${NAME_SCHEMA} value=${data} path=${[]} edit=${plain} only=${Object.keys(NAME_SCHEMA.properties)} /></section>
    <${Inputs} edit=${edit} />
    <${Outputs} edit=${edit} />
    <${Variables} edit=${edit} />
    <section class="group" aria-label=${t("Limits")}><h3>${t("Limits")}</h3><div class="limits-wide">
      <${SchemaForm} schema=${LIMITS_SCHEMA} root=${LIMITS_SCHEMA} value=${data} path=${[]} edit=${plain} only=${Object.keys(LIMITS_SCHEMA.properties)} /></div></section>
    <${Ends} edit=${edit} />
  </div>`;
}

/** What it is started with: rows for plain inputs, JSON for the whole schema. */
function Inputs({ edit }) {
  const { inputs } = edit.data;
  const properties = isObject(inputs?.properties) ? inputs.properties : {};
  const required = Array.isArray(inputs?.required) ? inputs.required : [];
  const setRequired = (name, on) => {
    const next = on ? [...required, name] : required.filter((each) => each !== name);
    edit.write(["inputs", "required"], next.length ? next : undefined);
  };
  const add = (name) => edit.apply((target) => {
    if (!isObject(target.get(["inputs"]))) target.set(["inputs"], { type: "object" });
    target.set(["inputs", "properties", name], { type: "string" });
  });
  const remove = (name) => edit.apply((target) => {
    target.remove(["inputs", "properties", name]);
    if (required.includes(name)) target.set(["inputs", "required"], required.filter((each) => each !== name));
  });
  return html`<section class="group" aria-label=${t("Inputs")} data-path="inputs" tabindex="-1"><h3>${t("Inputs")}</h3><p class="help">${t("What a run is started with; nodes read it as {example}.", { example: "{{external.NAME}}" })}</p>
    <${Said} edit=${edit} path=${["inputs"]} />
    ${Object.entries(properties).map(([name, schema]) => html`<div class="input-row" key=${name} data-path=${`inputs/properties/${name}`} tabindex="-1">
      <code>${show(name)}</code>
      <select aria-label=${t("Type of {name}", { name: show(name) })} disabled=${edit.disabled} value=${TYPES.includes(schema?.type) ? schema.type : ""} onChange=${(event) => edit.write(["inputs", "properties", name, "type"], event.target.value || undefined)}>
        <option value="">${t("any type")}</option>${TYPES.map((type) => html`<option value=${type}>${type}</option>`)}</select>
      <label class="row nowrap"><input type="checkbox" checked=${required.includes(name)} disabled=${edit.disabled} aria-label=${t("{name} is required", { name: show(name) })} onChange=${(event) => setRequired(name, event.target.checked)} />${t("required")}</label>
      <input type="text" class="grow" aria-label=${t("Description of {name}", { name: show(name) })} placeholder=${t("description")} disabled=${edit.disabled} value=${schema?.description ?? ""} onInput=${(event) => edit.write(["inputs", "properties", name, "description"], event.target.value || undefined)} />
      <${Button} kind="quiet small" disabled=${edit.disabled} aria-label=${t("Remove {name}", { name: show(name) })} onClick=${() => remove(name)}>✕<//></div>`)}
    <${AddName} label=${t("Name of a new input")} edit=${edit} onAdd=${add} taken=${Object.keys(properties)} />
    <details class="nested"><summary><span class="nested-name">${t("The whole JSON Schema")}</span></summary>
      <${Slot} edit=${edit} path=${["inputs"]} below label="inputs" render=${(props) => html`<div><${JsonField} ...${props} label="inputs" value=${inputs ?? undefined} variables=${[]} onValue=${(wanted) => edit.write(["inputs"], wanted)} /></div>`} /></details>
  </section>`;
}

/** What it gives, each a name and a text with placeholders, or any JSON. */
function Outputs({ edit }) {
  const outputs = isObject(edit.data.outputs) ? edit.data.outputs : {};
  return html`<section class="group" aria-label=${t("Outputs")} data-path="outputs" tabindex="-1"><h3>${t("Outputs")}</h3><p class="help">${t("The outputs of a run. A workflow that runs this one, and a caller over HTTP, get only these.")}</p><${Said} edit=${edit} path=${["outputs"]} />
    ${Object.entries(outputs).map(([name, value]) => html`<div class="row nowrap top" key=${name}><div class="grow"><${Slot} edit=${edit} path=${["outputs", name]} below label=${name} render=${(props) =>
      typeof value === "string" ? html`<${TextField} ...${props} label=${name} value=${value} variables=${edit.variables} onText=${(text) => edit.write(["outputs", name], text)} />` : html`<div><${JsonField} ...${props} label=${name} value=${value} variables=${edit.variables} onValue=${(wanted) => edit.write(["outputs", name], wanted)} /></div>`} /></div>
      <${Button} kind="quiet small" disabled=${edit.disabled} aria-label=${t("Remove {name}", { name: show(name) })} onClick=${() => edit.write(["outputs", name], undefined)}>✕<//></div>`)}
    <${AddName} label=${t("Name of a new output")} edit=${edit} taken=${Object.keys(outputs)} onAdd=${(name) => edit.write(["outputs", name], "")} />
  </section>`;
}

/** The environment variables that it may use. */
function Variables({ edit }) {
  const env = Array.isArray(edit.data.env) ? edit.data.env : [];
  const nameOf = (entry) => (typeof entry === "string" ? entry : String(entry?.name ?? ""));
  const setPlain = (at, on) => edit.write(["env", at], on ? { name: nameOf(env[at]), plain: true } : nameOf(env[at]));
  const remove = (at) => edit.write(["env"], env.length > 1 ? env.filter((_, n) => n !== at) : undefined);
  return html`<section class="group" aria-label=${t("Environment variables")} data-path="env" tabindex="-1"><h3>${t("Environment variables")}</h3><p class="help">${t("Environment variables of the host that it may read. Secrets reach only tools; plain values are recorded.")}</p>
    ${env.map((entry, at) => html`<div class="row nowrap" key=${at}><code class="grow">${show(nameOf(entry))}</code>
      <label class="row nowrap"><input type="checkbox" checked=${typeof entry === "object" && entry?.plain === true} disabled=${edit.disabled} aria-label=${t("{name} is plain, no secret", { name: show(nameOf(entry)) })} onChange=${(event) => setPlain(at, event.target.checked)} />${t("plain")}</label>
      <${Button} kind="quiet small" disabled=${edit.disabled} aria-label=${t("Remove {name}", { name: show(nameOf(entry)) })} onClick=${() => remove(at)}>✕<//></div>`)}
    <${Said} edit=${edit} path=${["env"]} below />
    <${AddName} label=${t("Name of an environment variable")} edit=${edit} taken=${env.map(nameOf)} onAdd=${(name) => edit.write(["env"], [...env, name])} />
  </section>`;
}

function Ends({ edit }) {
  const choose = (key, help) => {
    const now = [edit.data[key] ?? []].flat();
    const toggle = (name, on) => {
      const next = edit.names.filter((each) => (each === name ? on : now.includes(each)));
      edit.write([key], next.length > 1 ? next : next[0]);
    };
    return html`<fieldset class="checks" data-path=${key} tabindex="-1"><legend>${key}</legend>
      ${edit.names.map((name) => html`<label key=${name}><input type="checkbox" checked=${now.includes(name)} disabled=${edit.disabled} onChange=${(event) => toggle(name, event.target.checked)} />${show(name)}</label>`)}
      <p class="help wide">${help}</p><${Said} edit=${edit} path=${[key]} below />
    </fieldset>`;
  };
  return html`<section class="group" aria-label=${t("Entry and ends")}><h3>${t("Entry and ends")}</h3>
    ${choose("entry", t("Where runs begin; none chosen: the nodes without incoming edges"))}${choose("ends", t("Where runs end; none chosen: the nodes without outgoing edges"))}</section>`;
}

function AddName({ label, edit, onAdd, taken }) {
  const [name, setName] = useState("");
  const isFree = /^[\w-]+$/.test(name) && !taken.includes(name);
  const add = () => isFree && (onAdd(name), setName(""));
  return html`<div class="row"><input type="text" class="short" aria-label=${label} placeholder=${t("name")} value=${name} disabled=${edit.disabled} onInput=${(event) => setName(event.target.value.trim())} onKeyDown=${(event) => event.key === "Enter" && add()} />
    <${Button} kind="small" disabled=${edit.disabled || !isFree} onClick=${add}>${t("Add")}<//></div>`;
}
