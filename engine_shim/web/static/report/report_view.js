// The auditor's report as the page shows it: the sections of its layout, each table with the command that shows it.

import { html } from "../vendor/preact.js";
import { link } from "../kit/router.js";
import { onOneLine } from "../kit/text.js";
import { number, t } from "../kit/words.js";
import layout from "./layout.json" with { type: "json" };
import { findCommand, listHead, writeCell } from "./cells.js";

export function ReportView({ report }) {
  return html`<div class="report">
    <dl>${listHead(report).map(([name, value]) => html`<dt>${name}</dt><dd>${onOneLine(value)}</dd>`)}</dl>
    ${layout.map(({ title, about, tables }) => html`<section key=${title}>
      <h2>${t(title)}</h2>
      ${about && html`<p class="soft">${t(about)}</p>`}
      ${tables.map((each) => html`<${Table} key=${each.key} title=${each.title} columns=${each.columns} table=${report[each.key]} />`)}
    </section>`)}
  </div>`;
}

function Table({ title, columns, table }) {
  const command = findCommand(table);
  return html`<h3>${t(title)}</h3>
    ${table.rows.length === 0 ? html`<p>${t("None.")}</p>` : html`<div class="scroll-x"><table class="table">
      <thead><tr>${columns.map(([, heading, kind]) => html`<th class=${classOf(kind)}>${t(heading)}</th>`)}</tr></thead>
      <tbody>${table.rows.map((row) => html`<tr>${columns.map(([field, , kind]) => html`<td class=${classOf(kind)}><${Cell} row=${row} field=${field} kind=${kind} /></td>`)}</tr>`)}</tbody>
    </table></div>`}
    ${table.left_out > 0 && html`<p>${t("And {n} more.", { n: number(table.left_out) })}</p>`}
    ${command && html`<p class="shown-by">${t("Shown by")} <code>${onOneLine(command)}</code>${table.command === null && t(", and so for each run")}.</p>`}`;
}

function Cell({ row, field, kind }) {
  const text = onOneLine(writeCell(row[field], kind));
  if (kind === "run" && row.run) return html`<a class="mono" href=${link(["runs", row.run], row.place ? { at: row.place } : {})}>${text}</a>`;
  return kind === "command" ? html`<code>${text}</code>` : text;
}

/** The class of a kind of cells: `CLASSES` of `report_page.py`. */
const CLASSES = new Map([["number", "number"], ["usd", "number"], ["word", "of-word"], ["run", "of-run"], ["time", "of-time"]]);
const classOf = (kind) => CLASSES.get(kind) ?? "";
