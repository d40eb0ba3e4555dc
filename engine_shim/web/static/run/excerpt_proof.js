// What an excerpt proves, in words, and where its reader gives the public key that they trust.

import { html, useState } from "../vendor/preact.js";
import { Button, Field, Notice, Time } from "../kit/parts.js";
import { show } from "../kit/text.js";
import { count, number, t } from "../kit/words.js";
import { readKeys } from "../proof/ed25519.js";
import { Fault } from "../proof/fault.js";

const PARTS = { excerpt: "the file", seal: "the seal", records: "a record", ledger: "the log", page: "the page" };

/** The verdict on an excerpt. */
export function ExcerptProof({ verdict }) {
  const { ok, isSigned, part, why, run, shown, count: all, kid, at, hasTimestamp, log } = verdict;
  if (!ok)
    return html`<${Notice} tone="bad" title=${t("Not proven: do not rely on anything below.")}>
      <p class="fault">${t(PARTS[part])}: ${show(t(why))}</p><//>`;
  return html`<${Notice} tone=${isSigned ? "good" : "wait"} live=${true} title=${sayProven(verdict)}>
    <dl class="facts excerpt-facts">
      <div><dt>${t("run")}</dt><dd><code>${show(run)}</code></dd></div>
      <div><dt>${t("shown")}</dt><dd>${t("{shown} of {all} records", { shown: number(shown), all: number(all) })}</dd></div>
      <div><dt>${t("sealed by")}</dt><dd><code>${show(kid)}</code></dd></div>
      <div><dt>${t("sealed at")}</dt><dd><${Time} at=${at} day="always" /></dd></div>
      <div><dt>${t("log")}</dt><dd>${log === null ? t("none is named") : html`<code>${show(log.origin)}</code> (${count(log.size, "{n} entry", "{n} entries")})`}</dd></div>
      ${log !== null && html`<div><dt>${t("in the log as")}</dt><dd>${show(t(log.status ?? "—"))}</dd></div>`}
    </dl>
    <p class="help">${t("Of the other records it tells nothing but how many there are. That the time is right, the signer says.")}
      ${hasTimestamp && html` ${t("There is a timestamp of an authority (RFC 3161), which this page does not check: agent-core verify does.")}`}</p>
    <p class="help">${t("Whoever sends a page may have written it. If you do not trust them, save the excerpt, and check it by a program that you have from elsewhere: agent-core verify, or verify_evidence.py.")}</p>
  <//>`;
}

function sayProven({ isSigned, kid, log }) {
  if (!isSigned) return show(t("Consistent; signed by {key}, not checked against a key you trust", { key: kid }));
  return log === null
    ? t("Proven: these records stand in this run, in this place, under a key that you trust.")
    : t("Proven: these records stand in this run, in this place, in this log, under a key that you trust.");
}

/** Where the reader gives public keys, by a file or as a text. `kid` is the key that the seal names. */
export function KeyForm({ keys, onKeys, kid }) {
  const [text, setText] = useState("");
  const [fault, setFault] = useState("");
  const read = (given) => {
    setText(given);
    try {
      onKeys(given.trim() === "" ? null : readKeys(given));
      setFault("");
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      onKeys(null);
      setFault(t(error.message));
    }
  };
  const choose = async (event) => {
    const [file] = event.target.files;
    if (file) read(await file.text());
  };
  return html`<section class="key-form">
    <h2>${t("Public keys that you trust")}</h2>
    <p class="help">${t("Take them from the signer by another way than this file, such as FILE.pub of agent-core key show. Nothing is sent or kept.")}
      ${kid !== null && html` ${t("The seal names")} <code>${show(kid)}</code>.`}</p>
    <div class="row"><input type="file" aria-label=${t("A file of public keys")} onChange=${choose} />
      ${text !== "" && html`<${Button} kind="quiet small" onClick=${() => read("")}>${t("Forget them")}<//>`}</div>
    <${Field} label=${t("Or as a text")} fault=${fault} render=${(props) => html`<textarea ...${props} class="code" rows="3" spellcheck="false" autocomplete="off" placeholder="-----BEGIN PUBLIC KEY-----" value=${text} onInput=${(event) => read(event.target.value)} />`} />
    ${keys !== null && html`<p class="soft" role="status">${t("Keys given")}: ${[...keys.keys()].map((each) => html`<code>${each}</code> `)}</p>`}
  </section>`;
}
