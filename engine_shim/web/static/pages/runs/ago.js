// How long ago something was, as a person says it.

import { html } from "../../vendor/preact.js";
import { language, moment, t } from "../../kit/words.js";

const STEPS = [[60, "minute", 60], [3600, "hour", 24], [86400, "day", 7]];

/** A moment as its distance from `now`, in milliseconds since 1970; a date where it is more than a week ago. */
export function ago(iso, now) {
  const seconds = (now - Date.parse(iso)) / 1000;
  if (Number.isNaN(seconds)) return "";
  if (seconds < 60) return t("just now");
  const { words, days } = formats();
  for (const [size, unit, most] of STEPS) {
    const n = Math.floor(seconds / size);
    if (n < most) return words.format(-n, unit);
  }
  return days.format(new Date(iso));
}

let made = {};
/** How the chosen language writes ages; a format is dear to make, and a list has thousands of them. */
function formats() {
  if (made.language === language()) return made;
  const words = new Intl.RelativeTimeFormat(language(), { numeric: "always", style: "short" });
  const days = new Intl.DateTimeFormat(language(), { year: "numeric", month: "short", day: "numeric" });
  made = { language: language(), words, days };
  return made;
}

/** A moment in a list; its full text is its title. */
export function Ago({ at, now }) {
  return at ? html`<time class="ago" datetime=${at} title=${moment(at, { day: "always" })}>${ago(at, now)}</time>` : html`<span class="ago"></span>`;
}
