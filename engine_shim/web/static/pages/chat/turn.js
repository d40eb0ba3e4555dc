// A turn of a conversation by the events of its run: what was done, what waits, what was answered. Pure.

import { sameJson } from "../../kit/json.js";

/** The strand of the turn's run, and that of its agent; older versions recorded the agent alone. */
const RUN = "flow";
const AGENTS = ["flow/agent_core.1", "agent"];
const BATCH_ITEM = /\/\d+\.(\d+)$/;

/** The states in which a person may decide about a call. */
export const WAITING = new Set(["awaiting_approval", "in_doubt"]);

/** A turn before its first event. `status` becomes waiting, done, failed or lost; a stored one is done. */
export function newTurn({ trace, message, answer = null, status = "running", calls = 0 }) {
  return { trace, message, answer, status, calls, draft: "", items: [], reason: null, error: null, usage: null, isTold: false };
}

/** The turn after one more event of its run. */
export function addEvent(turn, event) {
  if (event.strand === RUN && event.event === "finished") return endRun(turn, event);
  const read = isOfAgent(event.strand) && READERS[event.event];
  return read ? read({ ...turn, isTold: true }, event) : turn;
}

/** The items of a turn whose calls wait for a person. */
export const waitingIn = (turn) => turn.items.filter((item) => item.kind === "call" && WAITING.has(item.state));

/** A turn whose run told nothing of its end; `status` is what the server says of the run. */
export function endTurn(turn, status) {
  if (turn.status !== "running" && turn.status !== "waiting") return turn;
  return { ...turn, status: status === "completed" ? "done" : status === "waiting" ? "waiting" : "lost" };
}

const READERS = {
  step_started: (turn, { step, model, strand }) => add(settle(turn, strand), { kind: "step", step, model, strand }),

  thought_delta(turn, { text, strand }) {
    const found = draftThought(turn, strand);
    return found ? change(turn, found, { text: found.text + text }) : add(turn, { kind: "thought", text, strand, isDraft: true });
  },

  thought(turn, { text, strand }) {
    const found = draftThought(turn, strand);
    return found ? change(turn, found, { text, isDraft: false }) : add(turn, { kind: "thought", text, strand, isDraft: false });
  },

  plan: (turn, { steps, strand }) => add(turn, { kind: "plan", steps, strand }),
  repair: (turn, { kind, message, strand }) => add(turn, { kind: "repair", problem: kind, message: message ?? "", strand }),

  action(turn, { tool, args, strand }) {
    return add(turn, { kind: "call", tool, args, strand, state: "running", result: null, seconds: null, progress: "", at: null });
  },

  waiting(turn, { tool, args, reason, message, strand, n }) {
    if (reason === "awaiting_event") return turn; // a node of a workflow that the agent called
    const state = reason === "in_doubt" ? "in_doubt" : "awaiting_approval";
    const at = { strand, n };
    const found = openCall(turn, strand, (call) => call.tool === tool && call.at === null && sameJson(call.args, args));
    const fields = { state, at, args, why: message ?? null };
    const told = found ? change(turn, found, fields) : add(turn, { kind: "call", tool, strand, result: null, seconds: null, progress: "", ...fields });
    return { ...told, status: "waiting" };
  },

  tool_progress(turn, { strand, text }) {
    const found = openCall(turn, strand);
    return found ? change(turn, found, { progress: text }) : turn;
  },

  observation(turn, { strand, success, text, seconds, characters }) {
    const found = openCall(turn, strand);
    if (!found) return turn;
    return rest(change(turn, found, { state: success ? "done" : "failed", result: text, isCut: characters > text.length, seconds }));
  },

  answer_delta: (turn, { text, strand }) => (isRoot(strand) ? { ...turn, draft: turn.draft + text } : turn),
  answer_discarded: (turn, { strand }) => (isRoot(strand) ? { ...turn, draft: "" } : turn),

  finished(turn, { strand, finish_reason: reason, final_answer: answer, error, usage }) {
    if (!isRoot(strand)) return turn;
    const settled = settle(turn, strand);
    return { ...settled, status: reason === "final" ? "done" : "failed", reason, answer: answer ?? null, error: error ?? null, usage: usage ?? null, draft: "" };
  },
};

/** The end of the run, which says more than its agent's only where that never began. */
function endRun(turn, { status, error }) {
  const isOpen = turn.status === "running" || turn.status === "waiting";
  return isOpen ? { ...turn, status: status === "completed" ? "done" : "failed", reason: status, error: error ?? null, draft: "" } : turn;
}

/** The thought of this strand that is still being written. */
const draftThought = (turn, strand) => turn.items.find((item) => item.kind === "thought" && item.isDraft && item.strand === strand);
const isRoot = (strand) => AGENTS.includes(strand);
const isOfAgent = (strand) => AGENTS.some((each) => strand === each || strand.startsWith(`${each}/`));
const batchOf = (strand) => strand.replace(BATCH_ITEM, "");
const add = (turn, item) => ({ ...turn, items: [...turn.items, { key: turn.items.length, depth: depthOf(item.strand), ...item }] });
const depthOf = (strand) => strand.split("/").slice(strand.startsWith(`${RUN}/`) ? 2 : 1).filter((part) => !/^\d+\.\d+$/.test(part)).length;

function change(turn, found, fields) {
  return { ...turn, items: turn.items.map((item) => (item === found ? { ...item, ...fields } : item)) };
}

/** The call that an event of this strand tells of: in a batch the one of its number, else the first that is open. */
function openCall(turn, strand, fits = () => true) {
  const from = turn.items.findLastIndex((item) => item.kind === "step" && item.strand === batchOf(strand));
  const calls = turn.items.slice(from + 1).filter((item) => item.kind === "call" && item.strand === batchOf(strand));
  const number = BATCH_ITEM.exec(strand)?.[1];
  const among = number !== undefined && calls[number] ? [calls[number]] : calls;
  return among.find((call) => isOpen(call) && fits(call));
}

const isOpen = (call) => call.state === "running" || WAITING.has(call.state);

/** What a later step of their run leaves behind: calls without an observation were decided against, or ended; the
 *  thought of a reply that could not be read stays as it is. */
function settle(turn, strand) {
  const items = turn.items.map((item) => {
    if (item.strand !== strand) return item;
    if (item.kind === "thought") return { ...item, isDraft: false };
    return item.kind === "call" && isOpen(item) ? { ...item, state: item.at ? "decided" : "over" } : item;
  });
  return rest({ ...turn, items });
}

/** A turn in which nothing waits any more runs again. */
function rest(turn) {
  return turn.status === "waiting" && waitingIn(turn).length === 0 ? { ...turn, status: "running" } : turn;
}
