import { html } from "../vendor/preact.js";
import { t } from "../kit/words.js";

export function WorkflowsPage() {
  return html`<h1>${t("Workflows")}</h1>`;
}
