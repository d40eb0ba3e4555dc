// The list of runs: what ran and what runs, newest first, live.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { address, ask } from "../kit/api.js";
import { ChunkList } from "../kit/chunk_list.js";
import { Button, Failure, Loading, Notice } from "../kit/parts.js";
import { go, link } from "../kit/router.js";
import { count, number, t } from "../kit/words.js";
import { FilterBar } from "./runs/filter_bar.js";
import { countFilters, readFilters } from "./runs/filters.js";
import { repeat, useRuns } from "./runs/run_feed.js";
import { RunRow } from "./runs/run_row.js";

const ROW_HEIGHT = 41;
const NEAR_TOP = 200;
const CLOCK_MS = 5000;

export function RunsPage({ query }) {
  const filters = readFilters(query);
  const list = useRef(null);
  const isHeld = useRef(false);
  const mayMove = () => scrollY < NEAR_TOP && !isHeld.current && !list.current?.contains(document.activeElement);
  const feed = useRuns(filters, mayMove);
  const now = useClock();
  const change = (values, isTyped = false) => {
    go(link("runs", { ...filters, ...values }), { replace: isTyped });
    if (scrollY > NEAR_TOP) scrollTo(0, 0);
  };
  const hold = (value) => () => (isHeld.current = value);
  return html`<div class="page-head"><h1>${t("Runs")}</h1><${WaitingLine} /></div>
    <${FilterBar} filters=${filters} onChange=${change} />
    <${Failure} error=${isAway(feed) ? null : feed.error} />
    <div class="runs ${feed.isCurrent ? "" : "is-old"}" aria-busy=${feed.isCurrent ? undefined : "true"} ref=${list} onPointerEnter=${hold(true)} onPointerLeave=${hold(false)}>
      <${Listed} feed=${feed} filters=${filters} now=${now} onClear=${() => go(link("runs"))} />
    </div>`;
}

/** Whether the server is only away for now: what was shown stays, and a word beside it says so. */
const isAway = ({ runs, error }) => runs !== null && error !== null && !(error.status >= 400 && error.status < 500);

function Listed({ feed, filters, now, onClear }) {
  const { runs, fresh, next } = feed;
  if (runs === null) return feed.error ? null : html`<${Loading} />`;
  if (runs.length === 0 && fresh.length === 0 && !next) return html`<${Empty} isFiltered=${countFilters(filters) > 0} onClear=${onClear} />`;
  const n = runs.length;
  return html`<div class="runs-line">
      <p class="soft" role="status">${next && n > 0 ? t("the newest {n} runs", { n: number(n) }) : count(n, "{n} run", "{n} runs")}</p>
      ${isAway(feed) && html`<span class="runs-away" role="status">${t("The server does not answer; trying again…")}</span>`}
      ${countFilters(filters) > 0 && html`<${Button} kind="quiet small" onClick=${onClear}>${t("Clear filters")}<//>`}
      ${fresh.length > 0 && html`<${Button} kind="quiet small" onClick=${() => (scrollTo(0, 0), feed.showFresh())}>↑ ${count(fresh.length, "{n} new run", "{n} new runs")}<//>`}
    </div>
    <div class="run-row runs-head" aria-hidden="true">
      <span>${t("Status")}</span><span>${t("Run of")}</span><span>${t("Asked")}</span><span>${t("Tools, reasons")}</span>
      <span class="number">${t("Tokens")}</span><span class="number">${t("Took")}</span><span class="ago">${t("Started")}</span>
    </div>
    <${ChunkList} items=${runs} keyOf=${(run) => run.run_id} estimate=${ROW_HEIGHT} onEnd=${next && !feed.moreError ? feed.loadMore : undefined} tag="ul"
      class="run-list" aria-label=${t("Runs")} render=${(run, _, key) => html`<li key=${key}><${RunRow} run=${run} now=${now} /></li>`} />
    <${Failure} error=${feed.moreError} again=${feed.loadMore} />
    <p class="soft runs-end" role="status">${next && !feed.moreError && (feed.isBusy || n === 0) ? t("Looking further back…") : ""}</p>`;
}

/** That runs wait for a person. It stands in the head of the page, so that nothing moves when there are some. */
function WaitingLine() {
  const [waiting, setWaiting] = useState(null);
  useEffect(() => {
    const control = new AbortController();
    const look = () => ask(address("runs", { status: "waiting", limit: 100 }), { signal: control.signal }).then(setWaiting, () => null);
    look();
    const stop = repeat(look, control.signal, CLOCK_MS);
    return () => (control.abort(), stop());
  }, []);
  const n = waiting?.runs.length ?? 0;
  if (n === 0) return null;
  const text = waiting.next ? t("more than {n} runs wait", { n }) : count(n, "{n} run waits", "{n} runs wait");
  return html`<a class="badge wait waiting-line" href=${link("runs", { status: "waiting" })}>${text}</a>`;
}

function Empty({ isFiltered, onClear }) {
  if (isFiltered)
    return html`<${Notice} title=${t("No run fits these filters.")}><div><${Button} onClick=${onClear}>${t("Clear filters")}<//></div><//>`;
  return html`<${Notice} title=${t("Nothing has run yet.")}>
    <p>${t("Start a workflow, or talk to an agent:")} <a href=${link("workflows")}>${t("Workflows")}</a>, <a href=${link("chat")}>${t("Chat")}</a>.</p>
    <p>${t("On the command line, this runs an example, and proves it:")} <code>agent-core demo</code></p>
  <//>`;
}

/** The time, which goes on in steps that a list can follow. */
function useClock() {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setNow(Date.now()), CLOCK_MS);
    return () => clearInterval(timer);
  }, []);
  return now;
}
