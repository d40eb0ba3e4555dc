// The tools: what there is, from where, who uses it, and what changed since it was approved.

import { html } from "../vendor/preact.js";
import { ask } from "../kit/api.js";
import { Failure, Loading, useAnswer } from "../kit/parts.js";
import { t } from "../kit/words.js";
import { Changes, LookButton, useChanges } from "./tools/changes.js";
import { ToolList } from "./tools/tool_list.js";
import { ToolPage } from "./tools/tool_page.js";

export function ToolsPage({ code, query, me }) {
  const { data, error, load } = useAnswer((signal) => ask("tools", { signal }), []);
  const changes = useChanges();
  if (!data) return error ? html`<${Failure} error=${error} again=${load} />` : html`<${Loading} />`;
  if (code !== undefined) return html`<${ToolPage} tools=${data.tools} code=${code} me=${me} />`;
  return html`<div class="page-head"><h1>${t("Tools")}</h1><${LookButton} changes=${changes} me=${me} /></div>
    <${Failure} error=${error} again=${load} />
    <${Changes} changes=${changes} onApproved=${load} />
    <${ToolList} tools=${data.tools} query=${query} />`;
}
