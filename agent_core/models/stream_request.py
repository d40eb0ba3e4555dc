"""How a reply is asked for as a stream, and what is given up of that when an endpoint refuses it. Pure."""

import re
from typing import Literal

from agent_core.models.chat_reply import Refusal

Streaming = Literal["with usage", "bare", "not"]
"""What an endpoint takes: a stream that ends with its token counts, a stream, or none."""
SENT: dict[Streaming, bytes] = {
    "with usage": b',"stream":true,"stream_options":{"include_usage":true}}',
    "bare": b',"stream":true}',
}
NAMED = re.compile(r"\bstream(ing|_options)?\b", re.IGNORECASE)
ONLY = re.compile(r"only supports? stream|enable_thinking.*restricted to true", re.IGNORECASE)
REFUSED = (400, 422)


def streamed(body: bytes, streaming: Streaming) -> bytes:
    """A request's JSON object, asking for its reply as a stream."""
    return body if streaming == "not" else body[:-1] + SENT[streaming]


def wants_stream(refusal: Refusal) -> bool:
    """Whether a model replies in a stream only, as DashScope says of some that always think."""
    return refusal.status in REFUSED and ONLY.search(refusal.message) is not None


def less_streamed(streaming: Streaming, refusal: Refusal) -> Streaming | None:
    """What to ask for after a refusal that names the stream; None when it is about something else."""
    told = f"{refusal.param} {refusal.message}"
    if streaming == "not" or refusal.status not in REFUSED or not NAMED.search(told):
        return None
    return "bare" if streaming == "with usage" and "stream_options" in told else "not"
