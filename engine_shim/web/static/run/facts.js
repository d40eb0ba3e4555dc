// A run in a few facts.

import { html } from "../vendor/preact.js";
import { Time } from "../kit/parts.js";
import { show } from "../kit/text.js";
import { duration, money, number, t } from "../kit/words.js";

/** Id, version, times, tokens and cost of a run. `linkOf` gives the address of another run, if it can be looked at. */
export function Facts({ run, summary, by = null, linkOf = null }) {
  const { forked, startedAt, endedAt } = summary;
  const lasted = startedAt && endedAt ? (Date.parse(endedAt) - Date.parse(startedAt)) / 1000 : null;
  const tokens = summary.tokensIn + summary.tokensOut;
  const facts = [
    [t("run"), html`<code>${show(run)}</code>`],
    [t("version"), summary.version && show(summary.version)],
    [t("by"), by && show(by)],
    [t("forked from"), forked && (linkOf ? html`<a href=${linkOf(forked.run)}>${show(forked.run)}</a>` : show(forked.run))],
    [t("began"), startedAt && html`<${Time} at=${startedAt} day="always" />`],
    [t("lasted"), lasted !== null && duration(lasted)],
    [t("models"), summary.modelSeconds > 0 && duration(summary.modelSeconds)],
    [t("tools"), summary.calls > 0 && `${duration(summary.toolSeconds)} (${number(summary.calls)})`],
    [t("tokens"), tokens > 0 && `${summary.estimated ? "≈ " : ""}${number(summary.tokensIn)} + ${number(summary.tokensOut)}`],
    [t("cost"), summary.cost !== null && money(summary.cost)],
  ];
  return html`<dl class="facts">${facts.filter(([, value]) => value).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}
