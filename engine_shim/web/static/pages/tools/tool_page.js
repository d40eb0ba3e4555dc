// One tool: what it takes and gives, who uses it, and its execution by itself.

import { html } from "../../vendor/preact.js";
import { Notice } from "../../kit/parts.js";
import { link } from "../../kit/router.js";
import { onOneLine, show } from "../../kit/text.js";
import { t } from "../../kit/words.js";
import { Block } from "../../kit/value.js";
import { nameType, readArguments } from "./arguments.js";
import { ExecuteForm } from "./execute_form.js";
import { Marks } from "./marks.js";

export function ToolPage({ tools, code, me }) {
  const tool = tools.find((each) => each.code === code);
  const head = html`<nav aria-label=${t("Above")}><a href=${link("tools")}>← ${t("All tools")}</a></nav>`;
  if (!tool) return html`${head}<${Notice} title=${t("There is no tool {code}.", { code: show(code) })} />`;
  return html`${head}
    <div class="page-head"><h1><code>${onOneLine(tool.code)}</code></h1></div>
    <p class="row"><${Marks} tool=${tool} /><span class="soft">${t("from")} ${tool.source === "built in" ? t("built in") : onOneLine(tool.source ?? "")}</span></p>
    <p class="tool-description">${show(t(tool.description))}</p>
    <section class="stack" aria-labelledby="tool-arguments"><h2 id="tool-arguments">${t("Arguments")}</h2><${Arguments} schema=${tool.config_schema} /></section>
    ${tool.output_schema && html`<section class="stack" aria-labelledby="tool-output"><h2 id="tool-output">${t("What it gives")}</h2><${Arguments} schema=${tool.output_schema} /></section>`}
    <section class="stack" aria-labelledby="tool-users"><h2 id="tool-users">${t("Who uses it")}</h2><${Users} tool=${tool} /></section>
    ${tool.executable && html`<section class="stack" aria-labelledby="tool-execute"><h2 id="tool-execute">${t("Execute it")}</h2><${ExecuteForm} key=${tool.code} tool=${tool} me=${me} /></section>`}`;
}

function Arguments({ schema }) {
  const rows = readArguments(schema);
  return html`${rows.length === 0 ? html`<p class="soft">${nameOfEmpty(schema)}</p>` : html`<div class="scroll-x" role="region" tabindex="0" aria-label=${t("Table")}>
      <table class="table stacked"><thead><tr><th>${t("Name")}</th><th>${t("Type")}</th><th><span class="unseen">${t("Needed")}</span></th><th>${t("Description")}</th><th>${t("Default")}</th></tr></thead>
      <tbody>${rows.map((row) => html`<${ArgumentRow} key=${row.path} row=${row} />`)}</tbody></table></div>`}
    <details class="part"><summary class="soft">${t("Its JSON Schema")}</summary><${Block} value=${schema} /></details>`;
}

const nameOfEmpty = (schema) => (!schema.type || schema.type === "object" ? t("no named fields") : nameType(schema));

function ArgumentRow({ row }) {
  return html`<tr>
    <td data-depth=${Math.min(row.depth, 3)}><code>${onOneLine(row.name)}</code></td>
    <td><code class="soft">${onOneLine(row.type)}</code></td>
    <td>${row.isRequired ? t("required") : ""}</td>
    <td>${show(row.description)}${row.limits.map(([name, value]) => html` <code class="soft limit">${name} ${onOneLine(value)}</code>`)}</td>
    <td>${(row.default ?? null) === null ? "" : html`<span class="stacked-label soft">${t("Default")} </span><code>${onOneLine(row.default)}</code>`}</td>
  </tr>`;
}

function Users({ tool }) {
  const { used_by: uses = [], agents = [] } = tool;
  if (uses.length === 0 && agents.length === 0) return html`<p class="soft">${t("No workflow and no agent of this host.")}</p>`;
  return html`<ul class="tool-uses">
    ${uses.map((use) => html`<li key=${`${use.workflow} ${use.node}`}>
      <a href=${link(["workflows", use.workflow], { node: use.node })}>${onOneLine(use.workflow)}@${onOneLine(use.version)} · ${onOneLine(use.node)}</a>
      <span class="soft"> ${use.how === "agent" ? t("an agent there may call it") : t("a node of its own")}</span></li>`)}
    ${agents.map((name) => html`<li key=${name}><a href=${link("chat", { agent: name })}>${onOneLine(name)}</a> <span class="soft">${t("agent")}</span></li>`)}
  </ul>`;
}

