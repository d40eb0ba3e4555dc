"""What is left out of a request once an endpoint refuses it, by the words of the refusal. Pure."""

import re
from dataclasses import replace
from typing import Final

from agent_core.models.client import Question
from agent_core.models.endpoint.answer import Refusal
from agent_core.models.endpoint.asking import Adapted
from agent_core.models.endpoint.capabilities import EndpointCapabilities, Streaming
from agent_core.models.endpoint.conversation import read_conversation
from agent_core.models.endpoint.refused_parts import (
    REFUSED_PART,
    downgrade_streaming,
    find_unsupported_options,
    is_format_refusal,
    lower_format,
)
from agent_core.models.openai.request import wants_stream
from agent_core.models.openai.responses.items import API
from agent_core.models.openai.responses.reasoning import EFFORTS
from agent_core.models.openai.responses.request import IDS, INCLUDE, NATIVE, SAMPLING, STRICT
from utools.lazy_pattern import lazy_compile

OPTIONS: Final = (*SAMPLING, "max_output_tokens")
NAMED: Final = lazy_compile(r"""(?:["'`]|: |\b(?:body|request)\.)(temperature|top_p|max_output_tokens)(?:["'`:]|$)""")
OWN_PART_STATUSES: Final = (200, 400, 404, 422)
"""A refusal of what was sent may come in a stream, too."""
LOOKED_UP: Final = lazy_compile(r"\bitem\b.{0,120}\bnot found|items are not persisted|duplicate item", re.I)
"""The endpoint looked an item up by its id, and did not read what was sent of it."""
UNDECRYPTED: Final = lazy_compile(r"encrypted.content.{0,200}(verif|decrypt|pars)(y|ied|ed|t)?\b", re.I | re.S)
OF_PARTS: Final = lazy_compile(r"without its required|\binput\[\d|\['?input'?, \d", re.I)
OF_INCLUDE: Final = lazy_compile(
    r"^include\b|['\"`]include\b|encrypted.content is not supported|reasoning\.encrypted_content", re.I
)
OF_EFFORT: Final = lazy_compile(r"reasoning[._ ]?effort|['\"`]reasoning['\"`]|parameter: reasoning\b", re.I)
OF_SCHEMA: Final = lazy_compile(r"invalid schema for function|['\"`.]strict\b|strict mode", re.I)
EFFORT: Final = lazy_compile(r"['\"`](none|minimal|low|medium|high|xhigh|max)['\"`]")
SUPPORTED: Final = lazy_compile(r"supported values|must be one of|expected one of", re.I)


def ask_for_less(
    question: Question, capabilities: EndpointCapabilities, streaming: Streaming, refusal: Refusal
) -> Adapted | None:
    """Return how to ask again; None when the refusal is about nothing that can be left out.

    Each step leaves out one thing more, so that the steps end.
    """
    if not capabilities.only_streams and streaming == "not" and wants_stream(refusal):
        return Adapted(replace(capabilities, only_streams=True), "with usage")
    if lower_streaming := downgrade_streaming(streaming, refusal):
        return Adapted(capabilities, lower_streaming)
    left_out = capabilities.left_out
    if refusal.status in OWN_PART_STATUSES and (unwanted := _find_own_parts(question, left_out, refusal)):
        return Adapted(replace(capabilities, left_out=left_out | {unwanted}), streaming, unwanted == IDS)
    if refusal.status in REFUSED_PART:
        if unwanted_parts := _find_named_parts(question, refusal) - left_out:
            return Adapted(replace(capabilities, left_out=left_out | unwanted_parts), streaming)
        choice = question.options.get("tool_choice")
        of_choice = re.search(r"tool[ _]choice", f"{refusal.param} {refusal.message}")
        if choice and of_choice and choice not in capabilities.choices:
            return Adapted(replace(capabilities, choices=capabilities.choices | {choice}), streaming)
    if lower := lower_format(capabilities, question, refusal):
        return Adapted(lower, streaming, is_format_refusal(refusal))
    return None


def _find_own_parts(question: Question, left_out: frozenset[str], refusal: Refusal) -> str | None:
    """Return what the endpoint does not take back of its own replies: their ids, or all that only this API knows.

    An endpoint that looks items up by id is asked without ids from then on; a part that it cannot read is of this
    conversation alone.
    """
    text = f"{refusal.code} {refusal.param} {refusal.message}"
    is_looked_up = LOOKED_UP.search(text) is not None
    is_refused = (
        is_looked_up or "invalid_encrypted_content" in text or UNDECRYPTED.search(text) or OF_PARTS.search(text)
    )
    if not is_refused or NATIVE in left_out or not _has_own_parts(question):
        return None
    return IDS if is_looked_up and IDS not in left_out else NATIVE


def _has_own_parts(question: Question) -> bool:
    return any(turn.parts is not None for turn in read_conversation(question.messages, API).turns)


def _find_named_parts(question: Question, refusal: Refusal) -> set[str]:
    """Return what the refusal names of the request, in the words of `left_out`."""
    text, options = f"{refusal.param} {refusal.message}", question.options
    if options.get("reasoning") and OF_EFFORT.search(text):
        return _find_efforts(refusal)
    if OF_INCLUDE.search(text):
        return {INCLUDE}
    if options.get("tools") and OF_SCHEMA.search(text):
        return {STRICT}
    return find_unsupported_options(refusal, OPTIONS, NAMED) & options.keys()


def _find_efforts(refusal: Refusal) -> set[str]:
    """Return the words for how much to think that the endpoint refuses, or all of `reasoning`."""
    words = {*EFFORTS, "minimal"}
    before, *after = SUPPORTED.split(refusal.message, maxsplit=1)
    if after and (supported := set(EFFORT.findall(after[0]))):
        return {f"effort:{word}" for word in words - supported}
    refused = EFFORT.findall(before)
    return {f"effort:{word}" for word in refused} or {"reasoning"}
