// What the files that a run is exported to have in common: their language, the addresses of records, and the text they hold.

import { html } from "../vendor/preact.js";
import { LANGUAGES, language, setLanguage, t } from "../kit/words.js";

/** The choice of the language; `onChoose` draws the page again. */
export function LanguageChoice({ onChoose }) {
  const choose = (event) => (setLanguage(event.target.value), onChoose());
  return html`<select aria-label=${t("Language")} value=${language()} onChange=${choose}>${Object.entries(LANGUAGES).map(([key, name]) => html`<option value=${key}>${name}</option>`)}</select>`;
}

/** The address of a record within the page. */
export const hrefOfRecord = ({ strand, n }) => `#${encodeURIComponent(`${strand}:${n}`.toWellFormed())}`;

/** The record that the page's address names. */
export function readHash() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

/** An address at which the browser has a text, to be saved as a file. */
export const hrefOfText = (text, type) => URL.createObjectURL(new Blob([text], { type }));
