// A call that waits for a person, decided on in place.

import { html, useState } from "../../vendor/preact.js";
import { ask } from "../../kit/api.js";
import { Button, Failure, Field, useAct } from "../../kit/parts.js";
import { t } from "../../kit/words.js";

/** The buttons for one waiting call: approve, deny, edit; of one whose outcome is not known: retry, skip, fail. */
export function Decision({ trace, call, me }) {
  const [form, setForm] = useState(null);
  const [sent, setSent] = useState(false);
  const mayNot = me.scopes.includes("decide") ? undefined : t("This needs a token with the scope {scope}.", { scope: "decide" });
  const { act, busy, error } = useAct(async (decision, more = {}) => {
    await ask(`runs/${encodeURIComponent(trace)}/decide?wait=false`, { body: { decision, at: call.at, ...more } });
    setSent(true);
  });
  const button = (decision, kind, label) => html`<${Button} kind=${kind} busy=${busy} disabled=${sent || Boolean(mayNot)} title=${mayNot} onClick=${() => act(decision)}>${label}<//>`;
  const opener = (name, kind, label) => html`<${Button} kind=${kind} disabled=${busy || sent || Boolean(mayNot)} title=${mayNot} aria-expanded=${form === name ? "true" : "false"}
    onClick=${() => setForm(form === name ? null : name)}>${label}<//>`;
  return html`<div class="decision" role="group" aria-label=${t("Decide on {tool}", { tool: call.tool })}>
    <p class="decision-why">${call.state === "in_doubt" ? t("Nobody knows whether this call was made. Look, then decide:") : t("This call waits for your decision.")}</p>
    <div class="row">${call.state === "in_doubt"
      ? html`${button("retry", "plain", t("Make it again"))}${button("skip", "plain", t("Skip it"))}${button("fail", "bad", t("Count it as failed"))}`
      : html`${button("approve", "main", t("Approve"))}${opener("deny", "bad", t("Deny…"))}${opener("edit", "plain", t("Change…"))}`}</div>
    ${form === "deny" && html`<${DenyForm} busy=${busy || sent} onDeny=${(message) => act("deny", message ? { message } : {})} />`}
    ${form === "edit" && html`<${EditForm} args=${call.args} busy=${busy || sent} onEdit=${(args) => act("edit", { args })} />`}
    <${Failure} error=${error} />
  </div>`;
}

function DenyForm({ busy, onDeny }) {
  const [message, setMessage] = useState("");
  return html`<form class="stack" onSubmit=${(event) => (event.preventDefault(), onDeny(message.trim()))}>
    <${Field} label=${t("What the agent is told")} help=${t("May be left empty.")} render=${(props) => html`<input ...${props} value=${message} onInput=${(event) => setMessage(event.target.value)} />`} />
    <div><${Button} kind="bad" type="submit" busy=${busy}>${t("Deny")}<//></div>
  </form>`;
}

function EditForm({ args, busy, onEdit }) {
  const [text, setText] = useState(() => JSON.stringify(args, null, 2));
  const { value, fault } = read(text);
  return html`<form class="stack" onSubmit=${(event) => (event.preventDefault(), fault || onEdit(value))}>
    <${Field} label=${t("Arguments as JSON")} fault=${fault} render=${(props) => html`<textarea ...${props} class="code" spellcheck=${false}
      rows=${Math.min(14, text.split("\n").length + 1)} value=${text} onInput=${(event) => setText(event.target.value)} />`} />
    <div><${Button} kind="main" type="submit" busy=${busy} disabled=${Boolean(fault)}>${t("Run it with these")}<//></div>
  </form>`;
}

function read(text) {
  try {
    const value = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return { value, fault: isObject ? "" : t("This has to be an object: {example}", { example: '{"name": "value"}' }) };
  } catch (error) {
    return { value: null, fault: t("This is no JSON: {why}", { why: error.message }) };
  }
}
