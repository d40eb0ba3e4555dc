// The config of an agent, in groups: model, prompts, limits, tools, answer, and what is rarely needed.

import { html, useState } from "../vendor/preact.js";
import { isObject } from "../kit/json.js";
import { show } from "../kit/text.js";
import { t } from "../kit/words.js";
import { groupKeys } from "./agent_groups.js";
import { JsonField } from "./controls.js";
import { joinPath } from "./placeholders.js";
import { resolve } from "./schema.js";
import { PlainText, SchemaForm } from "./schema_form.js";
import { Slot } from "./slot.js";
import { Whitelist } from "./whitelist.js";

const GRIDS = ["Limits", "How the model is asked", "Repairs"];
const OWN = { messages_json: MessagesField, allowed_tools: ToolsField, primary_output: PrimaryOutput };

/** The form of an agent's config at `path`; `schema` is its tool's. */
export function AgentPanel({ schema, node, name, path, edit }) {
  const config = isObject(node.config) ? node.config : {};
  return groupKeys(schema).map((group) => html`<${Group} key=${group.title} group=${group} schema=${schema} config=${config} name=${name} path=${path} edit=${edit} />`);
}

function Group({ group: { title, keys, open }, schema, config, name, path, edit }) {
  const [isOpen] = useState(open || keys.some((key) => config[key] !== undefined));
  return html`<details class="group" open=${isOpen}><summary><h3>${t(title)}</h3></summary>
    <div class=${`stack ${GRIDS.includes(title) ? "field-grid" : ""}`}>${keys.map((key) => {
      const Own = OWN[key];
      if (!Own) return html`<${SchemaForm} key=${key} schema=${schema} root=${schema} value=${config} path=${path} edit=${edit} only=${[key]} />`;
      const given = resolve(schema.properties[key], schema);
      return html`<${Own} key=${key} schema=${given} root=${schema} value=${config[key]} name=${name} config=${config} path=${[...path, key]} edit=${edit} required=${(schema.required ?? []).includes(key)} />`;
    })}</div></details>`;
}

/** The conversation: a placeholder as a text, or the messages as JSON. */
function MessagesField({ schema, value, path, edit }) {
  const write = (wanted) => edit.write(path, wanted === "" ? undefined : wanted);
  const isText = value === undefined || value === null || typeof value === "string";
  return html`<${Slot} edit=${edit} path=${path} below label="messages_json" help=${schema.description} render=${(props) =>
    isText
      ? html`<${PlainText} ...${props} label="messages_json" schema=${{}} value=${value ?? undefined} variables=${edit.variables} onValue=${write} isLong />`
      : html`<div><${JsonField} ...${props} label="messages_json" value=${value} variables=${edit.variables} onValue=${write} /></div>`} />`;
}

function ToolsField({ schema, value, path, edit, root, required }) {
  return html`<${Whitelist} help=${schema.description} value=${value} path=${path} edit=${edit} entrySchema=${resolve({ $ref: "#/$defs/AllowedTool" }, root)} root=${root} required=${required} />`;
}

/** What others read of the agent: its place as they write it. It is not changed here. */
function PrimaryOutput({ schema, value, name, path, edit }) {
  const output = value ?? schema.default ?? "final_answer";
  return html`<${Slot} edit=${edit} path=${path} label="primary_output" help="The output of this agent; other nodes read it by this placeholder"
    render=${(props) => html`<input type="text" ...${props} class="code" readonly value=${`{{${joinPath(["nodes", name, String(show(output))])}}}`} />`} />`;
}
