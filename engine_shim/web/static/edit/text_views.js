// The definition as YAML and as JSON: one of them is the text itself, an edit of the other is written into it.

import { html, useEffect, useState } from "../vendor/preact.js";
import { show } from "../kit/text.js";
import { t } from "../kit/words.js";
import { faultyLines } from "./faults.js";
import { readText, writeDifferences, writeText } from "./source.js";
import { TextView } from "./text_view.js";

/** The view in a format. */
export function TextViews({ draft, format, faults, line }) {
  const label = t("The definition as {format}", { format: format.toUpperCase() });
  if (format !== draft.format) return html`<${OtherText} draft=${draft} format=${format} label=${label} />`;
  const marks = faultyLines(draft.check.isCurrent ? faults : []);
  if (draft.unreadable?.line) marks.set(draft.unreadable.line, { kind: "bad", text: draft.unreadable.message });
  return html`<div class="stack"><${TextView} value=${draft.text} label=${label} marks=${marks} line=${line} fault=${draft.unreadable !== null} onText=${(text) => draft.setText(text, "text")} />
    ${draft.unreadable && html`<p class="fault" role="alert">${t("It cannot be read: {why}", { why: show(draft.unreadable.message) })}</p>`}</div>`;
}

/** A text in the format that the file does not have. What is typed is taken over whenever it can be read. */
function OtherText({ draft, format, label }) {
  const [typed, setTyped] = useState(null);
  useEffect(() => setTyped((before) => (before !== null && before.of === draft.text ? before : null)), [draft.text]);
  const text = typed?.text ?? writeText(draft.data, format);
  const { error } = readText(text, format);
  const onText = (wanted) => {
    const read = readText(wanted, format);
    const isReadable = !read.error && read.data !== null && typeof read.data === "object" && !Array.isArray(read.data);
    const done = isReadable ? draft.apply((target) => writeDifferences(target, read.data), "text") : null;
    setTyped({ text: wanted, of: done ?? draft.text });
  };
  return html`<div class="stack"><p class="help">${draft.format === "yaml" ? t("The file is YAML. What you change here is written into it; its comments and its order stay.") : t("The file is JSON. What you change here is written into it.")}</p>
    <${TextView} value=${text} label=${label} marks=${new Map(error?.line ? [[error.line, { kind: "bad", text: error.message }]] : [])} disabled=${draft.unreadable !== null} fault=${error !== null} onText=${onText} />
    ${error && html`<p class="fault" role="alert">${t("It cannot be read: {why}", { why: show(error.message) })}</p>`}
    ${draft.unreadable && html`<p class="fault" role="alert">${t("The file's own text cannot be read; mend it in the view {format}.", { format: draft.format.toUpperCase() })}</p>`}</div>`;
}
