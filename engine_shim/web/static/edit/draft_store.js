// Unsaved work of this tab, kept until it is saved or thrown away.

import { parseJson, writeJson } from "../kit/json.js";

const PREFIX = "agent-core.draft.";

/** What was kept of a workflow: {text, format, base}, or null. */
export function readKept(name) {
  try {
    const kept = parseJson(sessionStorage.getItem(PREFIX + name));
    return typeof kept?.text === "string" ? kept : null;
  } catch {
    return null;
  }
}

/** Keep unsaved work; null forgets it. */
export function keep(name, draft) {
  try {
    if (draft === null) sessionStorage.removeItem(PREFIX + name);
    else sessionStorage.setItem(PREFIX + name, writeJson(draft));
  } catch {
    // without storage the page still asks before it is left
  }
}
