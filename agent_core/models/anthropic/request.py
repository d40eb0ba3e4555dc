"""The request to an endpoint for the Messages API. Pure."""

from collections.abc import Mapping, Set
from typing import Any, NamedTuple

import orjson

from agent_core.models.anthropic.thinking import choose_thinking, is_on, read_version
from agent_core.models.anthropic.turns import goes_on_without_thought, mark, mark_turns, write_texts, write_turns
from agent_core.models.client import Question
from agent_core.models.endpoint.asking import Written, merge_extra
from agent_core.models.endpoint.capabilities import EndpointCapabilities
from agent_core.models.endpoint.conversation import read_conversation
from agent_core.outputs import Json

API = "messages"
NATIVE = "native"
"""The word for own parts that are left out."""
CACHE = "cache_control"
CHOICES = {"auto": "auto", "required": "any", "none": "none"}
MOST_TOKENS, OLD_MODELS_TOKENS, FEWEST_TOKENS = 32_000, 8_192, 4_096
"""Of a reply whose question has no limit: at most, for models before `FIRST_LONG`, and once those are refused."""
FIRST_LONG = (3, 7)
NOT_WHILE_THINKING = ("temperature", "top_p")
VALUES = ("enum", "const", "default", "examples")
NAMED = ("properties", "$defs", "definitions", "patternProperties")
"""Keywords whose keys are names, not keywords."""


class Asked(NamedTuple):
    """A question to a model, the tokens of whose replies may be at most `most`; None where that is not known."""

    model: str
    question: Question
    most: int | None = None


def write_request(asked: Asked, capabilities: EndpointCapabilities, *, streams: bool) -> Written:
    """Return the body of a request, into which the author's `extra` parameters are merged last."""
    model, question = asked.model, asked.question
    options, left_out = question.options, capabilities.left_out
    conversation = read_conversation(question.messages, API, keeps_parts=NATIVE not in left_out)
    messages, uses_all_parts = write_turns(conversation.turns)
    dropped = conversation.dropped if uses_all_parts else tuple(dict.fromkeys((*conversation.dropped, API)))
    system = write_texts(conversation.system)
    tools = [_write_tool(tool) for tool in options.get("tools") or ()]
    if CACHE not in left_out:
        for fixed in [each for each in (system, tools) if each][:1]:
            mark(fixed)
        mark_turns(messages)
    body: Json = {"model": model, "max_tokens": _choose_limit(asked, options, left_out)}
    body |= {"system": system} if system else {}
    body["messages"] = messages
    if tools:
        body |= {"tools": tools, **_write_choice(options.get("tool_choice"), capabilities)}
    body |= _write_sampling(options, left_out)
    body |= {"service_tier": options["service_tier"]} if "service_tier" in options else {}
    body |= {"metadata": {"user_id": options["user_id"]}} if "user_id" in options else {}
    body |= _write_thinking(model, options, left_out, body)
    if streams:
        body["stream"] = True
    extra = options.get("extra") or {}
    return Written(orjson.dumps(_settle(merge_extra(body, extra), extra)), dropped)


def _write_tool(tool: Mapping[str, Any]) -> Json:
    function = tool["function"]
    described = {"description": function["description"]} if function.get("description") else {}
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    return {"name": function["name"], **described, "input_schema": schema}


def _write_choice(choice: Any, capabilities: EndpointCapabilities) -> Json:
    if choice not in CHOICES or choice in capabilities.choices:
        return {}
    return {"tool_choice": {"type": CHOICES[choice]}}


def _write_sampling(options: Mapping[str, Any], left_out: Set[str]) -> Json:
    sent = {name: options[name] for name in NOT_WHILE_THINKING if options.get(name) is not None}
    stop = options.get("stop") or []
    sequences = [each for each in ([stop] if isinstance(stop, str) else stop) if each.strip()]
    sent |= {"stop": sequences} if sequences else {}
    return {"stop_sequences" if name == "stop" else name: sent[name] for name in sent if name not in left_out}


def _choose_limit(asked: Asked, options: Mapping[str, Any], left_out: Set[str]) -> int:
    if limit := options.get("max_output_tokens"):
        return int(limit)
    if "max_tokens" in left_out:
        return FEWEST_TOKENS
    version = read_version(asked.model)
    usual = MOST_TOKENS if version is not None and version >= FIRST_LONG else OLD_MODELS_TOKENS
    return min(asked.most or usual, MOST_TOKENS)


def _write_thinking(model: str, options: Mapping[str, Any], left_out: Set[str], body: Json) -> Json:
    """Return the fields for thinking and for the format of the reply. Manual thinking begins only at a turn's start."""
    thinking, effort = choose_thinking(model, options.get("reasoning"), left_out, body["max_tokens"])
    if thinking and thinking["type"] == "enabled" and goes_on_without_thought(body["messages"]):
        thinking = None
    output: Json = {"effort": effort} if effort else {}
    if "response_format" not in left_out and (schema := _find_schema(options)):
        output["format"] = {"type": "json_schema", "schema": schema}
    return ({"thinking": thinking} if thinking else {}) | ({"output_config": output} if output else {})


def _find_schema(options: Mapping[str, Any]) -> Json | None:
    """Return the schema to hold the reply to: one that is asked for by name, and whose objects are closed.

    The API takes no other, and no bare JSON object.
    """
    if options.get("response_format") != "json_schema" or options.get("tools"):
        return None
    schema: Json | None = options.get("step_schema")
    return schema if schema and is_closed(schema) else None


def is_closed(schema: Any) -> bool:
    """Return whether every object in a schema says that it has no other properties."""
    if isinstance(schema, list):
        return all(map(is_closed, schema))
    if not isinstance(schema, dict):
        return True
    kinds = schema.get("type")
    is_object = "properties" in schema or kinds == "object" or (isinstance(kinds, list) and "object" in kinds)
    if is_object and schema.get("additionalProperties") is not False:
        return False
    inner = [
        list(value.values()) if key in NAMED and isinstance(value, dict) else value
        for key, value in schema.items()
        if key not in VALUES
    ]
    return all(map(is_closed, inner))


def _settle(body: Json, extra: Mapping[str, Any]) -> Json:
    """Return the body without what the API refuses beside thinking, unless the author has written it in `extra`."""
    thinking = body.get("thinking") or {}
    if not is_on(thinking):
        return body
    settled = {name: value for name, value in body.items() if name not in NOT_WHILE_THINKING or name in extra}
    if "tool_choice" not in extra and settled.get("tool_choice") == {"type": "any"}:
        settled["tool_choice"] = {"type": "auto"}
    budget, limit = thinking.get("budget_tokens"), settled["max_tokens"]
    if type(budget) is int and "max_tokens" not in extra and limit <= budget:
        settled["max_tokens"] = limit + budget
    return settled
