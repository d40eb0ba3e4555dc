// What the agents of a run may use, and what is left of it.

import { html } from "../vendor/preact.js";
import { show } from "../kit/text.js";
import { duration, money, number, t } from "../kit/words.js";
import { nameOfStrand } from "./strands.js";

const ROWS = [
  ["steps", "steps", number],
  ["tool_calls", "calls", number],
  ["tokens", "tokens", number],
  ["cost", "cost", money],
  ["seconds", "time", duration],
];

/** The budgets of each agent. */
export function Budgets({ budgets }) {
  return budgets.map((each) => html`<section class="budget" key=${each.strand}>
    <h3>${show(each.agent ?? nameOfStrand(each.strand))} <span class="soft">${show(each.model)}</span></h3>
    <dl>${ROWS.map(([key, label, write]) => html`<${Row} key=${key} label=${t(label)} used=${each.used[key]} limit=${each.limits[key] ?? null} write=${write} />`)}</dl>
  </section>`);
}

function Row({ label, used, limit, write }) {
  if (limit === null && !used) return null;
  const share = Number(limit) ? Math.min(1, used / limit) : 0;
  return html`<div>
    <dt>${label}</dt>
    <dd>${limit === null ? write(used) : t("{used} of {limit}", { used: write(used), limit: write(limit) })}</dd>
    ${limit !== null && html`<div class="meter ${share > 0.9 ? "full" : ""}" aria-hidden="true"><span style=${{ width: `${100 * share}%` }}></span></div>`}
  </div>`;
}
