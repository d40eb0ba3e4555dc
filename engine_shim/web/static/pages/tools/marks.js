// What a tool is, in a few words beside its name.

import { html } from "../../vendor/preact.js";
import { Badge } from "../../kit/parts.js";
import { own } from "../../kit/own.js";
import { t } from "../../kit/words.js";

const ABOUT = { depends: "It depends on the arguments.", nested: "It runs an agent or a workflow." };
/** How each effect is called, and its tone. */
export const EFFECTS = { read: ["read", "plain"], write: ["write", "wait"], depends: ["read or write", "wait"], nested: ["nested", "plain"] };

/** Whether a tool reads or writes. */
export function Effect({ tool }) {
  const [word, tone] = own(EFFECTS, tool.effect) ?? [tool.effect, "plain"];
  return html`<${Badge} word=${word} tone=${tone} title=${own(ABOUT, tool.effect) && t(ABOUT[tool.effect])} />`;
}

/** What else is to be known of a tool at once. */
export function Marks({ tool }) {
  return html`<${Effect} tool=${tool} />
    ${tool.idempotent && tool.effect !== "read" && html`<${Badge} word="idempotent" tone="plain" title=${t("A second call with the same arguments changes nothing more.")} />`}
    ${tool.pinned && html`<${Badge} word="pinned" tone="good" title=${t("It is used only as it was approved.")} />`}
    ${tool.executable && html`<${Badge} word="executable" tone="live" title=${t("It can be executed by itself.")} />`}`;
}
