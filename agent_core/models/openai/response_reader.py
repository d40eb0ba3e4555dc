"""A reply as its bytes arrive: whole, or in pieces that are joined to the same reply. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from agent_core.models.client import Completion
from agent_core.models.openai.envelope import decode, mend, mend_text, split_open_end
from agent_core.models.openai.response import (
    BOM,
    HttpAnswer,
    Refusal,
    find_error,
    is_first_choice,
    read_answer,
    read_reply,
    read_text,
)
from agent_core.models.openai.streams import EventParser, StreamedMessage
from agent_core.models.usage import merge_usage

DONE = b"[DONE]"
EVENTS = "text/event-stream"
EVENT_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


def open_reader(head: HttpAnswer, first: bytes) -> "WholeReply | StreamedReply":
    """Return the reader for the body that follows this head and begins with these bytes. A wrong label is not
    believed."""
    start = first.removeprefix(BOM).lstrip()
    if not 200 <= head.status < 300 or start.startswith((b"{", b"[")):
        return WholeReply(head)
    is_labelled = head.headers.get("content-type", "").strip().lower().startswith(EVENTS)
    return StreamedReply(head) if is_labelled or start.startswith(EVENT_FIELDS) else WholeReply(head)


class WholeReply:
    """A reply that is read at its end."""

    done = False

    def __init__(self, head: HttpAnswer) -> None:
        self._head = head
        self._pieces: list[bytes] = []

    def feed(self, piece: bytes) -> Iterable[str]:
        self._pieces.append(piece)
        return ()

    def end(self, now: float) -> Completion | Refusal:
        return read_answer(HttpAnswer(self._head.status, self._head.headers, b"".join(self._pieces)), now)

    def rest(self, outcome: Completion | Refusal) -> str:
        """Return the text that was not shown yet: all of it."""
        return outcome.content if isinstance(outcome, Completion) else ""


class StreamedReply:
    """A reply that arrives in pieces; `done` once it is whole, whatever still follows on the connection.

    The joined reply is read like a whole one, and so is an event that is not part of a reply.
    """

    def __init__(self, head: HttpAnswer) -> None:
        self.done = False
        self._head, self._events, self._message = head, EventParser(), StreamedMessage()
        self._fields: dict[str, Any] = {}
        self._finish_reason: Any = None
        self._native_reason: Any = None
        self._has_choice = False
        self._open_end = ""
        self._other_event: bytes | None = None

    def feed(self, piece: bytes) -> Iterator[str]:
        """Yield the texts in a piece of the answer's body."""
        for data in self._events.feed(piece):
            if self.done:
                return
            if data.strip() == DONE:
                self.done = True
            elif data.strip() and (text := self._read_event(data)):  # without data it only keeps the connection open
                yield text

    def end(self, now: float) -> Completion | Refusal:
        """Return the completion or the refusal, once nothing more is read."""
        if self._other_event is not None:
            return read_answer(replace(self._head, body=self._other_event), now)
        if not self.done and self._finish_reason is None:
            return Refusal("ended its stream before the reply was whole", self._head.status, transient=True)
        choice = {"index": 0, "message": self._message.whole(), "finish_reason": self._finish_reason}
        choice["native_finish_reason"] = self._native_reason
        choices = [choice] if self._has_choice else []
        whole = {**self._fields, "object": "chat.completion", "choices": choices}
        return read_reply(mend(whole), self._head, now)

    def rest(self, outcome: Completion | Refusal) -> str:
        """Return the text that was not shown yet: an end that no later piece has completed."""
        return mend_text(self._open_end) if isinstance(outcome, Completion) else ""

    def _read_event(self, data: bytes) -> str | None:
        try:
            chunk = decode(data)
        except ValueError:
            chunk = None
        if not isinstance(chunk, dict) or find_error(chunk):
            self._other_event, self.done = data, True
            return None
        usage = merge_usage(self._fields.get("usage"), chunk.get("usage"))
        self._fields.update({name: value for name, value in chunk.items() if name != "choices" and value is not None})
        self._fields["usage"] = usage
        choices = chunk.get("choices")
        first = [choice for choice in choices if is_first_choice(choice)] if isinstance(choices, list) else []
        return "".join(map(self._read_choice, first))

    def _read_choice(self, choice: dict[str, Any]) -> str:
        self._finish_reason = choice.get("finish_reason") or self._finish_reason
        self._native_reason = choice.get("native_finish_reason") or self._native_reason
        delta = choice.get("delta")
        if delta is None and not self._has_choice:
            delta = choice.get("message")  # a vendor that sends a whole message as a stream
        self._has_choice = True
        if not isinstance(delta, dict):
            return ""
        self._message.add(delta)
        text, self._open_end = split_open_end(self._open_end + (read_text(delta.get("content")) or ""))
        return text
