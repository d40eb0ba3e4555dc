"""BodyReader: the body of an answer, decompressed and bounded. Pure."""

from collections.abc import Mapping
from typing import Final

from agent_core.models.endpoint.answer import Refusal
from utools.net.decompress import CorruptBody, Decompressor

MAX_REPLY_BYTES: Final = 16 * 2**20
"""Decompressed bytes of a reply that are read."""


class BodyReader:
    """Takes a body in pieces, as it was sent. `take` gives what a piece holds, or the Refusal that ends the reading."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._encoding = headers.get("content-encoding", "").strip()
        self._packed = Decompressor(self._encoding) if self._encoding else None
        self._size = 0

    def take(self, piece: bytes) -> bytes | Refusal:
        if self._packed is not None:
            inflated = self._inflate(self._packed, piece)
            if isinstance(inflated, Refusal):
                return inflated
            piece = inflated
        self._size += len(piece)
        if self._size > MAX_REPLY_BYTES:
            return Refusal(f"sent more than {MAX_REPLY_BYTES >> 20} MiB; the rest was not read")
        return piece

    def end(self) -> Refusal | None:
        """Return why what came is not the whole body, if it is not."""
        try:
            if self._packed is not None:
                self._packed.finish()
        except CorruptBody as error:
            return self._refuse(error)
        return None

    def _inflate(self, packed: Decompressor, piece: bytes) -> bytes | Refusal:
        """Return what a piece holds, and no more than shows that it is too much."""
        inflated = bytearray()
        try:
            for part in packed.feed(piece):
                inflated += part
                if self._size + len(inflated) > MAX_REPLY_BYTES:
                    break
        except CorruptBody as error:
            return self._refuse(error)
        return bytes(inflated)

    def _refuse(self, error: CorruptBody) -> Refusal:
        return Refusal(f"gave no answer: its body ({self._encoding}) cannot be read: {error}", transient=True)
