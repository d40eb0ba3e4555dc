// What if another policy had been in force: the recorded run judged again, side by side with how it was.

import { html, useMemo, useState } from "../vendor/preact.js";
import { ask, LONG_S } from "../kit/api.js";
import { writeJson } from "../kit/json.js";
import { Badge, Button, Failure, Field, Notice, useAct } from "../kit/parts.js";
import { own } from "../kit/own.js";
import { show } from "../kit/text.js";
import { count, number, t } from "../kit/words.js";
import { nameOfStrand } from "./strands.js";
import { readAgents, toolOf, writePolicy } from "./policy.js";

const LIMITS = [
  ["max_steps", "Steps", "steps"],
  ["max_tool_calls", "Calls", "tool_calls"],
  ["total_token_budget", "Tokens", "tokens"],
  ["cost_budget", "Cost in USD", "cost"],
  ["timeout", "Seconds", "seconds"],
];
const TONES = { run: "good", wait: "wait", refuse: "bad" };

/** A form for another policy, and which decisions it would have changed. */
export function WhatIf({ run, rows, hrefOf }) {
  const agents = useMemo(() => readAgents(rows), [rows]);
  const [form, setForm] = useState({ strand: "", denied: [], limits: {}, approval: "", afterUntrusted: "", narrowing: "" });
  const [result, setResult] = useState(null);
  const [faults, setFaults] = useState({});
  const set = (change) => setForm((before) => ({ ...before, ...change }));
  const { act, busy, error } = useAct((policy) => ask(`runs/${encodeURIComponent(run)}/replay`, { body: { policy, ...(form.strand ? { strand: form.strand } : {}) }, limit: LONG_S }));
  if (agents.length === 0) return html`<p class="soft">${t("No agent ran here: a policy has nothing to judge.")}</p>`;
  const judge = async (event) => {
    event.preventDefault();
    const { policy, faults: found } = writePolicy(form);
    setFaults(found);
    if (Object.keys(found).length === 0) setResult((await act(policy)) ?? null);
  };
  return html`<form class="stack what-if" onSubmit=${judge}>
    <p class="help">${t("The run is judged again, offline, as if this had been its policy. Nothing is called.")}</p>
    ${agents.length > 1 && html`<${Field} label=${t("Agent")} render=${(props) => html`<select ...${props} value=${form.strand} onChange=${(event) => set({ strand: event.target.value })}>
      <option value="">${t("all")}</option>${agents.map((each) => html`<option value=${each.strand}>${nameOfStrand(each.strand)}</option>`)}</select>`} />`}
    <${Tools} agents=${agents} denied=${form.denied} onChange=${(denied) => set({ denied })} />
    <div class="limits">${LIMITS.map(([key, label, limit]) => html`<${Field} key=${key} label=${t(label)} fault=${faults[key]} render=${(props) => html`<input ...${props} type="text" inputmode="decimal" autocomplete="off"
      placeholder=${String(agents[0].limits[limit] ?? "∞")} value=${form.limits[key] ?? ""} onInput=${(event) => set({ limits: { ...form.limits, [key]: event.target.value } })} />`} />`)}</div>
    <div class="limits">
      <${Choice} label=${t("Approval")} value=${form.approval} options=${["always", "on_write", "on_unproven", "never"]} onChange=${(approval) => set({ approval })} />
      <${Choice} label=${t("Writes after untrusted text")} value=${form.afterUntrusted} options=${["run", "ask", "refuse"]} onChange=${(afterUntrusted) => set({ afterUntrusted })} />
    </div>
    <details><summary>${t("Whitelist and narrowing as JSON")}</summary>
      <${Field} label="allowed_tools" fault=${faults.allowed_tools} help=${t("The whole list replaces the recorded one.")} render=${(props) => html`<textarea ...${props} class="code" rows="5" spellcheck=${false}
        placeholder=${writeJson(agents[0].tools)} value=${form.narrowing} onInput=${(event) => set({ narrowing: event.target.value })}></textarea>`} />
    </details>
    <div class="row"><${Button} kind="main" type="submit" busy=${busy}>${t("Judge again")}<//></div>
    <${Failure} error=${error} />
    ${result && html`<${Outcome} result=${result} hrefOf=${hrefOf} />`}
  </form>`;
}

function Tools({ agents, denied, onChange }) {
  const names = [...new Set(agents.flatMap((each) => each.offered))].sort();
  const toggle = (name) => onChange(denied.includes(name) ? denied.filter((each) => each !== name) : [...denied, name]);
  return html`<fieldset class="checks"><legend>${t("Whitelist")}</legend>
    ${names.map((name) => html`<label key=${name}><input type="checkbox" checked=${!denied.includes(name)} onChange=${() => toggle(name)} /> <code>${show(name)}</code></label>`)}
    ${names.length === 0 && html`<span class="soft">${t("none")}</span>`}
  </fieldset>`;
}

function Choice({ label, value, options, onChange }) {
  return html`<${Field} label=${label} render=${(props) => html`<select ...${props} value=${value} onChange=${(event) => onChange(event.target.value)}>
    <option value="">${t("as recorded")}</option>${options.map((each) => html`<option value=${each}>${each}</option>`)}</select>`} />`;
}

function Outcome({ result, hrefOf }) {
  const { outcome, decisions, why } = result;
  const changed = decisions.filter(({ recorded, now }) => recorded !== now);
  const title = outcome === "identical" ? t("Nothing would have changed.") : outcome === "outlived" ? t("The run would have continued where it ended.") : count(changed.length, "{n} decision would have changed.", "{n} decisions would have changed.");
  return html`<${Notice} tone=${outcome === "identical" ? "good" : "wait"} title=${title} live=${true}>${why && html`<p>${show(why)}</p>`}<//>
    <div class="scroll-x"><table class="table side-by-side">
      <thead><tr><th>${t("Call")}</th><th>${t("Tool")}</th><th>${t("As it was")}</th><th>${t("Under this policy")}</th><th>${t("Why")}</th></tr></thead>
      <tbody>${decisions.map((each) => html`<tr class=${each.recorded === each.now ? "same" : "changed"} key=${`${each.strand}:${each.n}:${each.tool}`}>
        <td><a href=${hrefOf(each)}>${show(`${nameOfStrand(each.strand)}:${number(each.n)}`)}</a></td>
        <td><code>${show(toolOf(each))}</code></td>
        <td><${Badge} word=${each.recorded} tone=${own(TONES, each.recorded)} /></td>
        <td><${Badge} word=${each.now} tone=${own(TONES, each.now)} />${each.counterfactual && html` <span class="soft">${t("would not have been reached")}</span>`}</td>
        <td>${show(each.why ?? "")}</td>
      </tr>`)}</tbody>
    </table></div>`;
}
