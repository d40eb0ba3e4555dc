// The edges of the chosen node: where it leads and when, what leads to it, and a further edge.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { Button, Field } from "../kit/parts.js";
import { show } from "../kit/text.js";
import { t } from "../kit/words.js";
import { NumberField } from "./controls.js";
import { drawnEdges, listEdges } from "./flow.js";
import { connect, disconnect, edgeKind, setEdgeKind } from "./flow_edits.js";
import { Said, Slot } from "./slot.js";
import { TextField } from "./text_field.js";

/** The edges of the node `name`. */
export function EdgePanel({ name, edit, onChoose, chosenEdge }) {
  const isImplied = !Array.isArray(edit.data.edges);
  const drawn = drawnEdges(edit.data);
  const outgoing = isImplied ? [] : listEdges(edit.data).filter(({ from }) => from === name);
  const incoming = [...new Set(drawn.filter(({ to }) => to === name).map(({ from }) => from))];
  const implied = isImplied ? drawn.filter(({ from }) => from === name) : [];
  const isBack = (to) => drawn.some((edge) => edge.from === name && edge.to === to && edge.back);
  return html`<section class="group" aria-label=${t("Edges")}><h3>${t("Edges")}</h3>
    ${incoming.length > 0 && html`<p class="row edge-names"><span class="soft">${t("comes after")}</span>${incoming.map((each) => html`<${NodeLink} name=${each} onChoose=${onChoose} />`)}</p>`}
    ${implied.length > 0 && html`<p class="row edge-names"><span class="soft">${t("leads to, by placeholders")}</span>${implied.map(({ to }) => html`<${NodeLink} name=${to} onChoose=${onChoose} />`)}</p>`}
    ${outgoing.map((each) => html`<${OneEdge} key=${each.index} found=${each} isBack=${isBack(each.to)} isChosen=${each.index === chosenEdge} edit=${edit} onChoose=${onChoose} />`)}
    <${Connect} name=${name} edit=${edit} />
  </section>`;
}

const NodeLink = ({ name, onChoose }) => html`<button type="button" class="button small" onClick=${() => onChoose(name)}>${show(name)}</button>`;

function OneEdge({ found: { index, to, from, edge }, isBack, isChosen, edit, onChoose }) {
  const box = useRef(null);
  useEffect(() => isChosen && box.current.scrollIntoView({ block: "nearest" }), [isChosen]);
  const path = ["edges", index];
  const kind = edgeKind(edge);
  const setKind = (event) => edit.apply((target) => setEdgeKind(target, index, event.target.value));
  return html`<div ref=${box} class=${`edge-card ${isChosen ? "chosen" : ""}`} data-path=${`edges/${index}`} tabindex="-1">
    <div class="row nowrap"><span aria-hidden="true">${isBack ? "↺" : "→"}</span><${NodeLink} name=${String(to)} onChoose=${onChoose} />
      <select class="grow" aria-label=${t("When the edge to {name} is taken", { name: show(String(to)) })} value=${kind} disabled=${edit.disabled} onChange=${setKind}>
        <option value="always">${t("always, or when no other condition holds")}</option><option value="when">${t("when a condition holds")}</option>
        <option value="ask">${t("when a model says that a sentence is true")}</option><option value="error">${t("when the node has failed")}</option></select>
      <${Button} kind="quiet small" disabled=${edit.disabled} aria-label=${t("Remove the edge to {name}", { name: show(String(to)) })} onClick=${() => edit.apply((target) => disconnect(target, index))}>✕<//></div>
    <${Said} edit=${edit} path=${path} /><${Said} edit=${edit} path=${[...path, "from"]} /><${Said} edit=${edit} path=${[...path, "to"]} />
    ${kind === "when" && html`<${Slot} edit=${edit} path=${[...path, "when"]} label="when" help="A JMESPath over output, nodes and external, such as output.pieces < \`5\`"
      render=${(props) => html`<${TextField} ...${props} label="when" bare value=${edge.when ?? ""} variables=${edit.bareVariables(from)} onText=${(text) => edit.write([...path, "when"], text)} />`} />`}
    ${kind === "ask" && html`<${Slot} edit=${edit} path=${[...path, "ask"]} label="ask" help="A sentence that a model judges by the node's output"
        render=${(props) => html`<${TextField} ...${props} label="ask" value=${edge.ask ?? ""} onText=${(text) => edit.write([...path, "ask"], text)} />`} />
      <${Slot} edit=${edit} path=${[...path, "model"]} label="model" help="Judges the sentence; absent: the definition's model"
        render=${(props) => html`<${TextField} ...${props} label="model" value=${edge.model ?? ""} onText=${(text) => edit.write([...path, "model"], text || undefined)} />`} />`}
    ${isBack && html`<${Slot} edit=${edit} path=${["max_iterations"]} label="max_iterations" help="How often each loop may be gone round again"
      render=${(props) => html`<${NumberField} ...${props} label="max_iterations" placeholder="50" value=${edit.data.max_iterations} variables=${[]} onValue=${(value) => edit.write(["max_iterations"], value)} />`} />`}
  </div>`;
}

function Connect({ name, edit }) {
  const [to, setTo] = useState("");
  const add = () => (edit.apply((target) => connect(target, name, to)), setTo(""));
  return html`<div class="row nowrap end"><${Field} label=${t("Add an edge to")} render=${(props) => html`<select ...${props} value=${to} disabled=${edit.disabled} onChange=${(event) => setTo(event.target.value)}>
      <option value="">${t("choose a node…")}</option>${edit.names.map((each) => html`<option value=${each}>${show(each)}${each === name ? ` (${t("itself")})` : ""}</option>`)}</select>`} />
    <${Button} disabled=${edit.disabled || !to} onClick=${add}>${t("Connect")}<//></div>`;
}
