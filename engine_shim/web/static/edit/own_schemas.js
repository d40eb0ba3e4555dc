// The keys of nodes and workflows besides their tools' configs, as JSON Schemas for the form. Pure.

const seconds = { anyOf: [{ type: "number", minimum: 0 }, { type: "null" }] };

/** A node's own keys. */
export const NODE_SCHEMA = {
  type: "object",
  properties: {
    approval: { enum: ["always", "on_write", "never"], default: "never", description: "Whether a person has to let the call through before it is made" },
    foreach: { type: "string", description: "A list, or the placeholder of one: the tool is called once for each {{item}}" },
    max_parallel: { type: "integer", minimum: 1, maximum: 64, default: 4, description: "How many items are under way at once" },
    on_item_error: { enum: ["fail", "continue"], default: "fail", description: "Whether the node goes on when an item fails" },
    timeout: { ...seconds, description: "Active seconds for all its attempts; 0: unlimited" },
    on_error: { enum: ["fail", "continue", "fail_at_end"], default: "fail", description: "Whether the run goes on when this node has failed; fail_at_end: to its end, and fails there" },
    retry: {
      type: "object",
      description: "How often the node is tried in all, and the pauses before each further try",
      properties: {
        max_attempts: { type: "integer", minimum: 1, maximum: 100, description: "Attempts in all" },
        delay: { type: "number", minimum: 0, default: 0, description: "Seconds before the second attempt" },
        backoff: { type: "number", minimum: 1, maximum: 100, default: 2, description: "Each further pause is so many times longer" },
      },
      required: ["max_attempts"],
    },
    description: { type: "string", description: "For readers of the definition" },
  },
};

/** What a workflow is called. */
export const NAME_SCHEMA = {
  type: "object",
  properties: {
    id: { type: "string", description: "Its name in runs and files: letters, digits, _ and -" },
    version: { type: "string", default: "1", description: "Each saved version has its own; saving proposes the next" },
    name: { type: "string", description: "Its name for people" },
    description: { type: "string", description: "What it is for" },
  },
  required: ["id"],
};

/** How a workflow is bounded and where it begins and ends. */
export const LIMITS_SCHEMA = {
  type: "object",
  properties: {
    max_iterations: { type: "integer", minimum: 1, default: 50, description: "How often each loop may be gone round again" },
    max_visits: { anyOf: [{ type: "integer", minimum: 1 }, { type: "null" }], description: "How many visits all nodes together may have; absent: unlimited" },
    timeout: { ...seconds, description: "Active seconds of a run; 0: unlimited" },
    model: { type: "string", description: "Judges the `ask` edges that name no model" },
  },
};
