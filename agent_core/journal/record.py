"""What a journal holds: records in strands, each serialised once and hash-chained.

A strand is one sequential line of work. Its chain starts from SHA-256(run, NUL, path); each row's hash is
SHA-256(previous hash, bytes of the record). Paths:

    agent                        a bare run
    flow/ctx_in.1                visit 1 of a node
    flow/ctx_in.1~2              the same, tried again for the second time
    flow/agent_core.1/4.0        item 0 of the batch that record 4 asked for
    agent/agent_core.7           the run nested under the call that record 7 asked for
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import quote, unquote

import orjson

from agent_core.protocol.strict_json import snug

FORMAT: Final = 1
Kind = Literal[
    "run_started", "decided", "waiting", "resolved", "asked", "answered", "cancelled", "run_finished", "sealed"
]
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One record as it is stored: where it stands, its chained hash, and its exact bytes."""

    path: str
    n: int
    hash: bytes
    data: bytes

    def record(self) -> Record:
        """The record, decoded anew at each call."""
        decoded: Record = orjson.loads(self.data)
        return decoded


Tape = dict[str, list[Row]]
"""The rows of one run by strand path, each list in order from n = 0."""


def genesis(run: str, path: str) -> bytes:
    """The hash that a strand's chain starts from."""
    return hashlib.sha256(run.encode() + b"\0" + path.encode()).digest()


def link(previous: bytes, data: bytes) -> bytes:
    """The hash of a row, from the hash before it and its bytes."""
    return hashlib.sha256(previous + data).digest()


def encode(record: Record) -> bytes:
    """The bytes of a record: what is hashed, stored and sent."""
    return orjson.dumps(record)


def chained(path: str, n: int, previous: bytes, record: Record) -> Row:
    """The row that holds `record` at `n`, behind the row whose hash is `previous`."""
    data = snug(encode(record))
    return Row(path, n, link(previous, data), data)


def run_head(strands: Iterable[tuple[str, bytes, int]]) -> str:
    """The hash over whole strands, (path, head, count) each, whatever their order. Hex."""
    digest = hashlib.sha256()
    for path, head, count in sorted(strands):
        digest.update(b"%b\0%d\0%b" % (path.encode(), count, head))
    return digest.hexdigest()


def within(path: str, root: str) -> bool:
    """Whether a strand is `root` or stands below it."""
    return path == root or path.startswith(root + "/")


def segment(name: str) -> str:
    """A node's or tool's code as a path segment: all but letters, digits, `_` and `-` percent-encoded."""
    return quote(name, safe="").replace(".", "%2E").replace("~", "%7E")


def child(parent: str, name: str, n: int) -> str:
    """The strand of a node's visit `n`, or of the run nested under the call that record `n` asked for."""
    return f"{parent}/{segment(name)}.{n}"


def item(parent: str, n: int, index: int) -> str:
    """The strand of one item of the batch that record `n` of `parent` opened."""
    return f"{parent}/{n}.{index}"


def attempt(path: str, k: int) -> str:
    """The strand of a visit's k-th further attempt; the visit's own for 0."""
    return f"{path}~{k}" if k else path


def depth(path: str) -> int:
    """How many visits and nested runs a strand stands below its root; items of batches do not count."""
    return sum(re.fullmatch(r"\d+\.\d+", part) is None for part in path.split("/")[1:])


def name_of(path: str) -> str:
    """The node or tool that a strand's last segment names."""
    return unquote(path.rsplit("/", 1)[-1].partition(".")[0])


def by_path(rows: Iterable[Row]) -> Tape:
    """Rows of one run, in order, as a tape."""
    tape: Tape = {}
    for row in rows:
        tape.setdefault(row.path, []).append(row)
    return tape


def closing(strands: Mapping[str, tuple[bytes, int]]) -> list[list[Any]]:
    """What a record says of the strands that it closes: [path, head, count], in order of their paths."""
    return [[path, head.hex(), count] for path, (head, count) in sorted(strands.items())]
