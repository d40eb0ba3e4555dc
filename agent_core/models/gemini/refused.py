"""What is left out of a request to the Gemini API once its endpoint refuses it. Pure."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from agent_core.models.client import Question
from agent_core.models.endpoint.answer import Refusal, contains_in_order
from agent_core.models.endpoint.capabilities import EndpointCapabilities, Streaming
from agent_core.models.endpoint.refused_parts import LOWER_FORMAT, REFUSED_PART
from agent_core.models.gemini.contents import NATIVE, SIGNATURE, SYSTEM, UNSIGNED
from agent_core.models.gemini.request import PARAMETERS, RESPONSE_SCHEMA, choose_format, find_thinking, write_request
from agent_core.models.gemini.response import NO_SIGNATURE
from agent_core.models.gemini.thinking import LEAST, find_refused
from utools.lazy_pattern import lazy_compile

UNSUPPORTED = lazy_compile(
    r"unsupported|unknown name|cannot find field|unrecognized|not (be )?(supported|permitted|allowed|enabled|available)"
    r"|(does|do)(n't| not) support|deprecated",
    re.I,
)
GENERIC = lazy_compile(r"contains an invalid argument", re.I)
"""All that Gemini says of some faults."""
OTHER_FAULT = lazy_compile(r"\bapi key\b|user location|billing account|token count|is not found", re.I)
"""Refusals that no other request of ours would change."""
OPTIONS = {
    "temperature": r"\btemperature\b",
    "top_p": r"\btop_?p\b",
    "seed": r"\bseed\b",
    "stop": r"\bstop_?sequences?\b",
}
"""Options for sampling as Gemini's refusals name them."""
ELSEWHERE = lazy_compile(r"schema|function_?declaration|properties|contents\[", re.I)
"""A refusal with these words may name a property of a schema, which is not an option."""
OF_SIGNATURE = lazy_compile(r"thought[_ ]?signature", re.I)
OF_PARTS = lazy_compile(r"\bcontents\[|function (call|response) (parts?|turn)\b", re.I)
OF_SYSTEM = lazy_compile(r"(developer|system)[_ ]?instruction", re.I)
OF_CHOICE = lazy_compile(r"function_?calling_?config|tool_?config|calling mode", re.I)
OF_TOOLS = lazy_compile(r"parameters_?json_?schema|function_?declarations?\b|\btools\[|schema", re.I)
OF_THINKING = lazy_compile(r"think|budget \d", re.I)
OF_FORMAT = lazy_compile(
    r"response_?(mime_?type|(json_?)?schema|format)|json mode|structured output|\bschemas?\b|constraint|mime type", re.I
)
NO_STREAM = lazy_compile(
    r"(streamGenerateContent|stream\w*).{0,60}not (be )?(supported|allowed|enabled|available)"
    r"|not supported for streamGenerateContent",
    re.I,
)


def downgrade_streaming(streaming: Streaming, refusal: Refusal) -> Streaming | None:
    """Return what to ask for after a refusal of the stream; None when the refusal has another reason."""
    is_refused = refusal.status in (*REFUSED_PART, 404, 501) and NO_STREAM.search(refusal.message)
    return "not" if streaming != "not" and is_refused else None


def downgrade(
    model: str, question: Question, capabilities: EndpointCapabilities, refusal: Refusal
) -> tuple[EndpointCapabilities, bool] | None:
    """Return the capabilities without the first part that the refusal may be about and that was sent, and whether they
    are worth remembering; None when nothing can be left out."""
    if (refusal.status not in REFUSED_PART and refusal.code != NO_SIGNATURE) or OTHER_FAULT.search(refusal.message):
        return None
    sent, _ = write_request(model, question, capabilities)
    for less, lasting in _find_changes(model, question.options, capabilities, refusal):
        if less != capabilities and write_request(model, question, less)[0] != sent:
            return less, lasting
    return None


def _find_changes(
    model: str, options: dict[str, Any], capabilities: EndpointCapabilities, refusal: Refusal
) -> Iterator[tuple[EndpointCapabilities, bool]]:
    """Yield the capabilities with less, the likeliest first, and whether they are worth remembering."""
    message = refusal.message

    def without(*words: str) -> EndpointCapabilities:
        return replace(capabilities, left_out=capabilities.left_out | {*words})

    if refusal.code == NO_SIGNATURE or OF_SIGNATURE.search(message):
        if refusal.code == NO_SIGNATURE or "missing" in message.lower():
            yield without(UNSIGNED), True
        yield without(NATIVE), False
        yield without(SIGNATURE), True
        return
    is_generic = GENERIC.search(message) is not None
    if unwanted := _find_unsupported(message) & options.keys():
        yield without(*unwanted), True
    thinking = find_thinking(model, options, capabilities)
    if thinking and (is_generic or OF_THINKING.search(message)):
        yield without(find_refused(thinking, message)), not is_generic or not LEAST.isdisjoint(thinking.values())
    if OF_SYSTEM.search(message):
        yield without(SYSTEM), True
    if options.get("tools"):
        choice = options.get("tool_choice")
        if choice and OF_CHOICE.search(message):
            yield replace(capabilities, choices=capabilities.choices | {choice}), True
        if is_generic or OF_TOOLS.search(message):
            yield without(PARAMETERS), True
    if OF_PARTS.search(message):
        yield without(NATIVE), False
    yield from _lower_format(options, capabilities, message)


def _find_unsupported(message: str) -> set[str]:
    """Return the sampling options that the endpoint does not support, whatever their value."""
    if contains_in_order(message.lower(), "temperature", "p", "cannot both be specified"):
        return {"top_p"}
    if not UNSUPPORTED.search(message) or ELSEWHERE.search(message):
        return set()
    return {name for name, words in OPTIONS.items() if re.search(words, message, re.I)}


def _lower_format(
    options: dict[str, Any], capabilities: EndpointCapabilities, message: str
) -> Iterator[tuple[EndpointCapabilities, bool]]:
    """Yield the schema in Gemini's dialect where the field of JSON Schemas is unknown, then lower formats.

    A refusal that may have another reason leads to one more question without any format.
    """
    form = choose_format(options, capabilities)
    is_of_format = OF_FORMAT.search(message) is not None
    if form == "json_schema" and re.search(r"response_?json_?schema", message, re.I) and UNSUPPORTED.search(message):
        yield replace(capabilities, left_out=capabilities.left_out | {RESPONSE_SCHEMA}), True
    if options.get("response_format") == "auto" and form in LOWER_FORMAT:
        yield replace(capabilities, format=LOWER_FORMAT[form] if is_of_format else "text"), is_of_format
