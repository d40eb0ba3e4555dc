import { html } from "../vendor/preact.js";
import { t } from "../kit/words.js";

export function ToolsPage() {
  return html`<h1>${t("Tools")}</h1>`;
}
