"""Which part of a request an endpoint's refusal names, in the words of many vendors. Pure."""

import re

from agent_core.models.endpoint.answer import Refusal, contains_in_order
from agent_core.models.endpoint.capabilities import Streaming
from agent_core.models.endpoint.refusals import BAD_SAMPLE

REFUSED_PART = (400, 422)
"""Statuses of a refusal of a part."""

# ── options ──────────────────────────────────────────────────────────────────────────────────────

SAMPLING = ("temperature", "top_p", "seed", "stop")
UNSUPPORTED = re.compile(r"unsupported|unknown|unrecognized|not (be )?(supported|permitted|allowed)|deprecated", re.I)
NAMED = re.compile(r"""(?:["'`]|: |\b(?:body|request)\.)(temperature|top_p|seed|stop)["'`:]""")
"""A sampling option as vendors name it: quoted, or before a colon."""
ELSEWHERE = re.compile(r"properties|schema|response_format|function_declarations|\b(tools|messages)[.\['\"]", re.I)
"""A refusal with these words may name a property of a schema, which is not an option."""


def find_unsupported_options(refusal: Refusal) -> set[str]:
    """Return the sampling options that the endpoint does not support, whatever their value."""
    if contains_in_order(refusal.message, "temperature", "top_p", "cannot both be specified"):
        return {"top_p"}
    if not UNSUPPORTED.search(f"{refusal.code} {refusal.message}"):
        return set()
    if named := {refusal.param} & set(SAMPLING):
        return named
    elsewhere = ELSEWHERE.search(f"{refusal.param} {refusal.message}")
    return set() if elsewhere else set(NAMED.findall(refusal.message))


# ── the response format ──────────────────────────────────────────────────────────────────────────

OF_FORMAT = re.compile(
    r"response[_ ]format|json[_ ](schema|object|mode)|structured[_ ]output|\bschemas?\b|grammar|requested parameters",
    re.I,
)
"""Words of a refusal of the response format at OpenAI, llama.cpp, vLLM, Qwen and OpenRouter."""
PAGE = re.compile(r"<(!doctype|html|head|body)\b", re.I)


def is_format_refusal(refusal: Refusal) -> bool:
    """Return whether a refusal is about the response format, so that a lower one is worth remembering."""
    if refusal.code == BAD_SAMPLE or PAGE.search(refusal.message):
        return False
    return OF_FORMAT.search(f"{refusal.param} {refusal.message}") is not None


# ── streams ──────────────────────────────────────────────────────────────────────────────────────

STREAM_OPTION = re.compile(r"\bstream(ing|_options)?\b", re.IGNORECASE)
STREAM_UNSUPPORTED = re.compile(
    r"not (be |yet |currently )*(supported|permitted|allowed|available|enabled|implemented|accepted|taken)"
    r"|(does|do|is|can)(n't|not| not) (support|allow|accept|take|stream)|unsupported|unrecognized|\bextra\b|forbidden"
    r"|(unknown|unexpected|invalid) (name|field|param|arg|key|option|propert)|disabled|\bis off\b|be verified",
    re.IGNORECASE,
)
"""How vendors say that an option is unsupported; a stream that broke is reported in other words."""
SENTENCE = re.compile(r"(?<=[.;!?\n])\s")


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
