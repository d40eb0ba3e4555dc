// The workflow of a run as a graph: how far each node came, and the path that was taken. A click shows a node's steps.

import { html, useMemo } from "../vendor/preact.js";
import { cut, show } from "../kit/text.js";
import { t } from "../kit/words.js";
import { drawLine, layOut, LONGEST_LABEL } from "./graph_layout.js";

const MARKS = { done: "✓", failed: "✕", waiting: "…", running: "●", cancelled: "–" };

const SMALLEST = 0.55;

/** The graph of a definition. `states` is by node; `chosen` is the node whose steps are shown. With a `width` in pixels it
 *  is drawn smaller where it is wider than that. */
export function FlowGraph({ definition, states, taken, ended, chosen, onChoose, width = Infinity }) {
  const drawn = useMemo(() => layOut(definition), [definition]);
  const scale = Math.max(SMALLEST, Math.min(1, width / drawn.width));
  const stateOf = (name) => states.get(name)?.state ?? (ended ? "skipped" : "ahead");
  return html`<div class="graph scroll-x" role="group" aria-label=${t("Graph of the workflow")}>
    <div class="graph-box" style=${{ width: `${drawn.width}px`, height: `${drawn.height}px`, zoom: scale }}>
      <svg width=${drawn.width} height=${drawn.height} aria-hidden="true">
        <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" /></marker></defs>
        ${drawn.edges.map((edge) => html`<${Edge} edge=${edge} isTaken=${taken.has(`${edge.from}\0${edge.to}`)} />`)}
      </svg>
      ${drawn.nodes.map((node) => html`<${Node} key=${node.name} node=${node} state=${stateOf(node.name)} visits=${states.get(node.name)?.visits ?? 0}
        isChosen=${node.name === chosen} onChoose=${onChoose} />`)}
    </div>
  </div>`;
}

function Edge({ edge, isTaken }) {
  const kind = `edge ${isTaken ? "taken" : ""} ${edge.error ? "error" : ""} ${edge.back ? "back" : ""}`;
  const label = edge.error ? t("on error") : edge.label;
  return html`<g class=${kind}>
    <path d=${drawLine(edge.points)} marker-end="url(#arrow)" />
    ${label && html`<text x=${edge.x} y=${edge.y} text-anchor="middle"><title>${show(label)}</title>${show(cut(label, LONGEST_LABEL))}</text>`}
  </g>`;
}

function Node({ node, state, visits, isChosen, onChoose }) {
  const place = { left: `${node.x}px`, top: `${node.y}px`, width: `${node.width}px`, height: `${node.height}px` };
  const label = `${node.name}, ${node.tool}, ${t(state)}${visits > 1 ? `, ${t("{n} visits", { n: visits })}` : ""}`;
  return html`<button type="button" class="graph-node ${state}" style=${place} aria-pressed=${isChosen ? "true" : "false"} aria-label=${show(label)}
    title=${show(label)} onClick=${() => onChoose(isChosen ? null : node.name)}>
    <span class="graph-name">${show(node.name)}</span><span class="graph-tool">${show(node.tool)}</span>
    ${MARKS[state] && html`<span class="graph-mark" aria-hidden="true">${MARKS[state]}${visits > 1 ? ` ${visits}×` : ""}</span>`}
  </button>`;
}
