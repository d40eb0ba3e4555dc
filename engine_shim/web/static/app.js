// The page: who is signed in, where in it he is, and what is shown there.

import { html, render, useEffect, useRef, useState } from "./vendor/preact.js";
import { ask, onSignedOut, Problem, token } from "./kit/api.js";
import { Button, Dialog, Failure, Field, Guard, Loading, Notice, useAct, useAnswer } from "./kit/parts.js";
import { link, startRouter, usePlace } from "./kit/router.js";
import { LANGUAGES, language, setLanguage, t } from "./kit/words.js";
import { setTheme, theme } from "./kit/theme.js";
import { AuditPage } from "./pages/audit.js";
import { ReportPage } from "./pages/audit/report_page.js";
import { ChatPage } from "./pages/chat.js";
import { RunsPage } from "./pages/runs.js";
import { ToolsPage } from "./pages/tools.js";
import { WorkflowsPage } from "./pages/workflows.js";
import { EditPage } from "./edit/edit_page.js";
import { RunPage } from "./run/run_page.js";

const PLACES = [
  ["runs", "Runs", "M4 6h16M4 12h16M4 18h10"],
  ["workflows", "Workflows", "M5 4h6v5H5zM13 15h6v5h-6zM8 9v4a2 2 0 0 0 2 2h3"],
  ["chat", "Chat", "M4 5h16v11H9l-5 4z"],
  ["audit", "Audit", "M12 3l7 3v6c0 4-3 7-7 9-4-2-7-5-7-9V6zM9 12l2 2 4-4"],
  ["tools", "Tools", "M14 7a4 4 0 1 0-5 5L4 17l3 3 5-5a4 4 0 0 0 5-5l-3 1-1-1z"],
];

function App() {
  const [, redraw] = useState(0);
  const { data: me, error, load } = useAnswer((signal) => ask("me", { signal }), []);
  useEffect(() => {
    const again = () => redraw((n) => n + 1);
    addEventListener("languagechange", again);
    return () => removeEventListener("languagechange", again);
  }, []);
  useEffect(() => onSignedOut(load), []);
  const signIn = error instanceof Problem && error.status === 401 && html`<${SignIn} onDone=${load} wasWrong=${token.get() !== null} />`;
  if (signIn && !me) return html`<main class="alone"><h1><img src="static/icon.svg" alt="" width="28" height="28" /> agent-core</h1>${signIn}</main>`;
  if (error && !me) return html`<main class="alone"><${Failure} error=${error} again=${load} /></main>`;
  if (!me) return html`<main class="alone"><${Loading} /></main>`;
  return html`<${Shell} me=${me} onSignOut=${() => (token.forget(), location.reload())} onLanguage=${() => redraw((n) => n + 1)} />
    ${signIn && html`<${Dialog} title=${t("Sign in again")} onClose=${null}><p>${t("The page stays as it is.")}</p>${signIn}<//>`}`;
}

function Shell({ me, onSignOut, onLanguage }) {
  const { parts, query } = usePlace();
  const [place = "runs", ...below] = parts;
  const page = choosePage(place, below, query, me);
  useEffect(() => {
    const shown = place === "audit" && below[0] === "report" ? t("Report") : below[0];
    document.title = [shown, t(PLACES.find(([key]) => key === place)?.[1] ?? ""), "agent-core"].filter(Boolean).join(" · ");
  }, [place, below.join("/"), language()]);
  return html`<a class="skip" href="#main" onClick=${skipToMain}>${t("Skip to the content")}</a>
    <header class="bar">
      <a class="brand" href=${link("runs")}><img src="static/icon.svg" alt="" width="24" height="24" />agent-core</a>
      <nav aria-label=${t("Main")}>
        ${PLACES.map(([key, label, path]) => html`<a key=${key} href=${link(key)} aria-current=${key === place ? "page" : undefined}>
          <svg viewBox="0 0 24 24" aria-hidden="true"><path d=${path} /></svg><span>${t(label)}</span></a>`)}
      </nav>
      <${Settings} me=${me} onSignOut=${onSignOut} onLanguage=${onLanguage} />
    </header>
    <main id="main" tabindex="-1"><${Guard} at=${parts.join("/")}>${page ?? html`<${Notice} title=${t("There is no such page.")} />`}<//></main>
    <div id="announcements" class="unseen" aria-live="polite"></div>`;
}

function choosePage(place, below, query, me) {
  switch (place) {
    case "runs":
      return below.length ? html`<${RunPage} key=${below[0]} run=${below[0]} query=${query} me=${me} />` : html`<${RunsPage} query=${query} me=${me} />`;
    case "workflows":
      return below.length ? html`<${EditPage} key=${below[0]} name=${below[0]} query=${query} me=${me} />` : html`<${WorkflowsPage} query=${query} me=${me} />`;
    case "chat":
      return html`<${ChatPage} conversation=${below[0]} query=${query} me=${me} />`;
    case "audit":
      return below[0] === "report" ? html`<${ReportPage} query=${query} />` : html`<${AuditPage} query=${query} me=${me} />`;
    case "tools":
      return html`<${ToolsPage} code=${below[0]} query=${query} me=${me} />`;
    default:
      return null;
  }
}

function skipToMain(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

function Settings({ me, onSignOut, onLanguage }) {
  const [mode, setMode] = useState(theme());
  const choose = (event) => (setTheme(event.target.value), setMode(event.target.value));
  const box = useRef(null);
  useEffect(() => {
    const close = (event) => box.current.contains(event.target) || (box.current.open = false);
    addEventListener("pointerdown", close);
    return () => removeEventListener("pointerdown", close);
  }, []);
  const leave = (event) => event.key === "Escape" && ((box.current.open = false), box.current.firstElementChild.focus());
  return html`<details class="settings" ref=${box} onKeyDown=${leave}>
    <summary aria-label=${t("Settings")}>
      <svg viewBox="0 0 24 24" aria-hidden="true"><path d="M4 7h9M17 7h3M4 17h3M11 17h9" /><circle cx="15" cy="7" r="2" /><circle cx="9" cy="17" r="2" /></svg>
    </summary>
    <div class="settings-body">
      <p class="who">${me.is_open ? t("open to this machine") : me.name}${me.tenant ? ` · ${me.tenant}` : ""}</p>
      <${Field} label=${t("Language")} render=${(props) => html`<select ...${props} value=${language()}
        onChange=${(event) => (setLanguage(event.target.value), onLanguage())}>
        ${Object.entries(LANGUAGES).map(([key, name]) => html`<option value=${key}>${name}</option>`)}</select>`} />
      <${Field} label=${t("Appearance")} render=${(props) => html`<select ...${props} value=${mode} onChange=${choose}>
        <option value="auto">${t("as the system")}</option><option value="light">${t("light")}</option><option value="dark">${t("dark")}</option></select>`} />
      ${!me.is_open && html`<${Button} onClick=${onSignOut}>${t("Sign out")}<//>`}
      <p class="version">agent-core ${me.version}</p>
    </div>
  </details>`;
}

/** What a header can carry: no browser sends another token, such as one that was cut to "act_…". */
const IN_HEADERS = /^[\x21-\x7e]+$/;

function SignIn({ onDone, wasWrong }) {
  const [text, setText] = useState("");
  const { act, busy, error } = useAct(async () => {
    if (!IN_HEADERS.test(text.trim())) throw new Error(t("The server does not know this token."));
    token.set(text.trim());
    try {
      await ask("me");
    } catch (problem) {
      token.forget();
      throw problem.status === 401 ? new Error(t("The server does not know this token.")) : problem;
    }
    onDone();
  });
  const submit = (event) => (event.preventDefault(), act());
  return html`<form class="sign-in" onSubmit=${submit}>
    <${Field} label=${t("Token")} help=${t("The operator makes one by “agent-core token new”.")}
      fault=${error?.message ?? (wasWrong ? t("The server does not know this token any more.") : "")}
      render=${(props) => html`<input ...${props} type="password" autocomplete="current-password" required value=${text}
        onInput=${(event) => setText(event.target.value)} />`} />
    <${Button} kind="main" type="submit" busy=${busy}>${t("Sign in")}<//>
  </form>`;
}

setTheme(theme());
startRouter();
const box = document.getElementById("app");
box.replaceChildren();
render(html`<${App} />`, box);
