// Who decided what in a run.

import { html } from "../vendor/preact.js";
import { Badge, Time } from "../kit/parts.js";
import { own } from "../kit/own.js";
import { cut, onOneLine, show } from "../kit/text.js";
import { t } from "../kit/words.js";

const TONES = { approve: "good", edit: "good", retry: "good", resume: "good", deny: "bad", fail: "bad", cancel: "bad" };

/** The decisions of a run, as a table. */
export function Decisions({ decisions, hrefOf }) {
  if (decisions.length === 0) return html`<p class="soft">${t("Nobody has decided anything.")}</p>`;
  return html`<div class="scroll-x"><table class="table">
    <thead><tr><th>${t("When")}</th><th>${t("Who")}</th><th>${t("Decision")}</th><th>${t("About")}</th></tr></thead>
    <tbody>${decisions.map((each) => html`<tr>
      <td><${Time} at=${each.at} /></td>
      <td>${show(each.by ?? "")}</td>
      <td><${Badge} word=${each.decision} tone=${own(TONES, each.decision) ?? "plain"} />${each.message && html`<p>“${show(each.message)}”</p>`}</td>
      <td><a href=${hrefOf(each)}>${show(each.tool ?? t("the run"))}</a> ${each.args && html`<span class="mono soft">${cut(onOneLine(each.args), 160)}</span>`}</td>
    </tr>`)}</tbody>
  </table></div>`;
}
