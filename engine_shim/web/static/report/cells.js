// What stands in the cells of the auditor's report, and the command that shows a table. Pure.

import { count, number, t } from "../kit/words.js";
import { sayWhatServerSays } from "../run/seal.js";

const NOTHING = "-";

/** A value of a kind as a text: as `write_cell` of `report_layout.py` has it, in the language of the page. */
export function writeCell(value, kind) {
  switch (kind) {
    case "number":
      return number(value);
    case "usd":
      return value === null ? NOTHING : `${number(value, 4)} USD`;
    case "time":
      return writeTime(value);
    case "seal":
      return value === "" ? NOTHING : sayWhatServerSays(value);
    case "word":
      return value === "" ? NOTHING : t(value);
    case "counts":
      return Object.entries(value).map(([name, n]) => `${number(n)} ${t(name)}`).join(", ") || NOTHING;
    case "lines":
      return value.join("; ") || NOTHING;
    default:
      return value || NOTHING;
  }
}

/** A time in UTC, to the second; a text that is none as it is. */
export function writeTime(at) {
  const time = new Date(/(Z|[+-]\d\d:\d\d)$/.test(at) ? at : `${at}Z`);
  return Number.isNaN(time.getTime()) ? at : time.toISOString().slice(0, 19).replace("T", " ");
}

/** The command that shows a table, or its first row; null where each row has its own, or there are none. */
export function findCommand({ command, each, rows }) {
  if (command !== null || each === null || rows.length === 0) return command;
  return each.replace("RUN", () => quote(rows[0].run));
}

/** A word of a command as a shell reads it. */
const quote = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);

/** What the report is about: [name, value]. */
export function listHead(report) {
  const left = report.runs_left_out > 0 && count(report.runs_left_out, "{n} older one was not looked at", "{n} older ones were not looked at");
  const damaged = report.damaged > 0 && t("{n} damaged, of which only the counts tell", { n: number(report.damaged) });
  const unread = report.unreadable > 0 && t("{n} cannot be read", { n: number(report.unreadable) });
  const store = report.store ?? NOTHING;
  return [
    [t("Runs begun since"), report.since === null ? t("the beginning") : `${writeTime(report.since)} UTC`],
    [t("Workflow"), report.workflow ?? t("all")],
    [t("Runs"), [number(report.runs), left, damaged, unread].filter(Boolean).join("; ")],
    [t("First and last"), report.runs > 0 ? `${writeTime(report.first)}, ${writeTime(report.last)} UTC` : NOTHING],
    [t("Store"), report.tenant === null ? store : t("{store}, of the tenant {tenant}", { store, tenant: report.tenant })],
    [t("Made at"), t("{time} UTC, by agent-core {version}", { time: writeTime(report.made_at), version: report.version })],
  ];
}
