"""Appender: appends the records of a run that is driven, signed where the run may be settled after them."""

from asyncio import Lock
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from agent_core.errors import Abandoned, Lost
from agent_core.journal.chain import is_closed
from agent_core.journal.operations import Act, Slot
from agent_core.journal.record import Row, Tape
from agent_core.journal.signature import Keys
from agent_core.journal.store import Journal
from agent_core.records import encode_answer
from agent_core.run.cancellation import OnCancel
from agent_core.run.control import StopSignal, append_signed, sign_run
from agent_core.run.retries import retry_until_available
from agent_core.run.row_listener import RowListener
from utools.threads import DaemonThreads

T = TypeVar("T")
_SIGNING: Final = DaemonThreads(8)
"""Where a program of the operator's signs, beside the event loop."""


class Appender:
    """Appends to the journal of one run, and shows each row to the listeners.

    Once something waits, any row may be the last, so that each is signed in the same step. The steps are done one after
    another. A database that is away is waited for, up to `patience` seconds; `interrupt` hears of a cancellation
    meanwhile. Nothing is appended before it is certain that this driver has the run; to one that is lost, only the
    answers of writes are, which else would be in doubt.
    """

    def __init__(
        self,
        run: str,
        journal: Journal,
        keys: Keys | None,
        listeners: Sequence[RowListener],
        stop: StopSignal,
        patience: float,
    ) -> None:
        self._run, self._journal, self._keys, self._listeners, self._stop = run, journal, keys, listeners, stop
        self._patience = patience
        self.interrupt: OnCancel | None = None
        self.may_rest = False
        self._written: set[tuple[str, int]] = set()
        self._turn = Lock()

    def resume_from(self, tape: Tape) -> None:
        """Go on from a tape, on which something may wait."""
        self.may_rest = any(may_be_last(rows[-1]) for rows in tape.values())

    async def retry_until_available(self, work: Callable[[], T]) -> T:
        """Return what a step on the journal gives, once its database is there."""
        return await self._retry(work, None)

    async def _retry(self, work: Callable[[], T], keys: Keys | None) -> T:
        return await retry_until_available(
            self._journal,
            work,
            run=self._run,
            patience=self._patience,
            turn=self._turn,
            interrupt=self.interrupt,
            threads=_SIGNING if keys is not None and keys.is_slow else None,
        )

    async def append(self, rows: Sequence[Row]) -> bool:
        """Append rows; whether the last one is new."""
        return await self._append(rows, None, of_write=False)

    async def append_settled(self, rows: Sequence[Row], *, of_write: bool = False) -> None:
        """Append rows that no act follows at once; a write's answer among later ones is on disk already. Those
        `of_write` are such an answer, which is appended to a run that is lost as well."""
        self.may_rest = self.may_rest or any(map(may_be_last, rows))
        new = [row for row in rows if (row.path, row.n) not in self._written]
        await self._append(new, self._keys if self.may_rest else None, of_write=of_write)

    async def _append(self, rows: Sequence[Row], keys: Keys | None, *, of_write: bool) -> bool:
        is_new = await self._retry(partial(self._write, rows, keys, of_write=of_write), keys)
        for listen in self._listeners:
            for row in rows:
                listen(row)
        return is_new

    def _write(self, rows: Sequence[Row], keys: Keys | None, *, of_write: bool) -> bool:
        if self._stop.is_abandoned:
            raise Abandoned(self._run)
        if self._stop.hold is not None:
            self._stop.hold.confirm()
        if self._stop.is_lost and not of_write:
            raise Abandoned(self._run)
        return append_signed(self._journal, self._run, rows, keys)

    async def sign(self) -> None:
        """Sign the run as it is, where there are keys."""
        if self._keys is not None:
            await self._retry(partial(sign_run, self._journal, self._run, self._keys), self._keys)

    async def confirm_hold(self) -> None:
        """Wait until it is certain that this driver has the run, and may act. Abandoned where another one has it."""
        hold = self._stop.hold
        if hold is not None and not hold.is_certain():
            await self.retry_until_available(hold.confirm)
        if self._stop.is_lost:
            raise Abandoned(self._run)

    async def append_answer(self, act: Act, reply: Any) -> None:
        """Put a write's answer on disk before anything else happens."""
        row = act.slot.row(encode_answer(reply))
        try:
            await self.append_settled((row,), of_write=True)
            self._written.add((row.path, row.n))
        except Lost:
            await self.retry_until_available(partial(self._append_late_answer, act, reply))
            raise

    def _append_late_answer(self, act: Act, reply: Any) -> None:
        """Another driver has put the write in doubt: add its answer to the doubt.

        Not when someone has decided about the doubt, or the run has ended over it.
        """
        tape = self._journal.load(self._run)
        last = tape[act.slot.path][-1]
        if is_closed(tape, act.slot.path):
            return
        if last.n == act.slot.n and last.record().get("reason") == "in_doubt":
            answer = encode_answer(reply)
            record = {"kind": "resolved", "decision": "late", "by": act.key, "at": reply.at, "answer": answer}
            row = Slot(act.slot.path, last.n + 1, last.hash, act.slot.encrypt).row(record)
            append_signed(self._journal, self._run, [row], self._keys)


def may_be_last(row: Row) -> bool:
    """Return whether a run may be settled after this row."""
    kind = row.kind
    return kind == "waiting" or (kind == "run_finished" and "/" not in row.path)
