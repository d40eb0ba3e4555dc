// The execution of a tool by itself, as a run of one step.

import { html, useState } from "../../vendor/preact.js";
import { ask, LONG_S } from "../../kit/api.js";
import { writeJson } from "../../kit/json.js";
import { Badge, Button, Failure, Field, useAct } from "../../kit/parts.js";
import { link } from "../../kit/router.js";
import { show } from "../../kit/text.js";
import { readObjectToSend } from "../../kit/typed.js";
import { t } from "../../kit/words.js";
import { Block } from "../../kit/value.js";
import { exampleOf } from "./arguments.js";

export function ExecuteForm({ tool, me }) {
  const [text, setText] = useState(() => writeJson(exampleOf(tool.config_schema), 2));
  const [done, setDone] = useState(null);
  const { args, fault } = readArgs(text);
  const mayNot = me.scopes.includes("admin") ? null : t("This needs a token with the scope {scope}.", { scope: "admin" });
  const { act, busy, error } = useAct(async () => setDone(await ask(`tools/${encodeURIComponent(tool.code)}/execute`, { body: { args }, limit: LONG_S })));
  const submit = (event) => (event.preventDefault(), fault || mayNot || act());
  return html`<form class="stack execute" onSubmit=${submit}>
    <${Field} label=${t("Arguments as JSON")} fault=${fault} help=${tool.effect === "read" ? "" : t("It may write: when it returns, its work is already done.")}
      render=${(props) => html`<textarea ...${props} class="code" rows=${Math.min(14, text.split("\n").length + 1)} spellcheck=${false} value=${text}
        onInput=${(event) => setText(event.target.value)} />`} />
    <div class="row"><${Button} kind="main" type="submit" busy=${busy} disabled=${Boolean(fault || mayNot)} title=${mayNot ?? undefined}>${t("Execute")}<//>
      ${mayNot && html`<span class="soft">${mayNot}</span>`}</div>
    <${Failure} error=${error} />
    ${done && html`<${Executed} done=${done} />`}
  </form>`;
}

function Executed({ done }) {
  return html`<div class="stack" role="status">
    <p class="row"><${Badge} word=${done.status} /><a href=${link(["runs", done.run_id])}>${t("Its run")}</a></p>
    ${done.error && html`<p class="fault">${show(done.error.message)}</p>`}
    ${done.success && html`<${Block} value=${done.output ?? null} />`}
  </div>`;
}

/** The arguments of a text: {args, fault}. */
function readArgs(text) {
  try {
    return { args: readObjectToSend(text), fault: "" };
  } catch (error) {
    return { args: null, fault: error.message };
  }
}
