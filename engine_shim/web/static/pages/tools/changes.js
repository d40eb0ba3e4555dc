// What the sources of tools offer otherwise than was approved, and the approval of exactly that.

import { html, useState } from "../../vendor/preact.js";
import { ask, LONG_S } from "../../kit/api.js";
import { writeJson } from "../../kit/json.js";
import { Badge, Button, Dialog, Failure, Notice, useAct } from "../../kit/parts.js";
import { onOneLine, show } from "../../kit/text.js";
import { count, t } from "../../kit/words.js";
import { DiffView } from "../../edit/diff_view.js";

const TONES = { new: "live", changed: "wait", gone: "bad" };

/** The button that looks for changes, and what it found: {look, busy, error, found, forget}. */
export function useChanges() {
  const [found, setFound] = useState(null);
  const { act, busy, error } = useAct(async () => setFound(await ask("tools/changes", { limit: LONG_S })));
  return { look: act, busy, error, found, forget: () => setFound(null) };
}

export function LookButton({ changes, me }) {
  const mayNot = me.scopes.includes("admin") ? undefined : t("This needs a token with the scope {scope}.", { scope: "admin" });
  return html`<${Button} busy=${changes.busy} disabled=${Boolean(mayNot)} onClick=${changes.look}
    title=${mayNot ?? t("Starts every tool server, and asks what it offers now.")}>${t("Look for changes")}<//>`;
}

export function Changes({ changes, onApproved }) {
  const [isAsked, setAsked] = useState(false);
  const [approved, setApproved] = useState(null);
  const { found, error } = changes;
  const approve = useAct(async () => {
    const done = await ask("tools/approve", { body: { digest: found.digest }, limit: LONG_S });
    setApproved(done.approved);
    setAsked(false);
    changes.forget();
    onApproved();
  });
  if (error) return html`<${Failure} error=${error} />`;
  if (approved !== null && !found)
    return html`<${Notice} tone="good" live title=${count(approved, "{n} tool is approved as it is now.", "{n} tools are approved as they are now.")}>
      <p>${t("Start the server again: until then it uses the tools as they were.")}</p><//>`;
  if (!found) return null;
  return html`<section class="stack" aria-label=${t("Changes")}>
    ${(found.faults ?? []).map((fault) => html`<${Notice} tone="wait" key=${fault.source} title=${t("{source} cannot be asked.", { source: onOneLine(fault.source) })}><p>${show(fault.message)}</p><//>`)}
    ${found.changes.length === 0
      ? html`<${Notice} tone="good" live title=${t("Nothing changed since it was approved.")} />`
      : html`<div class="page-head"><h2 role="status">${count(found.changes.length, "{n} change since the approval", "{n} changes since the approval")}</h2>
          <${Button} kind="main" onClick=${() => setAsked(true)}>${t("Approve exactly this…")}<//></div>
        ${found.changes.map((change) => html`<${Change} key=${`${change.source} ${change.tool}`} change=${change} />`)}`}
    ${isAsked && html`<${Dialog} title=${t("Approve these tools?")} onClose=${() => setAsked(false)}>
      <ul>${found.changes.map((change) => html`<li key=${change.tool}><${Badge} word=${change.kind} tone=${TONES[change.kind]} /> <code>${onOneLine(change.tool)}</code></li>`)}</ul>
      <p>${t("Agents may then use them as they are shown here. The server has to be started again.")}</p>
      <${Failure} error=${approve.error} />
      <div class="row"><${Button} kind="main" busy=${approve.busy} onClick=${approve.act}>${t("Approve")}<//><${Button} onClick=${() => setAsked(false)}>${t("Back")}<//></div>
    <//>`}
  </section>`;
}

function Change({ change }) {
  return html`<article class="tool-change">
    <h3 class="row"><${Badge} word=${change.kind} tone=${TONES[change.kind]} /><code>${onOneLine(change.tool)}</code><span class="soft">${onOneLine(change.source)}</span></h3>
    <${DiffView} before=${asText(change.before)} after=${asText(change.after)} />
  </article>`;
}

/** A tool as lines: its description as it is read, then the rest. */
function asText(tool) {
  if (!tool) return "";
  const { description = "", ...rest } = tool;
  return `${description}\n${writeJson(rest, 2)}`;
}
