"""Inbox: the messages that were added to a run that is driven, for the next question of one of its agents."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from agent_core.effects import ReadMessage
from agent_core.errors import JournalError
from agent_core.journal.control import unread_messages
from agent_core.journal.record import Tape
from agent_core.run.control import StopSignal


class Tapes(Protocol):
    """Whatever has the tape of a run: its journal, as a rule."""

    def load(self, run: str) -> Tape: ...


@dataclass(slots=True)
class Inbox:
    """Hands each message to one agent. `accepts` says whether the agent of a strand reads them."""

    run: str
    journal: Tapes
    stop: StopSignal
    accepts: Callable[[str], bool]
    _unread: list[ReadMessage] = field(default_factory=list)
    _taken: set[int] = field(default_factory=set)

    def resume_from(self, tape: Tape) -> None:
        """Begin with the messages of a tape that no agent has read."""
        self._unread, self._taken = unread_messages(tape), set()

    def read(self) -> None:
        """Read the messages that no agent has read."""
        self.stop.has_messages = False
        try:
            self._unread = unread_messages(self.journal.load(self.run))
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
