// Saving: what is different, under which version, and what to do when somebody else has saved meanwhile.

import { html, useState } from "../vendor/preact.js";
import { ask } from "../kit/api.js";
import { announce, Button, Dialog, Failure, Field, Notice, useAct } from "../kit/parts.js";
import { show } from "../kit/text.js";
import { t } from "../kit/words.js";
import { DiffView } from "./diff_view.js";
import { changeText } from "./source.js";
import { nextVersion } from "./versions.js";

/** The dialog; `onSaved(id, text)` is called once the text is a version. */
export function SaveDialog({ draft, me, faults, onSaved, onClose }) {
  const { source, data } = draft;
  const id = String(data.id ?? "");
  const [basis, setBasis] = useState(() => ({ text: source.text, versions: id === source.id ? source.versions : [] }));
  const [version, setVersion] = useState(() => proposeVersion(data, basis.versions));
  const text = withVersion(draft, version);
  const { act, busy, error, forget } = useAct(async () => {
    await ask(`workflows/${encodeURIComponent(id)}`, { method: "PUT", body: { text, format: draft.format, expects: basis.versions[0] ?? null } });
    announce(t("Saved as version {version}", { version }));
    onSaved(id, text);
  });
  const rebase = useAct(async () => {
    const { workflows } = await ask("workflows");
    const versions = workflows.filter((each) => each.id === id).map((each) => each.version);
    const newest = await ask(`workflows/${encodeURIComponent(id)}/source`);
    setBasis({ text: newest.text, versions });
    setVersion(nextVersion(versions[0], versions));
    forget();
  });
  const problems = faults.filter(({ kind }) => kind === "bad").length;
  const reason = !me.scopes.includes("admin") ? t("Your token lacks the scope admin.") : problems ? t("There are faults; mend them first.") : "";
  return html`<${Dialog} wide title=${t("Save {id} as a new version", { id: show(id) })} onClose=${onClose}>
    ${reason && html`<${Notice} tone="wait" title=${reason} />`}
    <div class="row end"><${Field} label=${t("Version")} help=${basis.versions.length ? t("Saved so far: {versions}. They stay as they are.", { versions: show(basis.versions.join(", ")) }) : ""}
      fault=${basis.versions.includes(version) ? t("This version exists already.") : ""} render=${(props) => html`<input type="text" ...${props} class="short" value=${version} onInput=${(event) => setVersion(event.target.value)} />`} /></div>
    <${Conflict} error=${error} rebase=${rebase} />
    <${DiffView} before=${basis.text} after=${text} />
    <div class="row dialog-foot"><${Button} kind="main" busy=${busy} disabled=${reason !== "" || basis.versions.includes(version) || !version.trim()} title=${reason || undefined} onClick=${act}>${t("Save version {version}", { version: show(version) })}<//>
      <${Button} onClick=${onClose}>${t("Cancel")}<//></div>
  <//>`;
}

function Conflict({ error, rebase }) {
  if (!error) return null;
  if (error.status !== 409) return html`<${Failure} error=${error} />`;
  return html`<${Notice} tone="bad" title=${t("Somebody has saved this workflow meanwhile.")}>
    <p class="soft">${show(error.message)}</p>
    <p>${t("Your text is not lost. Compare it with the newest version, take over by hand what you want, and save yours as the next version.")}</p>
    <div class="row"><${Button} busy=${rebase.busy} onClick=${rebase.act}>${t("Compare with the newest version")}<//></div><${Failure} error=${rebase.error} />
  <//>`;
}

function proposeVersion(data, versions) {
  const own = data.version === undefined ? "" : String(data.version);
  if (own && !versions.includes(own)) return own;
  return versions.length ? nextVersion(versions[0], versions) : own || "1";
}

function withVersion(draft, version) {
  if (String(draft.data.version ?? "") === version && typeof draft.data.version === "string") return draft.text;
  try {
    return changeText(draft.text, draft.format, (target) => target.setAfter("id", "version", version));
  } catch {
    return draft.text;
  }
}
