"""The request to an endpoint for chat completions, and what is left out once it refuses a part of it. Pure."""

import re
from dataclasses import replace
from typing import Any

import orjson

from agent_core.models.client import Question
from agent_core.models.endpoint.answer import Refusal, contains_in_order
from agent_core.models.endpoint.asking import merge_extra
from agent_core.models.endpoint.capabilities import EndpointCapabilities, Streaming
from agent_core.models.endpoint.refused_parts import (
    REFUSED_PART,
    SAMPLING,
    choose_format,
    find_unsupported_options,
    is_set,
    lower_format,
)
from agent_core.models.openai.reasoning import REASONING, is_reasoning_refused, settle_budget, write_reasoning
from utools.lazy_pattern import lazy_compile

ABOUT = {"service_tier": "service_tier", "user_id": "user"}
"""Options about a request, which a vendor that does not know them passes over or refuses."""
UNKNOWN_KEYWORD = lazy_compile(r"""Unknown name \\?"([$\w]+)\\?" at '[^']*(?:function_declarations|response_)""")
THINKING = lazy_compile(r"enable_thinking must be set to false")


def request_body(model: str, messages: bytes, options: dict[str, Any], capabilities: EndpointCapabilities) -> bytes:
    """Return the request's JSON. The messages, joined by commas, go as they came: what a vendor caches stays the same
    bytes."""
    head = b'{"model":%b,"messages":[%b]' % (orjson.dumps(model), messages)
    sent = _encode_options(options, capabilities)
    if "extra" in options:
        sent = merge_extra(sent, options["extra"])
    if sent:
        return head + b"," + orjson.dumps(sent)[1:]
    return head + b"}"


def downgrade(capabilities: EndpointCapabilities, question: Question, refusal: Refusal) -> EndpointCapabilities | None:
    """Lower capabilities under which the refused question may be accepted; None when nothing can be left out.

    Each step leaves out something that was sent, so the steps end.
    """
    sent = _encode_options(question.options, capabilities)
    less = _without_named_part(capabilities, sent, refusal) if refusal.status in REFUSED_PART else None
    if less and _encode_options(question.options, less) != sent:
        return less
    return lower_format(capabilities, question, refusal)


def _without_named_part(
    capabilities: EndpointCapabilities, sent: dict[str, Any], refusal: Refusal
) -> EndpointCapabilities | None:
    """Return the capabilities without the part that the refusal names."""
    message = refusal.message
    if capabilities.tokens == "max_tokens" and "max_tokens" in sent and "max_completion_tokens" in message:
        return replace(capabilities, tokens="max_completion_tokens")
    if unwanted := find_unsupported_options(refusal) & sent.keys():
        return replace(capabilities, left_out=capabilities.left_out | unwanted)
    if "tool_choice" in sent and re.search(r"tool[ _]choice", f"{refusal.param} {message}"):
        return replace(capabilities, choices=capabilities.choices | {sent["tool_choice"]})
    if REASONING not in capabilities.left_out and is_reasoning_refused(sent, refusal):
        return replace(capabilities, left_out=capabilities.left_out | {REASONING})
    if words := frozenset(UNKNOWN_KEYWORD.findall(message)) - capabilities.keywords:
        return replace(capabilities, keywords=capabilities.keywords | words)
    if capabilities.allows_thinking and THINKING.search(message):
        return replace(capabilities, allows_thinking=False)
    return None


def _encode_options(options: dict[str, Any], capabilities: EndpointCapabilities) -> dict[str, Any]:
    """Return the options in the endpoint's words, without those that it does not support."""
    sent = {name: options[name] for name in SAMPLING if name not in capabilities.left_out and is_set(options.get(name))}
    sent |= {theirs: options[ours] for ours, theirs in ABOUT.items() if ours in options}
    if limit := options.get("max_output_tokens"):
        sent[capabilities.tokens] = limit
    if "reasoning" in options and REASONING not in capabilities.left_out:
        sent = settle_budget(sent | write_reasoning(options["reasoning"], capabilities.thinking), capabilities.tokens)
    if not capabilities.allows_thinking:
        sent["enable_thinking"] = False
        sent.pop("thinking_budget", None)
    if tools := options.get("tools"):
        sent["tools"] = without_keywords(tools, capabilities.keywords)
        choice = options.get("tool_choice")
        return {**sent, "tool_choice": choice} if choice and choice not in capabilities.choices else sent
    match choose_format(options, capabilities):
        case "json_object":
            sent["response_format"] = {"type": "json_object"}
        case "json_schema":
            schema = {"name": "step", "schema": without_keywords(options["step_schema"], capabilities.keywords)}
            strict = {"strict": True} if capabilities.strict else {}
            sent["response_format"] = {"type": "json_schema", "json_schema": {**schema, **strict}}
        case _:
            pass
    return sent


def without_keywords(schema: Any, keywords: frozenset[str]) -> Any:
    """JSON Schemas without keywords that an endpoint does not know; a property of such a name is not a keyword."""
    if not keywords:
        return schema
    if isinstance(schema, list):
        return [without_keywords(item, keywords) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _strip_value(key, value, keywords) for key, value in schema.items() if key not in keywords}


def _strip_value(key: str, value: Any, keywords: frozenset[str]) -> Any:
    if key in ("properties", "$defs") and isinstance(value, dict):
        return {name: without_keywords(item, keywords) for name, item in value.items()}
    return value if key in ("enum", "const", "default", "examples") else without_keywords(value, keywords)


# ── streams ──────────────────────────────────────────────────────────────────────────────────────

STREAM_FIELDS: dict[Streaming, bytes] = {
    "with usage": b',"stream":true,"stream_options":{"include_usage":true}}',
    "bare": b',"stream":true}',
}
STREAM_ONLY = lazy_compile(r"only supports? stream", re.IGNORECASE)


def with_stream(body: bytes, streaming: Streaming) -> bytes:
    """Return a request's JSON object, with the fields that ask for a stream."""
    return body if streaming == "not" else body[:-1] + STREAM_FIELDS[streaming]


def wants_stream(refusal: Refusal, *, has_to_think: bool = False) -> bool:
    """Return whether the model replies only in a stream, as DashScope's do that always think, or that are asked to."""
    allows_thinking = contains_in_order(refusal.message.lower(), "enable_thinking", "restricted to true")
    allows_thinking = allows_thinking or (has_to_think and THINKING.search(refusal.message) is not None)
    return refusal.status in REFUSED_PART and (allows_thinking or STREAM_ONLY.search(refusal.message) is not None)
