"""Server-sent events, bytes in and their data out (WHATWG HTML, 9.2.6). Pure.

In bytes, where httpx2 and the SDK decode to text: bytes that are no UTF-8 must reach whoever judges the data.
"""

import re
from collections.abc import Iterator

LINE_END = re.compile(rb"\r\n|\n|\r")


class Events:
    """A stream that comes in pieces. What it holds back is bound by what it is fed: the caller counts that."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []
        self._after_cr = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The data of each event that `piece` completes; an event without data is none."""
        for line in self._lines(piece):
            if not line and self._data:
                yield b"\n".join(self._data)
                self._data = []
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))

    def _lines(self, piece: bytes) -> Iterator[bytes]:
        if self._after_cr and piece.startswith(b"\n"):
            piece = piece[1:]
            self._after_cr = False
        start = 0
        for end in LINE_END.finditer(piece):
            self._line += piece[start : end.start()]
            line, start = bytes(self._line), end.end()
            self._line.clear()
            yield line
        self._line += piece[start:]
        if piece:
            self._after_cr = piece.endswith(b"\r")
