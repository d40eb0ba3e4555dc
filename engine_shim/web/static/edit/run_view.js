// Running the workflow: a form made from its inputs, for the saved version or for the draft as it stands.

import { html, useState } from "../vendor/preact.js";
import { ask } from "../kit/api.js";
import { Button, Failure, Notice, useAct } from "../kit/parts.js";
import { isObject } from "../kit/json.js";
import { guardLeaving, go, link } from "../kit/router.js";
import { t } from "../kit/words.js";
import { keyOf } from "./faults.js";
import { externalNames } from "./placeholders.js";
import { fieldsOf } from "./schema.js";
import { SchemaForm } from "./schema_form.js";
import { JsonField } from "./controls.js";
import { Slot } from "./slot.js";

/** The form and its button. `given` is what was typed before, kept by `onGiven` while other views are looked at. */
export function RunView({ draft, me, faults, given, onGiven }) {
  const { data, isDirty, source } = draft;
  const inputs = inputsSchema(data);
  const [bad, setBad] = useState({});
  const tellFault = (path, fault) => setBad((before) => ({ ...before, [keyOf(path)]: fault }));
  const form = { data: given, faults: [], variables: [], tools: [], disabled: false, tellFault, write: (path, value) => onGiven((before) => writeValue(before, path.slice(1), value)) };
  const { act, busy, error } = useAct(async () => {
    const path = isDirty || !source.id ? "drafts/runs" : `workflows/${encodeURIComponent(`${source.id}@${source.version}`)}/runs`;
    const body = path === "drafts/runs" ? { text: draft.text, format: draft.format, external: given } : { external: given };
    const { run_id: run } = await ask(`${path}?wait=false`, { body });
    guardLeaving(null);
    go(link(["runs", run]));
  });
  const scope = isDirty || !source.id ? "admin" : "run";
  const problems = faults.filter(({ kind }) => kind === "bad").length;
  const missing = fieldsOf(inputs ?? {}).filter(({ required }) => required).map(({ key }) => key).filter((name) => given[name] === undefined);
  const reason = !me.scopes.includes(scope) ? t("Your token lacks the scope {scope}.", { scope }) : problems ? t("There are faults; mend them first.") : Object.values(bad).some(Boolean) ? t("A field has a value that cannot be sent; mend it first.") : "";
  return html`<form class="panel stack run-form" onSubmit=${(event) => (event.preventDefault(), reason || act())}>
    <header class="panel-head"><h2>${isDirty || !source.id ? t("Run the draft") : t("Run version {version}", { version: source.version })}</h2></header>
    <p class="help">${isDirty || !source.id ? t("It runs as shown here, and is not saved. Its tools are called for real.") : t("Its tools are called for real.")}</p>
    ${inputs ? html`<${SchemaForm} schema=${inputs} root=${inputs} value=${given} path=${["external"]} edit=${form} />` : html`<${Slot} edit=${form} path=${["external"]} label=${t("Inputs")} help="Any JSON object; the workflow does not say what it takes"
      render=${(props) => html`<div><${JsonField} ...${props} label=${t("Inputs")} value=${Object.keys(given).length ? given : undefined} variables=${[]} onFault=${(fault) => tellFault(["external"], fault)} onValue=${(value) => onGiven(isObject(value) ? value : {})} /></div>`} />`}
    ${reason && html`<${Notice} tone="wait" title=${reason} />`}
    <${Failure} error=${error} />
    <div class="row"><${Button} kind="main" type="submit" busy=${busy} disabled=${reason !== ""} title=${reason || undefined}>${t("Run")}<//>
      ${missing.length > 0 && html`<span class="soft">${t("still empty: {names}", { names: missing.join(", ") })}</span>`}</div>
  </form>`;
}

/** The schema that the workflow declares, or one of the names that its placeholders ask for; null without either. */
function inputsSchema(data) {
  if (data.inputs && typeof data.inputs === "object" && Object.keys(data.inputs.properties ?? {}).length) return data.inputs;
  const names = externalNames({ nodes: data.nodes, outputs: data.outputs });
  return names.length ? { type: "object", properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])) } : null;
}

function writeValue(value, path, wanted) {
  if (!path.length) return wanted;
  const [key, ...rest] = path;
  const copy = Array.isArray(value) ? [...value] : { ...value };
  const next = writeValue(copy[key] ?? (typeof rest[0] === "number" ? [] : {}), rest, wanted);
  if (next === undefined && !Array.isArray(copy)) delete copy[key];
  else copy[key] = next;
  return copy;
}
