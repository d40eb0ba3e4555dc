// The workflows of the host, with their versions; a new one, and one from a file.

import { html, useState } from "../vendor/preact.js";
import { ask } from "../kit/api.js";
import { Failure, Loading, Notice, useAnswer } from "../kit/parts.js";
import { go, link } from "../kit/router.js";
import { show } from "../kit/text.js";
import { number, t } from "../kit/words.js";
import { keep } from "../edit/draft_store.js";
import { Import } from "../edit/edit_head.js";
import { groupVersions } from "../edit/versions.js";

export function WorkflowsPage() {
  const { data, error, load } = useAnswer((signal) => ask("workflows", { signal }), []);
  const [text, setText] = useState("");
  const open = (content, format) => {
    keep("new", { text: content, format, base: "" });
    go(link(["workflows", "new"]));
  };
  const groups = groupVersions(data?.workflows ?? []);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = groups.filter(({ id, name, description }) => words.every((word) => `${id} ${name} ${description}`.toLowerCase().includes(word)));
  return html`<header class="page-head"><h1>${t("Workflows")}</h1>
      <div class="row"><${Import} onImport=${open} /><a class="button main" href=${link(["workflows", "new"])}>${t("New workflow")}</a></div></header>
    <${Failure} error=${error} again=${load} />
    ${!data && !error && html`<${Loading} />`}
    ${data && html`<div class="row"><input type="search" class="workflow-search" aria-label=${t("Search the workflows")} placeholder=${t("Search {n} workflows", { n: number(groups.length) })} value=${text} onInput=${(event) => setText(event.target.value)} /></div>
      ${found.length ? html`<ul class="workflow-list">${found.map((group) => html`<${Row} key=${group.id} group=${group} />`)}</ul>` : html`<${Notice} title=${groups.length ? t("No workflow fits.") : t("There is no workflow yet.")}>${groups.length ? "" : html`<p>${t("Begin a new one here, import a file, or put files into the workflows directory of the host.")}</p>`}<//>`}`}`;
}

function Row({ group: { id, name, description, versions } }) {
  const [newest, ...older] = versions;
  return html`<li class="workflow-row">
    <div class="workflow-name"><a href=${link(["workflows", id])}>${show(id)}</a>${name && name !== id && html`<span class="soft">${show(name)}</span>`}</div>
    <p class="workflow-text soft">${show(description || "")}</p>
    <div class="row workflow-versions"><span class="badge plain">${t("version {version}", { version: show(newest) })}</span>
      ${older.length > 0 && html`<details class="older"><summary>${t("{n} older", { n: number(older.length) })}</summary><div class="row">${older.map((each) => html`<a key=${each} href=${link(["workflows", `${id}@${each}`])}>${show(each)}</a>`)}</div></details>`}</div>
    <div class="row workflow-links"><a class="button small" href=${link(["workflows", id], { view: "run" })} aria-label=${t("Run {name}", { name: show(id) })}>${t("Run")}</a>
      <a class="button small" href=${link(["runs"], { workflow: id })} aria-label=${t("Runs of {name}", { name: show(id) })}>${t("Runs")}</a></div>
  </li>`;
}
