// The filters above a list of runs.

import { html, useState } from "../../vendor/preact.js";
import { ask } from "../../kit/api.js";
import { Button, Field, useAnswer } from "../../kit/parts.js";
import { onOneLine } from "../../kit/text.js";
import { useTypedText } from "../../kit/typed_text.js";
import { t } from "../../kit/words.js";
import { countFilters, REASONS, STATUSES } from "./filters.js";

const TYPING_MS = 300;

/** The filters: `names` says which of them; `onChange` gets those that change, as {name: value}. */
export function FilterBar({ filters, onChange, names = ["text", "workflow", "reason", "tool", "since", "status"] }) {
  const [isOpen, setOpen] = useState(false);
  const known = useKnown();
  const set = countFilters({ ...filters, text: "" });
  const has = (name) => names.includes(name);
  return html`<form class="filters ${isOpen ? "is-open" : ""}" role="search" aria-label=${t("Filters")} onSubmit=${(event) => event.preventDefault()}>
    <div class="filters-row">
      ${has("text") && html`<${TextFilter} text=${filters.text} onText=${(text) => onChange({ text }, true)} />`}
      <${Button} class="filters-toggle" aria-expanded=${isOpen ? "true" : "false"} onClick=${() => setOpen(!isOpen)}>
        ${set ? t("Filters ({n})", { n: set }) : t("Filters")}
      <//>
      <div class="filters-more">
        ${has("workflow") && html`<${Choice} label=${t("Workflow")} none=${t("all")} value=${filters.workflow} options=${known.workflows} onChoose=${(workflow) => onChange({ workflow })} />`}
        ${has("reason") && html`<${Choice} label=${t("Finish reason")} none=${t("all")} value=${filters.reason} options=${REASONS} nameOf=${t} onChoose=${(reason) => onChange({ reason })} />`}
        ${has("tool") && html`<${Choice} label=${t("Tool")} none=${t("all")} value=${filters.tool} options=${known.tools} onChoose=${(tool) => onChange({ tool })} />`}
        ${has("since") && html`<${Since} value=${filters.since} onChoose=${(since) => onChange({ since })} />`}
      </div>
    </div>
    <div class="filters-row filters-more">
      ${has("status") && html`<${Statuses} chosen=${filters.status} onChoose=${(status) => onChange({ status })} />`}
    </div>
  </form>`;
}

/** What there is to choose from. A list that cannot be had is empty: an error would be shown by the list itself. */
function useKnown() {
  const { data } = useAnswer(async (signal) => {
    const [workflows, tools] = await Promise.all([ask("workflows", { signal }), ask("tools", { signal })]);
    const ids = workflows.workflows.map((each) => each.id);
    return { workflows: [...new Set(ids)].sort(), tools: tools.tools.map((each) => each.code).sort() };
  }, []);
  return data ?? { workflows: [], tools: [] };
}

/** A text that is looked for once nobody types any more. */
function TextFilter({ text, onText }) {
  const [typed, setTyped] = useTypedText(text, onText, TYPING_MS);
  return html`<${Field} label=${t("Text")} render=${(props) => html`<input ...${props} type="search" maxlength="200" value=${typed}
    placeholder=${t("anything recorded")} onInput=${(event) => setTyped(event.target.value)} />`} />`;
}

function Choice({ label, none, value, options, nameOf = onOneLine, onChoose }) {
  const all = value && !options.includes(value) ? [value, ...options] : options;
  return html`<${Field} label=${label} render=${(props) => html`<select ...${props} value=${value} onChange=${(event) => onChoose(event.target.value)}>
    <option value="">${none}</option>${all.map((each) => html`<option key=${each} value=${each}>${nameOf(each)}</option>`)}</select>`} />`;
}

function Since({ value, onChoose }) {
  return html`<${Field} label=${t("Since")} render=${(props) => html`<select ...${props} value=${value} onChange=${(event) => onChoose(event.target.value)}>
    <option value="1h">${t("last hour")}</option><option value="24h">${t("last 24 hours")}</option>
    <option value="7d">${t("last 7 days")}</option><option value="">${t("all time")}</option></select>`} />`;
}

function Statuses({ chosen, onChoose }) {
  const toggle = (status) => onChoose(chosen.includes(status) ? chosen.filter((each) => each !== status) : [...chosen, status]);
  return html`<div class="chips" role="group" aria-label=${t("Status")}>
    ${STATUSES.map((status) => html`<button key=${status} type="button" class="chip" aria-pressed=${chosen.includes(status) ? "true" : "false"}
      onClick=${() => toggle(status)}>${t(status)}</button>`)}
  </div>`;
}
