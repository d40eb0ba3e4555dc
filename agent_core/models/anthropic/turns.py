"""A conversation as messages of blocks, with the model's own blocks as they came, and how far it is cached. Pure."""

from collections.abc import Collection, Sequence
from itertools import count
from typing import Any, NamedTuple

from agent_core.models.endpoint.conversation import Turn
from agent_core.outputs import Json
from utools.lazy_pattern import lazy_compile

BREAKPOINT = {"type": "ephemeral"}
MARKED_TURNS = 2
"""The user's turns to whose end the cache reaches: the last one, and that with which the question before ended."""
OPENING = "…"
"""What the user says first where the conversation begins with the assistant: the API wants a user's turn there."""
THINKING = ("thinking", "redacted_thinking")
_ID = lazy_compile(r"[A-Za-z0-9_-]+")


class WrittenTurns(NamedTuple):
    """The messages. `uses_all_parts`: no own part had to be left out."""

    messages: list[Json]
    uses_all_parts: bool


def write_turns(turns: Sequence[Turn]) -> WrittenTurns:
    """Return the turns as messages whose sides alternate, beginning with the user, who says `…` where it is missing.

    Texts without a character are left out: the API refuses them. Own parts go back as they came, and results under the
    ids in them; parts whose calls are not those of the turn are left out.
    """
    messages: list[Json] = []
    ids: dict[str, str] = {}
    used: set[str] = set()
    uses_all = True
    for turn in turns:
        parts = _find_usable_parts(turn)
        uses_all = uses_all and (turn.parts is None or parts is not None)
        new = [part["id"] for part in parts if _is_call(part)] if parts is not None else []
        for index, call in enumerate(turn.calls):
            ids[call.id] = new[index] if new else _write_id(call.id, used)
            used.add(ids[call.id])
        content = _write_blocks(turn, parts, ids)
        if content and messages and messages[-1]["role"] == turn.role:
            messages[-1]["content"] += content
        elif content:
            messages.append({"role": turn.role, "content": content})
    if not messages or messages[0]["role"] != "user":
        messages.insert(0, {"role": "user", "content": [write_text(OPENING)]})
    return WrittenTurns(messages, uses_all)


def mark_turns(messages: Sequence[Json]) -> None:
    """Let the cache reach to the end of the user's last turns. A model's own blocks stay as they are."""
    for message in [each for each in messages if each["role"] == "user"][-MARKED_TURNS:]:
        mark(message["content"])


def mark(blocks: Sequence[Json]) -> None:
    """Let the cache reach to the end of the last block."""
    blocks[-1]["cache_control"] = BREAKPOINT


def write_text(text: str) -> Json:
    return {"type": "text", "text": text}


def write_texts(texts: Sequence[str]) -> list[Json]:
    """Return the texts as blocks, without those that have no character."""
    return [write_text(text) for text in texts if text.strip()]


def goes_on_without_thought(messages: Sequence[Json]) -> bool:
    """Return whether the model goes on after calls that no thought was before: it cannot begin to think by hand
    there."""
    if len(messages) < 2 or messages[-1]["content"][0]["type"] != "tool_result":
        return False
    return messages[-2]["content"][0].get("type") not in THINKING


def _write_blocks(turn: Turn, parts: list[Json] | None, ids: dict[str, str]) -> list[Json]:
    if parts is not None:
        return [part for part in parts if part.get("type") != "text" or str(part.get("text", "")).strip()]
    results = [
        {"type": "tool_result", "tool_use_id": ids[result.id]}
        | ({"content": result.text} if result.text.strip() else {})
        for result in turn.results
        if result.id in ids
    ]
    calls = [{"type": "tool_use", "id": ids[call.id], "name": call.name, "input": call.args} for call in turn.calls]
    return [*results, *write_texts(turn.texts), *calls]


def _find_usable_parts(turn: Turn) -> list[Json] | None:
    """Return the own parts of a turn, if their calls are the calls of the turn; these are in the same order."""
    if turn.parts is None or not all(isinstance(part, dict) for part in turn.parts):
        return None
    calls = [part for part in turn.parts if _is_call(part)]
    fits = len(calls) == len(turn.calls) and all(isinstance(call.get("id"), str) for call in calls)
    return turn.parts if fits else None


def _is_call(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "tool_use"


def _write_id(id_: str, used: Collection[str]) -> str:
    """Return an id of a call in the characters that the API takes, which no earlier call has: those of an earlier
    conversation may come twice."""
    if _ID.fullmatch(id_) and id_ not in used:
        return id_
    return next(new for number in count(len(used)) if (new := f"call_{number}") not in used)
