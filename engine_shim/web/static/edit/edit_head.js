// The head of the editor: which workflow it is, how it stands, and what can be done with the whole of it.

import { html, useRef } from "../vendor/preact.js";
import { Button } from "../kit/parts.js";
import { go, link } from "../kit/router.js";
import { show } from "../kit/text.js";
import { t } from "../kit/words.js";
import { FaultSummary } from "./fault_list.js";

/** The head. `onRun` and `onSave` open what they are named for. */
export function EditHead({ draft, faults, onRun, onSave, onImport }) {
  const { source, data, isDirty } = draft;
  const title = source.id ?? (data.id ? String(data.id) : t("New workflow"));
  const newest = source.versions[0];
  const openVersion = (event) => go(link(["workflows", event.target.value === newest ? source.id : `${source.id}@${event.target.value}`]));
  return html`<header class="page-head edit-head">
    <h1><a class="plain-link soft" href=${link("workflows")}>${t("Workflows")}</a> <span class="soft" aria-hidden="true">/</span> ${show(title)}</h1>
    ${source.versions.length > 1 ? html`<select class="short" aria-label=${t("Version")} value=${source.version} onChange=${openVersion}>${source.versions.map((each) => html`<option value=${each}>${t("version {version}", { version: show(each) })}</option>`)}</select>` : source.version !== null && html`<span class="soft">${t("version {version}", { version: show(source.version) })}</span>`}
    <span class="badge dirty-mark ${isDirty ? "wait" : "plain"}">${isDirty ? t("unsaved changes") : source.id ? t("saved") : t("not saved")}</span>
    <${FaultSummary} faults=${faults} check=${draft.check} unreadable=${draft.unreadable} />
    <div class="row edit-actions">
      <${Button} kind="quiet" disabled=${!draft.canUndo} aria-label=${t("Undo")} title=${t("Undo (Ctrl+Z)")} onClick=${draft.undo}>↶<//>
      <${Button} kind="quiet" disabled=${!draft.canRedo} aria-label=${t("Redo")} title=${t("Redo (Ctrl+Y)")} onClick=${draft.redo}>↷<//>
      <${Import} onImport=${onImport} />
      <${Button} onClick=${() => download(draft)}>${t("Export")}<//>
      <${Button} onClick=${onRun}>${t("Run")}<//>
      <${Button} kind="main" disabled=${!isDirty && source.id !== null} onClick=${onSave}>${t("Save…")}<//>
    </div>
  </header>`;
}

/** A button that reads a file: `onImport(text, format)`. */
export function Import({ onImport, kind = "" }) {
  const input = useRef(null);
  const read = async (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (file) onImport(await file.text(), /\.json$/i.test(file.name) ? "json" : "yaml");
  };
  return html`<${Button} kind=${kind} onClick=${() => input.current.click()}>${t("Import…")}<//>
    <input ref=${input} type="file" class="unseen" tabindex="-1" aria-hidden="true" accept=".yaml,.yml,.json,application/json" onChange=${read} />`;
}

function download({ text, format, data }) {
  const name = [data.id ?? "workflow", data.version].filter(Boolean).join("@").replace(/[^\w.@-]/g, "_");
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(new Blob([text], { type: format === "json" ? "application/json" : "application/yaml" }));
  anchor.download = `${name}.${format}`;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 1000);
}
