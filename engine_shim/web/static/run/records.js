// The records behind a step, as they stand in the journal, with the hash of each.

import { html } from "../vendor/preact.js";
import { Block } from "../kit/value.js";
import { show } from "../kit/text.js";

/** The records of a step. `rowOf` gives the row of a strand and a number. */
export function Records({ refs, rowOf }) {
  return refs.map(({ strand, n }) => html`<${Record} key=${`${strand}:${n}`} row=${rowOf(strand, n)} />`);
}

function Record({ row }) {
  if (!row) return null;
  return html`<div class="record">
    <p><code>${show(`${row.strand}:${row.n}`)}</code> <span class="soft">${show(row.record.kind)}</span> <code class="soft">${row.hash}</code></p>
    <${Block} value=${row.record} />
  </div>`;
}
