// A run as one file: shown and proved by its own script, without a server and without a network.

import { html, render, useMemo, useState } from "../vendor/preact.js";
import { Badge, Guard, Notice, Tabs } from "../kit/parts.js";
import { Answer, Block } from "../kit/value.js";
import { show } from "../kit/text.js";
import { t } from "../kit/words.js";
import { readJournal, verifyJournal } from "../proof/journal.js";
import { Aside } from "./aside.js";
import { Budgets } from "./budgets.js";
import { Decisions } from "./decisions.js";
import { hrefOfRecord as hrefOf, hrefOfText, LanguageChoice, readHash } from "./exported_parts.js";
import { Facts } from "./facts.js";
import { FlowGraph } from "./flow_graph.js";
import { openExported } from "./page_parts.js";
import { Proof } from "./proof.js";
import { useReading } from "./reading.js";
import { readSpans } from "./spans.js";
import { TimeBar } from "./time_bar.js";
import { Timeline } from "./timeline.js";

const TABS = [["steps", "Steps"], ["graph", "Graph"], ["time", "Time"], ["decisions", "Decisions"], ["inputs", "Inputs"]];

/** Show the run that this page holds, and whether the page and its records are what was written. */
export const openPage = () => openExported("journal", showRun);

function showRun(box, text, isAsWritten) {
  const journal = readJournal(text);
  const verdict = verifyJournal(journal);
  if (!isAsWritten && verdict.faults.length === 0) verdict.faults.push({ why: "this page is not as it was written" });
  const told = { ...verdict, ok: verdict.ok && isAsWritten };
  render(html`<${ExportedRun} journal=${journal} verdict=${told} text=${text} />`, box);
}

function ExportedRun({ journal, verdict, text }) {
  const [, redraw] = useState(0);
  const [view, setView] = useState("steps");
  const [at, setAt] = useState(readHash);
  const reading = useReading(journal.rows);
  const { summary } = reading;
  const file = useMemo(() => hrefOfText(text, "application/jsonl"), [text]);
  const go = (place) => (setView("steps"), setAt(place));
  onhashchange = () => go(readHash());
  return html`<main class="alone-run">
    <header class="run-head">
      <div class="page-head"><h1>${show(summary.name)} <${Badge} word=${verdict.faults.length > 0 ? "damaged" : verdict.complete ? summary.status : "not finished"} /></h1>
        <a class="button" download="${journal.run || "run"}.jsonl" href=${file}>${t("The journal")}</a>
        <${LanguageChoice} onChoose=${() => redraw((n) => n + 1)} /></div>
      ${summary.answer !== null && html`<div class="answer"><p class="part-label">${t("answer")}</p><${Answer} value=${summary.answer} /></div>`}
    </header>
    <${Proof} verdict=${verdict} />
    <div class="run-body">
      <div class="run-main">
        <${Tabs} label=${t("Views of the run")} tabs=${TABS.map(([key, label]) => [key, t(label)])} chosen=${view} onChoose=${setView} />
        ${reading.fault && html`<${Notice} tone="bad" title=${t("These records cannot be read as a run.")}><p>${show(reading.fault)}</p><//>`}
        <${Guard} at=${`${view} ${at}`}><${View} view=${view} at=${at} reading=${reading} verdict=${verdict} hrefOf=${hrefOf} /><//>
      </div>
      <${Aside}>
        <${Guard}><${Facts} run=${journal.run} summary=${summary} />
        ${summary.definition && html`<${FlowGraph} definition=${summary.definition} states=${reading.states} taken=${reading.taken} ended=${verdict.complete} chosen=${null} onChoose=${() => setView("graph")} width=${276} />`}
        <${Budgets} budgets=${reading.budgets} /><//>
      <//>
    </div>
  </main>`;
}

function View({ view, at, reading, verdict, hrefOf }) {
  if (view === "graph" && reading.summary.definition)
    return html`<div class="whole-graph"><${FlowGraph} definition=${reading.summary.definition} states=${reading.states} taken=${reading.taken} ended=${verdict.complete} chosen=${null} onChoose=${() => {}} /></div>`;
  if (view === "graph") return html`<p class="soft">${t("An agent by itself has no graph.")}</p>`;
  if (view === "time") return html`<${TimeBar} spans=${readSpans(reading.items, 0)} hrefOf=${hrefOf} />`;
  if (view === "decisions") return html`<${Decisions} decisions=${reading.decisions} hrefOf=${hrefOf} />`;
  if (view === "inputs") return html`<${Block} value=${reading.summary.inputs ?? {}} />`;
  const bad = new Set(verdict.faults.map(({ strand, n }) => `${strand}:${n}`));
  const focus = reading.index.get(at) ?? -1;
  return html`<${Timeline} items=${reading.items} focus=${focus} context=${{ bad, hrefOf, rowOf: reading.rowOf, deltaOf: () => null }} />`;
}
