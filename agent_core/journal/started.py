"""How a run started, decoded: what the first records of many runs have alike is decoded once. Pure.

Thousands of runs of one agent or workflow begin with the same policy, schemas and templates, which are most of the
record. So it is cut in front of some of its keys, and each part is decoded as an object of its own. When every part is
one, the whole is the object with the members of all: only between two members of the outermost object can a cut leave
objects on both sides. What is a run's own, its conversation above all, is decoded for each reader.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import orjson

from agent_core.errors import Damaged
from agent_core.journal.kinds import LOOP_OF_START, beginning
from agent_core.journal.path import parent_of
from agent_core.journal.record import Record, Row, Tape

STARTED: Final = beginning("run_started")
_AGENT: Final = beginning("run_started", loop="agent")
_OWN: Final = (b"config", b"messages", b"sources", b"limits", b"documents", b"agent", b"external", b"env", b"turn")
"""Keys that a part begins with which no other run has alike."""
_OF_AGENT: Final = (
    b"config",
    b"tools",
    b"messages",
    b"texts",
    b"sources",
    b"examples",
    b"options",
    b"limits",
    b"redaction",
    b"documents",
    b"agent",
    b"reading",
)
_OF_WORKFLOW: Final = (b"definition", b"external", b"env", b"limits", b"tools", b"turn")


def _cuts(keys: Sequence[bytes]) -> tuple[tuple[bytes, bool], ...]:
    """Return where a record is cut, and whether other runs may have the part that begins there."""
    return tuple((b',"%b":' % key, key not in _OWN) for key in keys)


_CUTS_OF_AGENT: Final = _cuts(_OF_AGENT)
_CUTS: Final = _cuts(_OF_WORKFLOW)
_NOT_BRIEF: Final = tuple(b',"%b":' % key for key in (b"messages", b"texts", b"examples", b"options", b"external"))
SHARED: Final = frozenset(("tools", "texts", "examples", "options", "reading"))
"""Keys of an agent's record that runs in flight share."""
MOST: Final = 64
"""Parts that are kept."""
LARGEST: Final = 2**16
"""Bytes of a part that is kept."""


def read_started(row: Row, *, is_brief: bool = False) -> Record:
    """Return the first record of a strand. What is in it may be shared with other runs, and is not to be changed.

    A brief one may be without the conversation, templates, options and inputs, which are not decoded.
    """
    data = row.data
    if not (data.startswith(STARTED) and data.endswith(b"}")):
        return row.record()
    (first, _), *others = _cut(data)
    try:
        started: Record = orjson.loads(first + b"}")
        for part, may_be_shared in others:
            if is_brief and part.startswith(_NOT_BRIEF):
                continue
            started.update(_decode_shared(part) if may_be_shared and len(part) <= LARGEST else _decode(part))
    except orjson.JSONDecodeError:  # a cut within a member
        return row.record()
    return started


def loop_of(first: Row) -> str | None:
    """Return the loop of the run that a strand's first record begins; None where it begins none."""
    usual = LOOP_OF_START.match(first.data)
    loop: str | None = usual[1].decode() if usual else read_started(first).get("loop")
    return loop


def run_strand(tape: Tape, strand: str) -> str:
    """Return the strand of the innermost run that a strand belongs to. Damaged where it belongs to none."""
    path = strand
    while path and (path not in tape or tape[path][0].kind != "run_started"):
        path = parent_of(path)
    if not path:
        raise Damaged(strand, 0, "no run begins there or above")
    return path


def share_alike(started: Record) -> Record:
    """Return a first record that is to be written, with what other runs have alike from those that began before."""
    if started["loop"] != "agent":  # a workflow keeps nothing of it
        return started
    shared: Record = {}
    for key in SHARED & started.keys():
        part = b',"%b":%b' % (key.encode(), orjson.dumps(started[key]))
        if len(part) <= LARGEST:
            shared |= _decode_shared(part)
    return {**started, **shared}


def _cut(data: bytes) -> list[tuple[bytes, bool]]:
    """Return the record in parts, each with the comma before it but without the last brace, and whether other runs may
    have it too."""
    parts, start, is_shared = list[tuple[bytes, bool]](), 0, False
    for cut, begins_shared in _CUTS_OF_AGENT if data.startswith(_AGENT) else _CUTS:
        at = data.find(cut, start)
        if at > 0:
            parts.append((data[start:at], is_shared))
            start, is_shared = at, begins_shared
    return [*parts, (data[start:-1], is_shared)]


def _decode(part: bytes) -> Record:
    decoded: Record = orjson.loads(b"{" + part[1:] + b"}")
    return decoded


_decode_shared = lru_cache(MOST)(_decode)
