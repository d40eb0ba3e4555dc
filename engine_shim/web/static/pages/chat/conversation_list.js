// The conversations to go on with, beside the one that is shown.

import { html } from "../../vendor/preact.js";
import { link } from "../../kit/router.js";
import { beginning, cut, onOneLine } from "../../kit/text.js";
import { t } from "../../kit/words.js";
import { Ago } from "../runs/ago.js";

const LINE = 90;

export function ConversationList({ conversations, chosen }) {
  const now = Date.now();
  return html`<nav class="talks" aria-label=${t("Conversations")}>
    <a class="button" href=${link("chat")} aria-current=${chosen === undefined ? "page" : undefined}>+ ${t("New conversation")}</a>
    ${conversations.length === 0 && html`<p class="soft">${t("None yet.")}</p>`}
    <ul>${conversations.map((each) => html`<li key=${each.id}><a class="talk" href=${link(["chat", each.id])} aria-current=${each.id === chosen ? "page" : undefined}>
      <span class="talk-last">${onOneLine(cut(beginning(each.last || each.id, 4 * LINE).replace(/\s+/g, " "), LINE))}</span>
      <span class="talk-about"><span>${onOneLine(each.agent ?? "")}</span><${Ago} at=${each.at} now=${now} /></span></a></li>`)}</ul>
  </nav>`;
}
