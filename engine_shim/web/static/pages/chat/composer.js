// Where a message is written: Enter sends it, Shift and Enter break its line.

import { html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { Button, Failure, Field, useAct } from "../../kit/parts.js";
import { number, t } from "../../kit/words.js";

const LIMITS = { max_tokens: 20000, max_tool_calls: 5 };
const MOST = { max_tokens: 10_000_000, max_tool_calls: 1000 };

/** `onSend(message, limits)` sends; the text stays until that succeeds. `why` says why nothing can be sent now. */
export function Composer({ onSend, why, isWaiting }) {
  const [text, setText] = useState("");
  const [limits, setLimits] = useState(LIMITS);
  const box = useRef(null);
  const { act, busy, error } = useAct(async () => {
    const sent = text;
    await onSend(sent.trim(), limits);
    setText((now) => (now === sent ? "" : now));
  });
  useEffect(() => fit(box.current), [text]);
  const isWithin = (name) => Number.isInteger(limits[name]) && limits[name] >= 1 && limits[name] <= MOST[name];
  const isValid = Object.keys(LIMITS).every(isWithin);
  const cannot = why || isWaiting || !text.trim() || !isValid;
  const submit = (event) => (event.preventDefault(), cannot || act());
  const onKey = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  };
  const limit = (name, label) => html`<${Field} label=${label} fault=${isWithin(name) ? "" : t("A whole number from 1 to {most}.", { most: number(MOST[name]) })} render=${(props) => html`<input ...${props} type="number" min="1" max=${MOST[name]} step="1"
    value=${limits[name]} onInput=${(event) => setLimits({ ...limits, [name]: event.target.valueAsNumber })} />`} />`;
  return html`<form class="composer" onSubmit=${submit}>
    <${Failure} error=${error} />
    <div class="composer-row">
      <textarea ref=${box} rows="1" aria-label=${t("Message")} placeholder=${why || t("Message")} disabled=${Boolean(why)} value=${text}
        onInput=${(event) => setText(event.target.value)} onKeyDown=${onKey}></textarea>
      <${Button} kind="main" type="submit" busy=${busy} disabled=${Boolean(cannot)} title=${isWaiting ? t("The previous turn has not ended.") : why || undefined}>${t("Send")}<//>
    </div>
    <details class="composer-limits"><summary>${t("Limits of a turn")}</summary><div class="row">
      ${limit("max_tokens", t("Most tokens"))} ${limit("max_tool_calls", t("Most calls"))}</div></details>
  </form>`;
}

/** Let a field of text be as high as its text, up to what its style allows. */
function fit(area) {
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight + 2}px`;
}
