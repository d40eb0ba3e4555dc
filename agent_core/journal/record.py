"""Rows: records as a journal stores them, serialised once and hash-chained. Pure.

A strand is one sequential line of work. Its chain starts from SHA-256(run, NUL, path); each row's hash is
SHA-256(previous hash, bytes of the record). In an encrypted store the bytes are those of the ciphertext, so that the
chain can be checked by whoever cannot read the records.
"""

import hashlib
from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple

import orjson

from agent_core.encryption.record_cipher import MARK, Encrypt
from agent_core.journal.kinds import KIND_OF_RECORD, KINDS
from agent_core.protocol.strict_json import compact
from agent_core.records import Kind

FORMAT: Final = 1
Record = dict[str, Any]


CLOSED: Final = b""
"""The bytes of a record whose key is not here."""
ERASED: Final = b"\0"
"""The bytes of a record whose key was destroyed."""
SHORTEST: Final = 2
"""The bytes of the shortest record, which both of these are shorter than."""


class Row(NamedTuple):
    """One record as it is stored: its strand and number, its chained hash, and its exact bytes.

    `stored` is the ciphertext that a store holds instead of the bytes; None where it holds the bytes themselves.
    """

    path: str
    n: int
    hash: bytes
    data: bytes
    stored: bytes | None = None

    @property
    def is_closed(self) -> bool:
        """Whether the record cannot be read here."""
        return len(self.data) < SHORTEST and self.stored is not None

    @property
    def kind(self) -> Kind | None:
        """The record's kind, without decoding it; None for bytes of another form."""
        match = KIND_OF_RECORD.match(self.data)
        return None if match is None else KINDS.get(match[1])

    def record(self) -> Record:
        """Return the record, decoded at each call."""
        decoded: Record = orjson.loads(self.data)
        return decoded


_PATH: Final = attrgetter("path")
Tape = dict[str, list[Row]]
"""The rows of one run by strand path, each list in order from n = 0."""


def genesis(run: str, path: str) -> bytes:
    """Return the hash that a strand's chain starts from."""
    return hashlib.sha256(run.encode() + b"\0" + path.encode()).digest()


def link(previous: bytes, data: bytes) -> bytes:
    """Return the hash of a row, from the hash before it and its bytes as they are stored."""
    return hashlib.sha256(previous + data).digest()


def encode(record: Mapping[str, object]) -> bytes:
    """Return the bytes of a record: what is hashed, stored and sent."""
    return orjson.dumps(record)


def read_stored(path: str, n: int, digest: bytes, data: bytes) -> Row:
    """Return the row of what a store holds: closed, if it is encrypted."""
    return Row(path, n, digest, CLOSED, data) if data[:1] == MARK else Row(path, n, digest, data)


def chain_row(path: str, n: int, previous: bytes, record: Mapping[str, object], encrypt: Encrypt | None = None) -> Row:
    """Return the row of `record` at `n`, after the row whose hash is `previous`; encrypted, if its store is."""
    data = compact(encode(record))
    if encrypt is None:
        return Row(path, n, link(previous, data), data)
    stored = encrypt(path, n, data)
    return Row(path, n, link(previous, stored), data, stored)


def run_head(strands: Iterable[tuple[str, bytes, int]]) -> str:
    """Return the hash over whole strands, (path, head, count) each, whatever their order. Hex."""
    digest = hashlib.sha256()
    for path, head, count in sorted(strands):
        digest.update(b"%b\0%d\0%b" % (path.encode(), count, head))
    return digest.hexdigest()


def by_path(rows: Iterable[Row]) -> Tape:
    """Rows of one run, in order, as a tape."""
    tape: Tape = {}
    for path, strand in groupby(rows, _PATH):
        tape.setdefault(path, []).extend(strand)
    return tape


def closing_entries(strands: Mapping[str, tuple[bytes, int]]) -> list[list[Any]]:
    """Return the `closes` field of a record: [path, head, count] of each strand, in order of their paths."""
    return [[path, head.hex(), count] for path, (head, count) in sorted(strands.items())]
