"""Window: which of the stored turns a model still sees. Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from utools.context.turns import Message, Turn

DEFAULT_MESSAGES = 50
OVERHEAD = 4


@dataclass(frozen=True, slots=True)
class Window:
    """How much history a model sees, in messages and in (estimated) tokens; None is no limit."""

    messages: int | None = DEFAULT_MESSAGES
    tokens: int | None = None

    @classmethod
    def from_value(cls, value: Any) -> "Window":
        """From an argument: absent, a number of messages, or `{"messages", "tokens"}`; an absent key is no limit."""
        match value:
            case None:
                return cls()
            case int():
                return cls(messages=value)
            case _:
                return cls(messages=value.get("messages"), tokens=value.get("tokens"))

    def halved(self) -> "Window":
        """Half as much."""
        return Window(*(None if limit is None else limit // 2 for limit in (self.messages, self.tokens)))


def split_at_window(turns: Sequence[Turn], window: Window) -> tuple[list[Turn], list[Turn]]:
    """Return the turns that fall out, and the newest turns that fit. Turns stay whole, so that no tool call is
    orphaned."""
    messages = tokens = 0
    first = len(turns)
    while first > 0:
        turn = turns[first - 1]
        messages += len(turn)
        tokens += sum(map(estimated_tokens, turn))
        if _exceeds(messages, window.messages) or _exceeds(tokens, window.tokens):
            break
        first -= 1
    return list(turns[:first]), list(turns[first:])


def estimated_tokens(message: Message) -> int:
    """Return an estimate of a message's tokens: four ASCII characters, or one other, are one token."""
    text = str(message.get("content") or "")
    if message.get("tool_calls"):
        text += json.dumps(message["tool_calls"], ensure_ascii=False)
    ascii_count = sum(character.isascii() for character in text)
    return OVERHEAD + -(-ascii_count // 4) + len(text) - ascii_count


def _exceeds(count: int, limit: int | None) -> bool:
    return limit is not None and count > limit
