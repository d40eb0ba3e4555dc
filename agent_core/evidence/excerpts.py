"""The tree over the records of one run, by which some of them are shown and nothing is told of the others. Pure.

Each record is a leaf: a salt of 16 bytes, its strand and number as JSON, a line feed, and its bytes. The leaves are in
the order of their strands and numbers; the root stands in the run's seal. The salts come from one secret of the seal,
so that whoever has the run can compute the root, and an excerpt gives away no salt but those of its own records:
without it, nobody can tell what a record says by trying.
"""

import base64
import hmac
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import orjson

from agent_core.evidence.merkle import Node, compute_root, grow, hash_leaf, prove_inclusion, root_by_inclusion
from agent_core.evidence.notes import read_base64

FORMAT: Final = "agent-core/excerpt/1"
SALT_BYTES: Final = 16
Place = tuple[str, int]
"""Strand and number of a record."""


def salt_of(secret: bytes, place: Place) -> bytes:
    """Return the salt of a record, from the secret of its seal."""
    return hmac.digest(secret, orjson.dumps(place), sha256)[:SALT_BYTES]


def leaf_of(place: Place, data: bytes, salt: bytes) -> bytes:
    """Return the hash of the leaf that a record is."""
    return hash_leaf(salt + orjson.dumps(place) + b"\n" + data)


def leaves_of(secret: bytes, records: Mapping[Place, bytes]) -> dict[Place, bytes]:
    """Return the leaves of a run's records, in their order."""
    return {place: leaf_of(place, records[place], salt_of(secret, place)) for place in sorted(records)}


def root_of_records(secret: bytes, records: Mapping[Place, bytes]) -> str:
    """Return the root over a run's records. Hex."""
    return compute_root(leaves_of(secret, records).values()).hex()


def prove_leaves(leaves: Sequence[bytes], wanted: Iterable[int]) -> list[list[bytes]]:
    """Return the hashes that prove each of the wanted leaves."""
    nodes: dict[Node, bytes] = {}

    def find(level: int, index: int) -> bytes:
        return nodes[level, index]

    for number, leaf in enumerate(leaves):
        for level, index, digest in grow(number, leaf, find):
            nodes[level, index] = digest
    return [prove_inclusion(index, len(leaves), find) for index in wanted]


def find_record_fault(entry: Mapping[str, Any], root: bytes, size: int) -> str | None:
    """Return why a record of an excerpt does not stand in the run with this root; None when it does."""
    match entry:
        case {
            "strand": str(strand),
            "n": int(n),
            "index": int(index),
            "salt": str(salt),
            "record": str(record),
            "hashes": list(hashes),
        } if entry.keys() == {"strand", "n", "index", "salt", "record", "hashes"}:
            is_numbered = type(n) is int and type(index) is int
            parts = [read_base64(each) if isinstance(each, str) else None for each in [salt, *hashes]]
        case _:
            return "a record has not the fields that records of an excerpt have"
    at = f"record {n} of strand {strand!r}"
    hashed = [each for each in parts[1:] if each is not None and len(each) == 32]
    if not is_numbered or parts[0] is None or len(parts[0]) != SALT_BYTES or len(hashed) != len(hashes):
        return f"{at}: its number, its salt or a hash is of another kind, or length"
    try:
        data = record.encode()
        leaf = leaf_of((strand, n), data, parts[0])
    except (UnicodeEncodeError, TypeError):  # lone surrogates, and numbers that no record has
        return f"{at} is none that a journal can hold"
    if root_by_inclusion(index, size, leaf, hashed) != root:
        return f"{at} does not stand in the run that was sealed"
    return None


def encode_entry(place: Place, data: bytes, index: int, salt: bytes, hashes: Sequence[bytes]) -> dict[str, Any]:
    """Return a record as an excerpt holds it."""
    return {
        "strand": place[0],
        "n": place[1],
        "index": index,
        "salt": base64.b64encode(salt).decode(),
        "record": data.decode(),
        "hashes": [base64.b64encode(each).decode() for each in hashes],
    }
