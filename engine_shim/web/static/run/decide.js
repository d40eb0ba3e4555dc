// What a person may decide about a call that waits: approve, deny, edit; or retry, skip, fail, done where it is in doubt.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { ask, Problem } from "../kit/api.js";
import { writeJson } from "../kit/json.js";
import { announce, Button, Failure, Field, Notice, useAct } from "../kit/parts.js";
import { show } from "../kit/text.js";
import { readJsonToSend, readObjectToSend } from "../kit/typed.js";
import { t } from "../kit/words.js";

const OF_APPROVAL = [["approve", "Approve", "main"], ["deny", "Deny…", "bad"], ["edit", "Edit…", "plain"]];
const OF_DOUBT = [["retry", "Try again", "main"], ["skip", "Skip", "plain"], ["fail", "Fail", "bad"], ["done", "It happened…", "plain"]];

const FORMS = new Set(["deny", "edit", "done"]);

/** The buttons of a waiting call. `me` says whether the user may; `onDecided` is called after a decision, and `onTooLate`
 *  with the tool after one that another decision, or the end of the run, came before: the call may be gone then. */
export function Decide({ run, call, me, onDecided, onTooLate }) {
  const [form, setForm] = useState(null);
  const mayDecide = me.scopes.includes("decide");
  const { act, busy, error } = useAct(async (decision, more = {}) => {
    const at = { strand: call.waits.strand, n: call.waits.n };
    onTooLate(null);
    try {
      await ask(`runs/${encodeURIComponent(run)}/decide?wait=false`, { body: { decision, at, ...more } });
    } catch (problem) {
      if (isTooLate(problem)) onTooLate(call.tool);
      throw problem;
    }
    onDecided();
    announce(t("Decided"));
    setForm(null);
  });
  const choose = (decision) => (FORMS.has(decision) ? setForm(form === decision ? null : decision) : act(decision));
  const buttons = call.reason === "in_doubt" ? OF_DOUBT : OF_APPROVAL;
  const isRefused = error instanceof Problem && !isTooLate(error) && [409, 422].includes(error.status);
  return html`<div class="decide" role="group" aria-label=${t("Decide about {tool}", { tool: call.tool })}>
    <div class="row">${buttons.map(([decision, label, kind]) => html`<${Button} key=${decision} kind=${kind} busy=${busy && form === null} disabled=${!mayDecide}
      aria-expanded=${FORMS.has(decision) ? form === decision : undefined}
      onClick=${() => choose(decision)}>${t(label)}<//>`)}</div>
    ${!mayDecide && html`<p class="help">${t("Your token lacks the scope {scope}.", { scope: "decide" })}</p>`}
    ${form === "deny" && html`<${Deny} busy=${busy} onDeny=${(message) => act("deny", message ? { message } : {})} />`}
    ${form === "edit" && html`<${Edit} args=${call.args} busy=${busy} onEdit=${(args) => act("edit", { args })} />`}
    ${form === "done" && html`<${Done} busy=${busy} onDone=${(output) => act("done", { output })} />`}
    ${isRefused && html`<p class="help">${t("Your decision was refused; the call still waits, and your text is still here.")}</p>`}
    <${Failure} error=${isTooLate(error) ? null : error} />
  </div>`;
}

const isTooLate = (error) => error instanceof Problem && error.kind === "already_decided";

/** That a decision about a call of `tool` came too late; nothing for null. */
export function TooLate({ tool }) {
  if (tool === null) return null;
  return html`<${Notice} tone="bad" title=${show(t("Your decision about {tool} does not count: another one came before it, or the run has ended.", { tool }))}>
    <p>${t("The tab “Decisions” of the run says who decided what.")}</p><//>`;
}

/** The field that has the focus once it is there. */
function useFocus() {
  const field = useRef(null);
  useEffect(() => field.current.focus(), []);
  return field;
}

function Deny({ busy, onDeny }) {
  const [text, setText] = useState("");
  const field = useFocus();
  const submit = (event) => (event.preventDefault(), onDeny(text.trim()));
  return html`<form class="decide-form" onSubmit=${submit}>
    <${Field} label=${t("Why not?")} help=${t("The model reads it.")} render=${(props) => html`<input ...${props} ref=${field} value=${text} onInput=${(event) => setText(event.target.value)} />`} />
    <${Button} kind="bad" type="submit" busy=${busy}>${t("Deny")}<//>
  </form>`;
}

function Done({ busy, onDone }) {
  const [text, setText] = useState("");
  const [fault, setFault] = useState("");
  const field = useFocus();
  const submit = (event) => {
    event.preventDefault();
    try {
      onDone(text.trim() === "" ? null : readJsonToSend(text));
      setFault("");
    } catch (error) {
      setFault(error.message);
    }
  };
  return html`<form class="decide-form" onSubmit=${submit}>
    <${Field} label=${t("What did it give?")} help=${t("JSON, as the tool gives it; later steps read it.")} fault=${fault}
      render=${(props) => html`<textarea ...${props} ref=${field} class="code" rows="3" value=${text} spellcheck=${false} onInput=${(event) => setText(event.target.value)}></textarea>`} />
    <${Button} kind="main" type="submit" busy=${busy}>${t("It happened")}<//>
  </form>`;
}

function Edit({ args, busy, onEdit }) {
  const [text, setText] = useState(writeJson(args, 2));
  const [fault, setFault] = useState("");
  const field = useFocus();
  const submit = (event) => {
    event.preventDefault();
    try {
      onEdit(readObjectToSend(text));
      setFault("");
    } catch (error) {
      setFault(error.message);
    }
  };
  return html`<form class="decide-form" onSubmit=${submit}>
    <${Field} label=${t("Arguments")} help=${t("They are judged again.")} fault=${fault}
      render=${(props) => html`<textarea ...${props} ref=${field} class="code" rows=${Math.min(16, text.split("\n").length + 1)} value=${text} spellcheck=${false} onInput=${(event) => setText(event.target.value)}></textarea>`} />
    <${Button} kind="main" type="submit" busy=${busy}>${t("Approve as edited")}<//>
  </form>`;
}
