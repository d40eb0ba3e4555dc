// A place of the definition in a form: its label, its control, and the faults that the check finds there.

import { html } from "../vendor/preact.js";
import { Field } from "../kit/parts.js";
import { show } from "../kit/text.js";
import { t } from "../kit/words.js";
import { faultsAt, keyOf, textOf } from "./faults.js";

/** A labelled control for the place `path`. `below` shows the faults of all that is within it. */
export function Slot({ edit, path, label, help, required = false, below = false, fault = "", render }) {
  const found = faultsAt(edit.faults, path, { below });
  const bad = found.filter(({ kind }) => kind === "bad");
  const name = html`${show(label)}${required && html`<span class="required" aria-hidden="true"> *</span>`}`;
  return html`<div class="slot">
    <${Field} label=${name} help=${help ? show(t(help)) : ""} fault=${fault || textOf(bad)}
      render=${(props) => render({ ...props, "data-path": keyOf(path), disabled: edit.disabled || undefined, "aria-required": required ? "true" : undefined })} />
    <${Warnings} faults=${found} />
  </div>`;
}

/** What the check says of a place that has no control of its own. */
export function Said({ edit, path, below = false }) {
  const found = faultsAt(edit.faults, path, { below });
  if (!found.length) return null;
  return html`<div class="said" data-path=${keyOf(path)} tabindex="-1">
    ${found.filter(({ kind }) => kind === "bad").map(({ message }) => html`<p class="fault" role="alert">${show(message)}</p>`)}
    <${Warnings} faults=${found} />
  </div>`;
}

const Warnings = ({ faults }) => faults.filter(({ kind }) => kind === "warn").map(({ message }) => html`<p class="warning">${show(message)}</p>`);
