// One call of a tool: what it was called with, what judge and people said of it, and what came of it.

import { html } from "../vendor/preact.js";
import { isNumber } from "../kit/json.js";
import { Badge, Time } from "../kit/parts.js";
import { own } from "../kit/own.js";
import { Part } from "../kit/value.js";
import { show } from "../kit/text.js";
import { duration, t } from "../kit/words.js";

const TONES = { done: "good", failed: "bad", refused: "bad", denied: "bad", waiting: "wait", in_doubt: "wait", awaiting: "wait", running: "live", cancelled: "plain", skipped: "plain", approved: "plain", judged: "plain" };
const WORDS = { judged: "allowed", in_doubt: "in doubt", awaiting: "waiting" };

/** A call within its step. `context.decide(call)` and `context.signal(call)`, where there are such, draw what a person may
 *  decide or send. */
export function Call({ call, context }) {
  const word = own(WORDS, call.state) ?? call.state;
  return html`<section class="call ${own(TONES, call.state) ?? "plain"}" aria-label=${show(call.tool)}>
    <p class="call-head">
      ${call.tool && html`<span class="call-tool">${show(call.tool)}</span>`}
      <${Badge} word=${word} tone=${own(TONES, call.state)} />
      ${call.effect && call.effect !== "read" && html`<${Badge} word=${call.effect} tone="plain" />`}
      ${call.cached && html`<${Badge} word="kept answer" tone="plain" />`}
      ${isNumber(call.seconds) && html`<span class="soft">${duration(call.seconds)}</span>`}
    </p>
    ${call.args !== null && html`<${Part} label=${t("arguments")} value=${call.args ?? {}} open=${Boolean(call.waits && context.decide)} />`}
    ${call.origins && html`<${Part} label=${t("where from")} value=${describeOrigins(call.origins)} />`}
    ${call.message && call.verdict === "refuse" && html`<div class="why bad"><p><${Badge} word=${call.reason ?? "refused"} tone="bad" /> ${t("the judge refuses")}</p><p class="why-text">${show(call.message)}</p></div>`}
    ${call.doubt && html`<p class="why wait">${show(call.doubt)}</p>`}
    ${call.decisions.map((each) => html`<${Decision} decision=${each} />`)}
    ${call.output !== undefined && call.output !== null && html`<${Part} label=${t("observation")} value=${call.output} />`}
    ${call.error && html`<div class="why bad"><p class="why-text">${show(call.error)}</p></div>`}
    ${call.state === "awaiting" && html`<${Awaited} awaits=${call.awaits} />`}
    ${call.state === "awaiting" && call.awaits.signal !== null && context.signal?.(call)}
    ${call.waits && (call.state === "waiting" || call.state === "in_doubt") && context.decide?.(call)}
  </section>`;
}

/** For what a node waits. */
function Awaited({ awaits }) {
  return html`<p class="why wait">
    ${awaits.signal !== null && html`<span>${show(t("waits for the signal {name}", { name: awaits.signal }))}</span>`}
    ${awaits.until !== null && html` <span>${t("waits until")} <${Time} at=${awaits.until} day="always" /></span>`}
  </p>`;
}

/** What a person decided, and when. */
export function Decision({ decision }) {
  const bad = ["deny", "fail", "cancel"].includes(decision.decision);
  return html`<p class="decision ${bad ? "bad" : "good"}">
    <strong>${show(decision.by ?? t("somebody"))}</strong> ${t("decides")}: <strong>${t(decision.decision)}</strong> <${Time} at=${decision.at} />
    ${decision.message && html`<span class="decision-text">“${show(decision.message)}”</span>`}
  </p>`;
}

const describeOrigins = (origins) => Object.entries(origins).map(([pointer, origin]) => `${pointer} ← ${origin}`).join("\n");
