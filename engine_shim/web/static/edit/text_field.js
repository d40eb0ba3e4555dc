// A text field with the helper that lists variables: by its button, by Ctrl+Space, or while `{{` is typed.

import { html, useRef, useState } from "../vendor/preact.js";
import { announce, useId } from "../kit/parts.js";
import { show } from "../kit/text.js";
import { count, t } from "../kit/words.js";
import { openBraces, putIn } from "./placeholders.js";
import { filterVariables } from "./variables.js";

/** A field for a text. `variables` are those that the helper offers; without any there is no helper. */
export function TextField({ value, onText, isLong = false, isCode = false, variables = [], bare = false, label, ...props }) {
  const field = useRef(null);
  const list = useId();
  const [opened, setOpened] = useState(null);
  const [active, setActive] = useState(0);
  const shown = opened === null ? [] : filterVariables(variables, opened.filter).slice(0, 60);
  const open = (mode, filter) => {
    if (opened === null) announce(count(variables.length, "{n} variable; choose with the arrow keys", "{n} variables; choose with the arrow keys"));
    setOpened({ mode, filter });
    setActive(0);
  };
  const close = () => (setOpened(null), field.current.focus());
  const choose = (variable) => {
    const done = putIn(field.current.value, field.current.selectionEnd ?? field.current.value.length, variable.write, { bare });
    onText(done.text);
    setOpened(null);
    requestAnimationFrame(() => (field.current?.focus(), field.current?.setSelectionRange(done.cursor, done.cursor)));
  };
  const onInput = (event) => {
    onText(event.target.value);
    const typed = bare ? null : openBraces(event.target.value, event.target.selectionEnd);
    if (typed && variables.length) open("typed", typed.filter);
    else if (opened?.mode === "typed") setOpened(null);
  };
  const onKeyDown = (event) => {
    if (event.key === " " && event.ctrlKey && variables.length) return event.preventDefault(), open("search", "");
    if (opened !== null) moveInList(event, { shown, active, setActive, choose, close });
  };
  const lines = String(value).split("\n").length;
  const helper = opened?.mode === "typed" ? { "aria-autocomplete": "list", "aria-controls": list, "aria-activedescendant": shown[active] && `${list}-${active}` } : {};
  const given = { ...props, ...helper, ref: field, value, onInput, onKeyDown, class: isCode || bare ? "code" : "", onBlur: () => opened?.mode === "typed" && setOpened(null), spellcheck: false };
  return html`<div class="control">
    ${isLong ? html`<textarea ...${given} rows=${Math.min(16, Math.max(3, lines))}></textarea>` : html`<input type="text" autocomplete="off" ...${given} />`}
    ${variables.length > 0 && html`<button type="button" class="var-button" disabled=${props.disabled} title=${t("Insert a variable (Ctrl+Space)")} aria-label=${label ? t("Insert a variable into {name}", { name: label }) : t("Insert a variable")}
      aria-expanded=${opened?.mode === "search" ? "true" : "false"} onMouseDown=${(event) => event.preventDefault()} onClick=${() => (opened?.mode === "search" ? close() : open("search", ""))}></button>`}
    ${opened !== null && html`<${Popup} list=${list} mode=${opened.mode} filter=${opened.filter} shown=${shown} active=${active}
      onFilter=${(filter) => (setOpened({ mode: "search", filter }), setActive(0))} onKeyDown=${(event) => moveInList(event, { shown, active, setActive, choose, close })}
      onChoose=${choose} onClose=${() => setOpened(null)} />`}
  </div>`;
}

function Popup({ list, mode, filter, shown, active, onFilter, onKeyDown, onChoose, onClose }) {
  const leave = (event) => event.currentTarget.contains(event.relatedTarget) || mode !== "search" || onClose();
  return html`<div class="var-popup" onFocusOut=${leave}>
    ${mode === "search" && html`<input type="text" role="combobox" aria-expanded="true" aria-autocomplete="list" aria-controls=${list} aria-label=${t("Search the variables")}
      aria-activedescendant=${shown[active] && `${list}-${active}`} placeholder=${t("Search the variables")} value=${filter} autocomplete="off"
      ref=${(element) => element && element !== document.activeElement && !element.dataset.seen && ((element.dataset.seen = "yes"), element.focus())}
      onInput=${(event) => onFilter(event.target.value)} onKeyDown=${onKeyDown} />`}
    <div role="listbox" id=${list} aria-label=${t("Variables")} tabindex="-1">
      ${shown.map((each, at) => html`<div key=${each.path} role="option" id=${`${list}-${at}`} aria-selected=${at === active ? "true" : "false"} class="var-option"
        ref=${at === active ? (element) => element?.scrollIntoView({ block: "nearest" }) : undefined} onMouseDown=${(event) => (event.preventDefault(), onChoose(each))}>
        <code>${show(each.path)}</code>${each.certain === false && html`<span class="soft">${t("not in every run")}</span>`}<span class="soft var-type">${show(each.type ?? "")}</span>
      </div>`)}
    </div>
    ${shown.length === 0 && html`<p class="help">${t("No variable fits.")}</p>`}
  </div>`;
}

function moveInList(event, { shown, active, setActive, choose, close }) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && shown.length) event.preventDefault(), setActive((active + step + shown.length) % shown.length);
  else if (event.key === "Enter" && shown[active]) event.preventDefault(), choose(shown[active]);
  else if (event.key === "Escape") event.preventDefault(), event.stopPropagation(), close();
}
