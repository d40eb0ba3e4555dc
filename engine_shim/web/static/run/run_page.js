import { html } from "../vendor/preact.js";
import { t } from "../kit/words.js";

export function RunPage() {
  return html`<h1>${t("Run")}</h1>`;
}
