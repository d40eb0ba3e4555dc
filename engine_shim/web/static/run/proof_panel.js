// Verify and replay of a run: by the server, and the chains once more by this page itself.

import { html, useState } from "../vendor/preact.js";
import { ask, LONG_S, Problem } from "../kit/api.js";
import { Badge, Button, Failure, Notice, useAct } from "../kit/parts.js";
import { show } from "../kit/text.js";
import { count, t } from "../kit/words.js";
import { readJournal, verifyJournal } from "../proof/journal.js";
import { Proof } from "./proof.js";
import { isBroken, sayWhatServerSays } from "./seal.js";

/** The proof of a run. `onBad` is told the records that are not what was written. */
export function ProofPanel({ run, onBad, hrefOf }) {
  const [own, setOwn] = useState(null);
  const path = `runs/${encodeURIComponent(run)}`;
  const verify = useAct(async () => {
    const verdict = await verifyHere(path);
    setOwn(verdict);
    onBad(new Set((verdict?.faults ?? []).map(({ strand, n }) => `${strand}:${n}`)));
    return ask(`${path}/verify`, { limit: LONG_S });
  });
  const replay = useAct(() => ask(`${path}/replay`, { body: {}, limit: LONG_S }));
  const [verified, setVerified] = useState(null);
  const [replayed, setReplayed] = useState(null);
  return html`<div class="stack proof">
    <div class="row">
      <${Button} kind="main" busy=${verify.busy} onClick=${async () => setVerified((await verify.act()) ?? null)}>${t("Verify")}<//>
      <${Button} busy=${replay.busy} onClick=${async () => setReplayed((await replay.act()) ?? null)}>${t("Replay")}<//>
    </div>
    <p class="help">${t("Verify checks that each record follows from the one before it. Replay runs the real loop on the records, offline, and compares every decision.")}</p>
    <${Failure} error=${verify.error ?? replay.error} />
    ${own && html`<h2>${t("Checked by this page")}</h2><${Proof} verdict=${own} />`}
    ${verified && html`<h2>${t("Verified by the server")}</h2><${Verified} verdict=${verified} hrefOf=${hrefOf} />`}
    ${replayed && html`<h2>${t("Replayed by the server")}</h2><${Replayed} replay=${replayed} hrefOf=${hrefOf} />`}
  </div>`;
}

/** What this page finds in the journal; null where the records cannot be read, which the server verifies alone. */
async function verifyHere(path) {
  try {
    const { text } = await ask(`${path}/journal`, { as: "text", limit: LONG_S });
    return verifyJournal(readJournal(text));
  } catch (error) {
    if (error instanceof Problem && error.kind === "unreadable") return null;
    throw error;
  }
}

/** What is said of records that cannot be read. */
const CONTENTS = { encrypted: "Its contents are encrypted, and cannot be read here.", erased: "Its contents were erased.", newer: "A newer version wrote this run, and only that can check it." };

function Verified({ verdict, hrefOf }) {
  const { ok, complete, head, count: records, first_bad: firstBad, why, seal, contents } = verdict;
  const isBad = Boolean(firstBad) || isBroken(seal) || (complete && !ok && contents !== "newer");
  const title = ok ? t("The records are whole.") : firstBad ? t("The records are not whole.") : isBad ? t("The records are not proven.") : contents === "newer" ? t("The records are not checked.") : t("The records are whole so far, and not finished.");
  return html`<${Notice} tone=${ok ? "good" : isBad ? "bad" : "wait"} title=${title} live=${true}>
    <p>${!CONTENTS[contents] && html`<${Badge} word=${complete ? "complete" : "not finished"} tone=${complete ? "good" : "wait"} />`} ${count(records, "{n} record", "{n} records")}</p>
    <p class="head-line">${t("head")} <code>${head}</code></p>
    <p>${t("seal")}: ${show(sayWhatServerSays(seal))}</p>
    ${CONTENTS[contents] && html`<p>${t(CONTENTS[contents])}</p>`}
    ${why && html`<p class=${isBad ? "fault" : ""}>${firstBad && html`<a href=${hrefOf(firstBad)}>${show(`${firstBad.strand}:${firstBad.n}`)}</a>: `}${show(t(why))}</p>`}
  <//>`;
}

function Replayed({ replay, hrefOf }) {
  const { outcome, steps, divergence, why } = replay;
  const good = outcome === "identical";
  return html`<${Notice} tone=${good ? "good" : outcome === "unfinished" || outcome === "erased" ? "wait" : "bad"} live=${true}
    title=${good ? t("The replay is identical: every decision came out the same.") : t(outcome)}>
    <p>${count(steps, "{n} step replayed", "{n} steps replayed")}</p>
    ${divergence && html`<p class="fault"><a href=${hrefOf(divergence)}>${show(`${divergence.strand}:${divergence.n}`)}</a> ${show(why ?? "")}</p>`}
    ${!divergence && why && html`<p>${show(why)}</p>`}
  <//>`;
}
