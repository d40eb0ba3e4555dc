// focusPlace(): to the field of a place, or to the nearest one around it.

import { keyOf } from "./faults.js";

/** Open what the field is folded in, show it, and put the focus there. */
export function focusPlace(path) {
  for (let length = path.length; length >= 0; length--) {
    const found = document.querySelector(`#main [data-path="${CSS.escape(keyOf(path.slice(0, length)))}"]`);
    if (!found) continue;
    for (let above = found; above; above = above.parentElement) if (above.tagName === "DETAILS") above.open = true;
    const field = found.matches("details") ? found.querySelector("summary") : found;
    field.scrollIntoView({ block: "center" });
    field.focus({ preventScroll: true });
    return true;
  }
  return false;
}
