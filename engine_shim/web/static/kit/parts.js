// The small parts that all pages are made of.

import { Fragment, html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { own } from "./own.js";
import { Problem } from "./problem.js";
import { show } from "./text.js";
import { moment, t } from "./words.js";

const TONES = {
  completed: "good", final: "good", ok: "good", identical: "good",
  failed: "bad", model_error: "bad", tool_error: "bad", damaged: "bad", diverged: "bad", unreadable: "bad",
  waiting: "wait", awaiting_approval: "wait", awaiting_event: "wait", in_doubt: "wait", paused: "wait", changed: "wait", unfinished: "wait",
  running: "live", pending: "live",
  cancelled: "plain",
};

/** The tone of a status, a finish reason or a verdict: good, bad, wait, live, warn or plain. */
export const toneOf = (word) => own(TONES, word) ?? (word ? "warn" : "plain");

/** A word in a pill, coloured by what it means. */
export function Badge({ word, tone, title }) {
  return html`<span class="badge ${tone ?? toneOf(word)}" title=${title}>${show(t(word))}</span>`;
}

/** A button. `kind` is plain, main, good, bad or quiet; `busy` shows that it is at work. */
export function Button({ kind = "plain", busy = false, disabled = false, type = "button", class: more = "", children, ...rest }) {
  return html`<button type=${type} class="button ${kind} ${more}" disabled=${disabled || busy} aria-busy=${busy || undefined} ...${rest}>
    ${children}
  </button>`;
}

/** A message in a frame. `tone` is bad, wait, good or plain. */
export function Notice({ tone = "plain", title, children, live = false }) {
  return html`<div class="notice ${tone}" role=${tone === "bad" ? "alert" : live ? "status" : undefined}>
    ${title && html`<p class="notice-title">${title}</p>`} ${children}
  </div>`;
}

/** What went wrong, as a person can act on it. */
export function Failure({ error, again }) {
  if (!error) return null;
  const status = error instanceof Problem && error.status ? ` (${error.status})` : "";
  const faults = (error.errors ?? []).filter((each) => each.message !== error.message);  // else the title says it
  return html`<${Notice} tone="bad" title=${show(error.message) + status}>
    ${faults.length > 0 && html`<ul>${faults.map((each) => html`<li><code>${show(each.where ?? "")}</code> ${show(each.message ?? "")}</li>`)}</ul>`}
    ${again && html`<div><${Button} onClick=${again}>${t("Try again")}<//></div>`}
  <//>`;
}

/** What is within it. Where that cannot be drawn, it says so, with what is shown `instead`; it is tried again at another
 *  place, `at`. */
export function Guard({ at, instead = null, children }) {
  const [error, setError] = useState(null);
  this.componentDidCatch = (caught) => (console.error(caught), setError(caught));
  useEffect(() => setError(null), [at]);
  if (error === null) return children;
  return html`<${Notice} tone="bad" title=${t("This part cannot be shown.")}><p>${show(error.message)}</p><div><${Button} onClick=${() => setError(null)}>${t("Try again")}<//></div><//>${instead}`;
}

/** That a page is being fetched; it shows only when that takes a while. */
export const Loading = () => html`<p class="loading" role="status">${t("Loading…")}</p>`;

/** A field with its label, help and fault. `children` is the control, which gets the ids by `render(props)`. */
export function Field({ label, help, fault, render, inline = false }) {
  const id = useId();
  const described = [help && `${id}-help`, fault && `${id}-fault`].filter(Boolean).join(" ") || undefined;
  return html`<div class="field ${inline ? "inline" : ""} ${fault ? "faulty" : ""}">
    <label for=${id}>${label}</label>
    ${render({ id, "aria-describedby": described, "aria-invalid": fault ? "true" : undefined })}
    ${help && html`<p class="help" id="${id}-help">${help}</p>`}
    ${fault && html`<p class="fault" id="${id}-fault" role="alert">${show(fault)}</p>`}
  </div>`;
}

let ids = 0;
/** An id that no other part of the page has. */
export function useId() {
  const kept = useRef(null);
  kept.current ??= `i${(ids += 1)}`;
  return kept.current;
}

/** A dialog over the page. It closes by Escape and by `onClose`, unless that is null, and gives the focus back to where it was. */
export function Dialog({ title, onClose, wide = false, children }) {
  const box = useRef(null);
  const id = useId();
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.isConnected && before.focus();
  }, []);
  return html`<dialog ref=${box} class="dialog ${wide ? "wide" : ""}" aria-labelledby=${id}
    onCancel=${(event) => (event.preventDefault(), onClose?.())}>
    <header><h2 id=${id}>${title}</h2>${onClose && html`<${Button} kind="quiet" aria-label=${t("Close")} onClick=${onClose}>✕<//>`}</header>
    <div class="dialog-body">${children}</div>
  </dialog>`;
}

/** Tabs: `tabs` are [key, label]; the arrow keys move among them. */
export function Tabs({ tabs, chosen, onChoose, label }) {
  const list = useRef(null);
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = (tabs.findIndex(([key]) => key === chosen) + step + tabs.length) % tabs.length;
    onChoose(tabs[at][0]);
    list.current.children[at].focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} ref=${list} onKeyDown=${move}>
    ${tabs.map(([key, text]) => html`<button type="button" role="tab" key=${key} aria-selected=${key === chosen ? "true" : "false"}
      tabindex=${key === chosen ? 0 : -1} onClick=${() => onChoose(key)}>${text}</button>`)}
  </div>`;
}

/** A moment, with its full text on hover. */
export const Time = ({ at, day }) => (at ? html`<time datetime=${at} title=${at}>${moment(at, { day })}</time>` : null);

/** A button that copies a text, and says that it did. */
export function Copy({ text, label }) {
  const [done, setDone] = useState(false);
  if (!navigator.clipboard) return null;
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    announce(t("Copied"));
    setTimeout(() => setDone(false), 1500);
  };
  return html`<${Button} kind="quiet small" onClick=${copy}>${done ? t("Copied") : (label ?? t("Copy"))}<//>`;
}

/** What is asked of the server for a page: {data, error, load}. It asks again when one of `inputs` changes; the answer to
 *  an earlier question never takes the place of a later one's. */
export function useAnswer(question, inputs) {
  const [state, setState] = useState({ data: null, error: null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const control = new AbortController();
    question(control.signal).then(
      (data) => control.signal.aborted || setState({ data, error: null }),
      (error) => control.signal.aborted || setState((before) => ({ data: before.data, error })),
    );
    return () => control.abort();
  }, [...inputs, turn]);
  return { ...state, load: () => setTurn((before) => before + 1) };
}

/** An act that the user asks for: {act, busy, error}. A second one waits for the first to end. */
export function useAct(work) {
  const [state, setState] = useState({ busy: false, error: null });
  const isBusy = useRef(false);
  const act = async (...args) => {
    if (isBusy.current) return undefined;
    isBusy.current = true;
    setState({ busy: true, error: null });
    try {
      const done = await work(...args);
      setState({ busy: false, error: null });
      return done;
    } catch (error) {
      setState({ busy: false, error });
      return undefined;
    } finally {
      isBusy.current = false;
    }
  };
  return { ...state, act, forget: () => setState({ busy: false, error: null }) };
}

/** Say something to those who listen to the page instead of looking at it. */
export function announce(text) {
  const region = document.getElementById("announcements");
  if (region) region.textContent = text;
}

export { Fragment };
