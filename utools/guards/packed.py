"""A packed HTTP body (gzip, deflate), unpacked a little at a time, of which it is known whether it came to its end."""

import zlib
from collections.abc import Iterable, Iterator

AT_ONCE = 2**16
"""Bytes that one step gives at most, however far a few packed ones could be blown up."""
LAYERS = 3
PACKED = frozenset({"gzip", "x-gzip", "deflate"})
EITHER_HEADER, NO_HEADER = 32 + zlib.MAX_WBITS, -zlib.MAX_WBITS


class Damaged(Exception):
    """A body that is not packed as it says, or not all there."""


class Unpacked:
    """What a body holds, by its `content-encoding`; what is packed in another way is given as it came."""

    def __init__(self, encoding: str) -> None:
        """Damaged for a body that is packed again and again."""
        layers = [each for name in encoding.split(",") if (each := name.strip().lower()) in PACKED]
        if len(layers) > LAYERS:
            raise Damaged(f"it is packed {len(layers)} times")
        self._layers = [_Layer() for _ in layers]

    def more(self, data: bytes) -> Iterator[bytes]:
        """What the next bytes of the body hold."""
        pieces: Iterable[bytes] = [data]
        for layer in self._layers:
            pieces = layer.unpack(pieces)
        yield from pieces

    def end(self) -> None:
        """Damaged where the body has ended and what it holds has not."""
        if not all(layer.ended for layer in self._layers):
            raise Damaged("it ends too early")


class _Layer:
    def __init__(self) -> None:
        self._stream, self._begun = zlib.decompressobj(EITHER_HEADER), False

    @property
    def ended(self) -> bool:
        """Also where there is nothing at all."""
        return self._stream.eof or not self._begun

    def unpack(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for data in filter(None, pieces):
            try:
                yield from self._steps(data)
            except zlib.error as error:
                if self._begun:
                    raise Damaged(str(error)) from None
                self._stream, self._begun = zlib.decompressobj(NO_HEADER), True  # as some servers send deflate
                yield from self.unpack([data])

    def _steps(self, data: bytes) -> Iterator[bytes]:
        piece = b""
        while (data or len(piece) == AT_ONCE) and not self._stream.eof:
            piece = self._stream.decompress(data, AT_ONCE)
            data, self._begun = self._stream.unconsumed_tail, True
            yield piece
