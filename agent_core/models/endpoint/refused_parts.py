"""Which part of a request an endpoint's refusal names, in the words of many vendors. Pure."""

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from agent_core.models.client import Question
from agent_core.models.endpoint.answer import Refusal, contains_in_order
from agent_core.models.endpoint.capabilities import EndpointCapabilities, Streaming
from agent_core.models.endpoint.refusals import BAD_SAMPLE
from utools.lazy_pattern import lazy_compile

REFUSED_PART = (400, 422)
"""Statuses of a refusal of a part."""

# ── options ──────────────────────────────────────────────────────────────────────────────────────

SAMPLING = ("temperature", "top_p", "seed", "stop")
UNSUPPORTED = lazy_compile(
    r"unsupported|unknown|unrecognized|not (be )?(supported|permitted|allowed)|deprecated|only \d[\d.]{0,9} is allowed"
    r"|must be (?:strictly positive|> 0\.0 and < 1\.0)",
    re.I,
)
NAMED = lazy_compile(r"""(?:["'`\[]|: |\b(?:body|request)\.|\binvalid )(temperature|top_p|seed|stop)["'`:\]]""")
"""A sampling option as vendors name it: quoted, in brackets, or before a colon."""
ELSEWHERE = lazy_compile(r"properties|schema|response_format|function_declarations|\b(tools|messages)[.\['\"]", re.I)
"""A refusal with these words may name a property of a schema, which is not an option."""


def find_unsupported_options(
    refusal: Refusal, options: Collection[str] = SAMPLING, named: re.Pattern[str] = NAMED
) -> set[str]:
    """Return the options that the endpoint does not support: whatever their value, or at an end of their range (TGI).

    `named` finds them in its words.
    """
    if contains_in_order(refusal.message, "temperature", "top_p", "cannot both be specified"):
        return {"top_p"}
    if not UNSUPPORTED.search(f"{refusal.code} {refusal.message}"):
        return set()
    if by_param := {refusal.param} & set(options):
        return by_param
    elsewhere = ELSEWHERE.search(f"{refusal.param} {refusal.message}")
    return set() if elsewhere else set(named.findall(refusal.message))


# ── the response format ──────────────────────────────────────────────────────────────────────────

LOWER_FORMAT = {"json_schema": "json_object", "json_object": "text"}
REFUSED_FORMAT, INTERNAL = (400, 404, 422, 501), 500
"""Statuses of a refusal of the format; llama.cpp's servers answer 500, in words that speak of it."""
NO_FORMAT_HELPS = ("content_filter", "context_length_exceeded", "model_not_found", "invalid_api_key")
OTHER_FAULT = lazy_compile(
    r"context (length|window)|too long|input length|token count|api key|credit balance|quota", re.IGNORECASE
)
"""Refusals that no other response format would change; Gemini answers 400 to a wrong key, too."""
OF_FORMAT = lazy_compile(
    r"response[_ ]format|json[_ ](schema|object|mode)|structured[_ ]output|\bschemas?\b|grammar|requested parameters",
    re.I,
)
"""Words of a refusal of the response format at OpenAI, llama.cpp, vLLM, Qwen and OpenRouter."""
PAGE = lazy_compile(r"<(!doctype|html|head|body)\b", re.I)


def lower_format(
    capabilities: EndpointCapabilities, question: Question, refusal: Refusal
) -> EndpointCapabilities | None:
    """Return capabilities with a lower response format, under which the question may be accepted; None when no format
    helps.

    A refusal that may have another reason than the format leads to one more question without any.
    """
    lower = LOWER_FORMAT.get(choose_format(question.options, capabilities))
    if not lower or question.options.get("response_format") != "auto" or _is_other_fault(refusal):
        return None
    is_of_format = is_format_refusal(refusal)
    if refusal.status not in REFUSED_FORMAT and not (refusal.status == INTERNAL and is_of_format):
        return None
    return replace(capabilities, format=lower if is_of_format else "text")


def is_format_refusal(refusal: Refusal) -> bool:
    """Return whether a refusal is about the response format, so that a lower one is worth remembering."""
    if refusal.code == BAD_SAMPLE or PAGE.search(refusal.message):
        return False
    return OF_FORMAT.search(f"{refusal.param} {refusal.message}") is not None


def choose_format(options: dict[str, Any], capabilities: EndpointCapabilities) -> str:
    """Return the response format to ask for. Without a schema the strictest is any JSON object; with tools there is
    none."""
    if options.get("tools"):
        return "text"
    asked: str = options.get("response_format", "text")
    form = capabilities.format if asked == "auto" else asked
    return "json_object" if form == "json_schema" and "step_schema" not in options else form


def is_set(value: Any) -> bool:
    return value is not None and value != []


def _is_other_fault(refusal: Refusal) -> bool:
    message = refusal.message.lower()
    missing = contains_in_order(message, "model", " not found") or contains_in_order(
        message, "model", " does not exist"
    )
    return missing or refusal.code in NO_FORMAT_HELPS or bool(OTHER_FAULT.search(message))


# ── streams ──────────────────────────────────────────────────────────────────────────────────────

STREAM_OPTION = lazy_compile(r"\bstream(ing|_options)?\b", re.IGNORECASE)
STREAM_UNSUPPORTED = lazy_compile(
    r"not (be |yet |currently )*(supported|permitted|allowed|available|enabled|implemented|accepted|taken)"
    r"|(does|do|is|can)(n't|not| not) (support|allow|accept|take|stream)|unsupported|unrecognized|\bextra\b|forbidden"
    r"|(unknown|unexpected|invalid) (name|field|param|arg|key|option|propert)|disabled|\bis off\b|be verified",
    re.IGNORECASE,
)
"""How vendors say that an option is unsupported; a stream that broke is reported in other words."""
SENTENCE = lazy_compile(r"(?<=[.;!?\n])\s")


def downgrade_streaming(streaming: Streaming, refusal: Refusal) -> Streaming | None:
    """Return what to ask for after a refusal of the stream; None when the refusal has another reason."""
    about = [
        each
        for each in SENTENCE.split(refusal.message)
        if STREAM_OPTION.search(each) and STREAM_UNSUPPORTED.search(each)
    ]
    text = " ".join([refusal.param, *about])
    if streaming == "not" or refusal.status not in REFUSED_PART or not STREAM_OPTION.search(text):
        return None
    return "bare" if streaming == "with usage" and "stream_options" in text else "not"
