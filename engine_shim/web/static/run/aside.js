// What stands beside the steps of a run: open in a wide window, folded above them in a narrow one.

import { html, useState } from "../vendor/preact.js";
import { t } from "../kit/words.js";

/** The part of a page that tells of the run on the whole. */
export function Aside({ children }) {
  const [isOpen] = useState(() => matchMedia("(min-width: 70rem)").matches);
  return html`<aside class="run-side" aria-label=${t("About the run")}>
    <details open=${isOpen}><summary>${t("About the run")}</summary><div class="run-side-body">${children}</div></details>
  </aside>`;
}
