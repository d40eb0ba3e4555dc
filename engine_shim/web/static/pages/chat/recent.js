// The conversations that this browser had: kept here, since a turn that waits is in no stored conversation yet.

import { parseJson, writeJson } from "../../kit/json.js";

const KEY = "agent-core.conversations";
const MOST = 50;

/** The kept conversations, newest first: {id, agent, last, at, open, isStored}; `open` is a turn that no stored conversation
 *  has, {trace, message}: it goes on, or came to no answer. */
export function readRecent() {
  try {
    const kept = parseJson(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter((each) => typeof each?.id === "string") : [];
  } catch {
    return [];
  }
}

/** Keep a conversation, or what changed of it. */
export function keepRecent(id, fields) {
  const [known, others] = [readRecent().find((each) => each.id === id), readRecent().filter((each) => each.id !== id)];
  write([{ agent: null, last: "", open: null, isStored: false, ...known, ...fields, id }, ...others]);
}

/** Keep of a conversation what changed, without making it the newest; nothing of one that is not kept. */
export function noteRecent(id, fields) {
  write(readRecent().map((each) => (each.id === id ? { ...each, ...fields } : each)));
}

/** Keep a conversation no longer. */
export const forgetRecent = (id) => write(readRecent().filter((each) => each.id !== id));

/** The kept ones and the server's in one list, newest first. */
export function joinRecent(kept, listed) {
  const found = new Map(kept.map((each) => [each.id, each]));
  for (const each of listed) {
    const own = found.get(each.conversation_id);
    const told = { id: each.conversation_id, agent: each.agent ?? own?.agent ?? null, last: each.last || own?.last || "", at: each.updated_at ?? own?.at ?? "" };
    found.set(told.id, told);
  }
  return [...found.values()].sort((one, other) => (one.at < other.at ? 1 : -1)).slice(0, 2 * MOST);
}

function write(all) {
  try {
    localStorage.setItem(KEY, writeJson(all.slice(0, MOST)));
  } catch {
    // a page without storage forgets them
  }
}
