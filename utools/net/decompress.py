"""A packed HTTP body (gzip, deflate), unpacked a little at a time, of which it is known whether it came to its end."""

import zlib
from collections.abc import Iterator

AT_ONCE = 2**16
"""Bytes that one step gives at most, however far a few packed ones could be blown up."""
PACKED = frozenset({"gzip", "x-gzip", "deflate"})
FOREIGN = frozenset({"br", "compress", "dcb", "dcz", "x-compress", "zstd"})
"""What a body may be packed as, though nobody asked for it, and only other programs unpack."""
GZIP, ZLIB, NO_HEADER = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
MAGIC = b"\x1f\x8b"


class Damaged(Exception):
    """A body that is not packed as it says, or not all there."""


class Unpacked:
    """What a body holds, by its `content-encoding`; one that is no way of packing is passed over.

    A body that was packed more than once is refused: no server sends one, and each layer multiplies what a few bytes
    cost. Several gzip members are read one after another (RFC 1952), zeros between them are left out, and whatever
    follows the last and begins no further one is passed over.
    """

    def __init__(self, encoding: str) -> None:
        names = [each for name in encoding.split(",") if (each := name.strip().lower()) in PACKED | FOREIGN]
        self._refused = _refused(names)
        self._packed, self._bare = bool(names), names == ["deflate"]
        self._stream, self._begin = zlib.decompressobj(), b""
        self._begun = self._gzip = self._over = False

    def more(self, data: bytes) -> Iterator[bytes]:
        """What the next bytes of the body hold, in pieces, some of them empty: each is a moment to do other things.

        Damaged for what is not packed as it says.
        """
        if not self._packed:
            yield data
        elif self._refused and data:
            raise Damaged(self._refused)
        else:
            try:
                yield from self._unpacked(data)
            except zlib.error as error:
                raise Damaged(str(error)) from None

    def end(self) -> None:
        """Damaged where the body has ended and what it holds has not."""
        if not self._stream.eof and (self._begin or self._begun):
            raise Damaged("it ends too early")

    def _unpacked(self, data: bytes) -> Iterator[bytes]:
        while data and not self._over:
            if (not self._begun or self._stream.eof) and not (data := self._opened(data)):
                return
            piece = self._stream.decompress(data, AT_ONCE)
            yield piece
            data = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
            while len(piece) == AT_ONCE and not data and not self._stream.eof:  # it may hold back more
                yield (piece := self._stream.decompress(b"", AT_ONCE))

    def _opened(self, data: bytes) -> bytes:
        """Begin with what the first two bytes say; returns what is to be read, nothing as long as there is but one, or
        where they begin no further member."""
        begin = self._begin + (data.lstrip(b"\0") if self._begun else data)
        self._begin = begin if len(begin) < 2 else b""
        if len(begin) < 2:
            return b""
        if self._begun and not (self._gzip and begin.startswith(MAGIC)):
            self._over = True
            return b""
        self._gzip, self._begun = begin.startswith(MAGIC), True
        self._stream = zlib.decompressobj(_window(begin, bare=self._bare))
        return begin


def _window(begin: bytes, *, bare: bool) -> int:
    """How a body that begins like this is packed. Some servers leave out the header of deflate, or send the other."""
    if begin.startswith(MAGIC):
        return GZIP
    with_header = begin[0] & 15 == zlib.DEFLATED and int.from_bytes(begin[:2]) % 31 == 0
    return NO_HEADER if bare and not with_header else ZLIB


def _refused(names: list[str]) -> str:
    """Why a body that is packed like this is not read."""
    if len(names) > 1:
        return f"it is packed {len(names)} times"
    unknown = [name for name in names if name in FOREIGN]
    return f"it is packed as {unknown[0]}, which is not read here, and gzip was asked for" if unknown else ""
