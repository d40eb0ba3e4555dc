// The bar of time of a run: a lane for each node, and on it who waited for what, how long.

import { html } from "../vendor/preact.js";
import { show } from "../kit/text.js";
import { duration, number, t } from "../kit/words.js";

const MOST = 400;
const KINDS = { model: "model", tool: "tool", failed: "failed", wait: "waits" };

/** The spans of a run on lanes. A click on one goes to its step. */
export function TimeBar({ spans, hrefOf }) {
  const length = Math.max(1, spans.end - spans.begin);
  if (spans.lanes.length === 0) return html`<p class="soft">${t("No step has taken time yet.")}</p>`;
  return html`<div class="time">
    <ul class="time-key">${Object.entries(KINDS).map(([kind, name]) => html`<li><span class="swatch ${kind}"></span>${t(name)}</li>`)}</ul>
    ${spans.lanes.map((lane) => html`<${Lane} key=${lane.name} lane=${lane} begin=${spans.begin} length=${length} hrefOf=${hrefOf} />`)}
    <div class="time-scale" aria-hidden="true"><span>0</span><span>${duration(length / 2000)}</span><span>${duration(length / 1000)}</span></div>
  </div>`;
}

function Lane({ lane, begin, length, hrefOf }) {
  const shown = lane.spans.length > MOST ? longest(lane.spans) : lane.spans;
  const seconds = lane.spans.reduce((sum, { from, to }) => sum + to - from, 0) / 1000;
  return html`<div class="lane">
    <span class="lane-name">${show(lane.name)}<small>${duration(seconds)}</small></span>
    <div class="lane-bar">
      ${shown.map((span) => {
        const style = { left: `${(100 * (span.from - begin)) / length}%`, width: `${(100 * (span.to - span.from)) / length}%` };
        const label = `${span.label}: ${t(KINDS[span.kind])}, ${duration((span.to - span.from) / 1000)}`;
        return html`<a class="span ${span.kind} ${span.open ? "open" : ""}" style=${style} href=${hrefOf(span)} title=${show(label)} aria-label=${show(label)}></a>`;
      })}
    </div>
    ${lane.spans.length > MOST && html`<p class="help">${t("The {n} longest of {all} are drawn.", { n: number(MOST), all: number(lane.spans.length) })}</p>`}
  </div>`;
}

const longest = (spans) => [...spans].sort((a, b) => b.to - b.from - (a.to - a.from)).slice(0, MOST);
