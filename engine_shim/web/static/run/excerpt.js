// An excerpt of a run as one file: some of its records, shown and proved by the file's own script, against a key that its
// reader has from elsewhere.

import { html, render, useMemo, useState } from "../vendor/preact.js";
import { Guard } from "../kit/parts.js";
import { count, t } from "../kit/words.js";
import { readRows, verifyExcerpt } from "../proof/excerpt.js";
import { ExcerptProof, KeyForm } from "./excerpt_proof.js";
import { hrefOfRecord, hrefOfText, LanguageChoice, readHash } from "./exported_parts.js";
import { openExported } from "./page_parts.js";
import { indexItems, readSteps } from "./steps.js";
import { Timeline } from "./timeline.js";

/** Show the excerpt that this page holds, and what it proves. */
export const openPage = () => openExported("excerpt", (box, text, isAsWritten) => render(html`<${Excerpt} text=${text} isAsWritten=${isAsWritten} />`, box));

function Excerpt({ text, isAsWritten }) {
  const [, redraw] = useState(0);
  const [at, setAt] = useState(readHash);
  const [keys, setKeys] = useState(null);
  const verdict = useMemo(() => judge(text, keys, isAsWritten), [text, keys, isAsWritten]);
  const rows = useMemo(() => readRows(text), [text]);
  const file = useMemo(() => hrefOfText(text, "application/json"), [text]);
  onhashchange = () => setAt(readHash());
  return html`<main class="alone-run">
    <header class="run-head"><div class="page-head"><h1>${t("Excerpt of a run")}</h1>
      <a class="button" download="${verdict.run ?? "run"}.json" href=${file}>${t("The excerpt")}</a>
      <${LanguageChoice} onChoose=${() => redraw((n) => n + 1)} /></div></header>
    <${ExcerptProof} verdict=${verdict} />
    <${KeyForm} keys=${keys} onKeys=${setKeys} kid=${verdict.kid ?? null} />
    <section class="run-main"><h2>${count(rows.length, "{n} record is shown", "{n} records are shown")}</h2>
      <p class="help">${t("A step says what its shown records say: where a call runs or waits, its answer may be among the others.")}</p>
      <${Guard} at=${at}><${Shown} rows=${rows} at=${at} /><//>
    </section>
  </main>`;
}

/** What the excerpt proves, and whether the page that holds it is as it was written. */
function judge(text, keys, isAsWritten) {
  const verdict = verifyExcerpt(text, keys);
  return isAsWritten || !verdict.ok ? verdict : { ...verdict, ok: false, part: "page", why: "this page is not as it was written" };
}

function Shown({ rows, at }) {
  const items = useMemo(() => readItems(rows), [rows]);
  const places = new Map(rows.map((row) => [`${row.strand}:${row.n}`, row]));
  const context = { bad: new Set(), hrefOf: hrefOfRecord, rowOf: (strand, n) => places.get(`${strand}:${n}`), deltaOf: () => null };
  return html`<${Timeline} items=${items} focus=${indexItems(items).get(at) ?? -1} context=${context} />`;
}

/** The steps that the records tell of. Records that are none of ours may say anything: then each is shown by itself. */
function readItems(rows) {
  try {
    return readSteps(rows);
  } catch {
    return readSteps(rows.map((row) => ({ ...row, record: { kind: "unreadable", text: row.raw } })));
  }
}
