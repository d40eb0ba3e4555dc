"""What a run's questions have beside their messages: options of the config, and the tools as a model needs them."""

from functools import lru_cache

import orjson

from agent_core.config import OF_ENDPOINT, AgentConfig
from agent_core.errors import DefinitionError
from agent_core.outputs import Json
from agent_core.protocol.argument_names import has_plain_names
from agent_core.protocol.step_schema import plan_schema, step_schema
from agent_core.protocol.tools_dialect import codes_by_name, function_name, write_function
from agent_core.tool_policy import Policies

MOST_SCHEMAS = 64
"""Sets of tools whose schemas of a step are kept."""


def model_options(config: AgentConfig, tools: Policies) -> Json:
    """Return the options of a run's questions that its config sets. DefinitionError for tools that no model can tell
    apart."""
    names = ("temperature", "top_p", "seed", "stop", "max_output_tokens", "reasoning", "user_id")
    options = {name: value for name in names if (value := getattr(config, name)) is not None}
    dialect = _function_options(config, tools) if config.protocol == "tools" else _format_options(config, tools)
    endpoint = {name: value for name in OF_ENDPOINT if (value := getattr(config, name))}
    return {**options, **dialect, **endpoint}


def _format_options(config: AgentConfig, tools: Policies) -> Json:
    """Return how replies are constrained in the JSON dialect."""
    if config.response_format not in ("auto", "json_schema"):
        return {"response_format": config.response_format}
    visible = [(code, tool["visible"]) for code, tool in tools.items()]
    steps, final = _step_schemas(orjson.dumps(visible), orjson.dumps(config.answer_schema), config.mode)
    return {"response_format": config.response_format, "step_schema": steps, "final_schema": final}


@lru_cache(MOST_SCHEMAS)
def _step_schemas(tools: bytes, answer: bytes, mode: str) -> tuple[Json, Json]:
    """Return the schemas of the next step and of the last one. Runs with the same tools share them, and change
    nothing in them."""
    visible, answer_schema = orjson.loads(tools), orjson.loads(answer)
    if mode == "plan":
        steps = plan_schema([code for code, _ in visible], answer_schema=answer_schema)
    else:
        steps = step_schema(visible, answer_schema=answer_schema)
    return steps, step_schema((), answer_schema=answer_schema, final_only=True)


def _function_options(config: AgentConfig, tools: Policies) -> Json:
    """Return the tools as functions, in OpenAI's shape; DefinitionError when two of them would have one name."""
    protocol = {"protocol": "tools", "parsing": config.parsing}
    if not tools:
        return protocol
    codes = codes_by_name(tools)
    if taken := [code for code in tools if codes[function_name(code)] != code]:
        name = function_name(taken[0])
        message = f"this tool and {codes[name]!r} would both be called {name!r} in function calling; allow one of them"
        raise DefinitionError(message, where="allowed_tools", value=taken[0])
    plain = has_plain_names((config.model, *config.fallback_models))
    functions = [write_function(code, tool, plain_names=plain) for code, tool in tools.items()]
    choice = {} if config.tool_choice == "auto" else {"tool_choice": config.tool_choice}
    return {**protocol, "tools": functions, **choice}
