"""How a reply is asked for as a stream, and what is given up of that when an endpoint refuses it. Pure."""

import re
from typing import Literal

from agent_core.models.openai.response import Refusal, in_order

Streaming = Literal["with usage", "bare", "not"]
"""What an endpoint takes: a stream that ends with its token counts, a stream, or none."""
LESS_AND_LESS: tuple[Streaming, ...] = ("with usage", "bare", "not")
SENT: dict[Streaming, bytes] = {
    "with usage": b',"stream":true,"stream_options":{"include_usage":true}}',
    "bare": b',"stream":true}',
}
NAMED = re.compile(r"\bstream(ing|_options)?\b", re.IGNORECASE)
ONLY = re.compile(r"only supports? stream", re.IGNORECASE)
NOT_TAKEN = re.compile(
    r"not (be |yet |currently )*(supported|permitted|allowed|available|enabled|implemented|accepted|taken)"
    r"|(does|do|is|can)(n't|not| not) (support|allow|accept|take|stream)|unsupported|unrecognized|\bextra\b|forbidden"
    r"|(unknown|unexpected|invalid) (name|field|param|arg|key|option|propert)|disabled|\bis off\b|be verified",
    re.IGNORECASE,
)
"""How vendors say that they do not take an option; a stream that broke is spoken of in other words."""
SENTENCE = re.compile(r"(?<=[.;!?\n])\s")
REFUSED = (400, 422)


def streamed(body: bytes, streaming: Streaming) -> bytes:
    """A request's JSON object, asking for its reply as a stream."""
    return body if streaming == "not" else body[:-1] + SENT[streaming]


def wants_stream(refusal: Refusal) -> bool:
    """Whether a model replies in a stream only, as DashScope says of some that always think."""
    thinks = in_order(refusal.message.lower(), "enable_thinking", "restricted to true")
    return refusal.status in REFUSED and (thinks or ONLY.search(refusal.message) is not None)


def less_streamed(streaming: Streaming, refusal: Refusal) -> Streaming | None:
    """What to ask for after a refusal of the stream; None when it is about something else."""
    about = [each for each in SENTENCE.split(refusal.message) if NAMED.search(each) and NOT_TAKEN.search(each)]
    told = " ".join([refusal.param, *about])
    if streaming == "not" or refusal.status not in REFUSED or not NAMED.search(told):
        return None
    return "bare" if streaming == "with usage" and "stream_options" in told else "not"


def known(before: Streaming, asked: Streaming | None, streaming: Streaming) -> Streaming:
    """What is known of an endpoint once a question, first `asked` like this, was answered like that.

    Others may have learnt meanwhile; who did not ask for a stream learnt nothing of it.
    """
    if asked in (None, streaming):
        return before
    return streaming if asked == "not" else max(before, streaming, key=LESS_AND_LESS.index)
