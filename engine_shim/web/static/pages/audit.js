// Verify and replay many runs, as they are or as another policy would have judged them.

import { html, useState } from "../vendor/preact.js";
import { sameJson } from "../kit/json.js";
import { Button, Failure, Notice } from "../kit/parts.js";
import { go, link } from "../kit/router.js";
import { count, number, t } from "../kit/words.js";
import { save } from "./audit/download.js";
import { AuditHead } from "./audit/head.js";
import { startAudit, stopAudit, useAudit } from "./audit/job.js";
import { PolicyForm } from "./audit/policy_form.js";
import { readPolicy, readTerm, writeTerm } from "./audit/policy_text.js";
import { Counts, VerdictList } from "./audit/verdict_list.js";
import { asCsv, asJson, VERDICTS } from "./audit/verdicts.js";
import { FilterBar } from "./runs/filter_bar.js";
import { readFilters } from "./runs/filters.js";

const NAMES = ["workflow", "since", "status"];

export function AuditPage({ query }) {
  const { status, workflow, since } = readFilters(query);
  const filters = { status, workflow, since };
  const [form, setForm] = useState(() => readTerm(query.get("policy")));
  const { policy, fault } = readPolicy(form);
  const verdict = VERDICTS.includes(query.get("verdict")) ? query.get("verdict") : "";
  const job = useAudit();
  const move = (change) => go(link("audit", { ...filters, policy: writeTerm(fault ? null : policy), verdict, ...change }), { replace: true });
  const narrow = ({ status = filters.status, workflow = filters.workflow, since = filters.since }) => move({ status, workflow, since });
  const change = (next) => {
    setForm(next);
    const read = readPolicy(next);
    if (!read.fault) move({ policy: writeTerm(read.policy) });
  };
  const isAtWork = job?.state === "seeking" || job?.state === "running";
  const start = () => (move({ verdict: "" }), startAudit(filters, policy));
  return html`<${AuditHead} view="runs" filters=${filters} />
    <p class="soft audit-about">${t("The records of each run that fits are verified, and its decisions are made again by the same rules, offline.")}</p>
    <${FilterBar} filters=${{ ...filters, text: "", reason: "", tool: "" }} names=${NAMES} onChange=${narrow} />
    <${PolicyForm} form=${form} fault=${fault} onForm=${change} />
    <div class="row audit-start">
      <${Button} kind="main" disabled=${isAtWork || Boolean(fault)} onClick=${start}>${t("Verify and replay")}<//>
      <${Button} disabled=${!isAtWork} onClick=${stopAudit}>${t("Stop")}<//>
      ${job && html`<${Progress} job=${job} />`}
    </div>
    ${job && !sameJson([job.filters, job.policy], [filters, policy]) && html`<${Notice} tone="wait" live title=${t("What is below was checked with other filters or another policy: verify and replay again for those above.")} />`}
    ${job && html`<${Found} job=${job} verdict=${verdict} onVerdict=${(chosen) => move({ verdict: chosen })} />`}`;
}

function Progress({ job }) {
  const [done, all] = [job.rows.length, job.runs.length];
  const texts = {
    seeking: t("Looking for the runs…"),
    running: t("{n} of {m} runs", { n: number(done), m: number(all) }),
    stopped: t("Stopped after {n} of {m} runs", { n: number(done), m: number(all) }),
    done: count(all, "{n} run is checked", "{n} runs are checked"),
    failed: t("Ended after {n} of {m} runs", { n: number(done), m: number(all) }),
  };
  return html`<span class="audit-progress"><progress max=${Math.max(1, all)} value=${job.state === "seeking" ? 0 : all === 0 ? 1 : done} aria-label=${t("Progress")}></progress>
    <span class="soft" role="status">${texts[job.state]}</span></span>`;
}

/** How many decisions of all runs another policy changes. */
function describeChanges(rows) {
  const sum = (name) => rows.reduce((all, row) => all + (row[name] ?? 0), 0);
  return t("{n} of {m} decisions change under this policy", { n: number(sum("changed_decisions")), m: number(sum("decisions")) });
}

function Found({ job, verdict, onVerdict }) {
  if (job.error) return html`<${Failure} error=${job.error} />`;
  if (job.state === "done" && job.runs.length === 0) return html`<${Notice} title=${t("No run fits these filters.")} />`;
  if (job.rows.length === 0) return null;
  const shown = verdict ? job.rows.filter((row) => row.verdict === verdict) : job.rows;
  const name = `audit-${new Date().toISOString().slice(0, 10)}`;
  return html`<div class="page-head"><${Counts} rows=${job.rows} chosen=${verdict} onChoose=${onVerdict} />
      <span class="row audit-saves"><${Button} kind="quiet small" onClick=${() => save(`${name}.csv`, asCsv(shown), "text/csv")}>${t("Save as CSV")}<//>
      <${Button} kind="quiet small" onClick=${() => save(`${name}.json`, asJson(shown, job.policy), "application/json")}>${t("Save as JSON")}<//></span></div>
    ${job.policy && html`<p class="soft" role="status">${describeChanges(job.rows)}</p>`}
    <${VerdictList} rows=${shown} withPolicy=${job.policy !== null} />`;
}
