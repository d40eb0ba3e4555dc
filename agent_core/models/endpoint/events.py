"""Server-sent events (WHATWG HTML, 9.2.6). Pure.

Events are read in bytes, where httpx2 and the SDK decode to text: bytes that are not UTF-8 must reach the reader of the
data.
"""

from collections.abc import Iterator

from agent_core.models.endpoint.answer import BOM
from utools.lazy_pattern import lazy_compile

LINE_END = lazy_compile(rb"\r\n|\n|\r")
DATA = (b"data", b"error")
"""Fields with the data of an event: llama.cpp has its errors in a field of that name."""
OTHER_FIELDS = (b"event", b"id", b"retry", b"")


class EventParser:
    """Parses a stream that comes in pieces. Its memory is bounded by its input, which the caller limits."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []
        self._stray: list[bytes] = []
        self._after_cr = False
        self._begun = False

    @property
    def stray(self) -> bytes:
        """The lines that are of no event: what a proxy writes into a stream that breaks."""
        return b"\n".join(self._stray)

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the data of each event that `piece` completes; an event without data is ignored."""
        for line in self._lines(piece):
            if not line and self._data:
                yield b"\n".join(self._data)
                self._data = []
            name, _, value = line.partition(b":")
            if self._data and not self._data[-1] and line.lstrip().startswith(b"{"):
                self._data[-1] = line  # a gateway has broken the line behind its `data:`
            elif name in DATA:
                self._data.append(value.removeprefix(b" "))
            elif name not in OTHER_FIELDS and not any(field.startswith(line) for field in (*DATA, *OTHER_FIELDS)):
                self._stray.append(line)

    def end(self) -> Iterator[bytes]:
        """Yield the data of the event that the end of the stream completes: many servers leave out its empty line."""
        yield from self.feed(b"\n\n")

    def _lines(self, piece: bytes) -> Iterator[bytes]:
        if self._after_cr and piece.startswith(b"\n"):
            piece = piece[1:]
            self._after_cr = False
        start = 0
        for end in LINE_END.finditer(piece):
            self._line += piece[start : end.start()]
            line, start = bytes(self._line), end.end()
            self._line.clear()
            if not self._begun:
                line, self._begun = line.removeprefix(BOM), True
            yield line
        self._line += piece[start:]
        if piece:
            self._after_cr = piece.endswith(b"\r")
