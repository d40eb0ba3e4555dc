import { html } from "../vendor/preact.js";
import { t } from "../kit/words.js";

export function EditPage() {
  return html`<h1>${t("Edit")}</h1>`;
}
