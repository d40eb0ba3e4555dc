"""The state of one connection to an MCP server, and its server's unsolicited messages.

A connection moves forward only, and never leaves ENDED:

    STARTING ──> READY ──> FORGOTTEN ──> ENDED
        └──────────┴─────────────────────> ENDED
"""

import asyncio
from collections.abc import Callable
from enum import Enum

from utools.sources.mcp.last_words import last_words
from utools.sources.mcp.limits import BURST, UNANSWERED, TokenBucket
from utools.words.text import Text

STDERR_BYTES = 4096
"""Bytes of the end of a server's standard error."""
LINE_SHOWN = 300
"""Characters of a line of its output that are shown."""


class State(Enum):
    """Where a connection is in its life."""

    STARTING = "the transport opens, and the server lists its tools"
    READY = "calls are sent"
    FORGOTTEN = (
        "no new call is sent, since the server has ended, or knows, or accepts, the session no longer; the last call "
        "ends it"
    )
    ENDED = "no answer can arrive any more; what was opened is closed"


MOVES: dict[State, frozenset[State]] = {
    State.STARTING: frozenset({State.READY, State.ENDED}),
    State.READY: frozenset({State.FORGOTTEN, State.ENDED}),
    State.FORGOTTEN: frozenset({State.ENDED}),
    State.ENDED: frozenset(),
}


class ConnectionMonitor:
    """Watches one connection. `reason` says why we ended it, if we did.

    `asked` are the methods of our requests that have no answer yet. `overdue` is one that is to be refused in the
    server's stead, and `wake` makes a waiting reader see that. `has_exited` says whether its process has ended. `hide`
    takes secrets out of what the server wrote.
    """

    def __init__(self, hide: Callable[[str], str] = str) -> None:
        self._hide = hide
        self.state = State.STARTING
        self.ended = asyncio.Event()
        self.reason = ""
        self.asked: dict[int | str, str] = {}
        self.overdue: int | str | None = None
        self.wake: Callable[[], object] | None = None
        self.has_exited: Callable[[], bool] = lambda: False
        self._bucket = TokenBucket()
        self._unanswered = 0
        self._stderr = bytearray()
        self._unread = b""

    def move(self, state: State) -> None:
        """Go on to `state`. RuntimeError if MOVES does not allow it."""
        if state not in MOVES[self.state]:
            raise RuntimeError(f"a connection does not go from {self.state.name} to {state.name}")
        self.state = state
        if state is State.ENDED:
            self.ended.set()

    def end(self, reason: str = "") -> None:
        """Go to ENDED, from wherever it is."""
        self.reason = self.reason or reason
        if self.state is not State.ENDED:
            self.move(State.ENDED)

    def refuse_requests(self) -> None:
        """The server takes no request any more. Answers that it has sent before still arrive."""
        if self.state is State.READY:
            self.move(State.FORGOTTEN)
        elif self.state is State.STARTING:
            self.end()

    def answered(self, request: int | str | None) -> str:
        """Return the method of the request that an answer is of; empty where there is none. Some servers write each id
        as a text, and the library takes it so. What a server that is READY wrote before it is not why it ends."""
        if self.state is State.READY:
            self._stderr.clear()
        own = int(request) if isinstance(request, str) and request.isdecimal() else request
        return "" if own is None else self.asked.pop(own, "")

    def give_up(self, request: int | str) -> None:
        """Wait no longer for the answer to a request, if there is none."""
        if request in self.asked:
            self.overdue = request
            if self.wake is not None:
                self.wake()

    def count_unsolicited(self, size: int) -> None:
        """Pay for `size` unsolicited bytes. A server that does not stop is ended."""
        if not self._bucket.spend(size, _now()):
            self.end(Text("it sent more than {most} messages that nobody asked for", most=BURST))

    def allows_talk(self, size: int) -> bool:
        """Return whether one more message of progress, or for the log, is handed on. Talk never takes the last half of
        the bucket, so that it ends no connection."""
        return self._bucket.spend(size, _now(), reserve=BURST / 2)

    def count_request(self) -> None:
        """The server sent a request. One that does not take our answers is ended."""
        self._unanswered += 1
        if self._unanswered > UNANSWERED:
            self.end(Text("it sent more than {most} requests, and does not take the answers", most=UNANSWERED))

    def count_answer(self) -> None:
        """The server took our answer to a request of its own."""
        self._unanswered -= 1

    def add_stderr(self, data: bytes) -> None:
        """The server wrote this to its standard error."""
        self._stderr = (self._stderr + data)[-STDERR_BYTES:]

    def note_unread(self, line: bytes) -> None:
        """The server wrote a line to its standard output that is no message."""
        self._unread = line[:LINE_SHOWN]

    def last_words(self) -> str:
        """Return why we ended it, what it said last on its standard error, and what it wrote in place of a message, to
        follow a sentence."""
        said = last_words(self._stderr.decode("utf-8", "replace"), self._hide)
        ended = Text(": it was ended, since {reason}", reason=self.reason) if self.reason else ""
        last = Text("; its last words: {line}", line=said) if said else ""
        written = self._hide(self._unread.decode("utf-8", "replace").strip())
        unread = Text("; a line of its output is no message of the protocol: {line}", line=written) if written else ""
        return Text("{ended}{last}{unread}", ended=ended, last=last, unread=unread)


def _now() -> float:
    return asyncio.get_running_loop().time()
