// What an agent did in a turn, step by step, beside its answer.

import { html, useState } from "../../vendor/preact.js";
import { Badge } from "../../kit/parts.js";
import { cut, onOneLine, show } from "../../kit/text.js";
import { duration, t } from "../../kit/words.js";
import { Part } from "../../kit/value.js";
import { Decide, TooLate } from "../../run/decide.js";
import { WAITING } from "./turn.js";

const STATES = {
  running: ["calling", "live"], done: ["done", "good"], failed: ["failed", "bad"], over: ["not called", "plain"], decided: ["decided", "plain"],
  awaiting_approval: ["waiting", "wait"], in_doubt: ["in_doubt", "wait"],
};

export function Steps({ turn, me }) {
  return html`<ol class="turn-steps">${turn.items.map((item) => html`<li key=${item.key} data-kind=${item.kind} data-depth=${Math.min(item.depth, 3)}>
    <${Item} item=${item} turn=${turn} me=${me} /></li>`)}</ol>`;
}

function Item({ item, turn, me }) {
  switch (item.kind) {
    case "step":
      return html`<span class="soft">${t("Step {n}", { n: item.step })} · ${onOneLine(item.model)}</span>`;
    case "thought":
      return html`<p class="turn-thought">${show(cut(item.text, 4000))}</p>`;
    case "plan":
      return html`<${Part} label=${t("Plan")} value=${item.steps} />`;
    case "repair":
      return html`<div><${Badge} word=${item.problem} tone="warn" /> <span class="turn-repair">${show(cut(item.message, 2000))}</span></div>`;
    default:
      return html`<${Call} call=${item} trace=${turn.trace} me=${me} />`;
  }
}

function Call({ call, trace, me }) {
  const [word, tone] = STATES[call.state];
  const [late, setLate] = useState(null);
  return html`<div class="turn-call">
    <p class="row turn-call-head"><code>${onOneLine(call.tool)}</code><${Badge} word=${word} tone=${tone} /><span class="soft">${duration(call.seconds)}</span></p>
    <${Part} label=${t("with")} value=${call.args} open=${WAITING.has(call.state)} />
    ${call.progress && call.state === "running" && html`<p class="soft">${onOneLine(cut(call.progress, 200))}</p>`}
    ${call.result !== null && html`<${Part} label=${call.state === "failed" ? t("error") : t("gave")} value=${call.isCut ? `${call.result}…` : call.result} />`}
    ${WAITING.has(call.state) && html`<${Waiting} key=${`${call.at.strand}:${call.at.n}`} call=${call} trace=${trace} me=${me} onTooLate=${setLate} />`}
    <${TooLate} tool=${late} />
  </div>`;
}

/** The decision about a call; what comes of it is told by the events of the run. */
function Waiting({ call, trace, me, onTooLate }) {
  const waiting = { tool: call.tool, args: call.args, reason: call.state, waits: call.at };
  return html`<div class="turn-decision">
    <p>${call.state === "in_doubt" ? t("It is not known whether this call was made. Check, then decide:") : t("This call waits for your decision.")}</p>
    ${call.why && html`<p class="why wait">${show(call.why)}</p>`}
    <${Decide} run=${trace} call=${waiting} me=${me} onDecided=${() => {}} onTooLate=${onTooLate} />
  </div>`;
}
