"""BodyReader: the body of an answer, decompressed and bounded. Pure."""

import zlib
from collections.abc import Mapping
from typing import Final

from agent_core.models.endpoint.answer import Refusal

MAX_REPLY_BYTES: Final = 16 * 2**20
"""Decompressed bytes of a reply that are read."""
COMPRESSED: Final = ("gzip", "x-gzip", "deflate")
GZIP_OR_ZLIB: Final = 47
"""zlib's window bits that take either head."""


class BodyReader:
    """Takes a body in pieces, as it was sent. `take` gives what a piece holds, or the Refusal that ends the reading."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._encoding = headers.get("content-encoding", "").strip().lower()
        self._is_plain = self._encoding in ("", "identity")
        self._zlib = zlib.decompressobj(GZIP_OR_ZLIB)
        self._size, self._has_begun = 0, False

    def take(self, piece: bytes) -> bytes | Refusal:
        if not self._is_plain:
            if self._encoding not in COMPRESSED:
                return _refuse(f"is compressed as {self._encoding!r}, which was not asked for")
            try:
                piece = self._inflate(piece, MAX_REPLY_BYTES - self._size + 1)
            except zlib.error as error:
                return _refuse(f"is not {self._encoding}: {error}")
        self._size += len(piece)
        if self._size > MAX_REPLY_BYTES:
            return Refusal(f"sent more than {MAX_REPLY_BYTES >> 20} MiB; the rest was not read")
        return piece

    def end(self) -> Refusal | None:
        """Return why what came is not the whole body, if it is not."""
        if self._is_plain or self._zlib.eof or not self._has_begun:
            return None
        return _refuse(f"({self._encoding}) was cut off")

    def _inflate(self, piece: bytes, most: int) -> bytes:
        is_first, self._has_begun = not self._has_begun, True
        try:
            return self._zlib.decompress(piece, most)
        except zlib.error:
            if not is_first or self._encoding != "deflate":
                raise
        self._zlib = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers leave the head of it out
        return self._zlib.decompress(piece, most)


def _refuse(fault: str) -> Refusal:
    return Refusal(f"gave no answer: its body {fault}", transient=True)
