"""Strand paths: how they are composed and parsed. Pure.

agent                        a bare run
flow/ctx_in.1                visit 1 of a node
flow/ctx_in.1~2              the same visit, its second further attempt
flow/agent_core.1/4.0        item 0 of the batch that record 4 asked for
flow/fetch.1/0.7             item 7 of the list of a `foreach`, which record 0 asked for
agent/agent_core.7           the run nested under the call that record 7 asked for

A place is one record of a strand, written STRAND:N, as in `flow/agent_core.1:4`.
"""

import re
from collections.abc import Container, Iterable
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from utools.lazy_pattern import lazy_compile

CONTROL: Final = "control"
SEAL: Final = "seal"
"""The strands beside those of the run itself: who stopped it or added a message, and its signatures."""
PLACE: Final = r"^[!-~]{1,256}:[0-9]{1,9}$"
"""A place as it is written."""
_ITEM: Final = lazy_compile(r"(\d+)\.(\d+)")
_NAMED: Final = lazy_compile(r"(.*)\.(\d+)(?:~(\d+))?")


class Segment(NamedTuple):
    """One part of a path below the root.

    `name` is the node or tool, None for an item of a batch. `number` is the record that asked for the strand, or the
    visit. `item` is the index in the batch, or the further attempt at the visit.
    """

    name: str | None
    number: int
    item: int


def child(parent: str, name: str, number: int) -> str:
    """Return the strand of a node's visit, or of the run nested under the call that record `number` asked for."""
    return f"{parent}/{encode_name(name)}.{number}"


def item(parent: str, number: int, index: int) -> str:
    """Return the strand of one item of the batch that record `number` of `parent` opened."""
    return f"{parent}/{number}.{index}"


def attempt(path: str, k: int) -> str:
    """Return the strand of a visit's k-th further attempt; the visit's own strand for 0."""
    return f"{path}~{k}" if k else path


def last_attempt(path: str, known: Container[str]) -> str:
    """Return the strand of a visit's last attempt among the known strands; the visit's own strand without another."""
    k = 0
    while attempt(path, k + 1) in known:
        k += 1
    return attempt(path, k)


def encode_name(name: str) -> str:
    """Return a node's or tool's code as part of a path: all but letters, digits, `_` and `-` is percent-encoded."""
    return quote(name, safe="").replace(".", "%2E").replace("~", "%7E")


def read_place(text: str) -> tuple[str, int] | None:
    """Return the strand and the record of a place; None for a text that is no place."""
    if not re.fullmatch(PLACE, text):
        return None
    strand, _, n = text.rpartition(":")
    return strand, int(n)


def root_of(path: str) -> str:
    """Return the root strand of the run that a strand belongs to."""
    return path.partition("/")[0]


def find_root(own: Iterable[str]) -> str:
    """Return the root strand among a run's own strands; empty when it is missing."""
    return next((path for path in own if "/" not in path), "")


def parent_of(path: str) -> str:
    """Return the path without its last segment; empty for a root."""
    return path.rpartition("/")[0]


def is_within(path: str, ancestor: str) -> bool:
    """Return whether a strand is `ancestor` or lies below it."""
    return path == ancestor or path.startswith(ancestor + "/")


def is_below(path: str, ancestor: str) -> bool:
    """Return whether a strand lies below `ancestor`."""
    return path.startswith(ancestor + "/")


def outermost_first(paths: Iterable[str]) -> list[str]:
    """Return strands in order, each after those that it lies below."""
    return sorted(paths, key=lambda path: path.count("/"))


def segments(path: str, ancestor: str = "") -> list[str]:
    """Return the raw segments below `ancestor`, or below the root."""
    return path[len(ancestor or root_of(path)) + 1 :].split("/") if "/" in path else []


def parse_segment(segment: str) -> Segment:
    """Return what a raw segment names."""
    if match := _ITEM.fullmatch(segment):
        return Segment(None, int(match[1]), int(match[2]))
    if match := _NAMED.fullmatch(segment):
        return Segment(unquote(match[1]), int(match[2]), int(match[3] or 0))
    return Segment(unquote(segment), 0, 0)


def last_segment(path: str) -> str:
    """Return the last raw segment of a path."""
    return path.rpartition("/")[2]


def name_of(path: str) -> str:
    """Return the node or tool that a strand's last segment names; for an item of a batch that of the strand above."""
    above, _, segment = path.rpartition("/")
    while _ITEM.fullmatch(segment):
        above, _, segment = above.rpartition("/")
    return unquote(segment.partition(".")[0])


def node_of(path: str) -> str | None:
    """Return the node of the outermost workflow that a strand belongs to; None for the strand of the run itself."""
    visit = segments(path)[:1]
    return parse_segment(visit[0]).name if visit else None


def nesting_depth(path: str) -> int:
    """Return how many visits and nested runs a strand lies below its root; items of batches do not count."""
    return sum(_ITEM.fullmatch(segment) is None for segment in segments(path))
