"""Kinds of records by their bytes, without decoding: its kind is the first field of each record. Pure.

Where many rows are searched, by a program or by a query, `beginning` gives the bytes that the wanted ones begin with.
"""

from collections.abc import Mapping
from typing import Final, get_args

from agent_core.records import Kind
from utools.lazy_pattern import lazy_compile

KINDS: Final[Mapping[bytes, Kind]] = {kind.encode(): kind for kind in get_args(Kind)}
"""The kinds by their bytes."""
KIND_OF_RECORD: Final = lazy_compile(rb'\{"kind":"([a-z_]+)"')
_TEXT: Final = rb'"(?:[^"\\]|\\.)*"'
LOOP_OF_START: Final = lazy_compile(rb'\{"kind":"run_started","loop":"(\w+)",(?:"format":(\d+),)?')
"""The loop, and the format if it is the next field, of a `run_started` record."""
TOOL_OF_CALL: Final = lazy_compile(
    rb'\{"kind":(?:"asked"|"waiting","reason":%b),"ask":"tool"(?:,"id":%b)?,"tool":(%b)' % ((_TEXT,) * 3)
)
"""The JSON text of the tool in the record of a call that is asked for, or waits."""


def beginning(kind: Kind, **fields: str) -> bytes:
    """Return the bytes that records of a kind begin with, here with these texts as their next fields."""
    named = {"kind": kind, **fields}
    return ("{" + ",".join(f'"{name}":"{value}"' for name, value in named.items())).encode()
