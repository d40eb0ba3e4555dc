"""The tree of a transparency log (RFC 6962): hashes of leaves and nodes, and proofs by them. Pure.

A log of n leaves is a row of perfect trees, one for each bit of n that is set, the largest first. Node (level, i) is
the root of the perfect tree over the leaves from i·2^level on. It never changes once all of its leaves are there, so
that a log keeps its nodes and adds the new ones: two hashes a leaf.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final

EMPTY: Final = sha256(b"").digest()
"""The root of a log without leaves."""
MOST: Final = 2**62
"""Leaves of a log, at most."""
Node = tuple[int, int]
"""Level and index of a perfect tree."""
FindNode = Callable[[int, int], bytes]
"""The hash of node (level, index)."""


def hash_leaf(data: bytes) -> bytes:
    """Return the hash of a leaf."""
    return sha256(b"\0" + data).digest()


def hash_node(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node, from those below it."""
    return sha256(b"\1" + left + right).digest()


def peaks_of(size: int) -> Iterator[Node]:
    """Yield the perfect trees of a log, the largest first."""
    begin = 0
    for level in reversed(range(size.bit_length())):
        if size >> level & 1:
            yield level, begin >> level
            begin += 1 << level


def grow(index: int, leaf: bytes, find: FindNode) -> Iterator[tuple[int, int, bytes]]:
    """Yield (level, index, hash) of each node that the leaf at `index` completes, itself first."""
    level, digest = 0, leaf
    yield level, index, digest
    while index & 1:
        digest = hash_node(find(level, index - 1), digest)
        level, index = level + 1, index >> 1
        yield level, index, digest


def root_of(size: int, find: FindNode) -> bytes:
    """Return the root of a log of so many leaves."""
    return _join([find(*peak) for peak in peaks_of(size)]) if size else EMPTY


def compute_root(leaves: Iterable[bytes]) -> bytes:
    """Return the root over the hashes of leaves, in their order, where no nodes are kept."""
    peaks: list[tuple[int, bytes]] = []
    for digest in leaves:
        level = 0
        while peaks and peaks[-1][0] == level:
            digest, level = hash_node(peaks.pop()[1], digest), level + 1
        peaks.append((level, digest))
    return _join([digest for _, digest in peaks]) if peaks else EMPTY


def prove_inclusion(index: int, size: int, find: FindNode) -> list[bytes]:
    """Return what proves that leaf `index` is in the log of `size` leaves: the hash of each tree beside the path from
    the leaf to the root, the lowest first (RFC 6962, 2.1.1). ValueError for a leaf that it does not have."""
    if not 0 <= index < size:
        raise ValueError(f"a log of {size} leaves has no leaf {index}")
    return [_hash_range(*beside, find) for beside in _beside(index, 0, size)]


def prove_consistency(old: int, new: int, find: FindNode) -> list[bytes]:
    """Return what proves that the log of `old` leaves is the beginning of that of `new` (RFC 6962, 2.1.2). ValueError
    for an old one that is larger."""
    if not 0 <= old <= new:
        raise ValueError(f"a log of {old} leaves is no beginning of one of {new}")
    if old in (0, new):
        return []
    return [_hash_range(*each, find) for each in _shared(old, 0, new, is_whole=True)]


def root_by_inclusion(index: int, size: int, leaf: bytes, proof: Sequence[bytes]) -> bytes | None:
    """Return the root that a proof gives a leaf; None where it has another number of hashes than it must."""
    if not 0 <= index < size <= MOST:
        return None
    ranges = list(_beside(index, 0, size))
    if len(ranges) != len(proof):
        return None
    digest = leaf
    for (begin, _), beside in zip(ranges, proof, strict=True):
        digest = hash_node(beside, digest) if begin < index else hash_node(digest, beside)
    return digest


def is_consistent(old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """Return whether a proof shows that the log with the old root is the beginning of that with the new one."""
    if not 0 <= old <= new <= MOST:
        return False
    if old in (0, new):
        return not proof and (old_root == new_root if old == new else old_root == EMPTY)
    ranges, hashes = list(_shared(old, 0, new, is_whole=True)), [*proof]
    if old & (old - 1) == 0:  # the old log is one perfect tree, which the proof does not repeat
        ranges, hashes = [(0, old), *ranges], [old_root, *hashes]
    if len(hashes) != len(ranges):
        return False
    given = dict(zip(ranges, hashes, strict=True))
    try:
        return _rebuild(0, old, given) == old_root and _rebuild(0, new, given) == new_root
    except KeyError:
        return False


def _split(begin: int, end: int) -> int:
    """Return where the left half of a range ends: the largest power of two below its length."""
    return begin + (1 << (end - begin - 1).bit_length() - 1)


def _beside(index: int, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges beside the path to a leaf, the lowest first."""
    if end - begin == 1:
        return
    middle = _split(begin, end)
    if index < middle:
        yield from _beside(index, begin, middle)
        yield middle, end
    else:
        yield from _beside(index, middle, end)
        yield begin, middle


def _shared(old: int, begin: int, end: int, *, is_whole: bool) -> Iterator[tuple[int, int]]:
    """Yield the ranges by which both roots are built, the lowest first; what the old log is as a whole is left out."""
    if old == end:
        if not is_whole:
            yield begin, end
        return
    middle = _split(begin, end)
    if old <= middle:
        yield from _shared(old, begin, middle, is_whole=is_whole)
        yield middle, end
    else:
        yield from _shared(old, middle, end, is_whole=False)
        yield begin, middle


def _rebuild(begin: int, end: int, given: dict[tuple[int, int], bytes]) -> bytes:
    """Return the hash of a range from those that are given. KeyError where one is missing."""
    if (found := given.get((begin, end))) is not None:
        return found
    if end - begin == 1:
        raise KeyError((begin, end))
    middle = _split(begin, end)
    return hash_node(_rebuild(begin, middle, given), _rebuild(middle, end, given))


def _hash_range(begin: int, end: int, find: FindNode) -> bytes:
    """Return the hash of a range that is a node, or the end of the log."""
    return _join([find(level, (begin >> level) + index) for level, index in peaks_of(end - begin)])


def _join(peaks: Sequence[bytes]) -> bytes:
    """Return the hash over perfect trees, the largest first."""
    digest = peaks[-1]
    for peak in reversed(peaks[:-1]):
        digest = hash_node(peak, digest)
    return digest
