// The turns of a stored conversation by its messages. Pure.

import { writeJson } from "../../kit/json.js";
import { newTurn } from "./turn.js";

/** Turns, oldest first: the messages of one run are one turn. */
export function readHistory(messages) {
  const turns = [];
  for (const message of messages) {
    const last = turns[turns.length - 1];
    const isNew = !last || message.trace_id !== last.trace || (message.role === "user" && !message.trace_id);
    if (isNew) turns.push(newTurn({ trace: message.trace_id ?? null, message: "", status: "done" }));
    tell(turns[turns.length - 1], message);
  }
  return turns;
}

function tell(turn, { role, content, tool_calls: calls = [] }) {
  if (role === "user") turn.message = turn.message ? `${turn.message}\n\n${textOf(content)}` : textOf(content);
  if (role !== "assistant") return;
  turn.calls += calls.length;
  if (calls.length === 0) turn.answer = textOf(content);
}

const textOf = (content) => (typeof content === "string" ? content : writeJson(content ?? ""));
