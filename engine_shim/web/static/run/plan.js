// A plan of an agent: its steps, and how far each has come.

import { html } from "../vendor/preact.js";
import { Badge } from "../kit/parts.js";
import { own } from "../kit/own.js";
import { onOneLine, show } from "../kit/text.js";
import { t } from "../kit/words.js";

const TONES = { done: "good", failed: "bad", running: "live", skipped: "plain", planned: "plain" };

/** The steps of a plan as a table. */
export function Plan({ steps }) {
  return html`<div class="scroll-x"><table class="table plan">
    <caption class="unseen">${t("Plan")}</caption>
    <thead><tr><th>${t("Step")}</th><th>${t("What")}</th><th>${t("Tool")}</th><th>${t("State")}</th></tr></thead>
    <tbody>${steps.map((each) => html`<tr>
      <td>${each.step}</td>
      <td>${show(each.description ?? "")}${each.message && html`<p class="fault">${show(each.message)}</p>`}</td>
      <td><code>${show(each.tool ?? "")}</code> <span class="soft mono">${each.parameters ? onOneLine(each.parameters) : ""}</span></td>
      <td><${Badge} word=${each.status} tone=${own(TONES, each.status)} /></td>
    </tr>`)}</tbody>
  </table></div>`;
}
