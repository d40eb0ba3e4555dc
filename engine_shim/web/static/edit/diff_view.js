// Two texts, line by line, with what is new and what is gone.

import { html } from "../vendor/preact.js";
import { show } from "../kit/text.js";
import { count, t } from "../kit/words.js";
import { compareLines, countChanges, foldSame, splitLines } from "./lines.js";

const SIGNS = { new: "+", gone: "−", same: " " };

/** What leads from one text to another. */
export function DiffView({ before, after }) {
  const rows = compareLines(splitLines(before), splitLines(after));
  const { added, removed } = countChanges(rows);
  if (!added && !removed) return html`<p class="soft">${t("Nothing has changed.")}</p>`;
  return html`<div class="diff-view">
    <p class="row"><span class="badge good">${count(added, "{n} line added", "{n} lines added")}</span><span class="badge bad">${count(removed, "{n} line removed", "{n} lines removed")}</span></p>
    <div class="scroll-x diff-box" tabindex="0" role="region" aria-label=${t("Changes")}><table class="diff"><tbody>
      ${foldSame(rows).map((row, at) => (row.kind === "gap" ? html`<tr key=${at} class="gap"><td colspan="4">${count(row.count, "{n} line unchanged", "{n} lines unchanged")}</td></tr>` : html`<${Row} key=${at} row=${row} />`))}
    </tbody></table></div>
  </div>`;
}

function Row({ row: { kind, text, a, b } }) {
  return html`<tr class=${kind}><td class="diff-number">${kind === "new" ? "" : a + 1}</td><td class="diff-number">${kind === "gone" ? "" : b + 1}</td>
    <td class="diff-sign"><span aria-hidden="true">${SIGNS[kind]}</span>${kind !== "same" && html`<span class="unseen">${kind === "new" ? t("added") : t("removed")}</span>`}</td><td class="diff-text">${show(text)}</td></tr>`;
}
