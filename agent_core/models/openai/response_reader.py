"""A reply that comes in: as a whole, or in pieces that are put together to what it would have been as a whole. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import orjson

from agent_core.models.client import Completion
from agent_core.models.openai.response import Answer, Refusal, _error, _text, judged, read
from agent_core.models.openai.sse import Events
from agent_core.models.openai.stream_message import StreamedMessage

DONE = b"[DONE]"
EVENTS = "text/event-stream"


def incoming(head: Answer) -> "WholeReply | StreamedReply":
    """What reads the body that follows this head."""
    streams = 200 <= head.status < 300 and head.headers.get("content-type", "").strip().lower().startswith(EVENTS)
    return StreamedReply(head) if streams else WholeReply(head)


class WholeReply:
    """A reply that says nothing before its end."""

    done = False

    def __init__(self, head: Answer) -> None:
        self._head = head
        self._pieces: list[bytes] = []

    def feed(self, piece: bytes) -> Iterable[str]:
        self._pieces.append(piece)
        return ()

    def end(self, now: float) -> Completion | Refusal:
        return read(Answer(self._head.status, self._head.headers, b"".join(self._pieces)), now)


class StreamedReply:
    """A reply in the making; `done` once all of it is there, whatever still follows on the connection.

    What was put together is judged by `read`, as a whole reply is, and so is an event that is no part of one.
    """

    def __init__(self, head: Answer) -> None:
        self.done = False
        self._head, self._events, self._message = head, Events(), StreamedMessage()
        self._about: dict[str, Any] = {}
        self._finish_reason: Any = None
        self._begun = False
        self._odd: bytes | None = None

    def feed(self, piece: bytes) -> Iterator[str]:
        """The text that a piece of the answer's body brings."""
        for data in self._events.feed(piece):
            if self.done:
                return
            if data.strip() == DONE:
                self.done = True
            elif text := self._event(data):
                yield text

    def end(self, now: float) -> Completion | Refusal:
        """What became of it, now that no more is read."""
        if self._odd is not None:
            return read(replace(self._head, body=self._odd), now)
        if not self.done and self._finish_reason is None:
            return Refusal("ended its stream before the reply was whole", self._head.status, transient=True)
        choice = {"index": 0, "message": self._message.whole(), "finish_reason": self._finish_reason}
        choices = [choice] if self._begun else []
        whole = {**self._about, "object": "chat.completion", "choices": choices}
        return judged(whole, self._head, now)

    def _event(self, data: bytes) -> str | None:
        try:
            chunk = orjson.loads(data)
        except orjson.JSONDecodeError:
            chunk = None
        if not isinstance(chunk, dict) or _error(chunk):
            self._odd, self.done = data, True
            return None
        self._about.update({name: value for name, value in chunk.items() if name != "choices" and value is not None})
        choices = chunk.get("choices")
        ours = [choice for choice in choices if _is_first(choice)] if isinstance(choices, list) else []
        return "".join(map(self._choice, ours))

    def _choice(self, choice: dict[str, Any]) -> str:
        self._finish_reason = choice.get("finish_reason") or self._finish_reason
        delta = choice.get("delta")
        if delta is None and not self._begun:
            delta = choice.get("message")  # a vendor that only acts as if it streamed
        self._begun = True
        if not isinstance(delta, dict):
            return ""
        self._message.add(delta)
        return _text(delta.get("content")) or ""


def _is_first(choice: Any) -> bool:
    return isinstance(choice, dict) and choice.get("index", 0) in (0, None)
