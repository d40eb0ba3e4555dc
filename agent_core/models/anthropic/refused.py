"""What is left out of a request once an endpoint for the Messages API refuses it. Pure."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import orjson

from agent_core.models.anthropic.request import CACHE, CHOICES, NATIVE, Asked, write_request
from agent_core.models.anthropic.thinking import ALL, word
from agent_core.models.endpoint.answer import Refusal
from agent_core.models.endpoint.capabilities import EndpointCapabilities
from agent_core.models.endpoint.refused_parts import (
    ELSEWHERE,
    REFUSED_PART,
    find_unsupported_options,
    is_format_refusal,
)
from agent_core.outputs import Json
from utools.lazy_pattern import lazy_compile

_OWN_PARTS = lazy_compile(r"\bmessages[.\[]\s*\d|signature|cannot be modified|encrypted|redacted_thinking", re.I)
"""A refusal of the conversation. Any of it may be due to a model's own blocks, which are all that can be left out."""
_NEEDS_THOUGHT = lazy_compile(r"expected [`'\"]?thinking", re.I)
_CHOICE = lazy_compile(r"tool[ _]choice", re.I)
_OPTION = lazy_compile(r"\b(temperature|top_p|stop_sequences)\b")
_OPTION_REFUSED = lazy_compile(
    r"unsupported|not (be )?(support|permit|allow)|deprecated|removed|no longer|only be set|extra input|unknown", re.I
)
_EFFORT = lazy_compile(r"\beffort\b|output_config(?!\.format)", re.I)
_THINKING = lazy_compile(r"\bthinking\b", re.I)
_FORMAT = lazy_compile(r"output_(config|format)", re.I)
_LIMIT = lazy_compile(r"\bmax_tokens\b", re.I)


class _Change(NamedTuple):
    """What is left out; `lasting`: of later questions too."""

    words: frozenset[str] = frozenset()
    choices: frozenset[str] = frozenset()
    lasting: bool = True


def leave_out(
    asked: Asked, capabilities: EndpointCapabilities, refusal: Refusal
) -> tuple[EndpointCapabilities, bool] | None:
    """Return the capabilities without what a refusal names, and whether later questions go by them, too.

    None where leaving it out changes nothing of the request.
    """
    if refusal.status not in REFUSED_PART:
        return None
    body, _ = write_request(asked, capabilities, streams=False)
    for change in _find_changes(orjson.loads(body), refusal):
        less = replace(
            capabilities,
            left_out=capabilities.left_out | change.words,
            choices=capabilities.choices | change.choices,
        )
        if write_request(asked, less, streams=False)[0] != body:
            return less, change.lasting
    return None


def _find_changes(sent: Json, refusal: Refusal) -> Iterator[_Change]:
    """Yield what the refusal may be about, the most particular first."""
    text = f"{refusal.param} {refusal.message}"
    if CACHE in text:
        yield _Change(frozenset({CACHE}))
    if _NEEDS_THOUGHT.search(text):
        yield _Change(frozenset({ALL}), lasting=False)
    if _OWN_PARTS.search(text):
        yield _Change(frozenset({NATIVE}), lasting=False)
    if _CHOICE.search(text):
        asked = sent.get("tool_choice", {}).get("type")
        yield _Change(choices=frozenset(ours for ours, theirs in CHOICES.items() if theirs == asked))
    if options := _find_options(refusal):
        yield _Change(frozenset(options))
    yield from _find_thinking(sent, text)
    if _FORMAT.search(text) or is_format_refusal(refusal):
        yield _Change(frozenset({"response_format"}))
    if _LIMIT.search(text):
        yield _Change(frozenset({"max_tokens"}), lasting="context" not in text)


def _find_options(refusal: Refusal) -> set[str]:
    if found := find_unsupported_options(refusal):
        return found
    if not _OPTION_REFUSED.search(refusal.message) or ELSEWHERE.search(refusal.message):
        return set()
    return {"stop" if name == "stop_sequences" else name for name in _OPTION.findall(refusal.message)}


def _find_thinking(sent: Json, text: str) -> Iterator[_Change]:
    thinking = sent.get("thinking")
    if _EFFORT.search(text):
        yield _Change(frozenset({"effort"}))
    if isinstance(thinking, dict) and _THINKING.search(text) and not _LIMIT.search(text):
        yield _Change(frozenset({word(str(thinking.get("type")))}))
