"""Tiles of a log, as C2SP's `tlog-tiles` has them: files by which others follow it without access to the store. Pure.

Tile (L, N) holds 256 hashes of level 8·L of the tree, from number 256·N on; a bundle of entries holds 256 leaves, each
behind its length in two bytes. The last ones are not full, and name their width.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from agent_core.evidence.merkle import hash_node
from utools.lazy_pattern import lazy_compile

WIDTH: Final = 256
HEIGHT: Final = 8
"""Levels of the tree in a tile."""
HASH_BYTES: Final = 32
LONGEST: Final = 2**16 - 1
"""Bytes of an entry, at most."""
_PATH: Final = lazy_compile(
    r"tile/(?P<level>entries|0|[1-5]?\d|6[0-3])/(?P<index>(?:x\d{3}/){0,5}\d{3})(?:\.p/(?P<width>[1-9]\d{0,2}))?"
)


class Tile(NamedTuple):
    """Which tile: its level, None for a bundle of entries, its number, and how many it holds."""

    level: int | None
    number: int
    width: int = WIDTH

    @property
    def path(self) -> str:
        """Where it is, below the URL of its log."""
        name = f"{self.number:03}"
        if self.number >= 1000:
            digits = str(self.number).zfill(-(-len(str(self.number)) // 3) * 3)
            parts = [digits[at : at + 3] for at in range(0, len(digits), 3)]
            name = "/".join([*(f"x{part}" for part in parts[:-1]), parts[-1]])
        level = "entries" if self.level is None else self.level
        return f"tile/{level}/{name}{'' if self.width == WIDTH else f'.p/{self.width}'}"

    @classmethod
    def read(cls, path: str) -> "Tile | None":
        """Return the tile at a path; None for a path that is none of one."""
        found = _PATH.fullmatch(path)
        if found is None or not path.isascii():
            return None
        level = None if found["level"] == "entries" else int(found["level"])
        tile = cls(level, int(re.sub(r"[x/]", "", found["index"])), int(found["width"] or WIDTH))
        return tile if tile.path == path and tile.width <= WIDTH else None


def write_bundle(entries: Sequence[bytes]) -> bytes:
    """Return the bytes of a bundle of entries. ValueError for an entry that is too long for one."""
    if any(len(each) > LONGEST for each in entries):
        raise ValueError(f"an entry of a log has at most {LONGEST} bytes")
    return b"".join(len(each).to_bytes(2, "big") + each for each in entries)


class TileReader:
    """The nodes of a log of `size` leaves, from its tiles: `fetch` gives the bytes of each. ValueError for a tile that
    is not as long as it must be."""

    def __init__(self, size: int, fetch: Callable[[Tile], bytes]) -> None:
        self._size, self._fetch = size, fetch
        self._hashes: dict[Tile, list[bytes]] = {}

    def find(self, level: int, index: int) -> bytes:
        """Return the hash of a node."""
        above, height = divmod(level, HEIGHT)
        first = index << height
        hashes = self._read(above, first // WIDTH)[first % WIDTH : first % WIDTH + (1 << height)]
        while len(hashes) > 1:
            hashes = [hash_node(*hashes[at : at + 2]) for at in range(0, len(hashes), 2)]
        return hashes[0]

    def _read(self, level: int, index: int) -> list[bytes]:
        tile = Tile(level, index, min(WIDTH, (self._size >> HEIGHT * level) - index * WIDTH))
        if tile not in self._hashes:
            data = self._fetch(tile)
            if len(data) != tile.width * HASH_BYTES:
                raise ValueError(f"{tile.path} has {len(data)} bytes, not {tile.width * HASH_BYTES}")
            self._hashes[tile] = [data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)]
        return self._hashes[tile]
