// One run in a list: a link to it, with what a person looks for.

import { html } from "../../vendor/preact.js";
import { Badge } from "../../kit/parts.js";
import { link } from "../../kit/router.js";
import { cut, onOneLine } from "../../kit/text.js";
import { duration, number, t } from "../../kit/words.js";
import { Ago } from "./ago.js";

const ASKED = 160;
const TOOLS = 3;

/** What a run is a run of: a workflow's version, or an agent. */
export function nameOfRun(run) {
  if (run.agent) return run.agent;
  return run.version ? `${run.workflow}@${run.version}` : run.workflow;
}

/** A row of the list. `now` is the time that its age is told by. */
export function RunRow({ run, now }) {
  const running = run.status === "running" || run.status === "pending";
  const lasts = Math.floor((now - Date.parse(run.started_at)) / 1000);
  const seconds = run.seconds ?? (running && lasts >= 1 ? lasts : null);
  return html`<a class="run-row" href=${link(["runs", run.run_id])}>
    <span class="run-status"><${Badge} word=${run.status} /></span>
    <span class="run-name">${onOneLine(nameOfRun(run))}${run.agent ? html` <span class="soft">${t("agent")}</span>` : ""}</span>
    <span class="run-asked">${onOneLine(cut(run.asked ?? "", ASKED))}</span>
    <${Facts} run=${run} />
    <span class="run-tokens number">${run.tokens ? html`${number(run.tokens)}<span class="run-unit"> ${t("tokens")}</span>` : ""}</span>
    <span class="run-seconds number">${duration(seconds)}</span>
    <${Ago} at=${run.started_at} now=${now} />
  </a>`;
}

function Facts({ run }) {
  const reasons = (run.reasons ?? []).filter((each) => each !== "final" && each !== run.status);
  const tools = run.tools ?? [];
  const more = tools.length - TOOLS;
  return html`<span class="run-facts" title=${tools.map(onOneLine).join(", ")}>
    ${reasons.map((each) => html`<${Badge} key=${each} word=${each} />`)}
    ${tools.slice(0, TOOLS).map((each) => html`<code key=${each}>${onOneLine(each)}</code>`)}
    ${more > 0 && html`<span class="soft">+${more}</span>`}
  </span>`;
}
