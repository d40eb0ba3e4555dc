// The language of the page: English texts are their own keys, and a file has what each is in another language.

import { ExactNumber } from "./json.js";
import { own } from "./own.js";
import chinese from "./zh.json" with { type: "json" };

const TABLES = { en: {}, zh: chinese };
const KEY = "agent-core.language";
let chosen = null;

/** The languages of the page, each under its own name. */
export const LANGUAGES = { en: "English", zh: "中文" };

/** The language that was chosen, else the browser's. */
export function language() {
  if (chosen === null) {
    const kept = read();
    chosen = isLanguage(kept) ? kept : navigator.language.startsWith("zh") ? "zh" : "en";
    document.documentElement.lang = chosen;
  }
  return chosen;
}

/** Choose a language; the page has to be drawn again. */
export function setLanguage(name) {
  chosen = isLanguage(name) ? name : "en";
  document.documentElement.lang = chosen;
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // a page without storage keeps it until it is closed
  }
}

/** A text in the chosen language; `values` fill its {names}. */
export function t(text, values = {}) {
  const found = own(TABLES[language()], text) ?? String(text);
  return found.replace(/\{(\w+)\}/g, (whole, name) => String(own(values, name) ?? whole));
}

/** A number as the language writes it. */
export function number(value, digits = 0) {
  const { numbers } = formats();
  if (!numbers.has(digits)) numbers.set(digits, new Intl.NumberFormat(language(), { maximumFractionDigits: digits }));
  return numbers.get(digits).format(value instanceof ExactNumber ? String(value) : value);
}

/** How many there are of a thing: "1 run", "2 runs". Both texts have a {n}. */
export function count(n, one, many) {
  return t(n === 1 ? one : many, { n: number(n) });
}

/** Seconds as a person reads them. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 0.0001) return t("{n} ms", { n: `< ${number(0.1, 1)}` });
  if (seconds < 1) return t("{n} ms", { n: number(seconds * 1000, seconds < 0.01 ? 1 : 0) });
  if (seconds < 60) return t("{n} s", { n: number(seconds, 1) });
  if (seconds < 3600) return t("{m} min {s} s", { m: Math.floor(seconds / 60), s: Math.floor(seconds % 60) });
  return t("{h} h {m} min", { h: number(Math.floor(seconds / 3600)), m: Math.floor((seconds % 3600) / 60) });
}

/** An amount of USD. */
export function money(cost) {
  return `${Number(cost).toLocaleString(language(), { minimumFractionDigits: 2, maximumFractionDigits: cost < 1 ? 5 : 2 })} USD`;
}

/** A moment as a clock shows it here: with its day, unless it is today's. */
export function moment(iso, { day = "auto" } = {}) {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return iso ?? "";
  const { clocks, days } = formats();
  const clock = clocks.format(time);
  const isToday = time.toDateString() === new Date().toDateString();
  if (day === "never" || (day === "auto" && isToday)) return clock;
  return `${days.format(time)} ${clock}`;
}

let made = {};
/** How the chosen language writes numbers and times; a format is dear to make, and a list has thousands of them. */
function formats() {
  if (made.language === language()) return made;
  const clocks = new Intl.DateTimeFormat(language(), { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const days = new Intl.DateTimeFormat(language(), { year: "numeric", month: "short", day: "numeric" });
  made = { language: language(), clocks, days, numbers: new Map() };
  return made;
}

const isLanguage = (name) => own(TABLES, name) !== undefined;

function read() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}
