// The whitelist of an agent: its tools with what binds each, and all tools of the host to choose from.

import { html, useState } from "../vendor/preact.js";
import { Button, useId } from "../kit/parts.js";
import { show } from "../kit/text.js";
import { count, t } from "../kit/words.js";
import { keyOf } from "./faults.js";
import { hasPlaceholder } from "./schema.js";
import { SchemaField } from "./schema_form.js";
import { Said } from "./slot.js";
import { ToolBounds } from "./tool_bounds.js";
import { boundsOf, isPattern, toggleTool, toolOf } from "./whitelist_edits.js";

const TONES = { read: "good", write: "warn" };

/** The multi-select over all tools; `value` is the list as it stands. */
export function Whitelist({ value, path, edit, help, entrySchema, root, required }) {
  if (value !== undefined && !Array.isArray(value)) return html`<${SchemaField} schema=${hasPlaceholder(value) ? { type: "string" } : {}} root=${root} label="allowed_tools" value=${value} path=${path} edit=${edit} required=${required} />`;
  const entries = value ?? [];
  const setAll = (wanted) => edit.write(path, wanted);
  return html`<fieldset class="list whitelist" data-path=${keyOf(path)} tabindex="-1"><legend>allowed_tools${required && html`<span class="required" aria-hidden="true"> *</span>`}</legend>
    <p class="help">${show(t(help))}</p><${Said} edit=${edit} path=${path} />
    ${entries.length === 0 && html`<p class="soft">${t("No tool is allowed.")}</p>`}
    <ul class="allowed">${entries.map((entry, at) => html`<${Allowed} key=${`${toolOf(entry)} ${entries.slice(0, at).filter((each) => toolOf(each) === toolOf(entry)).length}`} entry=${entry} path=${[...path, at]} edit=${edit} entrySchema=${entrySchema} root=${root}
      onRemove=${() => setAll(entries.filter((_, n) => n !== at))} />`)}</ul>
    <${Choices} entries=${entries} edit=${edit} onToggle=${(name, on) => setAll(toggleTool(entries, name, on))} />
  </fieldset>`;
}

function Allowed({ entry, path, edit, entrySchema, root, onRemove }) {
  const name = toolOf(entry);
  const tool = edit.tools.find(({ code }) => code === name);
  const bounds = boundsOf(entry);
  return html`<li class="allowed-tool" data-path=${keyOf(path)} tabindex="-1">
    <div class="allowed-row">
      <details><summary><code>${show(name)}</code> ${tool && html`<span class="badge ${TONES[tool.effect] ?? "plain"}">${show(t(tool.effect))}</span>`}
        ${isPattern(name) && html`<span class="soft">${t("a pattern")}</span>`}
        ${bounds.map(([key, text]) => html`<span class="bound" key=${key}>${key}${text && html` <b>${show(text)}</b>`}</span>`)}</summary>
        <${ToolBounds} entry=${entry} tool=${tool} path=${path} edit=${edit} schema=${entrySchema} root=${root} /></details>
      <${Button} kind="quiet small" disabled=${edit.disabled} aria-label=${t("Remove {name}", { name: show(name) })} onClick=${onRemove}>✕<//>
    </div>
    <${Said} edit=${edit} path=${path} />
  </li>`;
}

function Choices({ entries, edit, onToggle }) {
  const id = useId();
  const [text, setText] = useState("");
  const chosen = new Set(entries.map(toolOf));
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = edit.tools.filter(({ code, description }) => words.every((word) => `${code} ${description}`.toLowerCase().includes(word)));
  const pattern = text.trim();
  return html`<div class="choices">
    <div class="row nowrap"><input type="search" id=${id} class="grow" aria-label=${t("Search the tools")} placeholder=${t("Search {n} tools, or write a pattern such as mcp.files.*", { n: edit.tools.length })} value=${text} disabled=${edit.disabled} onInput=${(event) => setText(event.target.value)} />
      ${isPattern(pattern) && html`<${Button} kind="small" disabled=${chosen.has(pattern)} onClick=${() => (onToggle(pattern, true), setText(""))}>${t("Allow the pattern")}<//>`}</div>
    <div class="choices-list" role="group" aria-label=${t("Tools to choose from")} tabindex="0">
      ${found.map((tool) => html`<label key=${tool.code} class="choice" title=${show(t(tool.description))}><input type="checkbox" checked=${chosen.has(tool.code)} disabled=${edit.disabled} onChange=${(event) => onToggle(tool.code, event.target.checked)} />
        <code>${show(tool.code)}</code><span class="badge ${TONES[tool.effect] ?? "plain"}">${show(t(tool.effect))}</span><span class="choice-text">${show(t(tool.description))}</span></label>`)}
      ${found.length === 0 && html`<p class="soft">${t("No tool fits.")}</p>`}
    </div>
    <p class="help" aria-live="polite">${count(chosen.size, "{n} entry is allowed", "{n} entries are allowed")}</p>
  </div>`;
}
