// The head of the audit's two views: each run verified and replayed, and the report.

import { html } from "../../vendor/preact.js";
import { link } from "../../kit/router.js";
import { t } from "../../kit/words.js";

export function AuditHead({ view, filters: { workflow, since } }) {
  const to = (parts, label, key) => html`<a href=${link(parts, { workflow, since })} aria-current=${view === key ? "page" : undefined}>${label}</a>`;
  return html`<div class="page-head"><h1>${t("Audit")}</h1>
    <nav class="audit-views" aria-label=${t("Views")}>${to(["audit"], t("Check runs"), "runs")}${to(["audit", "report"], t("Report"), "report")}</nav></div>`;
}
