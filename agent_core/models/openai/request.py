"""What an endpoint for chat completions is sent, and what is given up when it refuses a part of that. Pure."""

import re
from dataclasses import replace
from typing import Any

import orjson

from agent_core.models.client import Question
from agent_core.models.openai.capabilities import EndpointCapabilities
from agent_core.models.openai.response import Refusal, in_order

SAMPLING = ("temperature", "top_p", "seed", "stop")
MILDER = {"json_schema": "json_object", "json_object": "text"}
REFUSED_PART, REFUSED_FORMAT = (400, 422), (400, 404, 422, 501)
NO_FORMAT_HELPS = ("content_filter", "context_length_exceeded", "model_not_found", "invalid_api_key")
OTHER_FAULT = re.compile(
    r"context (length|window)|too long|input length|token count|api key|credit balance|quota", re.IGNORECASE
)
"""What a refusal is about when no other response format would help; Gemini answers 400 to a wrong key, too."""
UNSUPPORTED = re.compile(r"unsupported|unknown|unrecognized|not (be )?(supported|permitted|allowed)|deprecated", re.I)
NAMED = re.compile(r"""(?:["'`]|: |\b(?:body|request)\.)(temperature|top_p|seed|stop)["'`:]""")
"""A sampling option as vendors name it: quoted, or before a colon."""
ELSEWHERE = re.compile(r"properties|schema|response_format|function_declarations|\b(tools|messages)[.\['\"]", re.I)
"""A refusal that speaks of these may name a property of a schema, which is no option."""
OF_FORMAT = re.compile(
    r"response[_ ]format|json[_ ](schema|object|mode)|structured[_ ]output|\bschemas?\b|grammar|requested parameters",
    re.I,
)
"""What a refusal of the response format speaks of, in the words of OpenAI, llama.cpp, vLLM, Qwen and OpenRouter."""
PAGE = re.compile(r"<(!doctype|html|head|body)\b", re.I)
BAD_SAMPLE = "json_validate_failed"
"""Groq's code for what a model wrote once; its endpoint does take the format."""
UNKNOWN_KEYWORD = re.compile(r"""Unknown name \\?"([$\w]+)\\?" at '[^']*(?:function_declarations|response_)""")
THINKING = re.compile(r"enable_thinking must be set to false")


def request_body(model: str, question: Question, habits: EndpointCapabilities) -> bytes:
    """The request's JSON. The messages go as they came, so the prefix that a vendor caches stays the same bytes."""
    head = b'{"model":%b,"messages":[%b]' % (orjson.dumps(model), b",".join(question.messages))
    if sent := _options(question.options, habits):
        return head + b"," + orjson.dumps(sent)[1:]
    return head + b"}"


def toned_down(habits: EndpointCapabilities, question: Question, refusal: Refusal) -> EndpointCapabilities | None:
    """Habits under which the refused question may be taken after all; None when there is nothing to give up.

    Each step gives up something that was sent, so there is an end to it. What may be for another reason than the
    response format is asked once more, without any; see `teaches`.
    """
    sent = _options(question.options, habits)
    less = _less(habits, sent, refusal) if refusal.status in REFUSED_PART else None
    if less and _options(question.options, less) != sent:
        return less
    milder = MILDER.get(_format(question.options, habits))
    if not milder or question.options.get("response_format") != "auto" or _other_fault(refusal):
        return None
    if refusal.status not in REFUSED_FORMAT:
        return None
    return replace(habits, format=milder if teaches(refusal) else "text")


def teaches(refusal: Refusal) -> bool:
    """Whether a refusal speaks of the response format, so that a milder one is worth remembering."""
    if refusal.code == BAD_SAMPLE or PAGE.search(refusal.message):
        return False
    return OF_FORMAT.search(f"{refusal.param} {refusal.message}") is not None


def _less(habits: EndpointCapabilities, sent: dict[str, Any], refusal: Refusal) -> EndpointCapabilities | None:
    """Habits without the part that the refusal names."""
    told = refusal.message
    if habits.tokens == "max_tokens" and "max_tokens" in sent and "max_completion_tokens" in told:
        return replace(habits, tokens="max_completion_tokens")
    if unwanted := _unwanted(refusal) & sent.keys():
        return replace(habits, left_out=habits.left_out | unwanted)
    if "tool_choice" in sent and re.search(r"tool[ _]choice", f"{refusal.param} {told}"):
        return replace(habits, choices=habits.choices | {sent["tool_choice"]})
    if words := frozenset(UNKNOWN_KEYWORD.findall(told)) - habits.keywords:
        return replace(habits, keywords=habits.keywords | words)
    if habits.thinks and THINKING.search(told):
        return replace(habits, thinks=False)
    return None


def _unwanted(refusal: Refusal) -> set[str]:
    """The sampling options that the endpoint says it does not take, whatever their value."""
    if in_order(refusal.message, "temperature", "top_p", "cannot both be specified"):
        return {"top_p"}
    if not UNSUPPORTED.search(f"{refusal.code} {refusal.message}"):
        return set()
    if named := {refusal.param} & set(SAMPLING):
        return named
    elsewhere = ELSEWHERE.search(f"{refusal.param} {refusal.message}")
    return set() if elsewhere else set(NAMED.findall(refusal.message))


def _other_fault(refusal: Refusal) -> bool:
    told = refusal.message.lower()
    missing = in_order(told, "model", " not found") or in_order(told, "model", " does not exist")
    return missing or refusal.code in NO_FORMAT_HELPS or bool(OTHER_FAULT.search(told))


def _options(options: dict[str, Any], habits: EndpointCapabilities) -> dict[str, Any]:
    """The options in the endpoint's words, without what it does not take."""
    sent = {name: options[name] for name in SAMPLING if name not in habits.left_out and _is_set(options.get(name))}
    if limit := options.get("max_output_tokens"):
        sent[habits.tokens] = limit
    if not habits.thinks:
        sent["enable_thinking"] = False
    if tools := options.get("tools"):
        sent["tools"] = without_keywords(tools, habits.keywords)
        choice = options.get("tool_choice")
        return {**sent, "tool_choice": choice} if choice and choice not in habits.choices else sent
    match _format(options, habits):
        case "json_object":
            sent["response_format"] = {"type": "json_object"}
        case "json_schema":
            schema = {"name": "step", "schema": without_keywords(options["step_schema"], habits.keywords)}
            strict = {"strict": True} if habits.strict else {}
            sent["response_format"] = {"type": "json_schema", "json_schema": {**schema, **strict}}
    return sent


def _is_set(value: Any) -> bool:
    return value is not None and value != []


def _format(options: dict[str, Any], habits: EndpointCapabilities) -> str:
    """The response format to ask for. Without a schema the strictest is any JSON object; with tools there is none."""
    if options.get("tools"):
        return "text"
    asked: str = options.get("response_format", "text")
    form = habits.format if asked == "auto" else asked
    return "json_object" if form == "json_schema" and "step_schema" not in options else form


def without_keywords(schema: Any, keywords: frozenset[str]) -> Any:
    """JSON Schemas without words that an endpoint does not know; a property of such a name is no keyword."""
    if not keywords:
        return schema
    if isinstance(schema, list):
        return [without_keywords(item, keywords) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _value(key, value, keywords) for key, value in schema.items() if key not in keywords}


def _value(key: str, value: Any, keywords: frozenset[str]) -> Any:
    if key in ("properties", "$defs") and isinstance(value, dict):
        return {name: without_keywords(item, keywords) for name, item in value.items()}
    return value if key in ("enum", "const", "default", "examples") else without_keywords(value, keywords)
