"""Names of attributes and metrics: those of the semantic conventions for GenAI, and our own. Pure.

https://github.com/open-telemetry/semantic-conventions-genai. The tests hold them against the constants of the package
`opentelemetry-semantic-conventions`, which is not imported here, so that the mapping needs no extra.
"""

from typing import Final

SCOPE: Final = "agent_core"

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_creation.input_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
TOKEN_TYPE: Final = "gen_ai.token.type"
WORKFLOW_NAME: Final = "gen_ai.workflow.name"
AGENT_NAME: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_CALL: Final = "gen_ai.tool.call.id"
TOOL_TYPE: Final = "gen_ai.tool.type"
ERROR_TYPE: Final = "error.type"

INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
INSTRUCTIONS: Final = "gen_ai.system_instructions"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"

REQUEST_OPTIONS: Final = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "seed": "gen_ai.request.seed",
    "max_output_tokens": "gen_ai.request.max_tokens",
    "stop": "gen_ai.request.stop_sequences",
}
"""By the key of an agent's config."""

TOKEN_USAGE: Final = "gen_ai.client.token.usage"
CHAT_DURATION: Final = "gen_ai.client.operation.duration"
WORKFLOW_DURATION: Final = "gen_ai.workflow.duration"
AGENT_DURATION: Final = "gen_ai.invoke_agent.duration"
TOOL_DURATION: Final = "gen_ai.execute_tool.duration"

RUN: Final = "agent_core.run.id"
STRAND: Final = "agent_core.strand"
RECORD: Final = "agent_core.n"
STEP: Final = "agent_core.step"
TENANT: Final = "agent_core.tenant"
VERSION: Final = "agent_core.workflow.version"
REASON: Final = "agent_core.finish_reason"
STEPS: Final = "agent_core.steps"
CACHED: Final = "agent_core.tool.cached"
EFFECT: Final = "agent_core.tool.effect"
ESTIMATED: Final = "agent_core.usage.estimated"
FORKED_FROM: Final = "agent_core.forked_from"
