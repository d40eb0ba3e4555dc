"""The tiles of a log: their names, and the nodes that are read from them."""

import pytest

from agent_core.evidence.merkle import compute_root, grow, hash_leaf, is_consistent, prove_consistency, root_of
from agent_core.evidence.tiles import HEIGHT, WIDTH, Tile, TileReader, write_bundle

SIZE = 700
LEAVES = [hash_leaf(b"entry %d" % n) for n in range(SIZE)]
NODES: dict[tuple[int, int], bytes] = {}
for number, leaf in enumerate(LEAVES):
    for level, index, digest in grow(number, leaf, lambda level, index: NODES[level, index]):
        NODES[level, index] = digest


@pytest.mark.parametrize(
    ("tile", "path"),
    [
        (Tile(0, 0), "tile/0/000"),
        (Tile(0, 0, 1), "tile/0/000.p/1"),
        (Tile(3, 999, 255), "tile/3/999.p/255"),
        (Tile(0, 1000), "tile/0/x001/000"),
        (Tile(1, 1234067), "tile/1/x001/x234/067"),
        (Tile(None, 67), "tile/entries/067"),
        (Tile(None, 12345, 3), "tile/entries/x012/345.p/3"),
        (Tile(63, 0), "tile/63/000"),
    ],
)
def test_a_tile_has_one_path(tile: Tile, path: str) -> None:
    assert (tile.path, Tile.read(path)) == (path, tile)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "path",
    [
        *("", "tile/0/0", "tile/0/0000", "tile/64/000", "tile/00/000", "tile/-1/000", "tile/0/000.p/0"),
        *("tile/0/000.p/256", "tile/0/000.p/257", "tile/0/000.p/01", "tile/0/x000/000", "tile/0/x001/x000"),
        *("tile/0/1000", "tile/0/001/000", "tile/entries/000/", "tile/0/٠٠٠", "tile/0/../0/000", "tile/0/000\n"),
    ],
)
def test_no_other_path_is_one_of_a_tile(path: str) -> None:
    assert Tile.read(path) is None


def fetch(tile: Tile) -> bytes:
    assert tile.level is not None
    first = tile.number * WIDTH
    return b"".join(NODES[HEIGHT * tile.level, n] for n in range(first, first + tile.width))


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 511, 512, 600, SIZE])
def test_a_log_is_followed_by_its_tiles_alone(size: int) -> None:
    fetched = list[Tile]()

    def note(tile: Tile) -> bytes:
        fetched.append(tile)
        return fetch(tile)

    reader = TileReader(size, note)
    root = root_of(size, reader.find)
    assert root == compute_root(LEAVES[:size])
    for old in {1, size // 3, size - 1} - {0}:
        proof = prove_consistency(old, size, reader.find)
        assert is_consistent(old, size, compute_root(LEAVES[:old]), root, proof)
    assert len(fetched) == len(set(fetched)) <= 4


def test_a_tile_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match=r"tile/0/000\.p/3 has 95 bytes, not 96"):
        TileReader(3, lambda tile: fetch(tile)[:-1]).find(0, 0)


def test_a_bundle_has_each_entry_behind_its_length() -> None:
    assert write_bundle([b"", b"{}", b"x" * 65_535]) == b"\0\0" + b"\0\2{}" + b"\xff\xff" + b"x" * 65_535
    with pytest.raises(ValueError, match="an entry of a log has at most 65535 bytes"):
        write_bundle([b"x" * 65_536])
