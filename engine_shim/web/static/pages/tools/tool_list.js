// The tools of a host, by where they are from.

import { html } from "../../vendor/preact.js";
import { Button, Field, Notice } from "../../kit/parts.js";
import { go, link } from "../../kit/router.js";
import { cut, onOneLine } from "../../kit/text.js";
import { count, t } from "../../kit/words.js";
import { EFFECTS, Marks } from "./marks.js";

const LINE = 200;

/** The list, with what narrows it: `query` has text and effect. */
export function ToolList({ tools, query }) {
  const [text, effect] = [query.get("text") ?? "", query.get("effect") ?? ""];
  const narrow = (change) => go(link("tools", { text, effect, ...change }), { replace: true });
  const found = tools.filter((tool) => fits(tool, text.trim().toLowerCase()) && (!effect || tool.effect === effect));
  return html`<form class="filters" role="search" aria-label=${t("Filters")} onSubmit=${(event) => event.preventDefault()}>
      <div class="filters-row">
        <${Field} label=${t("Text")} render=${(props) => html`<input ...${props} type="search" value=${text} placeholder=${t("name, description, source, who uses it")}
          onInput=${(event) => narrow({ text: event.target.value })} />`} />
        <div class="chips" role="group" aria-label=${t("Effect")}>
          ${Object.entries(EFFECTS).map(([each, [word]]) => html`<button type="button" class="chip" key=${each} aria-pressed=${each === effect ? "true" : "false"}
            onClick=${() => narrow({ effect: each === effect ? "" : each })}>${t(word)}</button>`)}
        </div>
      </div>
    </form>
    <p class="soft" role="status">${count(found.length, "{n} tool", "{n} tools")}</p>
    ${found.length === 0 && html`<${Notice} title=${t("No tool fits.")}><div><${Button} onClick=${() => go(link("tools"))}>${t("Clear filters")}<//></div><//>`}
    ${bySource(found).map(([source, those]) => html`<${Source} key=${source} source=${source} tools=${those} />`)}`;
}

function Source({ source, tools }) {
  return html`<section class="tool-source" aria-label=${nameOf(source)}>
    <h2>${nameOf(source)} <span class="soft">${tools.length}</span></h2>
    <ul>${tools.map((tool) => html`<li key=${tool.code}><${ToolRow} tool=${tool} /></li>`)}</ul>
  </section>`;
}

const nameOf = (source) => (source === "built in" ? t("built in") : onOneLine(source));

function ToolRow({ tool }) {
  const users = (tool.used_by ?? []).length + (tool.agents ?? []).length;
  return html`<a class="tool-row" href=${link(["tools", tool.code])}>
    <code class="tool-code">${onOneLine(tool.code)}</code>
    <span class="tool-about">${onOneLine(cut(t(tool.description).split("\n\n")[0], LINE))}</span>
    <span class="tool-marks"><${Marks} tool=${tool} /></span>
    <span class="tool-users soft">${users > 0 ? count(users, "used once", "used by {n}") : ""}</span>
  </a>`;
}

function fits(tool, text) {
  const users = (tool.used_by ?? []).map((each) => `${each.workflow} ${each.node}`);
  const all = [tool.code, tool.description, t(tool.description), tool.source ?? "", ...users, ...(tool.agents ?? [])];
  return !text || all.some((each) => each.toLowerCase().includes(text));
}

/** The tools by their source: those of the host and its servers first, then those that are always there. */
function bySource(tools) {
  const found = new Map();
  for (const tool of tools) {
    const source = tool.source ?? "built in";
    found.set(source, [...(found.get(source) ?? []), tool]);
  }
  const rank = (source) => (source === "built in" ? 1 : 0);
  return [...found].sort(([one], [other]) => rank(one) - rank(other) || one.localeCompare(other));
}

