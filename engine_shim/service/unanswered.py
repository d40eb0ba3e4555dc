"""Unanswered: questions whose askers left before the answer, for those who ask the same again."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from time import monotonic
from typing import Final

KEPT_S: Final = 120.0
"""How long after its asker has left a question is known. Clients that try again do so within seconds, in the end within
a minute; whoever asks later asks on purpose."""
MOST: Final = 1000


@dataclass(slots=True)
class Unanswered:
    """Runs whose callers have left, by what they asked. A client that gives up waiting often asks again by itself, and
    most clients do not say so: the second request is byte for byte the first one, and belongs to the same run.

    Of two who ask the same at a time, and stay, each has a run of their own.
    """

    clock: Callable[[], float] = monotonic
    _left: deque[tuple[float, bytes, str]] = field(default_factory=lambda: deque(maxlen=MOST))

    def add(self, asker: str, body: bytes, run: str) -> None:
        """Note that an asker has left before the answer of a run, once."""
        asked = _digest(asker, body)
        if not any(each[1:] == (asked, run) for each in self._left):
            self._left.append((self.clock(), asked, run))

    def take(self, asker: str, body: bytes) -> str | None:
        """Return the run of the same question by an asker who has left, and forget it. None if there is none."""
        while self._left and self._left[0][0] <= self.clock() - KEPT_S:
            self._left.popleft()
        asked = _digest(asker, body) if self._left else b""
        for entry in self._left:
            if entry[1] == asked:
                self._left.remove(entry)
                return entry[2]
        return None


def _digest(asker: str, body: bytes) -> bytes:
    return sha256(asker.encode() + b"\0" + body).digest()
