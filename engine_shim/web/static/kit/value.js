// A value of a record, to read: short ones as they stand, long ones folded, huge ones in pieces.

import { html, useState } from "../vendor/preact.js";
import { writeJson } from "./json.js";
import { beginning, cut, onOneLine, show } from "./text.js";
import { number, t } from "./words.js";

const SHORT = 120;
const PIECE = 4000;

/** A value with a label: on one line while it is short, else folded behind its beginning. */
export function Part({ label, value, open = false }) {
  const line = onOneLine(cut(textOf(value), 4 * SHORT));
  if (line.length <= SHORT && !textOf(value).includes("\n"))
    return html`<div class="part"><span class="part-label">${label}</span><span class="part-value">${line}</span></div>`;
  return html`<details class="part" open=${open}>
    <summary><span class="part-label">${label}</span><span class="part-value">${cut(line, SHORT)}</span></summary>
    <${Block} value=${value} />
  </details>`;
}

/** A value as a block of text: a text as it is, anything else as JSON. Of a long one the beginning, and a button. */
export function Block({ value }) {
  const text = typeof value === "string" ? value : writeJson(value, 2);
  const [pieces, setPieces] = useState(1);
  const shown = show(beginning(text, pieces * PIECE));
  const left = text.length - pieces * PIECE;
  return html`<div class="block">
    <pre tabindex="0">${shown}${left > 0 ? "…" : ""}</pre>
    ${left > 0 && html`<button type="button" class="button small" onClick=${() => setPieces(pieces * 4)}>
      ${t("{n} more characters", { n: number(left) })}
    </button>`}
  </div>`;
}

const textOf = (value) => (typeof value === "string" ? value : (writeJson(value) ?? ""));

/** What an agent answered, as a text to read while it is one. */
export function Answer({ value }) {
  if (typeof value === "string" && value.length <= PIECE) return html`<p class="answer-text">${show(value)}</p>`;
  return html`<${Block} value=${value} />`;
}
