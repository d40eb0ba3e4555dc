// The editor of a workflow: its graph, the form of what is chosen, its text, what has changed, and a run of it.

import { html, useEffect, useMemo, useState } from "../vendor/preact.js";
import { ask } from "../kit/api.js";
import { Button, Failure, Loading, Notice, Tabs, useAnswer } from "../kit/parts.js";
import { go, link } from "../kit/router.js";
import { show } from "../kit/text.js";
import { t } from "../kit/words.js";
import { AddNode } from "./add_node.js";
import { DiffView } from "./diff_view.js";
import { EditHead } from "./edit_head.js";
import { FaultList } from "./fault_list.js";
import { listFaults, nodeOfPath } from "./faults.js";
import { listEdges, listNodes, nodesBefore } from "./flow.js";
import { connect } from "./flow_edits.js";
import { focusPlace } from "./focus_place.js";
import { GraphView } from "./graph_view.js";
import { NodePanel } from "./node_panel.js";
import { RunView } from "./run_view.js";
import { SaveDialog } from "./save_dialog.js";
import { TextViews } from "./text_views.js";
import { NEW, useDraft } from "./use_draft.js";
import { useKeys } from "./use_keys.js";
import { listBareVariables, listVariables } from "./variables.js";
import { LISTS, Suggestions } from "./suggestions.js";
import { WorkflowPanel } from "./workflow_panel.js";

const VIEWS = () => [["form", t("Form")], ["graph", t("Graph")], ["yaml", "YAML"], ["json", "JSON"], ["diff", t("Changes")], ["run", t("Run")]];

/** The page of a workflow: `name` is its id, `ID@VERSION`, or `new`. */
export function EditPage({ name, query, me }) {
  const draft = useDraft(name);
  const { data: tools, error: toolsError, load } = useAnswer((signal) => ask("tools", { signal }), []);
  const { data: agents } = useAnswer((signal) => ask("agents", { signal }), []);
  if (draft.error && !draft.source) return html`<h1>${t("Workflows")}</h1><${Failure} error=${draft.error} again=${draft.reload} />`;
  if (draft.text === null || (!tools && !toolsError)) return html`<h1>${show(name === NEW ? t("New workflow") : name)}</h1><${Loading} />`;
  return html`${toolsError && html`<${Failure} error=${toolsError} again=${load} />`}<${Editor} name=${name} draft=${draft} tools=${tools?.tools ?? []} agents=${agents?.agents ?? []} query=${query} me=${me} />`;
}

function Editor({ name, draft, tools, agents, query, me }) {
  const views = VIEWS();
  const view = views.some(([key]) => key === query.get("view")) ? query.get("view") : "form";
  const [chosenEdge, setChosenEdge] = useState(null);
  const [dialog, setDialog] = useState(null);
  const [line, setLine] = useState(null);
  const [given, setGiven] = useState({});
  const nodes = listNodes(draft.data);
  const chosen = nodes.find((each) => each.name === query.get("node")) ?? null;
  const faults = useMemo(() => listFaults(draft.check.answer), [draft.check.answer]);
  const place = (next) => go(link(["workflows", name], { view: view === "form" ? null : view, node: chosen?.name, ...next }), { replace: true });
  const choose = (node, edge = null) => (setChosenEdge(edge), place({ node }));
  const toFault = (fault) => {
    if (view === draft.format && fault.line) return setLine({ number: fault.line });
    const node = nodeOfPath(fault.path, nodes, listEdges(draft.data));
    place({ node, view: view === "graph" ? "graph" : null });
    setTimeout(() => focusPlace(fault.path), 60);
  };
  useKeys({ onUndo: draft.undo, onRedo: draft.redo, onSave: () => setDialog("save") });
  const edit = makeEdit(draft, tools, faults, chosen);
  const drawn = html`<div class="graph-side">
    <div class="row"><${Button} kind="small" disabled=${draft.unreadable !== null} onClick=${() => setDialog("add")}>${t("Add a node…")}<//>
      <button type="button" class="button small" aria-pressed=${chosen ? "false" : "true"} onClick=${() => choose(null)}>${t("The workflow")}</button></div>
    <details class="graph-fold" open><summary>${t("Graph")}</summary><${GraphView} data=${draft.data} faults=${faults} chosen=${chosen?.name} chosenEdge=${chosenEdge} disabled=${draft.unreadable !== null} onChoose=${choose}
      onEdge=${(index, from) => choose(from, index)} onConnect=${(from, to) => (draft.apply((target) => connect(target, from, to)), choose(from))} /></details>
    <${FaultList} faults=${faults} edges=${listEdges(draft.data)} onGo=${toFault} />
  </div>`;
  const panel = chosen ? html`<${NodePanel} key=${chosen.name} chosen=${chosen} edit=${edit} onChoose=${choose} chosenEdge=${chosenEdge} />` : html`<${WorkflowPanel} edit=${edit} />`;
  return html`<${EditHead} draft=${draft} faults=${faults} onRun=${() => place({ view: "run" })} onSave=${() => setDialog("save")} onImport=${draft.replace} />
    <${Told} draft=${draft} />
    <${Suggestions} data=${draft.data} tools=${tools} agents=${agents} />
    <${Tabs} tabs=${views} chosen=${view} onChoose=${(key) => place({ view: key === "form" ? null : key })} label=${t("Views of the workflow")} />
    ${(view === "form" || view === "graph") && html`<div class=${`edit-body ${view === "graph" ? "drawn" : ""}`}>${drawn}<div class="panel-side">${draft.unreadable ? html`<${Unreadable} draft=${draft} onText=${() => place({ view: draft.format })} />` : panel}</div></div>`}
    ${(view === "yaml" || view === "json") && html`<${TextViews} key=${view} draft=${draft} format=${view} faults=${faults} line=${line} /><${FaultList} faults=${faults} edges=${listEdges(draft.data)} onGo=${toFault} />`}
    ${view === "diff" && html`<${DiffView} before=${draft.source.text} after=${draft.text} />`}
    ${view === "run" && html`<${RunView} draft=${draft} me=${me} faults=${faults} given=${given} onGiven=${setGiven} />`}
    ${dialog === "add" && html`<${AddNode} edit=${edit} after=${chosen?.name} onClose=${() => setDialog(null)} onAdded=${(id) => (setDialog(null), choose(id))} />`}
    ${dialog === "save" && html`<${SaveDialog} draft=${draft} me=${me} faults=${draft.check.isCurrent ? faults : []} onClose=${() => setDialog(null)} onSaved=${(id, text) => (setDialog(null), afterSaving(draft, name, id, text))} />`}`;
}

/** What the form needs of the draft: the data, its faults, what may be put in, and how to write. */
function makeEdit(draft, tools, faults, chosen) {
  const before = chosen ? nodesBefore(draft.data, chosen.name) : null;
  return {
    data: draft.data,
    faults,
    tools,
    names: listNodes(draft.data).map((each) => each.name),
    variables: listVariables(draft.check.answer, { before, hasItem: chosen?.node.foreach !== undefined }),
    bareVariables: (from) => listBareVariables(draft.check.answer, from),
    disabled: draft.unreadable !== null,
    lists: LISTS,
    write: draft.write,
    apply: draft.apply,
  };
}

/** The page of what was saved; what was done before can still be undone there. */
function afterSaving(draft, name, id, text) {
  if (name === id) return draft.setText(text), draft.reload();
  draft.forget();
  go(link(["workflows", id]));
}

function Told({ draft }) {
  const [isSeen, setSeen] = useState(false);
  useEffect(() => setSeen(false), [draft.wasKept]);
  return html`${draft.wasKept && draft.isDirty && !isSeen && html`<${Notice} tone="wait" live title=${t("Your unsaved work from before is here again.")}>
      ${draft.wasKept === "older" && html`<p>${t("The saved text has changed since; “Changes” shows how yours differs from it.")}</p>`}
      <div class="row"><${Button} kind="small" onClick=${() => setSeen(true)}>${t("Continue editing")}<//><${Button} kind="small bad" onClick=${draft.discard}>${t("Discard it")}<//></div><//>`}
    ${draft.refusal && html`<${Notice} tone="bad" title=${t("This part cannot be changed by the form: {why}. Change it in the text.", { why: show(draft.refusal) })} />`}`;
}

const Unreadable = ({ draft, onText }) => html`<${Notice} tone="bad" title=${t("The text cannot be read, so there is no form of it.")}>
  <p>${show(draft.unreadable.message)}${draft.unreadable.line ? ` · ${t("line {n}", { n: draft.unreadable.line })}` : ""}</p>
  <div class="row"><${Button} onClick=${onText}>${t("Mend it in the text")}<//></div><//>`;
