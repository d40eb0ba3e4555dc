"""Inbox: what was sent to a run that is driven: messages for its agents, signals for the nodes that wait for them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from agent_core.effects import ReadMessage, Signalled
from agent_core.errors import JournalError
from agent_core.journal.control import unread_messages, untaken_signals
from agent_core.journal.record import Tape
from agent_core.run.control import StopSignal


class Tapes(Protocol):
    """Whatever has the tape of a run: its journal, as a rule."""

    def load(self, run: str) -> Tape: ...


@dataclass(slots=True)
class Inbox:
    """Hands each message to one agent, each signal to one node. `accepts` says whether the agent of a strand reads
    messages."""

    run: str
    journal: Tapes
    stop: StopSignal
    accepts: Callable[[str], bool]
    _unread: list[ReadMessage] = field(default_factory=list)
    _signals: list[Signalled] = field(default_factory=list)
    _taken: set[int] = field(default_factory=set)

    def resume_from(self, tape: Tape) -> None:
        """Begin with the messages of a tape that no agent has read, and the signals that no node has taken."""
        self._taken = set()
        self._look(tape)

    def read(self) -> None:
        """Read the messages that no agent has read, and the signals that no node has taken."""
        self.stop.has_messages = False
        try:
            self._look(self.journal.load(self.run))
        except JournalError:
            self.stop.has_messages = True
            raise

    def take(self, strand: str) -> tuple[ReadMessage, ...]:
        """Return the messages for the question that a strand is about to ask."""
        if not self.accepts(strand):
            return ()
        taken = tuple(each for each in self._unread if each.get("n") not in self._taken)
        self._taken |= {each["n"] for each in taken if "n" in each}
        return taken

    def take_signal(self, name: str) -> Signalled | None:
        """Return the oldest signal of this name for a node that waits for it; None before one is sent."""
        for each in self._signals:
            if each.name == name and each.n not in self._taken:
                self._taken |= {each.n} if each.n is not None else set()
                return each
        return None

    def _look(self, tape: Tape) -> None:
        self._unread, self._signals = unread_messages(tape), untaken_signals(tape)
