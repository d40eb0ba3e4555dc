"""The conversation of a question, as turns for APIs whose messages are not OpenAI's; and the parts of a message that
only one API understands. Pure.

Such parts are thoughts with their signatures, reasoning items, calls as they came. A reply brings them in its `echo`
as {"native": {"api", "parts"}}; they are recorded with it, and come back as the key `native` of its message.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple

import orjson

from agent_core.models.endpoint.envelope import decode
from agent_core.outputs import Json
from utools.lazy_pattern import lazy_compile

OWN_PARTS = "native"
MAX_ID: Final = 40
_LONG_ID = lazy_compile(rb'"tool_call_id":"[^"]{41}')
"""In the bytes of a result, by which a call is answered that has such an id."""
_MARK = b'"native":{'
"""In the bytes of a message that has such parts, and of no other: in a text of it the quotes are escaped."""


class Call(NamedTuple):
    """A call of a turn by the id under which its result comes. `args` are those that the model sees again."""

    id: str
    name: str
    args: Json


class Result(NamedTuple):
    """What a call gave, as text."""

    id: str
    name: str
    text: str


@dataclass(slots=True)
class Turn:
    """What one side says at once: texts and results, or a text and calls. `parts` are its own ones, as they came."""

    role: Literal["user", "assistant"]
    texts: list[str] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    parts: list[Any] | None = None


class Conversation(NamedTuple):
    """The system's texts, the turns by sides that alternate, and the other APIs whose own parts were left out."""

    system: tuple[str, ...]
    turns: list[Turn]
    dropped: tuple[str, ...]


def own_parts(api: str, parts: Sequence[Any]) -> Json:
    """Return the `echo` of a reply with parts that its API wants back as they are."""
    return {OWN_PARTS: {"api": api, "parts": list(parts)}}


def join_parts(before: Json | None, after: Json | None) -> Json | None:
    """Return the `echo` of a reply that came in two, with the own parts of both."""
    if before is None or after is None:
        return after or before
    first, second = (echo.get(OWN_PARTS, {}) for echo in (before, after))
    return {**before, **after, OWN_PARTS: {**second, "parts": [*first.get("parts", ()), *second.get("parts", ())]}}


def join_messages(messages: Sequence[bytes]) -> tuple[bytes, tuple[str, ...]]:
    """Return the messages joined by commas, without the parts that only one API understands, and the APIs that these
    were of. OpenAI refuses ids of calls that are longer than its own, such as those of another vendor."""
    kept, apis = list(messages), list[str]()
    if _LONG_ID.search(joined := b",".join(kept)):
        joined = b",".join(kept := [_shorten_ids(message) for message in kept])
    if _MARK not in joined:
        return joined, ()
    for index, message in enumerate(kept):
        if _MARK in message and isinstance(own := (value := orjson.loads(message)).pop(OWN_PARTS, None), dict):
            kept[index] = orjson.dumps(value)
            apis.append(str(own.get("api")))
    return b",".join(kept), tuple(dict.fromkeys(apis))


def fit_id(id_: str, longest: int) -> str:
    """Return an id that is not too long: those of an earlier conversation are a caller's."""
    return id_ if len(id_) <= longest else sha256(id_.encode("utf-8", "replace")).hexdigest()[:longest]


def _shorten_ids(message: bytes) -> bytes:
    """Return a message whose ids of calls fit, as it came where they do."""
    if b'"tool_call' not in message:
        return message
    value = orjson.loads(message)
    calls = [{**call, "id": fit_id(call["id"], MAX_ID)} for call in value.get("tool_calls") or ()]
    answered = value.get("tool_call_id")
    if calls == (value.get("tool_calls") or []) and (answered is None or len(answered) <= MAX_ID):
        return message
    more = {"tool_calls": calls} if calls else {"tool_call_id": fit_id(answered, MAX_ID)}
    return orjson.dumps({**value, **more})


def read_conversation(messages: Sequence[bytes], api: str, *, keeps_parts: bool = True) -> Conversation:
    """Return the turns of a question's messages, with the own parts of this API alone, or of none.

    Neighbouring messages of one side are one turn, so that sides alternate. A call without a result, or a result
    without its call, does not occur in a question: the loop answers every call.
    """
    system: list[str] = []
    turns: list[Turn] = []
    names: dict[str, str] = {}
    dropped: list[str] = []
    for message in map(orjson.loads, messages):
        role, text = message["role"], _read_text(message.get("content"))
        if role == "system":
            system.append(text)
            continue
        parts, other = _read_parts(message, api, keeps_parts=keeps_parts)
        dropped += other
        calls = [_read_call(call) for call in message.get("tool_calls") or ()]
        names |= {call.id: call.name for call in calls}
        side: Literal["user", "assistant"] = "assistant" if role == "assistant" else "user"
        if not turns or turns[-1].role != side or parts is not None or turns[-1].parts is not None:
            turns.append(Turn(side))
        turn = turns[-1]
        turn.parts, turn.calls = parts, [*turn.calls, *calls]
        if role == "tool":
            id_ = message["tool_call_id"]
            turn.results.append(Result(id_, names.get(id_, ""), text))
        elif text:
            turn.texts.append(text)
    return Conversation(tuple(system), turns, tuple(dict.fromkeys(dropped)))


def _read_text(content: Any) -> str:
    """Return the text of a message's content: a text, null, or a list of parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") == "text")
    return content or ""


def _read_parts(message: Json, api: str, *, keeps_parts: bool) -> tuple[list[Any] | None, list[str]]:
    own = message.get(OWN_PARTS)
    if not isinstance(own, dict):
        return None, []
    if own.get("api") != api or not keeps_parts:
        return None, [str(own.get("api"))]
    return own["parts"], []


def _read_call(call: Json) -> Call:
    function = call["function"]
    try:
        args = decode(function["arguments"].encode())
    except ValueError:
        args = {}
    return Call(call["id"], function["name"], args if isinstance(args, dict) else {})
