// The panel of the chosen node: its id, its tool, the tool's config, where it leads, and the node's own settings.

import { html, useState } from "../vendor/preact.js";
import { Button, Dialog, Field } from "../kit/parts.js";
import { show } from "../kit/text.js";
import { t } from "../kit/words.js";
import { AgentPanel } from "./agent_panel.js";
import { EdgePanel } from "./edge_panel.js";
import { AGENT } from "./flow.js";
import { removeNode, renameNode } from "./flow_edits.js";
import { NODE_SCHEMA } from "./own_schemas.js";
import { SchemaField, SchemaForm } from "./schema_form.js";
import { Said } from "./slot.js";

/** The panel of a node {name, index, node}. */
export function NodePanel({ chosen, edit, onChoose, chosenEdge }) {
  const { name, index, node } = chosen;
  const path = ["nodes", index];
  const tool = edit.tools.find(({ code }) => code === node.tool);
  return html`<div class="panel stack">
    <${Head} chosen=${chosen} tool=${tool} edit=${edit} onChoose=${onChoose} />
    <${Said} edit=${edit} path=${path} />
    <${Said} edit=${edit} path=${[...path, "tool"]} /><${Said} edit=${edit} path=${[...path, "id"]} />
    <${Said} edit=${edit} path=${[...path, "config"]} />
    ${node.tool === AGENT && tool ? html`<${AgentPanel} key=${name} schema=${tool.config_schema} node=${node} name=${name} path=${[...path, "config"]} edit=${edit} />` : html`<${ToolConfig} key=${`${name} ${node.tool}`} tool=${tool} node=${node} path=${[...path, "config"]} edit=${edit} />`}
    <${EdgePanel} key=${`edges ${name}`} name=${name} edit=${edit} onChoose=${onChoose} chosenEdge=${chosenEdge} />
    <${OwnSettings} key=${`own ${name}`} node=${node} path=${path} edit=${edit} />
  </div>`;
}

function Head({ chosen: { name, index, node }, tool, edit, onChoose }) {
  const [isRenaming, setRenaming] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const remove = () => (edit.apply((target) => removeNode(target, index)), onChoose(null), setDeleting(false));
  return html`<header class="panel-head">
      <h2>${show(name)}</h2><span class="soft"><code>${show(node.tool ?? "")}</code></span>
      <span class="grow"></span>
      <${Button} kind="small" disabled=${edit.disabled} onClick=${() => setRenaming(true)}>${t("Rename")}<//>
      <${Button} kind="small bad" disabled=${edit.disabled} onClick=${() => setDeleting(true)}>${t("Delete")}<//>
    </header>
    ${tool && html`<p class="help">${show(t(tool.description))}</p>`}
    ${isRenaming && html`<${Rename} name=${name} index=${index} edit=${edit} onChoose=${onChoose} onClose=${() => setRenaming(false)} />`}
    ${isDeleting && html`<${Dialog} title=${t("Delete {name}?", { name: show(name) })} onClose=${() => setDeleting(false)}>
      <p>${t("Its edges are deleted too. Nodes that read its output then have a fault. Undo brings it back.")}</p>
      <div class="row"><${Button} kind="bad" onClick=${remove}>${t("Delete")}<//><${Button} onClick=${() => setDeleting(false)}>${t("Cancel")}<//></div><//>`}`;
}

function Rename({ name, index, edit, onChoose, onClose }) {
  const [id, setId] = useState(name);
  const fault = !/^\w[\w-]*$/.test(id) ? t("Letters, digits, _ and -, not beginning with -.") : id !== name && edit.names.includes(id) ? t("Another node has this id.") : "";
  const submit = (event) => {
    event.preventDefault();
    if (fault) return;
    if (id !== name) edit.apply((target) => renameNode(target, index, id)), onChoose(id);
    onClose();
  };
  return html`<${Dialog} title=${t("Rename {name}", { name: show(name) })} onClose=${onClose}><form class="stack" onSubmit=${submit}>
    <${Field} label=${t("Id")} fault=${fault} help=${t("Edges, placeholders and conditions that name it are changed too.")} render=${(props) => html`<input type="text" ...${props} value=${id} onInput=${(event) => setId(event.target.value)} />`} />
    <div class="row"><${Button} kind="main" type="submit" disabled=${fault !== ""}>${t("Rename")}<//></div>
  </form><//>`;
}

function ToolConfig({ tool, node, path, edit }) {
  const isReadable = node.config === undefined || (node.config !== null && typeof node.config === "object" && !Array.isArray(node.config));
  if (!tool || !isReadable) return html`<${SchemaField} schema=${{ type: "object" }} root=${{}} label="config" value=${node.config} path=${path} edit=${edit} />`;
  return html`<section class="group" aria-label=${t("Configuration")}><h3>${t("Configuration")}</h3>
    <${SchemaForm} schema=${tool.config_schema} root=${tool.config_schema} value=${node.config} path=${path} edit=${edit} /></section>`;
}

function OwnSettings({ node, path, edit }) {
  const isSet = ["approval", "foreach", "retry", "timeout", "on_error", "description"].some((key) => node[key] !== undefined);
  const [open] = useState(isSet);
  return html`<details class="group" open=${open}><summary><h3>${t("Approval, repetition, failure")}</h3></summary>
    <div class="limits-wide"><${SchemaForm} schema=${NODE_SCHEMA} root=${NODE_SCHEMA} value=${node} path=${path} edit=${edit} only=${Object.keys(NODE_SCHEMA.properties)} /></div></details>`;
}
