// The proof of a run: what this page found when it checked the records itself.

import { html } from "../vendor/preact.js";
import { Copy, Notice } from "../kit/parts.js";
import { show } from "../kit/text.js";
import { count, number, t } from "../kit/words.js";
import { sayUnchecked } from "./seal.js";

const MOST_FAULTS = 20;

/** The verdict of the page's own check. */
export function Proof({ verdict }) {
  const { ok, complete, head, count: records, kid, isEncrypted, faults } = verdict;
  const tone = ok ? "good" : faults.length > 0 ? "bad" : "wait";
  const title = ok
    ? t("Whole: each of {n} records follows from the one before it, and the run has its end.", { n: number(records) })
    : faults.length > 0
      ? `${t("Damaged.")} ${count(faults.length, "Not whole: {n} fault.", "Not whole: {n} faults.")}`
      : t("Whole so far, and not finished.");
  return html`<${Notice} tone=${tone} title=${title} live=${true}>
    ${faults.length > 0 && html`<ul>${faults.slice(0, MOST_FAULTS).map((fault) => html`<li class="fault">${show(describe(fault))}</li>`)}</ul>`}
    ${faults.length > MOST_FAULTS && html`<p class="fault">${t("and {n} more", { n: number(faults.length - MOST_FAULTS) })}</p>`}
    ${faults.length > 0
      ? html`<p class="help">${t("Some records below differ from what was written: do not rely on them.")}</p>`
      : html`<p class="head-line">${t("head")} <code>${head}</code>, ${t("count")} ${number(records)} <${Copy} text=${head} label=${t("Copy the head")} /></p>
          <p>${t("seal")}: ${show(sayUnchecked(kid))}</p>
          ${isEncrypted && html`<p class="help">${t("The store keeps these records encrypted. That they are what was encrypted is checked by `agent-core verify`, not by this page.")}</p>`}
          <p class="help">${t("This page has checked the records itself. If someone had rewritten all of them, the head would be another: compare it with the head that was kept elsewhere.")}</p>`}
  <//>`;
}

function describe({ strand, n, line, why }) {
  if (line) return `${t("line")} ${line}: ${t(why)}`;
  return strand === undefined ? t(why) : `${strand}:${n}: ${t(why)}`;
}
