import { html } from "../vendor/preact.js";
import { t } from "../kit/words.js";

export function AuditPage() {
  return html`<h1>${t("Audit")}</h1>`;
}
