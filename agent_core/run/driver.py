"""The live driver: performs what the recorder asks for, in this process. A resume is the same with a longer tape."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_core.audit.signature import Keys, sealed
from agent_core.effects import Cancelled, Classify, InDoubt, Suspended, answer_record
from agent_core.errors import DecisionError, Lost
from agent_core.journal.chain import checked, complete
from agent_core.journal.control import Control, Decisions, controlled, decided, withdrawn
from agent_core.journal.operations import Act, Append, Begin, Fork, Operation, Operations, Sleep, Slot, Spec
from agent_core.journal.record import Row, name_of
from agent_core.journal.recorder import Ended, recorded
from agent_core.journal.store import Journal
from agent_core.journal.strand import Loops, Run
from agent_core.run.executor import Executor, now
from utools.secrets.redaction import Redactor

log = logging.getLogger("agent_core")
Listener = Callable[[Row], None]
_END = b'{"kind":"run_finished"'
ATTEMPTS = 10
"""How often a driver that lost a race drives anew before it gives up."""


async def drive(
    run: str,
    path: str,
    spec: Spec,
    *,
    journal: Journal,
    door: Executor,
    loops: Loops,
    listener: Listener | None = None,
    keys: Keys | None = None,
    reins: "StopSignal | None" = None,
) -> Ended:
    """Drive a run from its tape, and live where that ends, to its outcome. With `keys` it is sealed then.

    A cancelled driver still writes the run's last record before the cancellation goes on; a run cancelled by the
    `reins` ends like any other. Raises DefinitionError for a run that cannot be started and JournalError when the
    journal cannot be read or written.
    """
    live = LiveDriver(journal, door, listener, reins or StopSignal())
    for attempt in range(1, ATTEMPTS + 1):
        tape = checked(run, journal.load(run))
        try:
            ended = await live.run(recorded(Run(run, tape, loops), path, spec))
        except Lost:
            if attempt == ATTEMPTS:
                raise
            log.info("run %s: another driver wrote first; driving anew from the tape", run)
            continue
        if keys is not None:
            _seal(journal, run, keys)
        if live.interrupted:
            raise asyncio.CancelledError
        assert isinstance(ended, Ended)
        return ended
    raise AssertionError


def decide(journal: Journal, run: str, decisions: Decisions, *, by: str, redactor: Redactor) -> None:
    """Append a person's decisions; DecisionError for one that fits nothing, or that somebody else was faster with."""
    rows = decided(journal.load(run), decisions, by=by, at=now(), redactor=redactor)
    try:
        journal.append(run, rows)
    except Lost as lost:
        raise DecisionError(f"{lost.path}:{lost.n - 1} was decided by somebody else just now") from None


def note(journal: Journal, run: str, word: Control, *, by: str, keys: Keys | None) -> None:
    """Append who stops a run, or lets it go on, and seal it as it stands then."""
    while True:
        try:
            journal.append(run, [controlled(run, journal.load(run), word, by=by, at=now())])
            break
        except Lost:  # somebody else said something just now
            continue
    if keys is not None:
        _seal(journal, run, keys)


def withdraw(journal: Journal, run: str) -> None:
    """Append to all that waits for a person that nobody will be asked any more; one that is decided just now stays."""
    while rows := withdrawn(journal.load(run), at=now()):
        with suppress(Lost):
            journal.append(run, rows)


def _seal(journal: Journal, run: str, keys: Keys) -> None:
    """Seal the run as it stands; a driver that does so at the same time says the same, or has gone further."""
    row = sealed(run, journal.load(run), keys)
    if row is not None:
        with suppress(Lost):
            journal.append(run, [row])


@dataclass(slots=True, eq=False)
class StopSignal:
    """How another hand stops a run that is being driven, from the event loop that drives it.

    A pause lets what is under way answer, and begins nothing more; a cancellation aborts it.
    """

    pulled: Literal["pause", "cancel"] | None = None
    driven: "list[LiveDriver]" = field(default_factory=list, repr=False)

    def pull(self, how: Literal["pause", "cancel"]) -> None:
        """Stop the run; a cancellation outweighs a pause, and there is no way back."""
        if self.pulled != "cancel":
            self.pulled = how
            for live in self.driven:
                live.stop()


class LiveDriver:
    """One walk through the recorder's operations. `interrupted` once the caller has cancelled it."""

    def __init__(self, journal: Journal, door: Executor, listener: Listener | None, reins: StopSignal) -> None:
        self.interrupted = False
        self._acting: set[asyncio.Task[Any] | None] = set()
        self._sleeping: set[asyncio.Task[Any] | None] = set()
        self._kept: set[tuple[str, int]] = set()
        self._journal, self._door, self._listener, self._reins = journal, door, listener, reins
        reins.driven.append(self)

    @property
    def cancelled(self) -> bool:
        """Whether what is under way stops, and nothing more is begun."""
        return self.interrupted or self._reins.pulled == "cancel"

    async def run(self, operations: Operations) -> Any:
        reply: Any = None
        while True:
            try:
                operation = operations.send(reply)
            except StopIteration as stop:
                return stop.value
            reply = await self._perform(operation)

    async def _perform(self, operation: Operation) -> Any:
        match operation:
            case Append(rows):
                self._append([row for row in rows if (row.path, row.n) not in self._kept])
                return None
            case Act():
                return await self._act(operation)
            case Begin(path):
                return self._held(path) or self._door.begin(operation)
            case Sleep(path, seconds):
                return await self._sleep(path, seconds)
            case Classify():
                return self._door.classify(operation)
            case Fork():
                return await self._fork(operation)

    def _held(self, path: str) -> Cancelled | Suspended | None:
        """What keeps anything more from being begun."""
        if self.cancelled:
            return Cancelled(now())
        if self._reins.pulled == "pause":
            return Suspended(
                "paused", ({"strand": path, "n": 0, "tool": name_of(path), "args": {}, "reason": "paused"},)
            )
        return None

    async def _sleep(self, path: str, seconds: float) -> Cancelled | Suspended | None:
        task = asyncio.current_task()
        self._sleeping.add(task)
        try:
            if self._held(path) is None:
                await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            if self._reins.pulled is None:
                self._interrupt()
        finally:
            self._sleeping.discard(task)
        return self._held(path)

    async def _act(self, act: Act) -> Any:
        held = self._held(act.slot.path)
        if isinstance(held, Suspended):
            self._append(act.rows[:-1])
            return held
        claimed = self._append(act.rows)
        if act.rows and not claimed:  # another driver wrote this very `asked`: it acts, and may have its answer by now
            raise Lost(act.slot.path, act.slot.n - 1)
        if self.cancelled:
            return Cancelled(now())
        task = asyncio.current_task()
        self._acting.add(task)
        try:
            reply = await self._door.act(act)
        except asyncio.CancelledError:
            if self._reins.pulled != "cancel":
                self._interrupt()
            return Cancelled(now())
        finally:
            self._acting.discard(task)
        if act.doubtful and not isinstance(reply, InDoubt | Cancelled):
            self._answer(act, reply)
        return reply

    def _answer(self, act: Act, reply: Any) -> None:
        """A write's answer is on disk before anything else happens."""
        row = act.slot.row(answer_record(reply))
        self._kept.add((row.path, row.n))
        try:
            self._append((row,))
        except Lost:
            self._too_late(act, reply)
            raise

    def _too_late(self, act: Act, reply: Any) -> None:
        """Another driver has put the write in doubt: keep its answer beside the doubt, unless someone has decided, or
        the run has ended over it."""
        tape = self._journal.load(self._door.run)
        last = tape[act.slot.path][-1]
        if complete(tape, act.slot.path.partition("/")[0]):
            return
        if last.n == act.slot.n and last.record().get("reason") == "in_doubt":
            answer = answer_record(reply)
            told = {"kind": "resolved", "decision": "late", "by": act.key, "at": reply.at, "answer": answer}
            self._journal.append(self._door.run, [Slot(act.slot.path, last.n + 1, last.hash).row(told)])

    def _append(self, rows: Sequence[Row]) -> bool:
        if any(row.data.startswith(_END) for row in rows):
            self._nobody_went_on(rows)
        new = self._journal.append(self._door.run, rows)
        if self._listener is not None:
            for row in rows:
                self._listener(row)
        return new

    def _nobody_went_on(self, rows: Sequence[Row]) -> None:
        """A run that ends over what waits closes those strands as they stand: a word or an answer that came meanwhile
        may change how it ends. Raises Lost then."""
        ends = [row.record() for row in rows if row.data.startswith(_END)]
        closes = [closed for end in ends for closed in end.get("closes", ())]
        tape = self._journal.load(self._door.run) if closes else {}
        for path, _, count in closes:
            if len(tape.get(path, ())) > count:
                raise Lost(path, count)

    async def _fork(self, fork: Fork) -> list[Any]:
        """Drive branches side by side, with those that the ended ones let start, until none is left.

        When one of them breaks, the others still come to their end, so that nothing they do is left in doubt.
        """
        tasks = [asyncio.create_task(self.run(branch)) for branch in fork.branches]
        waiting, broken = list(tasks), None
        while waiting:
            done = await self._first(waiting)
            waiting = [task for task in waiting if task not in done]
            for task in [task for task in tasks if task in done]:
                error = task.exception()  # of each, so that none counts as forgotten
                broken = broken or error
                if broken is None and fork.more is not None:
                    started = [asyncio.create_task(self.run(branch)) for branch in fork.more(task.result())]
                    tasks += started
                    waiting += started
        if broken is not None:
            raise broken
        return [task.result() for task in tasks]

    async def _first(self, waiting: Sequence["asyncio.Task[Any]"]) -> set["asyncio.Task[Any]"]:
        """The branches that ended first; a cancellation is handed to all that act, and each writes its last record."""
        while True:
            try:
                done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                return done
            except asyncio.CancelledError:
                self._interrupt()

    def _interrupt(self) -> None:
        """The caller has cancelled: what is under way stops, and nothing more is begun."""
        if not self.interrupted:
            self.interrupted = True
            self.stop()

    def stop(self) -> None:
        """Wake what sleeps, and, when the run is cancelled, abort what is under way."""
        stopping = self._sleeping | self._acting if self.cancelled else set(self._sleeping)
        for task in stopping - {_own_task(), None}:
            if task is not None:
                task.cancel()


def _own_task() -> "asyncio.Task[Any] | None":
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
