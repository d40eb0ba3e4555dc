// One turn: what was said, what was answered, and the steps beside it.

import { html, useState } from "../../vendor/preact.js";
import { Badge, Button, Failure, Notice, useAct } from "../../kit/parts.js";
import { link } from "../../kit/router.js";
import { show } from "../../kit/text.js";
import { count, number, t } from "../../kit/words.js";
import { Block } from "../../kit/value.js";
import { Steps } from "./steps.js";
import { waitingIn } from "./turn.js";

const LONG = 20_000;
const HINTS = {
  token_budget: "Raise “Most tokens” beside the message, and send it again.",
  max_tool_calls: "Raise “Most calls” beside the message, and send it again.",
  conversation_budget: "Begin a new conversation.",
};

export function TurnView({ turn, me, onShowSteps }) {
  return html`<article class="turn">
    <div class="turn-said">
      <div class="said user"><h3 class="unseen">${t("You")}</h3><${Text} text=${turn.message} /></div>
      <div class="said agent"><h3 class="unseen">${t("The agent")}</h3><${Answer} turn=${turn} /><${Foot} turn=${turn} /></div>
    </div>
    <${Beside} turn=${turn} me=${me} onShowSteps=${onShowSteps} />
  </article>`;
}

function Answer({ turn }) {
  if (turn.status === "failed") return html`<${Ended} turn=${turn} />`;
  if (turn.status === "lost") return html`<${Notice} tone="wait" title=${t("This turn did not end, and it does not continue. Send the message again.")} />`;
  const text = turn.answer ?? turn.draft;
  if (text) return html`<${Text} text=${text} isDraft=${turn.answer === null} />`;
  if (turn.status === "waiting") return html`<p class="soft">${waitingIn(turn).length > 0 ? t("A call waits for your decision.") : t("The run waits for a time or a signal.")}</p>`;
  if (turn.status === "running") return html`<p class="soft working">${t("The agent is at work…")}</p>`;
  return html`<p class="soft">${t("No answer was recorded.")}</p>`;
}

function Ended({ turn }) {
  const hint = HINTS[turn.reason];
  return html`<${Notice} tone="bad" title=${t("There is no answer.")}>
    <p><${Badge} word=${turn.reason} /> ${turn.error && show(turn.error.message)}</p>
    ${hint && html`<p>${t(hint)}</p>`}<//>`;
}

function Text({ text, isDraft = false }) {
  if (text.length > LONG) return html`<${Block} value=${text} />`;
  return html`<div class="said-text ${isDraft ? "draft" : ""}">${show(text)}</div>`;
}

function Foot({ turn }) {
  return html`<p class="turn-foot">
    ${turn.trace && html`<a href=${link(["runs", turn.trace])}>${t("Its run")}</a>`}
    ${turn.usage?.total_tokens > 0 && html`<span>${count(turn.usage.total_tokens, "{n} token", "{n} tokens")}</span>`}
  </p>`;
}

/** The steps: open while the turn goes on; of a stored turn they are read when they are asked for. */
function Beside({ turn, me, onShowSteps }) {
  const [isOpen, setOpen] = useState(null);
  const { act, busy, error } = useAct(() => onShowSteps(turn.trace));
  if (!turn.isTold) {
    if (turn.status === "running") return html`<div class="turn-beside"></div>`;
    return html`<div class="turn-beside">${turn.trace && html`<${Button} kind="quiet small" busy=${busy} onClick=${act}>
      ${turn.calls ? count(turn.calls, "Show its steps: {n} call", "Show its steps: {n} calls") : t("Show its steps")}<//>`}<${Failure} error=${error} /></div>`;
  }
  const calls = turn.items.filter((item) => item.kind === "call").length;
  const isShown = turn.status === "waiting" || (isOpen ?? (turn.status === "running" || matchMedia("(min-width: 70rem)").matches));
  return html`<details class="turn-beside" open=${isShown} onToggle=${(event) => event.target.open !== isShown && setOpen(event.target.open)}>
    <summary>${t("Steps")} <span class="soft">${number(turn.items.filter((item) => item.kind === "step").length)} · ${count(calls, "{n} call", "{n} calls")}</span></summary>
    <${Steps} turn=${turn} me=${me} />
  </details>`;
}
