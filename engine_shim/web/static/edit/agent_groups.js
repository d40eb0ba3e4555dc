// The keys of an agent's config in the groups that its panel shows. Pure.

/** [title, keys, whether it is open at first]. */
export const GROUPS = [
  ["Model", ["model", "temperature", "reasoning", "fallback_models"], true],
  ["Prompts", ["system_prompt", "prompt", "messages_json", "developer_prompt"], true],
  ["Limits", ["max_steps", "max_tool_calls", "total_token_budget", "cost_budget", "timeout", "single_call_timeout"], true],
  ["Tools", ["allowed_tools", "deny_tools", "approval", "after_untrusted"], true],
  ["Answer", ["answer_schema", "primary_output"], true],
  ["How the model is asked", ["mode", "plan", "protocol", "tool_choice", "parsing", "response_format", "language", "top_p", "seed", "stop", "max_output_tokens", "max_input_tokens", "base_url", "api_key_env", "api", "service_tier", "user_id", "extra"], false],
  ["What the model reads", ["examples", "prompts", "documents", "max_history_messages", "observation_max_len", "trace_max_bytes", "trusted_text"], false],
  ["Repairs", ["max_repairs", "repair_scope"], false],
];

/** The groups with the keys that a schema really has, and a last one for the keys that none of them names. */
export function groupKeys(schema) {
  const keys = Object.keys(schema.properties ?? {});
  const named = new Set(GROUPS.flatMap(([, each]) => each));
  const others = keys.filter((key) => !named.has(key));
  return [...GROUPS, ["Other", others, false]].map(([title, each, open]) => ({ title, keys: each.filter((key) => keys.includes(key)), open })).filter((group) => group.keys.length);
}
