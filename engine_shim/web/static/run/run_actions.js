// What can be done with a run: pause, go on, cancel, try again, fork; and taken along as a file.

import { html, useState } from "../vendor/preact.js";
import { ask, LONG_S, Problem } from "../kit/api.js";
import { Button, Dialog, Failure, Field, useAct } from "../kit/parts.js";
import { go, link } from "../kit/router.js";
import { show } from "../kit/text.js";
import { t } from "../kit/words.js";

const pathOf = (run) => `runs/${encodeURIComponent(run)}`;

/** The buttons of a run. A turn of a conversation has those alone that take it along. */
export function RunActions({ run, me, status, isTurn, onChange }) {
  const [dialog, setDialog] = useState(null);
  const mayRun = me.scopes.includes("run");
  const title = mayRun ? undefined : t("Your token lacks the scope {scope}.", { scope: "run" });
  const { act, busy, error } = useAct(async (verb) => {
    await ask(`${pathOf(run)}/${verb}`, { method: "POST" });
    onChange();
  });
  const button = (verb, label, onClick) => html`<${Button} key=${verb} busy=${busy} disabled=${!mayRun} title=${title} onClick=${onClick ?? (() => act(verb))}>${label}<//>`;
  return html`<div class="row run-actions">
    ${!isTurn && ["running", "waiting", "pending"].includes(status) && button("pause", t("Pause"))}
    ${!isTurn && status === "paused" && button("resume?wait=false", t("Resume"))}
    ${!isTurn && ["running", "waiting", "paused", "pending"].includes(status) && button("cancel", t("Cancel…"), () => setDialog("cancel"))}
    ${!isTurn && status === "failed" && button("retry", t("Try again from the failure"), () => setDialog("retry"))}
    <${TakeAlong} run=${run} />
    <${Failure} error=${error} />
    ${dialog === "cancel" && html`<${Cancel} run=${run} onClose=${() => setDialog(null)} onDone=${onChange} />`}
    ${dialog === "retry" && html`<${Fork} run=${run} at=${null} onClose=${() => setDialog(null)} />`}
  </div>`;
}

function Cancel({ run, onClose, onDone }) {
  const { act, busy, error } = useAct(async () => {
    await ask(`${pathOf(run)}/cancel`, { method: "POST" });
    onDone();
    onClose();
  });
  return html`<${Dialog} title=${t("Cancel the run?")} onClose=${onClose}>
    <p>${t("Calls under way are aborted, calls that wait are withdrawn, and the run ends for good. Its records stay.")}</p>
    <${Failure} error=${error} />
    <div class="row"><${Button} kind="bad" busy=${busy} onClick=${act}>${t("Cancel the run")}<//><${Button} onClick=${onClose}>${t("Leave it")}<//></div>
  <//>`;
}

/** A new run with the past of this one up to a record, or, without one, up to where it failed. */
export function Fork({ run, at, onClose }) {
  const [repeats, setRepeats] = useState(false);
  const { act, busy, error } = useAct(async () => {
    const body = at === null ? {} : { at, repeat_writes: repeats };
    const made = await ask(`${pathOf(run)}/fork?wait=false`, { body });
    onClose();
    go(link(["runs", made.run_id]));
  });
  const needsLeave = at !== null && error instanceof Problem && error.status === 409;
  return html`<${Dialog} title=${at === null ? t("Try again from the failure?") : t("Fork from here?")} onClose=${onClose}>
    <p>${at === null ? t("A new run begins with everything that was answered, and asks again what failed. This one stays as it is.") : t("A new run begins with the past of this one up to {place}; this one stays as it is.", { place: show(`${at.strand}:${at.n}`) })}</p>
    <${Failure} error=${error} />
    ${(needsLeave || repeats) && html`<${Field} inline=${true} label=${t("Later writes may be made again")} render=${(props) => html`<input ...${props} type="checkbox" checked=${repeats} onChange=${(event) => setRepeats(event.target.checked)} />`} />`}
    <div class="row"><${Button} kind="main" busy=${busy} onClick=${act}>${at === null ? t("Try again") : t("Fork")}<//><${Button} onClick=${onClose}>${t("Leave it")}<//></div>
  <//>`;
}

/** The button of a step that forks the run there. */
export function ForkButton({ run, me, item, isTurn }) {
  const [isOpen, setOpen] = useState(false);
  const isForkable = !isTurn && (item.kind === "step" || item.kind === "call") && me.scopes.includes("run");
  if (!isForkable) return null;
  const place = `${item.strand}:${item.n}`;
  return html`<button type="button" class="card-button" aria-label=${show(t("Fork from {place}", { place }))} onClick=${() => setOpen(true)}>${t("fork…")}</button>
    ${isOpen && html`<${Fork} run=${run} at=${{ strand: item.strand, n: item.n }} onClose=${() => setOpen(false)} />`}`;
}

function TakeAlong({ run }) {
  const { act, busy, error } = useAct(async (kind) => {
    const { text } = await ask(`${pathOf(run)}/${kind}`, { as: "text", limit: LONG_S });
    download(text, `${run}.${kind === "page" ? "html" : "jsonl"}`);
  });
  return html`<${Button} busy=${busy} title=${t("One file that shows and proves the run, without a server")} onClick=${() => act("page")}>${t("Export as HTML")}<//>
    <${Button} busy=${busy} title=${t("The records, for agent-core verify and replay")} onClick=${() => act("journal")}>${t("Export as JSONL")}<//>
    <${Failure} error=${error} />`;
}

/** Let the browser save a text as a file. */
export function download(text, name) {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(new Blob([text]));
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 10_000);
}
