"""Controlling a run from outside its loop: decisions, pause, resume, cancel, and the signature at its end."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from agent_core.audit.signature import Keys, sign
from agent_core.errors import DecisionError, Lost
from agent_core.journal.control import Control, Decisions, cancel_rows, control_row, decision_rows
from agent_core.journal.store import Journal
from agent_core.run.clock import now
from utools.secrets.redaction import Redactor

Stopping = Literal["pause", "cancel"]


@dataclass(slots=True, eq=False)
class StopSignal:
    """Stops a run that is being driven, from the event loop that drives it.

    A pause lets acts in progress answer, and begins nothing more; a cancellation aborts them.
    """

    requested: Stopping | None = None
    listeners: list[Callable[[], None]] = field(default_factory=list, repr=False)

    def request(self, how: Stopping) -> None:
        """Stop the run. A cancellation outweighs a pause; neither can be taken back."""
        if self.requested != "cancel":
            self.requested = how
            for notify in self.listeners:
                notify()


def append_decisions(journal: Journal, run: str, decisions: Decisions, *, by: str, redactor: Redactor) -> None:
    """Append a person's decisions; DecisionError for one that fits nothing, or that somebody else made first."""
    rows = decision_rows(journal.load(run), decisions, by=by, at=now(), redactor=redactor)
    try:
        journal.append(run, rows)
    except Lost as lost:
        raise DecisionError(f"{lost.path}:{lost.n - 1} was decided by somebody else just now") from None


def append_control(journal: Journal, run: str, word: Control, *, by: str, keys: Keys | None) -> None:
    """Append who stops a run, or lets it go on, and sign it as it is then."""
    while True:
        try:
            journal.append(run, [control_row(run, journal.load(run), word, by=by, at=now())])
            break
        except Lost:  # somebody else appended a word just now
            continue
    if keys is not None:
        sign_run(journal, run, keys)


def cancel_pending(journal: Journal, run: str) -> None:
    """Cancel everything that waits for a person; a call that is decided at the same moment stays decided."""
    while rows := cancel_rows(journal.load(run), at=now()):
        with suppress(Lost):
            journal.append(run, rows)


def sign_run(journal: Journal, run: str, keys: Keys) -> None:
    """Sign the run as it is. A driver that does so at the same time writes the same, or has gone further."""
    row = sign(run, journal.load(run), keys)
    if row is not None:
        with suppress(Lost):
            journal.append(run, [row])
