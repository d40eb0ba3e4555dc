// Where the page is: its address below the page's root, and how it goes elsewhere.

import { useEffect, useState } from "../vendor/preact.js";

const ROOT = new URL(document.baseURI).pathname;
const listeners = new Set();

/** The address of a place in the page: `link("runs", id)` or `link(["runs", id], {at: "flow:3"})`. */
export function link(parts, query = {}) {
  const path = (Array.isArray(parts) ? parts : [parts]).map(encodeURIComponent).join("/");
  const terms = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const each of Array.isArray(value) ? value : [value])
      if (each !== null && each !== undefined && each !== "") terms.append(name, each);
  return `${ROOT}${path}${terms.size ? `?${terms}` : ""}`;
}

/** Go to an address of `link`. With `replace` the place before is not kept. */
export function go(href, { replace = false } = {}) {
  if (!mayLeave(href)) return;
  history[replace ? "replaceState" : "pushState"](null, "", href);
  for (const listener of listeners) listener();
}

/** Where the page is: {parts, query}; a component that uses it is drawn again when that changes. */
export function usePlace() {
  const [place, setPlace] = useState(readPlace);
  useEffect(() => {
    const listener = () => setPlace(readPlace());
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, []);
  return place;
}

let reason = null;
let current = location.href;
/** Ask before the page is left while there is a reason, such as unsaved work; null for none. */
export function guardLeaving(text) {
  reason = text;
}

/** Whether to go to an address: another view of the same page does not leave it. */
function mayLeave(href) {
  if (reason === null || pathOf(href) === pathOf(current)) return true;
  if (!confirm(reason)) return false;
  reason = null;
  return true;
}

const pathOf = (href) => decode(new URL(href, location.href).pathname);

/** Follow links within the page without loading it again. */
export function startRouter() {
  addEventListener("popstate", () => {
    if (!mayLeave(location.href)) return history.pushState(null, "", current);
    for (const listener of listeners) listener();
  });
  listeners.add(() => (current = location.href));
  addEventListener("beforeunload", (event) => reason !== null && event.preventDefault());
  document.addEventListener("click", (event) => {
    const anchor = event.target.closest?.("a[href]");
    if (!anchor || anchor.target || anchor.hasAttribute("download") || event.defaultPrevented) return;
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const url = new URL(anchor.href);
    if (url.origin !== location.origin || !url.pathname.startsWith(ROOT)) return;
    event.preventDefault();
    go(url.pathname + url.search);
  });
}

function readPlace() {
  const below = location.pathname.slice(ROOT.length);
  const parts = below.split("/").filter(Boolean).map(decode);
  return { parts, query: new URLSearchParams(location.search) };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
