// The definition as a text with line numbers, whose faulty lines are marked.

import { html, useEffect, useRef } from "../vendor/preact.js";
import { show } from "../kit/text.js";
import { t } from "../kit/words.js";

const LINE_PX = 20;

/** A text of many lines. `marks` are {kind, text} by line; `line` is one to go to, when it changes. */
export function TextView({ value, onText, marks, label, disabled, line, fault }) {
  const [area, gutter] = [useRef(null), useRef(null)];
  const follow = () => (gutter.current.scrollTop = area.current.scrollTop);
  useEffect(() => line && goToLine(area.current, line.number), [line]);
  useEffect(follow);
  const total = value.split("\n").length;
  return html`<div class="text-view">
    <div class="gutter" ref=${gutter} aria-hidden="true">
      ${Array.from({ length: total }, (_, at) => html`<div key=${at} class=${`gutter-line ${marks.get(at + 1)?.kind ?? ""}`} title=${show(marks.get(at + 1)?.text ?? "")}>${at + 1}</div>`)}
    </div>
    <textarea class="code" ref=${area} aria-label=${label} value=${value} readonly=${disabled || undefined} aria-invalid=${fault ? "true" : undefined} aria-description=${t("Lines with faults are listed below.")}
      spellcheck=${false} wrap="off" onInput=${(event) => onText(event.target.value)} onScroll=${follow} onKeyDown=${keepIndent}></textarea>
  </div>`;
}

function goToLine(area, number) {
  const lines = area.value.split("\n");
  const from = lines.slice(0, number - 1).join("\n").length + (number > 1 ? 1 : 0);
  area.focus();
  area.setSelectionRange(from, from + (lines[number - 1]?.length ?? 0));
  area.scrollTop = Math.max(0, (number - 4) * LINE_PX);
}

/** A new line begins where the line above does. */
function keepIndent(event) {
  if (event.key !== "Enter" || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const { value, selectionStart, selectionEnd } = event.target;
  const [indent] = /^[ \t]*/.exec(value.slice(value.lastIndexOf("\n", selectionStart - 1) + 1, selectionStart));
  if (!indent || selectionStart !== selectionEnd) return;
  event.preventDefault();
  document.execCommand("insertText", false, `\n${indent}`);
}
