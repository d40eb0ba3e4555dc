"""A reply as its bytes arrive: whole, or in events that are joined to the same reply. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from agent_core.models.client import Completion
from agent_core.models.endpoint.answer import BOM, TOO_DEEP, HttpAnswer, ReadReply, Refusal, read_answer, show_body
from agent_core.models.endpoint.envelope import decode, mend, mend_text, split_open_end
from agent_core.models.endpoint.events import EventParser

DONE = b"[DONE]"
EVENTS = "text/event-stream"
EVENT_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b"error:", b":")


class Reader(Protocol):
    """Reads one answer as its bytes arrive; `done` once the reply is whole, whatever still follows on the
    connection."""

    done: bool

    def feed(self, piece: bytes) -> Iterable[str]:
        """Return the texts of the reply that this piece of the body completes."""
        ...

    def end(self, now: float) -> Completion | Refusal:
        """Return what came of it, once nothing more is read. `now`: Unix seconds, for a Retry-After date."""
        ...

    def rest(self, outcome: Completion | Refusal) -> str:
        """Return the text that was not shown yet."""
        ...


class JoinedReply(Protocol):
    """The events of one API, joined. `is_whole` once the reply has its end, `is_over` once nothing of it follows."""

    is_whole: bool
    is_over: bool

    def add(self, event: dict[str, Any]) -> str:
        """Return the text that this event adds to the reply."""
        ...

    def whole(self) -> Any:
        """Return the JSON value of the same reply when it comes whole."""
        ...


def open_reader(
    head: HttpAnswer,
    first: bytes,
    read_reply: ReadReply,
    find_error: Callable[[Any], Any],
    join: Callable[[], JoinedReply],
) -> Reader:
    """Return the reader for the body that follows this head and begins with these bytes. A wrong label is not
    believed."""
    start = first.removeprefix(BOM).lstrip()
    if not 200 <= head.status < 300 or start.startswith((b"{", b"[")):
        return WholeReply(head, read_reply, lambda: StreamedReply(head, read_reply, find_error, join()))
    is_labelled = head.headers.get("content-type", "").strip().lower().startswith(EVENTS)
    if is_labelled or start.startswith(EVENT_FIELDS):
        return StreamedReply(head, read_reply, find_error, join())
    return WholeReply(head, read_reply, lambda: StreamedReply(head, read_reply, find_error, join()))


class WholeReply:
    """A reply that is read at its end; the events of a stream, where each is a line of JSON."""

    def __init__(self, head: HttpAnswer, read_reply: ReadReply, as_stream: Callable[[], "StreamedReply"]) -> None:
        self.done = False
        self._head, self._read_reply, self._as_stream = head, read_reply, as_stream
        self._pieces: list[bytes] = []

    def feed(self, piece: bytes) -> Iterable[str]:
        self._pieces.append(piece)
        return ()

    def end(self, now: float) -> Completion | Refusal:
        body = b"".join(self._pieces)
        if 200 <= self._head.status < 300 and (lines := _split_objects(body)):
            stream = self._as_stream()
            for _ in stream.feed(b"".join(b"data: %b\n\n" % line for line in lines)):
                pass  # the texts are shown at the end
            return stream.end(now)
        return read_answer(HttpAnswer(self._head.status, self._head.headers, body), now, self._read_reply)

    def rest(self, outcome: Completion | Refusal) -> str:
        """Return the text that was not shown yet: all of it."""
        return outcome.content if isinstance(outcome, Completion) else ""


class StreamedReply:
    """A reply that arrives in pieces; `done` once it is whole, whatever still follows on the connection.

    The joined reply is read like a whole one, and so is an event that is not part of a reply.
    """

    def __init__(
        self, head: HttpAnswer, read_reply: ReadReply, find_error: Callable[[Any], Any], joined: JoinedReply
    ) -> None:
        self.done = False
        self._head, self._read_reply, self._find_error, self._joined = head, read_reply, find_error, joined
        self._events = EventParser()
        self._open_end = ""
        self._other_event: bytes | None = None

    def feed(self, piece: bytes) -> Iterator[str]:
        """Yield the texts in a piece of the answer's body."""
        for event in self._events.feed(piece):
            for data in _split_lines(event):
                if self.done:
                    return
                if data.strip() == DONE:
                    self.done = True
                elif data.strip() and (text := self._read_event(data)):  # else it only keeps the connection open
                    yield text

    def end(self, now: float) -> Completion | Refusal:
        """Return the completion or the refusal, once nothing more is read."""
        if not self.done:
            self._read_last_event()
        if self._other_event is not None:
            return read_answer(replace(self._head, body=self._other_event), now, self._read_reply)
        stray = self._events.stray
        if stray and _is_json(stray) and self._find_error(decode(stray)):  # an error without the form of an event
            return read_answer(replace(self._head, body=stray), now, self._read_reply)
        if not self.done and not self._joined.is_whole:
            cut = "ended its stream before the reply was whole"
            return Refusal(f"{cut}: {show_body(stray)}" if stray else cut, self._head.status, transient=True)
        try:
            whole = mend(self._joined.whole())
        except ValueError:
            return Refusal(TOO_DEEP, self._head.status)
        return self._read_reply(whole, self._head, now)

    def rest(self, outcome: Completion | Refusal) -> str:
        """Return the text that was not shown yet: an end that no later piece has completed."""
        return mend_text(self._open_end) if isinstance(outcome, Completion) else ""

    def _read_last_event(self) -> None:
        """Read the event that the end of the stream completes; one that was cut is none."""
        for event in self._events.end():
            for data in _split_lines(event):
                if data.strip() == DONE:
                    self.done = True
                elif not self.done and _is_json(data):
                    self._open_end = (self._read_event(data) or "") + self._open_end

    def _read_event(self, data: bytes) -> str | None:
        try:
            event = decode(data)
        except ValueError:
            event = ()
        if event is None:  # some gateways write it between events
            return None
        if not isinstance(event, dict) or self._find_error(event):
            self._other_event, self.done = data, True
            return None
        try:
            added = self._joined.add(event)
        except RecursionError:  # an event that nests too deep
            self._other_event, self.done = data, True
            return None
        text, self._open_end = split_open_end(self._open_end + added)
        self.done = self._joined.is_over
        return text


def _split_lines(data: bytes) -> Sequence[bytes]:
    """Return the data of the events in one: some servers end each by a single line end."""
    return (data,) if b"\n" not in data or _is_json(data) else data.split(b"\n")


def _split_objects(body: bytes) -> Sequence[bytes]:
    """Return the lines of a body that is a JSON object in each of them; none of one that is a single JSON value."""
    body = body.removeprefix(BOM).strip()
    if not body.startswith(b"{") or b"\n" not in body or _is_json(body):
        return ()
    lines = [line for line in body.splitlines() if line.strip()]
    return lines if all(line.strip() == DONE or (line.startswith(b"{") and _is_json(line)) for line in lines) else ()


def _is_json(data: bytes) -> bool:
    try:
        decode(data)
    except ValueError:
        return False
    return True
