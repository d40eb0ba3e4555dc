// The verdicts on runs: how many there are of each, and a row for each run.

import { html, useState } from "../../vendor/preact.js";
import { ChunkList } from "../../kit/chunk_list.js";
import { Badge, Button, Copy, Failure, useAct } from "../../kit/parts.js";
import { link } from "../../kit/router.js";
import { cut, onOneLine } from "../../kit/text.js";
import { count, number, t } from "../../kit/words.js";
import { sayWhatServerSays } from "../../run/seal.js";
import { saveRun } from "./download.js";
import { countVerdicts } from "./verdicts.js";

const ROW_HEIGHT = 45;
const HEAD = 12;
const WHY = 300;
/** What stands in the place of a replay that there was none of. */
const UNREPLAYED = new Set(["damaged", "unreadable", "inapplicable", "erased"]);
const TONES = { "not checked": "warn", outlived: "wait", inapplicable: "plain", erased: "plain" };

/** The counts: each is a button that shows the runs of that verdict alone. */
export function Counts({ rows, chosen, onChoose }) {
  const button = (verdict, n, label) => html`<button key=${verdict} type="button" class="chip count" aria-pressed=${chosen === verdict ? "true" : "false"} onClick=${() => onChoose(verdict)}>
    <strong>${number(n)}</strong> ${label}</button>`;
  return html`<div class="chips" role="group" aria-label=${t("Verdicts")}>
    ${button("", rows.length, t("all"))}
    ${countVerdicts(rows).map(([verdict, n]) => button(verdict, n, t(verdict)))}
  </div>`;
}

export function VerdictList({ rows, withPolicy }) {
  return html`<div class="verdicts ${withPolicy ? "with-policy" : ""}">
    <div class="verdict-row verdict-head" aria-hidden="true"><span>${t("Verdict")}</span><span>${t("Run")}</span><span>${t("Records")}</span><span>${t("Replay")}</span><span>${t("Head")}</span><span>${t("Save")}</span></div>
    <${ChunkList} items=${rows} keyOf=${(row) => row.run_id} estimate=${ROW_HEIGHT} tag="ul" class="run-list" aria-label=${t("Verdicts")}
      render=${(row, _, key) => html`<li key=${key}><${VerdictRow} row=${row} withPolicy=${withPolicy} /></li>`} />
  </div>`;
}

function VerdictRow({ row, withPolicy }) {
  const place = row.place === null ? {} : { at: row.place };
  return html`<div class="verdict-row">
    <span><${Badge} word=${row.verdict} tone=${TONES[row.verdict]} /></span>
    <span class="verdict-run"><a href=${link(["runs", row.run_id], place)}>${onOneLine(row.run_of)}</a>
      <span class="soft mono">${row.run_id}</span>${row.place && html`<a class="mono" href=${link(["runs", row.run_id], place)}>${onOneLine(row.place)}</a>`}</span>
    <span>${describeRecords(row)}</span>
    <span class="verdict-replay">${describeReplay(row, withPolicy)}${row.why && html`<span class="soft">${onOneLine(cut(row.why, WHY))}</span>`}</span>
    <span class="verdict-headhash">${row.head && html`<code title=${row.head}>${row.head.slice(0, HEAD)}…</code><${Copy} text=${row.head} />`}</span>
    <${Saves} run=${row.run_id} />
  </div>`;
}

function describeRecords({ whole, complete, count: n, seal }) {
  if (whole === null) return html`<span class="soft">–</span>`;
  const state = !whole ? t("not whole") : complete ? t("whole") : t("whole so far");
  return html`<span class=${whole ? "" : "verdict-bad"}>${state}</span><span class="soft"> ${count(n, "{n} record", "{n} records")}${seal && html`, ${onOneLine(sayWhatServerSays(seal))}`}</span>`;
}

function describeReplay({ replay, steps, decisions, changed_decisions: changed }, withPolicy) {
  if (replay === null) return null;
  if (UNREPLAYED.has(replay)) return html`<span>${t(replay)}</span>`;
  if (withPolicy) return html`<span>${t("{n} of {m} decisions change", { n: number(changed), m: number(decisions) })}</span>`;
  return html`<span>${t(replay)}, ${count(steps, "{n} step", "{n} steps")}</span>`;
}

function Saves({ run }) {
  const [kind, setKind] = useState(null);
  const { act, busy, error } = useAct((which) => (setKind(which), saveRun(run, which)));
  const button = (which, label, name) => html`<${Button} kind="quiet small" busy=${busy && kind === which} disabled=${busy} aria-label=${name} onClick=${() => act(which)}>${label}<//>`;
  return html`<span class="verdict-saves">${button("page", t("Page"), t("Save the page of run {run}", { run }))}${button("journal", t("Journal"), t("Save the journal of run {run}", { run }))}
    <${Failure} error=${error} /></span>`;
}
