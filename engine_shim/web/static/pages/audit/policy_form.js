// The form of another policy that all runs of an audit are judged by.

import { html } from "../../vendor/preact.js";
import { Field } from "../../kit/parts.js";
import { t } from "../../kit/words.js";

/** `form` has text, denied and maxSteps; `onForm` gets it with a change. */
export function PolicyForm({ form, fault, onForm }) {
  const set = (change) => onForm({ ...form, ...change });
  const isSet = Object.values(form).some(Boolean);
  return html`<details class="audit-policy" open=${isSet}>
    <summary>${t("What if another policy had been in force?")}</summary>
    <div class="stack">
      <p class="help">${t("Each run is judged again as if this had been its agents' policy; its decisions are compared. Nothing is called.")}</p>
      <div class="audit-policy-row">
        <${Field} label=${t("Denied tools")} help=${t("Codes or globs, with commas between them.")} render=${(props) => html`<input ...${props} value=${form.denied} placeholder="order, mcp.files.*"
          onInput=${(event) => set({ denied: event.target.value })} />`} />
        <${Field} label=${t("Most steps")} render=${(props) => html`<input ...${props} type="text" inputmode="numeric" autocomplete="off" value=${form.maxSteps} onInput=${(event) => set({ maxSteps: event.target.value })} />`} />
        <${Field} label=${t("Other keys")} help=${t("A JSON object, or key=value on each line.")} fault=${fault && t("This cannot be read: {why}", { why: fault })}
          render=${(props) => html`<textarea ...${props} class="code" rows="2" spellcheck=${false} value=${form.text} placeholder="approval=on_write" onInput=${(event) => set({ text: event.target.value })} />`} />
      </div>
    </div>
  </details>`;
}
