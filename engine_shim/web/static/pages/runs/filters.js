// What a list of runs is narrowed by: read from the address, written to it, and asked of the server. Pure.

/** The statuses that a run in a list can have. */
export const STATUSES = ["pending", "running", "waiting", "paused", "completed", "failed", "cancelled", "unfinished", "unreadable"];

/** The statuses that may still change. */
export const OPEN = new Set(["pending", "running", "waiting", "paused", "unfinished"]);

/** Why an agent's run ended. */
export const REASONS = [
  "final", "max_steps", "max_tool_calls", "token_budget", "cost_budget", "timeout", "cancelled", "protocol_error", "invalid_action",
  "policy_denied", "tool_error", "model_error", "content_filter", "awaiting_approval", "awaiting_event", "in_doubt", "paused",
];

/** How far back a list goes, in milliseconds; all of them without a limit. */
export const SPANS = { "1h": 3_600_000, "24h": 86_400_000, "7d": 604_800_000 };

/** The filters of an address: {status, workflow, reason, tool, since, text}; "" where there is none. */
export function readFilters(query) {
  const since = query.get("since") ?? "";
  return {
    status: query.getAll("status").filter((each) => STATUSES.includes(each)),
    workflow: query.get("workflow") ?? "",
    reason: query.get("reason") ?? "",
    tool: query.get("tool") ?? "",
    since: Object.hasOwn(SPANS, since) ? since : "",
    text: query.get("text") ?? "",
  };
}

/** How many filters are set. */
export function countFilters(filters) {
  return Object.values(filters).filter((each) => each.length > 0).length;
}

/** What the server is asked: the filters with the time that they begin at. */
export function asQuery(filters, now) {
  const { since, ...rest } = filters;
  return since ? { ...rest, since: new Date(now - SPANS[since]).toISOString() } : rest;
}
