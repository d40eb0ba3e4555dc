// The form that sends a run the signal for which one of its nodes waits.

import { html, useState } from "../vendor/preact.js";
import { ask, isPassing } from "../kit/api.js";
import { announce, Button, Failure, Field, useAct } from "../kit/parts.js";
import { readJsonToSend } from "../kit/typed.js";
import { show } from "../kit/text.js";
import { t } from "../kit/words.js";

/** The form for a signal's data. `me` says whether the user may send it; `onSent` is called once it is sent, `onRefused` with
 *  the error where the run takes it no longer: this form may be gone then. */
export function SendSignal({ run, name, me, onSent, onRefused }) {
  const [text, setText] = useState("");
  const [fault, setFault] = useState("");
  const mayRun = me.scopes.includes("run");
  const { act, busy, error } = useAct(async (data) => {
    const address = `runs/${encodeURIComponent(run)}/signals/${encodeURIComponent(name)}`;
    try {
      await ask(address, { body: data === undefined ? {} : { data } });
    } catch (error) {
      if (!isPassing(error)) onRefused(error);
      throw error;
    }
    announce(t("Sent"));
    onSent();
  });
  const submit = (event) => {
    event.preventDefault();
    try {
      act(text.trim() === "" ? undefined : readJsonToSend(text));
      setFault("");
    } catch (failure) {
      setFault(failure.message);
    }
  };
  return html`<form class="decide decide-form" onSubmit=${submit}>
    <${Field} label=${t("Data of the signal")} help=${t("JSON; may be empty.")} fault=${fault}
      render=${(props) => html`<input ...${props} class="code" value=${text} spellcheck=${false} onInput=${(event) => setText(event.target.value)} />`} />
    <${Button} kind="main" type="submit" busy=${busy} disabled=${!mayRun}>${show(t("Send {name}", { name }))}<//>
    ${!mayRun && html`<p class="help">${t("Your token lacks the scope {scope}.", { scope: "run" })}</p>`}
    <${Failure} error=${error} />
  </form>`;
}
