"""Bounds on what an MCP server may send: one message, one result, and unsolicited messages. Pure."""

from collections.abc import Mapping
from typing import Any

from utools.lazy_pattern import lazy_compile

LONGEST = 2**25
"""Bytes of one message."""
TOO_LONG = f"it is longer than {LONGEST} bytes"
BRACKETS = 500_000
"""Objects and lists in one message. Each costs many times its bytes: 32 MiB of empty lists take 3.7 GB once parsed."""
CROWDED = f"it holds more than {BRACKETS} objects and lists"
ITEMS = 10_000
"""Contents of one result, or tools on one page: the library makes a model of each."""
BURST, REFILL = 10_000, 1000
"""Tokens that a bucket holds, and that it gets back each second."""
KIB, HIGHEST_COST = 1024, 1000
UNANSWERED = 100
"""Requests of a server whose answers it has not taken; the library holds a task for each."""
STRING = lazy_compile(rb'"(?:[^"\\\r\n]++|\\[^\r\n])*+"?')
"""A JSON string, up to its end or the end of its line; possessive, so that it is read once however it ends."""


class TokenBucket:
    """Pays for unsolicited messages: burst 10,000, refill 1,000/s, cost 1 + size/KiB, at most 1,000."""

    def __init__(self) -> None:
        self._tokens, self._since = float(BURST), 0.0

    def spend(self, size: int, now: float, *, reserve: float = 0.0) -> bool:
        """Pay for a message of `size` bytes at `now` (seconds); False, and nothing is paid, if that leaves less than
        `reserve` tokens."""
        self._tokens = min(BURST, self._tokens + (now - self._since) * REFILL)
        self._since = now
        cost = min(1 + size / KIB, HIGHEST_COST)
        if self._tokens - cost < reserve:
            return False
        self._tokens -= cost
        return True


def is_crowded(message: bytes | bytearray) -> bool:
    """Return whether a message holds too many objects and lists. Strings are left out only where it may."""
    return _count_brackets(message) > BRACKETS and _count_brackets(STRING.sub(b"", message)) > BRACKETS


def _count_brackets(data: bytes | bytearray) -> int:
    return data.count(b"{") + data.count(b"[")


def result_fault(result: Mapping[str, Any]) -> str:
    """Return why a result is not handed to the library; empty if it may be."""
    longest = max((len(each) for each in result.values() if isinstance(each, list)), default=0)
    return f"it is a list of {longest} items, and at most {ITEMS} are read" if longest > ITEMS else ""
