"""How much an MCP server may say: in one message, in one answer, and without having been asked. Pure."""

import re
from collections.abc import Mapping
from typing import Any

LONGEST = 2**25
"""Bytes of one message."""
TOO_LONG = f"it is longer than {LONGEST} bytes"
BRACKETS = 500_000
"""Objects and lists of one message, by the brackets that open them: each costs many times its bytes."""
CROWDED = f"it holds more than {BRACKETS} objects and lists"
ITEMS = 10_000
"""Contents of one result, or tools on one page."""
AT_ONCE, EACH_SECOND = 10_000, 1000
"""Messages that answer nothing: so many at once, and so many more each second. A long one counts for each KiB, as so
many at most: one alone is never too much."""
KIB, AT_MOST = 1024, 1000
SLICE = 2**16
TEXT = re.compile(rb'"(?:[^"\\\r\n]++|\\[^\r\n])*+"?')
"""A JSON text, to its end or the end of its line; possessive, so that it is read once however it ends."""
UNANSWERED = 100
"""Requests of a server that it has not heard the answers of; each is kept until it has."""
UNREADABLE_CODE, UNREADABLE = -32700, "its answer cannot be read: "
"""The error that takes the place of an answer."""


class TokenBucket:
    """How much more of one kind may be said at a time."""

    def __init__(self) -> None:
        self._left, self._since = float(AT_ONCE), 0.0

    def takes(self, size: int, now: float) -> bool:
        """Whether a message of so many bytes, at this time in seconds, may be said; if so, it counts."""
        self._left = min(AT_ONCE, self._left + (now - self._since) * EACH_SECOND)
        self._since = now
        cost = min(1 + size / KIB, AT_MOST)
        self._left -= cost if (taken := cost <= self._left) else 0
        return taken


class UnsolicitedQuota:
    """What a server says without having been asked. Each method returns why that is too much, or nothing."""

    def __init__(self) -> None:
        self._allowance = TokenBucket()
        self._open: list[str] = []

    def said(self, size: int, now: float) -> str:
        """So many bytes, at this time in seconds."""
        told = f"it sent more than {AT_ONCE} messages that nobody asked for"
        return "" if self._allowance.takes(size, now) else told

    def asked(self, request: object) -> str:
        """A request, by its id."""
        self._open.append(str(request))
        told = f"it sent more than {UNANSWERED} requests, and does not take the answers"
        return told if len(self._open) > UNANSWERED else ""

    def answered(self, request: object) -> None:
        """The server has taken the answer to its request."""
        if str(request) in self._open:
            self._open.remove(str(request))

    def withdrawn(self, request: object) -> None:
        """The server waits for it no longer; of several requests by one id, it has withdrawn one at most."""
        if self._open.count(str(request)) == 1:
            self._open.remove(str(request))


class NestingCounter:
    """The objects and lists of a message that comes in parts: the brackets that open them, outside its texts."""

    def __init__(self) -> None:
        self._count, self._open = 0, b""

    def grows(self, part: bytes | bytearray) -> bool:
        """Whether these are not too many yet, with those of the next part."""
        data = self._open + part
        rest = TEXT.sub(b'"', data + b"[")  # a text that is still open takes the last one with it
        closed = rest.endswith(b"[")
        self._open = b"" if closed else b'"' + b"\\" * ((len(data) - len(data.rstrip(b"\\"))) % 2)
        self._count += _brackets(rest) - closed
        return self._count <= BRACKETS


def crowded(message: bytes | bytearray) -> bool:
    """Whether a message holds too many objects and lists; it is looked at closely only where it may."""
    crowd = NestingCounter()
    parts = (message[at : at + SLICE] for at in range(0, len(message), SLICE))
    return _brackets(message) > BRACKETS and not all(map(crowd.grows, parts))


def _brackets(data: bytes | bytearray) -> int:
    return data.count(b"{") + data.count(b"[")


def too_many(result: Mapping[str, Any]) -> str:
    """Why a result is not read: each of its items is costly. Nothing if it can be."""
    longest = max((len(each) for each in result.values() if isinstance(each, list)), default=0)
    return f"it is a list of {longest} items, and at most {ITEMS} are read" if longest > ITEMS else ""
