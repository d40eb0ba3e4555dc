// Policies of agents: the recorded one, and another one from a form. Pure.

/** The agents of a run: {strand, offered, tools, limits}. */
export function readAgents(rows) {
  return rows
    .filter(({ record }) => record.kind === "run_started" && record.loop === "agent")
    .map(({ strand, record }) => ({ strand, offered: Object.keys(record.tools), tools: record.config.allowed_tools ?? [], limits: record.limits }));
}

/** The policy that a form says: {policy, error}. What is left empty stays as it was recorded. */
export function writePolicy(form) {
  const policy = {};
  if (form.denied.length > 0) policy.deny_tools = form.denied;
  for (const [key, text] of Object.entries(form.limits)) if (text !== "") policy[key] = Number(text);
  if (form.approval) policy.approval = form.approval;
  if (form.afterUntrusted) policy.after_untrusted = form.afterUntrusted;
  if (form.narrowing.trim() !== "") {
    try {
      policy.allowed_tools = JSON.parse(form.narrowing);
    } catch (error) {
      return { policy: null, error: error.message };
    }
  }
  return { policy, error: "" };
}

/** The tool that a decision is about. */
export const toolOf = (decision) => decision.tool ?? "";
