// One run on the server: what it does at this moment, what it did, and what can be done with it.

import { html, useEffect, useMemo, useState } from "../vendor/preact.js";
import { sameJson } from "../kit/json.js";
import { Badge, Failure, Guard, Loading, Notice, Tabs } from "../kit/parts.js";
import { go, link } from "../kit/router.js";
import { useTypedText } from "../kit/typed_text.js";
import { Answer, Block } from "../kit/value.js";
import { show } from "../kit/text.js";
import { count, t } from "../kit/words.js";
import { Aside } from "./aside.js";
import { Budgets } from "./budgets.js";
import { Call } from "./call.js";
import { ChoiceBar, ChoiceButton, Tick, useChoice } from "./choose_records.js";
import { Decide, TooLate } from "./decide.js";
import { Decisions } from "./decisions.js";
import { Facts } from "./facts.js";
import { FlowGraph } from "./flow_graph.js";
import { useLiveRun } from "./live_run.js";
import { ProofPanel } from "./proof_panel.js";
import { filterItems, useReading } from "./reading.js";
import { ForkButton, RunActions } from "./run_actions.js";
import { SendSignal } from "./send_signal.js";
import { readSpans } from "./spans.js";
import { TimeBar } from "./time_bar.js";
import { Timeline } from "./timeline.js";
import { WhatIf } from "./what_if.js";

const TABS = [["steps", "Steps"], ["graph", "Graph"], ["time", "Time"], ["decisions", "Decisions"], ["result", "Result"], ["proof", "Proof"], ["what-if", "What if"]];
const NONE = new Set();
const TYPING_MS = 200;
/** How wide a graph may be beside the steps, in pixels. */
const SIDE = 276;

/** The page of a run. The query has `view`, `at` (a record, as "strand:n"), `node`, `only` and `text`. */
export function RunPage({ run, query, me }) {
  if (run.includes("/")) return html`<${Notice} title=${t("The id of this run has a slash, so no address can name it; agent-core export writes the run to a file.")} />`;
  return html`<${Run} run=${run} query=${query} me=${me} />`;
}

function Run({ run, query, me }) {
  const live = useLiveRun(run);
  const reading = useReading(live.rows);
  const [bad, setBad] = useState(NONE);
  if (live.error && live.rows.length === 0) return html`<${Unread} run=${run} live=${live} />`;
  if (live.text === "" && live.view === null) return html`<${Loading} />`;
  const status = live.view?.status ?? reading.summary.status;
  const place = (more) => link(["runs", run], { ...Object.fromEntries(query), ...more });
  const shared = { run, me, live, reading, status, query, place, bad, setBad };
  return html`<div class="run">
    <${Head} ...${shared} />
    <div class="run-body">
      <div class="run-main">
        ${live.view?.why_paused && html`<${Notice} tone="wait" title=${t("The server no longer resumes this run.")}><p>${live.view.why_paused}</p><//>`}
        <${OpenCalls} ...${shared} />
        <${OpenWaits} ...${shared} />
        <${Tabs} label=${t("Views of the run")} tabs=${TABS.map(([key, label]) => [key, t(label)])} chosen=${query.get("view") ?? "steps"}
          onChoose=${(view) => go(place({ view: view === "steps" ? null : view, at: null }), { replace: true })} />
        ${reading.fault && html`<${Notice} tone="bad" title=${t("These records cannot be read as a run.")}><p>${show(reading.fault)}</p><//>`}
        <${Guard} at=${query.toString()}><${View} ...${shared} /><//>
      </div>
      <${Guard}><${Side} ...${shared} /><//>
    </div>
  </div>`;
}

/** A run of which no record can be read here: that it can be proven all the same is what its records are kept for. */
function Unread({ run, live }) {
  const hrefOf = ({ strand, n }) => link(["runs", run], { at: `${strand}:${n}` });
  if (live.error.kind !== "unreadable") return html`<${Failure} error=${live.error} again=${live.refresh} />`;
  return html`<div class="stack"><${Failure} error=${live.error} /><${ProofPanel} run=${run} onBad=${() => null} hrefOf=${hrefOf} /></div>`;
}

function Head({ run, me, live, reading, status }) {
  const { summary } = reading;
  const workflow = live.view?.workflow ?? summary.workflow;
  const home = live.view?.agent ? live.view.conversation && link(["chat", live.view.conversation]) : workflow && link(["workflows", workflow]);
  return html`<header class="run-head">
    <div class="page-head">
      <h1>${home ? html`<a class="plain-link" href=${home}>${show(summary.name)}</a>` : show(summary.name)} <${Badge} word=${status} /></h1>
      <${RunActions} run=${run} me=${me} status=${status} isTurn=${workflow === null} onChange=${live.refresh} />
    </div>
    ${!live.connected && html`<${Notice} tone="wait" live=${true}>${t("The connection is lost; reconnecting…")}<//>`}
    ${live.error && html`<${Failure} error=${live.error} again=${live.refresh} />`}
    ${live.text === "" && !["pending", "running"].includes(status) && html`<${Notice} tone="bad" title=${t("There are no records of this run.")} />`}
    ${live.faults.length > 0 && html`<${Notice} tone="bad" title=${t("Some of these records differ from what was written: “Proof” says which.")} />`}
    ${summary.error && html`<${Notice} tone="bad" title=${show(t(summary.error.kind ?? "failed"))}><p>${summary.error.where && html`<code>${show(summary.error.where)}</code>: `}${show(summary.error.message ?? "")}</p><//>`}
    ${summary.answer !== null && html`<div class="answer"><p class="part-label">${summary.answers > 1 ? t("last answer") : t("answer")}</p>
      <${Answer} value=${summary.answer} /></div>`}
  </header>`;
}

/** The nodes that wait for a time or a signal. */
function OpenWaits({ run, me, live, reading }) {
  const [refused, setRefused] = useState(null);
  const isGone = refused !== null && !reading.waits.some(({ awaits }) => awaits.strand === refused.strand && awaits.n === refused.n);
  const told = isGone && html`<${Notice} tone="bad" title=${show(t("The signal {name} was not sent.", { name: refused.signal }))}><p>${show(refused.why)}</p><//>`;
  if (reading.waits.length === 0) return told;
  const note = (call) => (error) => (setRefused({ ...call.awaits, why: error.message }), live.refresh());
  const context = { signal: (call) => html`<${SendSignal} run=${run} me=${me} name=${call.awaits.signal} onSent=${live.refresh} onRefused=${note(call)} />` };
  return html`${told}<section class="open-calls" aria-label=${t("Waiting for a time or a signal")}>
    <h2>${count(reading.waits.length, "{n} node waits for a time or a signal", "{n} nodes wait for a time or a signal")}</h2>
    ${reading.waits.map((call) => html`<${Call} key=${`${call.awaits.strand}:${call.awaits.n}`} call=${call} context=${context} />`)}
  </section>`;
}

/** The calls that wait for a person, before all else. */
function OpenCalls({ run, me, live, reading }) {
  const [late, setLate] = useState(null);
  const onTooLate = (tool) => (setLate(tool), tool !== null && live.refresh());
  if (reading.open.length === 0) return html`<${TooLate} tool=${late} />`;
  const context = { decide: (call) => html`<${Decide} run=${run} me=${me} call=${call} onDecided=${live.refresh} onTooLate=${onTooLate} />` };
  return html`<${TooLate} tool=${late} /><section class="open-calls" aria-label=${t("Waiting for a decision")}>
    <h2>${count(reading.open.length, "{n} call waits for a decision", "{n} calls wait for a decision")}</h2>
    ${reading.open.map((call) => html`<${Call} key=${`${call.waits.strand}:${call.waits.n}`} call=${call} context=${context} />`)}
  </section>`;
}

function View({ run, me, live, reading, query, place, bad, setBad }) {
  const view = query.get("view") ?? "steps";
  const filter = view === "steps" ? {} : { node: null, only: null, text: null }; // it may hide the step that another view leads to
  const hrefOf = ({ strand, n }) => place({ at: `${strand}:${n}`, view: null, ...filter });
  switch (view) {
    case "graph":
      return html`<${WholeGraph} reading=${reading} query=${query} place=${place} />`;
    case "time":
      return html`<${TimeView} items=${reading.items} hrefOf=${hrefOf} isOpen=${live.view?.status === "running" || live.view?.status === "waiting"} />`;
    case "decisions":
      return html`<${Decisions} decisions=${reading.decisions} hrefOf=${hrefOf} />`;
    case "result":
      return html`<${Result} view=${live.view} summary=${reading.summary} />`;
    case "proof":
      return html`<${ProofPanel} run=${run} onBad=${setBad} hrefOf=${hrefOf} />`;
    case "what-if":
      return html`<${WhatIf} run=${run} rows=${live.rows} hrefOf=${hrefOf} />`;
    default:
      return html`<${Steps} run=${run} me=${me} live=${live} reading=${reading} query=${query} place=${place} hrefOf=${hrefOf} bad=${bad} />`;
  }
}

function WholeGraph({ reading, query, place }) {
  const { summary } = reading;
  if (!summary.definition) return html`<p class="soft">${t("An agent by itself has no graph.")}</p>`;
  const choose = (node) => go(place({ node, at: null, view: null }));
  return html`<div class="whole-graph"><${FlowGraph} definition=${summary.definition} states=${reading.states} taken=${reading.taken} ended=${summary.endedAt !== null}
    chosen=${query.get("node")} onChoose=${choose} /></div>`;
}

function TimeView({ items, hrefOf, isOpen }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isOpen) return undefined;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isOpen]);
  return html`<${TimeBar} spans=${readSpans(items, now)} hrefOf=${hrefOf} />`;
}

function Result({ view, summary }) {
  return html`<div class="stack">
    <section><h2>${t("Inputs")}</h2><${Block} value=${summary.inputs ?? {}} /></section>
    <section><h2>${t("Outputs")}</h2>${view ? html`<${Block} value=${view.outputs} />` : html`<p class="soft">${t("The outputs cannot be read.")}</p>`}</section>
    ${view && Object.keys(view.nodes ?? {}).some((node) => !sameJson(view.nodes[node], view.outputs[node])) && html`<section><h2>${t("Outputs of the nodes")}</h2><${Block} value=${view.nodes} /></section>`}
  </div>`;
}

/** The steps, those that the filter lets through, and the one that the address names. */
function Steps({ run, me, live, reading, query, place, hrefOf, bad }) {
  const filter = { node: query.get("node"), only: query.get("only"), text: query.get("text") ?? "" };
  const items = useMemo(() => filterItems(reading.items, filter, reading.rowOf), [reading, filter.node, filter.only, filter.text]);
  const at = query.get("at");
  const chosen = at === null ? undefined : reading.items[reading.index.get(at)];
  const focus = chosen ? items.indexOf(chosen) : -1;
  const choice = useChoice();
  useEffect(() => {
    if (focus >= 0) document.getElementById(`at-${items[focus].strand}:${items[focus].n}`)?.scrollIntoView({ block: "center" });
  }, [at, focus >= 0]);
  const context = {
    bad,
    hrefOf,
    rowOf: reading.rowOf,
    deltaOf: (item) => live.deltas.get(item.strand) ?? null,
    controls: (item) => html`<${Tick} item=${item} choice=${choice} /><${ForkButton} run=${run} me=${me} item=${item} isTurn=${live.view?.workflow === null} />`,
  };
  return html`<${Filter} filter=${filter} place=${place} shown=${items.length} all=${reading.items.length}><${ChoiceButton} rows=${live.rows} choice=${choice} /><//>
    <${ChoiceBar} run=${run} items=${reading.items} choice=${choice} />
    ${at !== null && !chosen && live.rows.length > 0 && html`<${Notice} tone="wait">${t("There is no record {place} in this run.", { place: show(at) })}<//>`}
    <${Timeline} items=${items} focus=${focus} context=${context} />`;
}

function Filter({ filter, place, shown, all, children }) {
  const [text, setText] = useTypedText(filter.text, (typed) => go(place({ text: typed, at: null }), { replace: true }), TYPING_MS);
  const isFiltered = filter.node || filter.only || filter.text;
  return html`<div class="filter row" role="search" aria-label=${t("Filter of the steps")}>
    <input type="search" class="grow" aria-label=${t("Text in the steps")} placeholder=${t("Text in the steps")} value=${text} onInput=${(event) => setText(event.target.value)} />
    <label class="check"><input type="checkbox" checked=${filter.only === "problems"}
      onChange=${(event) => go(place({ only: event.target.checked ? "problems" : null, at: null }), { replace: true })} /> ${t("only problems")}</label>
    ${filter.node && html`<a class="button small" href=${place({ node: null })}>${t("node {name}", { name: show(filter.node) })} ✕</a>`}
    <span class="soft" role="status">${isFiltered ? t("{shown} of {all} steps", { shown, all }) : count(all, "{n} step", "{n} steps")}</span>
    ${children}
  </div>`;
}

/** What stands beside the steps: facts, graph, budgets. */
function Side({ run, live, reading, query, place }) {
  const { summary } = reading;
  const ended = summary.endedAt !== null;
  const choose = (node) => go(place({ node, at: null, view: null }), { replace: true });
  return html`<${Aside}>
    <${Facts} run=${run} summary=${summary} by=${live.view?.submitted_by} linkOf=${(other) => link(["runs", other])} />
    ${summary.definition && html`<${FlowGraph} definition=${summary.definition} states=${reading.states} taken=${reading.taken} ended=${ended} width=${SIDE}
      chosen=${query.get("node")} onChoose=${choose} />`}
    <${Budgets} budgets=${reading.budgets} />
  <//>`;
}
