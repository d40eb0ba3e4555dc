// Steps of a run that a person ticks, to show them to a stranger: the excerpt of their records, as a file.

import { html, useState } from "../vendor/preact.js";
import { ask, LONG_S } from "../kit/api.js";
import { Button, Failure, useAct } from "../kit/parts.js";
import { show } from "../kit/text.js";
import { count, t } from "../kit/words.js";
import { download } from "./run_actions.js";

/** What a person has ticked: {chosen, toggle, start, stop}; `chosen` has the places ("strand:n") of steps, and is null while
 *  none are chosen at all. */
export function useChoice() {
  const [chosen, setChosen] = useState(null);
  const toggle = (place) => setChosen((before) => (before.has(place) ? new Set([...before].filter((each) => each !== place)) : new Set([...before, place])));
  return { chosen, toggle, start: () => setChosen(new Set()), stop: () => setChosen(null) };
}

export const placeOf = ({ strand, n }) => `${strand}:${n}`;

/** The box of a step. */
export function Tick({ item, choice }) {
  const place = placeOf(item);
  if (choice.chosen === null || !item.refs.some(isSealed)) return null;
  return html`<label class="check"><input type="checkbox" checked=${choice.chosen.has(place)} onChange=${() => choice.toggle(place)}
    aria-label=${show(t("Show {place} in the excerpt", { place }))} /> ${t("show")}</label>`;
}

/** The button that begins the choice, in a run whose last seal names the tree over its records. */
export function ChoiceButton({ rows, choice }) {
  const seal = rows.findLast(({ strand }) => strand === "seal");
  if (choice.chosen !== null || !seal?.record.root) return null;
  return html`<${Button} class="small" title=${t("Some steps for a stranger, proven, and nothing of the others")} onClick=${choice.start}>${t("Excerpt…")}<//>`;
}

/** The bar above the steps while they are chosen: how much is, and what saves the excerpt. */
export function ChoiceBar({ run, items, choice }) {
  const { act, busy, error } = useAct(async (format) => {
    const query = new URLSearchParams([...rangesOf(chosen).map((each) => ["records", each]), ["format", format]]);
    const { text } = await ask(`runs/${encodeURIComponent(run)}/excerpt?${query}`, { as: "text", limit: LONG_S });
    download(text, `${run}.${format === "html" ? "excerpt.html" : "json"}`);
  });
  if (choice.chosen === null) return null;
  const chosen = items.filter((item) => choice.chosen.has(placeOf(item)));
  const records = chosen.flatMap((item) => item.refs).filter(isSealed).length;
  return html`<div class="excerpt-bar" role="group" aria-label=${t("Excerpt")}>
    <p>${t("Tick the steps that a stranger may see. The file proves them, and tells nothing of the others but how many records there are.")}</p>
    <div class="row">
      <span role="status">${count(records, "{n} record is chosen", "{n} records are chosen")}</span>
      <${Button} kind="main" busy=${busy} disabled=${records === 0} onClick=${() => act("html")}>${t("Save as HTML")}<//>
      <${Button} busy=${busy} disabled=${records === 0} onClick=${() => act("json")}>${t("Save as JSON")}<//>
      <${Button} kind="quiet" onClick=${choice.stop}>${t("Leave it")}<//>
    </div>
    <${Failure} error=${error} />
  </div>`;
}

/** Signatures are in no excerpt as a record: the seal is in each. */
const isSealed = ({ strand }) => strand !== "seal";

/** The records of some steps as the API takes them: "strand:n", or "strand:n-m" for those that follow each other. */
export function rangesOf(items) {
  const places = items.flatMap((item) => item.refs).filter(isSealed).sort((a, b) => (a.strand === b.strand ? a.n - b.n : a.strand < b.strand ? -1 : 1));
  const ranges = [];
  for (const { strand, n } of places) {
    const last = ranges.at(-1);
    if (last?.strand === strand && n <= last.end + 1) last.end = n;
    else ranges.push({ strand, begin: n, end: n });
  }
  return ranges.map(({ strand, begin, end }) => (begin === end ? `${strand}:${begin}` : `${strand}:${begin}-${end}`));
}
