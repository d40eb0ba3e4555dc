// The timeline of a run: one card for each step, with all that was thought, called, refused and answered in it.

import { html, useState } from "../vendor/preact.js";
import { ChunkList } from "../kit/chunk_list.js";
import { isNumber, writeJson } from "../kit/json.js";
import { Badge, Time } from "../kit/parts.js";
import { Part } from "../kit/value.js";
import { show } from "../kit/text.js";
import { count, duration, number, t } from "../kit/words.js";
import { Call } from "./call.js";
import { Plan } from "./plan.js";
import { Records } from "./records.js";
import { callsOf, isProblem } from "./steps.js";
import { nameOfStrand } from "./strands.js";

const HEIGHT = 92;

/** The steps of a run. `context` has what the cards need: rowOf, hrefOf, deltaOf, bad and, of a run on a server, controls. */
export function Timeline({ items, focus, context }) {
  const draw = (item, at, key) => html`<${Card} key=${key} item=${item} before=${items[at - 1]} isChosen=${at === focus} context=${context} />`;
  return html`<div class="timeline">
    <${ChunkList} items=${items} render=${draw} keyOf=${(item) => `${item.strand}:${item.n}`} estimate=${HEIGHT} focus=${focus} />
  </div>`;
}

function Card({ item, before, isChosen, context }) {
  const [isOpen, setOpen] = useState(false);
  const isNew = before === undefined || before.strand !== item.strand;
  const [Body, title, tone] = BODIES[item.kind](item);
  const isBad = item.refs.some(({ strand, n }) => context.bad.has(`${strand}:${n}`));
  const id = `at-${item.strand}:${item.n}`;
  return html`<li class="card ${isBad ? "bad" : tone} ${isChosen ? "chosen" : ""}" data-depth=${Math.min(item.depth, 3)} id=${id} aria-current=${isChosen ? "true" : undefined}>
    ${isNew && html`<p class="card-strand">${show(nameOfStrand(item.strand))}</p>`}
    ${item.hidden > 0 && html`<p class="card-gap">${count(item.hidden, "{n} record before this is not shown", "{n} records before this are not shown")}</p>`}
    <header class="card-head">
      <h3>${title}</h3>
      <span class="card-facts">
        ${item.usage && item.kind === "step" && html`<span title=${t("tokens read and written")}>${number(item.usage.input_tokens)} + ${number(item.usage.output_tokens)} ${t("tokens")}</span>`}
        ${isNumber(item.seconds) && html`<span>${duration(item.seconds)}</span>`}
        <${Time} at=${item.at} day="never" />
        <button type="button" class="card-button" aria-expanded=${isOpen ? "true" : "false"} onClick=${() => setOpen(!isOpen)}>${count(item.refs.length, "{n} record", "{n} records")}</button>
        ${context.controls?.(item)}
        <a class="card-link" href=${context.hrefOf(item)} aria-label=${show(t("Address of {place}", { place: `${item.strand}:${item.n}` }))} title=${show(`${item.strand}:${item.n}`)}>#</a>
      </span>
    </header>
    ${isBad && html`<p class="fault">${t("A record of this step differs from what was written.")}</p>`}
    <${Body} item=${item} context=${context} />
    ${isOpen && html`<${Records} refs=${item.refs} rowOf=${context.rowOf} />`}
  </li>`;
}

// ── what each kind of card says ──────────────────────────────────────────────────────────────────

const BODIES = {
  begin: (item) => [Begin, item.loop === "flow" ? t("The workflow begins") : t("Agent {name} begins", { name: show(item.agent ?? item.node ?? "") }), "plain"],
  step: (item) => [Step, titleOfStep(item), toneOfStep(item)],
  call: (item) => [OneCall, show((item.node ?? item.call.tool) || t("A call")), toneOfCalls(item)],
  batch: (item) => [Batch, t("{n} calls side by side", { n: item.tools.length }), "plain"],
  message: (item) => [Message, item.received ? t("The agent reads messages") : t("{who} adds a message", { who: show(item.by) }), "plain"],
  signal: (item) => [Signal, t("{who} sends the signal {name}", { who: show(item.by), name: show(item.name) }), "plain"],
  control: (item) => [Nothing, show(item.by ? t("{who}: {decision}", { who: item.by, decision: t(item.decision) }) : t(item.decision)), "wait"],
  end: (item) => [End, t("Ends: {reason}", { reason: t(item.reason) }), ["final", "completed"].includes(item.reason) ? "good" : "bad"],
  record: (item) => [Bare, show(t(item.record.kind)), "plain"],
  sealed: (item) => [Nothing, show(item.kid ? t("Signed by the key {key}", { key: item.kid }) : t("Signed")), "plain"],
};

function Signal({ item }) {
  return item.data === null ? null : html`<${Part} label=${t("data")} value=${item.data} />`;
}

function titleOfStep(item) {
  const step = (item.step ?? null) === null ? t("A step") : t("Step {n}", { n: item.step });
  const words = { repaired: t("the reply cannot be read"), refused: t("the reply is refused"), failed: t("the model fails"), final: t("answers"), asking: t("asks the model"), cancelled: t("cancelled") };
  if (item.plan) return `${step}: ${t("a plan")}`;
  if (item.calls.length > 0) return `${step}: ${item.calls.map((call) => show(call.tool)).join(", ")}`;
  return words[item.state] ? `${step}: ${words[item.state]}` : step;
}

function toneOfStep(item) {
  if (item.state === "repaired") return "repair";
  if (item.problem || item.limit) return "bad";
  if (item.state === "final") return "good";
  return item.state === "asking" ? "live" : toneOfCalls(item);
}

function toneOfCalls(item) {
  const states = callsOf(item).map((call) => call.state);
  if (states.some((state) => state === "waiting" || state === "in_doubt" || state === "awaiting")) return "wait";
  if (states.includes("refused")) return "refused";
  return isProblem(item) ? "bad" : "plain";
}

function Begin({ item }) {
  const { record } = item;
  if (record.loop === "flow") return html`<${Part} label=${t("inputs")} value=${record.external} />`;
  const { prompt, model, allowed_tools: tools } = record.config;
  return html`<${Part} label=${t("model")} value=${model} />
    ${prompt && html`<${Part} label=${t("prompt")} value=${prompt} />`}
    <${Part} label=${t("messages")} value=${record.messages} />
    <${Part} label=${t("tools")} value=${tools} />
    ${record.forked && html`<${Part} label=${t("forked from")} value=${record.forked} />`}`;
}

function Step({ item, context }) {
  const delta = item.state === "asking" ? context.deltaOf(item) : null;
  return html`${item.thought && html`<p class="thought">${show(item.thought)}</p>`}
    ${delta && html`<p class="delta" aria-live="off">${show(delta)}</p>`}
    ${item.problem && html`<${Refusal} problem=${item.problem} isRepair=${item.state === "repaired"} />`}
    ${item.limit && html`<p class="why bad"><${Badge} word=${item.limit} tone="bad" /> ${t("The limit is reached.")}</p>`}
    ${item.plan && html`<${Plan} steps=${item.plan} />`}
    ${item.calls.map((call) => html`<${Call} key=${call.id} call=${call} context=${context} />`)}
    ${item.reply !== undefined && item.reply !== "" && html`<${Part} label=${t("reply")} value=${item.reply} />`}
    ${item.native && html`<${Part} label=${t("function calls")} value=${item.native} />`}`;
}

/** Why a reply was not taken: as a repair, which the model is told of, or as the judge's refusal. */
function Refusal({ problem, isRepair }) {
  return html`<div class="why ${isRepair ? "repair" : "bad"}">
    <p><${Badge} word=${problem.kind} tone=${isRepair ? "warn" : "bad"} /> ${isRepair ? t("sent back for repair") : t("refused")}</p>
    <p class="why-text">${show(problem.message)}</p>
  </div>`;
}

const OneCall = ({ item, context }) => html`<${Call} call=${item.call} context=${context} />`;

const Batch = ({ item }) => html`<${Part} label=${t("tools")} value=${item.tools} />`;

function Message({ item }) {
  const messages = item.received ?? [item];
  return messages.map((each) => html`<${Part} label=${show(each.by ?? each.role)} value=${each.content} />`);
}

function End({ item }) {
  return html`${item.answer !== null && html`<${Part} label=${t("answer")} value=${item.answer} />`}
    ${item.error && html`<div class="why bad"><p class="why-text">${show(item.error.message ?? writeJson(item.error))}</p></div>`}
    ${item.path && html`<${Part} label=${t("path")} value=${item.path.join(" → ")} />`}
    ${item.usage && html`<${Part} label=${t("usage")} value=${item.usage} />`}`;
}

/** A record that is a step by itself alone: what it belongs to is not shown, or not known here. */
const Bare = ({ item }) => html`<${Part} label=${t("record")} value=${item.record} />`;

const Nothing = () => null;
