// A new node: which tool, what it is called, and after which node it comes.

import { html, useState } from "../vendor/preact.js";
import { Button, Dialog, Field, useId } from "../kit/parts.js";
import { show } from "../kit/text.js";
import { t } from "../kit/words.js";
import { AGENT, freeId, listNodes } from "./flow.js";
import { addNode } from "./flow_edits.js";
import { fieldsOf, readSchema, resolve } from "./schema.js";

/** The dialog; `onAdded(id)` is called with the new node's id. */
export function AddNode({ edit, after: suggested, onAdded, onClose }) {
  const group = useId();
  const [search, setSearch] = useState("");
  const [code, setCode] = useState(null);
  const [typed, setId] = useState(null);
  const [after, setAfter] = useState(suggested ?? "");
  const id = typed ?? (code ? freeId(edit.data, code) : "");
  const fault = id && !/^\w[\w-]*$/.test(id) ? t("Letters, digits, _ and -, not beginning with -.") : edit.names.includes(id) ? t("Another node has this id.") : "";
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = edit.tools.filter((tool) => words.every((word) => `${tool.code} ${tool.description}`.toLowerCase().includes(word)));
  const submit = (event) => {
    event.preventDefault();
    if (!code || fault) return;
    const tool = edit.tools.find((each) => each.code === code);
    edit.apply((target) => addNode(target, { id, tool: code, config: startConfig(tool, edit.data), after: after || null }));
    onAdded(id);
  };
  return html`<${Dialog} title=${t("Add a node")} onClose=${onClose}><form class="stack" onSubmit=${submit}>
    <input type="search" aria-label=${t("Search the tools")} placeholder=${t("Search the tools")} value=${search} onInput=${(event) => setSearch(event.target.value)} />
    <div class="choices-list tall" role="radiogroup" aria-label=${t("Tool")}>
      ${found.map((tool) => html`<label key=${tool.code} class="choice" title=${show(t(tool.description))}><input type="radio" name=${group} checked=${tool.code === code} onChange=${() => setCode(tool.code)} /><code>${show(tool.code)}</code><span class="choice-text">${show(t(tool.description))}</span></label>`)}
      ${found.length === 0 && html`<p class="soft">${t("No tool fits.")}</p>`}
    </div>
    <div class="field-grid">
      <${Field} label=${t("Id")} fault=${fault} render=${(props) => html`<input type="text" ...${props} value=${id} onInput=${(event) => setId(event.target.value)} />`} />
      <${Field} label=${t("Comes after")} render=${(props) => html`<select ...${props} value=${after} onChange=${(event) => setAfter(event.target.value)}><option value="">${t("nothing, for now")}</option>${edit.names.map((name) => html`<option value=${name}>${show(name)}</option>`)}</select>`} />
    </div>
    <div class="row"><${Button} kind="main" type="submit" disabled=${!code || !id || fault !== ""}>${t("Add")}<//></div>
  </form><//>`;
}

/** What a config begins with: an agent is as bounded as any, with the model of another; the texts that others need, empty. */
function startConfig({ code, config_schema: schema }, data) {
  if (code === AGENT) return { model: listNodes(data).find(({ node }) => node.config?.model)?.node.config.model ?? "", max_steps: 8, allowed_tools: [], prompt: "" };
  const needed = fieldsOf(resolve(schema, schema)).filter(({ required }) => required);
  return Object.fromEntries(needed.filter(({ schema: each }) => readSchema(each, schema).kind === "text").map(({ key }) => [key, ""]));
}
