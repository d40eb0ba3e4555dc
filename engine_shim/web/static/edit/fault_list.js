// All faults of the definition, each a link to the field that it is about.

import { html } from "../vendor/preact.js";
import { show } from "../kit/text.js";
import { count, t } from "../kit/words.js";

/** How it stands with the definition, in a line that is always there. */
export function FaultSummary({ faults, check, unreadable }) {
  const bad = faults.filter(({ kind }) => kind === "bad").length;
  const warn = faults.length - bad;
  const told = [bad && count(bad, "{n} fault", "{n} faults"), warn && count(warn, "{n} warning", "{n} warnings")].filter(Boolean).join(", ");
  const tone = bad || unreadable ? "bad" : warn ? "warn" : check.answer ? "good" : "plain";
  const text = check.error ? t("It cannot be checked: {why}", { why: show(check.error.message) }) : told || (check.answer ? t("No faults") : t("Checking…"));
  return html`<span class=${`badge ${check.error ? "warn" : tone} ${check.isCurrent ? "" : "stale"}`} role="status">${text}</span>`;
}

/** The list. `onGo(fault)` goes to what a fault is about. */
export function FaultList({ faults, edges, onGo }) {
  if (!faults.length) return null;
  return html`<ul class="fault-list" aria-label=${t("Faults")}>
    ${faults.map((each, at) => html`<li key=${at} class=${each.kind}>
      <button type="button" class="fault-link" onClick=${() => onGo(each)}>
        <span class="fault-place">${show(placeOf(each, edges))}</span><span class="fault-text">${each.kind === "warn" && html`<span class="soft">${t("warning")}: </span>`}${show(each.message)}</span>
      </button></li>`)}
  </ul>`;
}

function placeOf({ path, node, line }, edges) {
  const edge = path[0] === "edges" ? edges.find(({ index }) => index === path[1]) : null;
  const inside = edge ? [`${edge.from} → ${edge.to}`, ...path.slice(2)] : path[0] === "nodes" && node ? [node, ...path.slice(2)] : path;
  return [inside.join(" › "), line && t("line {n}", { n: line })].filter(Boolean).join(" · ");
}
