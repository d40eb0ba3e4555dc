import { html } from "../vendor/preact.js";
import { t } from "../kit/words.js";

export function ChatPage() {
  return html`<h1>${t("Chat")}</h1>`;
}
