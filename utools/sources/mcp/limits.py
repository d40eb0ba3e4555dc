"""How much an MCP server may say: in one message, in one answer, and without having been asked. Pure."""

from collections.abc import Mapping
from typing import Any

LONGEST = 2**23
"""Bytes of one message."""
BRACKETS = 250_000
"""Objects and lists of one message, by the brackets that open them: each costs many times its bytes."""
CROWDED = f"it holds more than {BRACKETS} objects and lists"
ITEMS = 10_000
"""Contents of one result, or tools on one page."""
AT_ONCE, EACH_SECOND = 10_000, 1000
"""Messages that nobody asked for: so many at once, and so many more each second. A long one counts for each KiB."""
KIB = 1024
UNANSWERED = 100
"""Requests of a server that it has not heard the answers of; each is kept until it has."""
UNREADABLE_CODE, UNREADABLE = -32700, "its answer cannot be read: "
"""The error that takes the place of an answer."""


class Unasked:
    """What a server says without having been asked. Each method returns why that is too much, or nothing."""

    def __init__(self) -> None:
        self._left, self._since = float(AT_ONCE), 0.0
        self._open: list[str] = []

    def said(self, size: int, now: float) -> str:
        """So many bytes, at this time in seconds."""
        self._left = min(AT_ONCE, self._left + (now - self._since) * EACH_SECOND) - 1 - size / KIB
        self._since = now
        return f"it sent more than {AT_ONCE} messages that nobody asked for" if self._left < 0 else ""

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


def brackets(data: bytes | bytearray) -> int:
    """How many objects and lists begin here at most; some of these may stand in texts."""
    return data.count(b"{") + data.count(b"[")


def too_many(result: Mapping[str, Any]) -> str:
    """Why a result is not read: each of its items is costly. Nothing if it can be."""
    longest = max((len(each) for each in result.values() if isinstance(each, list)), default=0)
    return f"it is a list of {longest} items, and at most {ITEMS} are read" if longest > ITEMS else ""
