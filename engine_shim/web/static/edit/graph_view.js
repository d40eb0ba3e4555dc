// The workflow's graph, to choose nodes in it and to connect them: by dragging from a node's foot to another node.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { writeJson } from "../kit/json.js";
import { cut, show } from "../kit/text.js";
import { count, t } from "../kit/words.js";
import { drawLine, layOut, LONGEST_LABEL } from "../run/graph_layout.js";
import { countByNode } from "./faults.js";
import { drawable, drawnEdges, listEdges, listNodes } from "./flow.js";

/** The graph. `onChoose(name)` for a node, `onEdge(index)` for an edge, `onConnect(from, to)` for a line that was drawn. */
export function GraphView({ data, faults, chosen, chosenEdge, disabled, onChoose, onEdge, onConnect }) {
  const shape = writeJson([listNodes(data).map(({ name, node }) => [name, node.tool]), data.edges ?? drawnEdges(data), data.entry]);
  const { drawn, indices, isPlain } = useMemo(() => draw(data), [shape]);
  const counts = countByNode(faults, listNodes(data), listEdges(data));
  const box = useRef(null);
  const { line, start } = useDrawnLine(box, drawn, onConnect);
  useEffect(() => {
    const node = box.current?.querySelector('[aria-pressed="true"]');
    node?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [chosen]);
  if (!drawn.nodes.length) return html`<div class="graph edit-graph empty"><p class="soft">${t("There is no node yet.")}</p></div>`;
  return html`<div class="graph edit-graph" role="group" aria-label=${t("Graph of the workflow")}>
    <div class="graph-box" ref=${box} style=${{ width: `${drawn.width}px`, height: `${drawn.height}px` }}>
      <svg width=${drawn.width} height=${drawn.height} aria-hidden="true">
        <defs><marker id="edit-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" /></marker></defs>
        ${drawn.edges.map((edge, at) => html`<${Edge} key=${at} edge=${edge} isImplied=${isPlain} isChosen=${indices && indices[at] === chosenEdge} onChoose=${() => (indices ? onEdge(indices[at], edge.from) : onChoose(edge.from))} />`)}
        ${line && html`<path class="drawn-line" d=${`M${line.x1},${line.y1}L${line.x2},${line.y2}`} />`}
      </svg>
      ${drawn.nodes.map((node) => html`<${Node} key=${node.name} node=${node} counts=${counts.get(node.name)} isChosen=${node.name === chosen} isTarget=${line?.over === node.name && line.from !== undefined}
        disabled=${disabled} onChoose=${onChoose} onStart=${start} />`)}
    </div>
  </div>`;
}

function draw(data) {
  const { indices, ...definition } = drawable(data);
  try {
    return { drawn: layOut(definition), indices, isPlain: !indices };
  } catch {
    return { drawn: layOut({ nodes: definition.nodes, edges: [] }), indices: [], isPlain: false };
  }
}

function Edge({ edge, isImplied, isChosen, onChoose }) {
  const kind = `edge ${edge.error ? "error" : ""} ${edge.back ? "back" : ""} ${isImplied ? "implied" : ""} ${isChosen ? "chosen" : ""}`;
  const label = edge.error ? t("on error") : edge.label;
  const line = drawLine(edge.points);
  return html`<g class=${kind} onClick=${onChoose}>
    <path class="hit" d=${line} /><path d=${line} marker-end="url(#edit-arrow)" />
    ${label && html`<text x=${edge.x} y=${edge.y} text-anchor="middle"><title>${show(label)}</title>${show(cut(label, LONGEST_LABEL))}</text>`}
    ${edge.back && !label && html`<text x=${edge.x} y=${edge.y} text-anchor="middle">↺</text>`}
  </g>`;
}

function Node({ node, counts, isChosen, isTarget, disabled, onChoose, onStart }) {
  const place = { left: `${node.x}px`, top: `${node.y}px`, width: `${node.width}px`, height: `${node.height}px` };
  const told = [node.name, node.tool, counts?.bad && count(counts.bad, "{n} fault", "{n} faults"), counts?.warn && count(counts.warn, "{n} warning", "{n} warnings")].filter(Boolean).join(", ");
  return html`<button type="button" class=${`graph-node ${counts?.bad ? "faulty" : ""} ${isTarget ? "target" : ""}`} style=${place} data-node=${node.name} aria-pressed=${isChosen ? "true" : "false"}
      aria-label=${show(told)} title=${show(told)} onClick=${() => onChoose(node.name)}>
      <span class="graph-name">${show(node.name)}</span><span class="graph-tool">${show(node.tool)}</span>
      ${counts && html`<span class=${`graph-count ${counts.bad ? "bad" : "warn"}`} aria-hidden="true">${counts.bad || counts.warn}</span>`}
    </button>
    ${!disabled && html`<span class="graph-foot" aria-hidden="true" title=${t("Drag to another node to connect")} style=${{ left: `${node.x + node.width / 2}px`, top: `${node.y + node.height}px` }} onPointerDown=${(event) => onStart(event, node)}></span>`}`;
}

/** The line that is being drawn from a node: {line, start}. */
function useDrawnLine(box, drawn, onConnect) {
  const [line, setLine] = useState(null);
  const start = (event, node) => {
    event.preventDefault();
    const frame = box.current.getBoundingClientRect();
    const begin = { from: node.name, x1: node.x + node.width / 2, y1: node.y + node.height };
    const at = ({ clientX, clientY }) => {
      const [x2, y2] = [clientX - frame.left, clientY - frame.top];
      const over = drawn.nodes.find((each) => x2 >= each.x && x2 <= each.x + each.width && y2 >= each.y && y2 <= each.y + each.height)?.name ?? null;
      return { ...begin, x2, y2, over };
    };
    const move = (moved) => setLine(at(moved));
    const end = (moved) => {
      const { over } = at(moved);
      stop();
      if (over !== null && moved.type === "pointerup") onConnect(node.name, over);
    };
    const stop = () => {
      setLine(null);
      for (const [name, listener] of [["pointermove", move], ["pointerup", end], ["pointercancel", end]]) removeEventListener(name, listener);
    };
    for (const [name, listener] of [["pointermove", move], ["pointerup", end], ["pointercancel", end]]) addEventListener(name, listener);
    setLine(at(event));
  };
  return { line, start };
}
