// The auditor's report of the runs since a time, which the server makes when it is asked.

import { html } from "../../vendor/preact.js";
import { address, ask, LONG_S } from "../../kit/api.js";
import { Button, Failure, Loading, useAct, useAnswer } from "../../kit/parts.js";
import { go, link } from "../../kit/router.js";
import { t } from "../../kit/words.js";
import { ReportView } from "../../report/report_view.js";
import { FilterBar } from "../runs/filter_bar.js";
import { asQuery, readFilters } from "../runs/filters.js";
import { save } from "./download.js";
import { AuditHead } from "./head.js";

export function ReportPage({ query }) {
  const { workflow, since } = readFilters(query);
  const asked = () => asQuery({ workflow, since }, Date.now());
  const { data, error, load } = useAnswer(async (signal) => ({ of: `${workflow} ${since}`, report: await ask(address("report", asked()), { signal, limit: LONG_S }) }), [workflow, since]);
  const saving = useAct(async () => {
    const { text } = await ask(address("report/page", asked()), { as: "text", limit: LONG_S });
    save(`report-${new Date().toISOString().slice(0, 10)}.html`, text, "text/html");
  });
  const narrow = (change) => go(link(["audit", "report"], { workflow, since, ...change }), { replace: true });
  const report = data?.of === `${workflow} ${since}` ? data.report : null;
  return html`<${AuditHead} view="report" filters=${{ workflow, since }} />
    <p class="soft audit-about">${t("What the records say, as facts: each table has the command that shows the same on the host.")}</p>
    <${FilterBar} filters=${{ workflow, since, status: [], text: "", reason: "", tool: "" }} names=${["workflow", "since"]} onChange=${narrow} />
    <div class="row audit-start"><${Button} onClick=${load}>${t("Make it again")}<//>
      <${Button} busy=${saving.busy} onClick=${saving.act}>${t("Save as a page")}<//></div>
    <${Failure} error=${saving.error ?? error} />
    ${report ? html`<${ReportView} report=${report} />` : !error && html`<${Loading} />`}`;
}
