"""How a run started, decoded: what the first records of many runs have alike is decoded once. Pure.

Thousands of runs of one agent or workflow begin with the same policy, schemas and templates, which are most of the
record. So it is cut in front of some of its keys, and each part is decoded as an object of its own. When every part is
one, the whole is the object with the members of all: only between two members of the outermost object can a cut leave
objects on both sides.
"""

from functools import lru_cache
from typing import Final

import orjson

from agent_core.journal.kinds import beginning
from agent_core.journal.record import Record, Row

STARTED: Final = beginning("run_started")
_AGENT: Final = beginning("run_started", loop="agent")
_CUTS_OF_AGENT: Final = (b',"config":', b',"tools":', b',"messages":', b',"texts":', b',"sources":', b',"options":')
_CUTS: Final = (b',"definition":', b',"tools":')
MOST: Final = 64
"""Parts that are kept."""
LARGEST: Final = 2**16
"""Bytes of a part that is kept."""


def read_started(row: Row) -> Record:
    """Return the first record of a strand. What is in it may be shared with other runs, and is not to be changed."""
    data = row.data
    if not (data.startswith(STARTED) and data.endswith(b"}")):
        return row.record()
    first, *others = _cut(data)
    try:
        started: Record = orjson.loads(first + b"}")
        for part in others:
            started.update(_decode_shared(part) if len(part) <= LARGEST else _decode(part))
    except orjson.JSONDecodeError:  # a cut within a member
        return row.record()
    return started


def _cut(data: bytes) -> list[bytes]:
    """Return the record in parts, each with the comma before it but without the last brace."""
    parts, start = list[bytes](), 0
    for cut in _CUTS_OF_AGENT if data.startswith(_AGENT) else _CUTS:
        at = data.find(cut, start)
        if at > 0:
            parts.append(data[start:at])
            start = at
    return [*parts, data[start:-1]]


@lru_cache(MOST)
def _decode_shared(part: bytes) -> Record:
    return _decode(part)


def _decode(part: bytes) -> Record:
    decoded: Record = orjson.loads(b"{" + part[1:] + b"}")
    return decoded
