"""The tree of a transparency log, held against the definition of RFC 6962, written here as it stands there."""

from hashlib import sha256
from random import Random

import pytest

from agent_core.evidence.merkle import (
    EMPTY,
    MOST,
    compute_root,
    grow,
    hash_leaf,
    is_consistent,
    prove_consistency,
    prove_inclusion,
    root_by_inclusion,
    root_of,
)

DATA = [b"entry %d" % n for n in range(140)]


def mth(data: list[bytes]) -> bytes:
    """MTH of RFC 6962, 2.1."""
    if not data:
        return sha256(b"").digest()
    if len(data) == 1:
        return sha256(b"\0" + data[0]).digest()
    k = split(len(data))
    return sha256(b"\1" + mth(data[:k]) + mth(data[k:])).digest()


def path(m: int, data: list[bytes]) -> list[bytes]:
    """PATH of RFC 6962, 2.1.1."""
    if len(data) == 1:
        return []
    k = split(len(data))
    if m < k:
        return [*path(m, data[:k]), mth(data[k:])]
    return [*path(m - k, data[k:]), mth(data[:k])]


def subproof(m: int, data: list[bytes], *, whole: bool) -> list[bytes]:
    """SUBPROOF of RFC 6962, 2.1.2."""
    if m == len(data):
        return [] if whole else [mth(data)]
    k = split(len(data))
    if m <= k:
        return [*subproof(m, data[:k], whole=whole), mth(data[k:])]
    return [*subproof(m - k, data[k:], whole=False), mth(data[:k])]


def split(n: int) -> int:
    k = 1
    while k * 2 < n:
        k *= 2
    return k


class Log:
    """A log as a store keeps it: nodes that are written once."""

    def __init__(self, data: list[bytes]) -> None:
        self.nodes: dict[tuple[int, int], bytes] = {}
        for index, each in enumerate(data):
            for level, at, digest in grow(index, hash_leaf(each), self.find):
                assert (level, at) not in self.nodes
                self.nodes[level, at] = digest

    def find(self, level: int, index: int) -> bytes:
        return self.nodes[level, index]


LOG = Log(DATA)


@pytest.mark.sampled
@pytest.mark.parametrize("size", [*range(20), 31, 32, 33, 63, 64, 65, 127, 128, 129, 140])
def test_root_and_proofs_are_those_of_the_rfc(size: int) -> None:
    data, root = DATA[:size], root_of(size, LOG.find)
    assert root == compute_root(map(hash_leaf, data)) == mth(data)
    for index in range(size):
        proof = prove_inclusion(index, size, LOG.find)
        assert proof == path(index, data)
        assert root_by_inclusion(index, size, hash_leaf(data[index]), proof) == root
    for old in range(1, size):
        proof = prove_consistency(old, size, LOG.find)
        assert proof == subproof(old, data, whole=True)
        assert is_consistent(old, size, mth(data[:old]), root, proof)


def test_a_log_keeps_two_hashes_a_leaf() -> None:
    assert len(LOG.nodes) == 2 * len(DATA) - bin(len(DATA)).count("1")
    assert root_of(0, LOG.find) == EMPTY


def test_nothing_else_passes_as_a_proof() -> None:
    chance = Random(6962)
    roots = [mth(DATA[:size]) for size in range(len(DATA) + 1)]
    for _ in range(3_000):
        new = chance.randrange(2, len(DATA))
        old, index = chance.randrange(1, new), chance.randrange(new)
        inclusion, consistency = prove_inclusion(index, new, LOG.find), prove_consistency(old, new, LOG.find)
        for proof in (inclusion, consistency):
            kind = chance.randrange(4)
            if kind == 0 and proof:
                at = chance.randrange(len(proof))
                proof[at] = bytes([proof[at][0] ^ 1, *proof[at][1:]])
            elif kind == 1 and proof:
                proof.pop(chance.randrange(len(proof)))
            elif kind == 2:
                proof.insert(chance.randrange(len(proof) + 1), chance.randbytes(32))
            else:
                proof[:] = [*proof[1:], chance.randbytes(32)]
        assert root_by_inclusion(index, new, hash_leaf(DATA[index]), inclusion) != roots[new]
        assert not is_consistent(old, new, roots[old], roots[new], consistency)
        whole = prove_consistency(old, new, LOG.find)
        assert not is_consistent(old, new, roots[old - 1], roots[new], whole)
        assert not is_consistent(old, new, roots[old], roots[new - 1], whole)


def test_sizes_that_no_log_has_are_refused() -> None:
    with pytest.raises(ValueError, match="a log of 3 leaves has no leaf 3"):
        prove_inclusion(3, 3, LOG.find)
    with pytest.raises(ValueError, match="a log of 4 leaves is no beginning of one of 3"):
        prove_consistency(4, 3, LOG.find)
    for size in (-1, 0, MOST + 1, 2**5000):
        assert root_by_inclusion(0, size, EMPTY, []) is None
        assert not is_consistent(1, size, EMPTY, EMPTY, [])
    assert is_consistent(0, 7, EMPTY, mth(DATA[:7]), [])
    assert not is_consistent(0, 7, mth(DATA[:1]), mth(DATA[:7]), [])
    assert is_consistent(7, 7, mth(DATA[:7]), mth(DATA[:7]), [])
    assert not is_consistent(7, 7, mth(DATA[:7]), mth(DATA[:7]), [EMPTY])
