import { html } from "../vendor/preact.js";
import { t } from "../kit/words.js";

export function RunsPage() {
  return html`<h1>${t("Runs")}</h1>`;
}
