"""Decompressor: a compressed HTTP body (gzip, deflate), inflated in bounded pieces, that must be whole. Pure."""

import zlib
from collections.abc import Iterator

from utools.words.text import Text

PIECE = 2**16
"""Bytes that one step gives at most, however many a few compressed bytes hold."""
READ = frozenset({"gzip", "x-gzip", "deflate"})
NOT_READ = frozenset({"br", "compress", "dcb", "dcz", "x-compress", "zstd"})
"""Encodings that were not asked for and are refused; other words in `content-encoding` are ignored."""
GZIP, ZLIB, NO_HEADER = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
MAGIC = b"\x1f\x8b"
PADDING = b"\0\r\n"


def find_encodings(header: str) -> list[str]:
    """Return the compressions that a `content-encoding` names: `none`, as Next.js writes it, or `utf-8` is none."""
    return [each for name in header.split(",") if (each := name.strip().lower()) in READ | NOT_READ]


class CorruptBody(Exception):
    """A body that is not compressed as it says, is not complete, or continues after its end."""


class Decompressor:
    """Inflates a body by its `content-encoding`.

    A body that was compressed more than once is refused: no server sends one, and each layer multiplies what a few
    bytes cost. Several gzip members are read one after another (RFC 1952). Only padding may follow the last.
    """

    def __init__(self, encoding: str) -> None:
        names = find_encodings(encoding)
        self._refusal = _refusal(names)
        self._compressed, self._may_lack_header = bool(names), names == ["deflate"]
        self._head = b""
        self._stream: zlib._Decompress | None = None
        self._is_gzip = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what the next bytes of the body hold, in pieces, some of them empty: the caller may pause between
        them."""
        if self._refusal and data:
            raise CorruptBody(self._refusal)
        try:
            yield from self._inflate(data) if self._compressed else (data,)
        except zlib.error as error:
            raise CorruptBody(str(error)) from None

    def finish(self) -> None:
        """CorruptBody if the body ended before its content did."""
        if self._head or (self._stream and not self._stream.eof):
            raise CorruptBody(Text("it ends too early"))

    def _inflate(self, data: bytes) -> Iterator[bytes]:
        if self._stream is None:
            self._head, data = b"", self._head + data
            if len(data) < 2:
                self._head = data
                return
            self._is_gzip, self._stream = data.startswith(MAGIC), zlib.decompressobj(self._format(data))
        while data:
            if self._stream.eof:
                data = data.lstrip(PADDING)
                if not data:
                    return
                if not self._is_gzip:
                    raise CorruptBody(Text("it goes on after its end"))
                self._stream = zlib.decompressobj(GZIP)
            yield from _pieces(self._stream, data)
            data = self._stream.unused_data

    def _format(self, head: bytes) -> int:
        """Return how a body that begins like this is compressed. Some servers send deflate without its header, or
        gzip."""
        if head.startswith(MAGIC):
            return GZIP
        has_header = head[0] & 15 == zlib.DEFLATED and int.from_bytes(head[:2]) % 31 == 0
        return NO_HEADER if self._may_lack_header and not has_header else ZLIB


def _pieces(stream: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    piece = stream.decompress(data, PIECE)
    yield piece
    while not stream.eof and (stream.unconsumed_tail or len(piece) == PIECE):
        yield (piece := stream.decompress(stream.unconsumed_tail, PIECE))


def _refusal(names: list[str]) -> Text | None:
    """Return why a body with these encodings is not read; None if it is."""
    if len(names) > 1:
        return Text("it is packed {count} times", count=len(names))
    unread = [name for name in names if name in NOT_READ]
    if not unread:
        return None
    return Text("it is packed as {encoding}, which is not read here, and gzip was asked for", encoding=unread[0])
