// Policies of agents: the recorded one, and another one from a form. Pure.

import { readJsonToSend, readNumberToSend } from "../kit/typed.js";

/** The agents of a run: {strand, offered, tools, limits}. */
export function readAgents(rows) {
  return rows
    .filter(({ record }) => record.kind === "run_started" && record.loop === "agent")
    .map(({ strand, record }) => ({ strand, offered: Object.keys(record.tools), tools: record.config.allowed_tools ?? [], limits: record.limits }));
}

/** The policy that a form says, and what is wrong with a key: {policy, faults}. What is left empty stays as it was recorded. */
export function writePolicy(form) {
  const policy = {};
  const faults = {};
  const set = (key, text, read) => {
    try {
      if (text.trim() !== "") policy[key] = read(text);
    } catch (error) {
      faults[key] = error.message;
    }
  };
  if (form.denied.length > 0) policy.deny_tools = form.denied;
  for (const [key, text] of Object.entries(form.limits)) set(key, text, readNumberToSend);
  if (form.approval) policy.approval = form.approval;
  if (form.afterUntrusted) policy.after_untrusted = form.afterUntrusted;
  set("allowed_tools", form.narrowing, readJsonToSend);
  return { policy, faults };
}

/** The tool that a decision is about. */
export const toolOf = (decision) => decision.tool ?? "";
