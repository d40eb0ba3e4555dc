"""The live driver: performs what the recorder asks for, in this process. A resume is the same with a longer tape."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

from agent_core.effects import CallModel, Cancelled, Classify, Elapsed, Event, ReadMessage, Received, Suspended
from agent_core.encryption.record_cipher import Encrypt
from agent_core.errors import Abandoned, Lost
from agent_core.journal.chain import check_chains
from agent_core.journal.operations import Act, Append, Begin, Fork, Listen, Operation, Operations, Sleep, Spec
from agent_core.journal.path import name_of
from agent_core.journal.record import Tape
from agent_core.journal.recorder import Ended, record_run
from agent_core.journal.signature import Keys
from agent_core.journal.store import Journal, ciphers_of, find_encrypter
from agent_core.journal.strand import Loops, Run
from agent_core.outputs import WaitingCall
from agent_core.run.admission import Admission
from agent_core.run.appender import Appender
from agent_core.run.backend import Backend, LocalBackend
from agent_core.run.control import StopSignal
from agent_core.run.executor import Executor
from agent_core.run.inbox import Inbox
from agent_core.run.listening import Listening, seconds_between
from agent_core.run.log import listen_for_log
from agent_core.run.retries import PATIENCE_S
from agent_core.run.row_listener import RowListener

log = logging.getLogger("agent_core")
MAX_DRIVES = 10
"""How often a driver that lost a race drives again from the tape before it gives up."""


async def drive(
    run: str,
    path: str,
    spec: Spec,
    *,
    journal: Journal,
    executor: Executor,
    loops: Loops,
    listener: RowListener | None = None,
    keys: Keys | None = None,
    stop: StopSignal | None = None,
    inbox: Inbox | None = None,
    patience: float = PATIENCE_S,
    begun: Tape | None = None,
) -> Ended:
    """Drive a run from its tape, and live where that ends, to its outcome. With `keys` it is signed then.

    A cancelled driver still writes the run's last record before the cancellation continues; a run cancelled by `stop`
    ends like any other. A question reads the messages that `inbox` has for it. A journal whose database is away is
    waited for, up to `patience` seconds. `begun` is the tape of a run whose beginning was written just now, which is
    not read again. Raises DefinitionError for a run that cannot be started and JournalError when the journal cannot be
    read or written, Abandoned where another driver has taken the run over and was first.
    """
    observer = executor.observer
    heard = [each for each in (observer, listener) if each is not None]
    listeners: list[RowListener] = [*heard, *listen_for_log(run, executor.redactor, observer)]
    stop = stop or StopSignal()
    appender = Appender(run, journal, keys, listeners, stop, patience)
    driver = LiveDriver(LocalBackend(appender, executor, inbox), stop)
    appender.interrupt = driver.interrupt
    encrypt: Encrypt | None = None
    if ciphers_of(journal) is not None:
        encrypt = await appender.retry_until_available(partial(find_encrypter, journal, run))
    for count in range(1, MAX_DRIVES + 1):
        tape, begun = begun, None
        if tape is None:
            tape = check_chains(run, await appender.retry_until_available(partial(journal.load, run)))
        appender.resume_from(tape)
        if inbox is not None:
            inbox.resume_from(tape)
        for each in listeners:
            each.resume_from(tape)
        try:
            ended = await driver.run(record_run(Run(run, tape, loops, encrypt=encrypt), path, spec))
        except Lost as lost:
            if stop.is_lost:
                raise Abandoned(run) from lost
            if count == MAX_DRIVES:
                raise
            driver.begin_anew()
            log.info("run %s: another driver wrote first; driving again from the tape", run)
            continue
        await appender.sign()
        if driver.interruption is not None:
            raise driver.interruption
        assert isinstance(ended, Ended)
        return ended
    raise AssertionError


class LiveDriver:
    """One walk through the recorder's operations. `interruption` is the caller's cancellation, once it came."""

    def __init__(self, backend: Backend, stop: StopSignal) -> None:
        self.interruption: asyncio.CancelledError | None = None
        self._listening = Listening()
        self._acting: dict[asyncio.Task[Any], None] = {}  # in the order in which they began, and are stopped
        self._sleeping: dict[asyncio.Task[Any], None] = {}
        self._backend, self._stop = backend, stop
        stop.listeners.append(self._wake)
        stop.on_messages.append(self._listening.notify)

    def begin_anew(self) -> None:
        """Forget the branches of a walk that broke off."""
        self._listening.reset()

    @property
    def is_cancelled(self) -> bool:
        """Whether acts in progress stop, and nothing more begins."""
        return self.interruption is not None or self._stop.requested == "cancel"

    async def run(self, operations: Operations) -> Any:
        reply: Any = None
        while True:
            try:
                operation, reply = operations.send(reply), None  # a reply may be large, and an act may take long
            except StopIteration as stop:
                return stop.value
            reply = await self._perform(operation)

    async def _perform(self, operation: Operation) -> Any:
        match operation:
            case Append(rows):
                await self._backend.append(rows, settled=True)
                return None
            case Act():
                return await self._act(operation)
            case Begin(slot):
                return self._stop_reply(slot.path) or await self._begin(operation)
            case Sleep(path, seconds):
                return await self._sleep(path, seconds)
            case Listen():
                return await self._listen(operation)
            case Classify():
                return await self._backend.classify(operation)
            case Fork():
                return await self._fork(operation)

    async def _begin(self, begin: Begin) -> Any:
        """Return how a run begins: cancelled, where the caller is cancelled meanwhile."""
        try:
            return await self._backend.begin(begin)
        except asyncio.CancelledError as cancellation:
            if self._stop.requested != "cancel":
                self.interrupt(cancellation)
            return Cancelled(self._backend.now())

    def _stop_reply(self, path: str) -> Cancelled | Suspended | None:
        """Return the reply to whatever would begin now, when the run is being stopped."""
        if self.is_cancelled:
            return Cancelled(self._backend.now())
        if self._stop.requested == "pause":
            waiting: WaitingCall = {"strand": path, "n": 0, "tool": name_of(path), "args": {}, "reason": "paused"}
            return Suspended("paused", (waiting,))
        return None

    async def _sleep(self, path: str, seconds: float) -> Cancelled | Suspended | None:
        task = _current_task()
        self._sleeping[task] = None
        try:
            if self._stop_reply(path) is None:
                await asyncio.sleep(seconds)
        except asyncio.CancelledError as cancellation:
            if self._stop.requested is None:
                self.interrupt(cancellation)
        finally:
            del self._sleeping[task]
        return self._stop_reply(path)

    async def _listen(self, listen: Listen) -> Event | Cancelled | None:
        """Return what came; None once the run is let go until it comes: when it is paused, or nothing else goes on."""
        if listen.rows:
            await self._backend.append(listen.rows, settled=True)
        while True:
            if self.is_cancelled:
                return Cancelled(self._backend.now())
            if self._stop.requested == "pause" or self._listening.is_over:
                return None
            if (event := await self._find_event(listen)) is not None:
                return event
            try:
                await self._listening.wait(listen.until, self._backend.read_clock())
            except asyncio.CancelledError as cancellation:
                self.interrupt(cancellation)

    async def _find_event(self, listen: Listen) -> Event | None:
        signal = None if listen.signal is None else await self._backend.take_signal(listen.signal)
        if signal is not None:
            return signal
        if listen.until is None or seconds_between(self._backend.read_clock(), listen.until) > 0:
            return None
        return Elapsed(self._backend.now())

    # ── acts ──────────────────────────────────────────────────────────────────────────────────────

    async def _act(self, act: Act) -> Any:
        stop_reply = self._stop_reply(act.slot.path)
        if isinstance(stop_reply, Suspended):
            await self._backend.append(act.rows[:-1])
            return stop_reply
        if messages := await self._take_messages(act):
            await self._backend.append(act.rows[:-1])
            return Received(messages)
        rows, admission = act.rows, None
        if act.once_only and self._backend.must_admit(act) and not self.is_cancelled:
            await self._backend.append(rows[:-1])
            rows, admission = rows[-1:], await self._admit(act)
            if isinstance(stop_reply := self._stop_reply(act.slot.path), Suspended):
                return stop_reply
        return await self._backend.act(act, rows, admission, self._guard)

    async def _take_messages(self, act: Act) -> tuple[ReadMessage, ...]:
        """Return the messages for a question that is not asked yet."""
        is_new = isinstance(act.effect, CallModel) and bool(act.rows) and not self.is_cancelled
        return await self._backend.take_messages(act.slot.path) if is_new else ()

    async def _admit(self, act: Act) -> Admission | None:
        """Wait until the act may be asked; None when the run is stopped meanwhile."""
        task = _current_task()
        self._sleeping[task] = None
        try:
            return await self._backend.admit(act)
        except asyncio.CancelledError as cancellation:
            if self._stop.requested is None:
                self.interrupt(cancellation)
            return None
        finally:
            del self._sleeping[task]

    async def _guard(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Return what an act comes to that stops when the run is cancelled, and does not begin after that."""
        task = _current_task()
        self._acting[task] = None
        try:
            if not self.is_cancelled:
                return await work
        except asyncio.CancelledError as cancellation:
            if self._stop.requested != "cancel":
                self.interrupt(cancellation)
        finally:
            work.close()
            del self._acting[task]
        return Cancelled(self._backend.now())

    # ── branches ──────────────────────────────────────────────────────────────────────────────────

    async def _fork(self, fork: Fork) -> list[Any]:
        """Drive branches at the same time, with those that the ended ones let start, until none is left.

        When one of them breaks, the others still come to their end, so that nothing they do is left in doubt.
        """
        tasks = [asyncio.create_task(self.run(branch)) for branch in fork.branches]
        self._listening.add(len(tasks) - 1 if tasks else 0)
        running, broken = list(tasks), None
        while running:
            done = await self._first_done(running)
            ended = [task for task in running if task in done]  # in order of start
            running = [task for task in running if task not in done]
            before = len(tasks)
            for task in ended:
                error = task.exception()  # of each, so that none counts as never retrieved
                broken = broken or error
                if broken is None and fork.more is not None:
                    started = [asyncio.create_task(self.run(branch)) for branch in fork.more(task.result())]
                    tasks += started
                    running += started
            self._listening.add(len(tasks) - before - len(ended) + (not running))
        if broken is not None:
            raise broken
        return [task.result() for task in tasks]

    async def _first_done(self, running: Sequence["asyncio.Task[Any]"]) -> set["asyncio.Task[Any]"]:
        """Return the branches that ended first. A cancellation goes to all that act, and each writes its last
        record."""
        while not (ended := {task for task in running if task.done()}):
            try:
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError as cancellation:
                self.interrupt(cancellation)
        return ended

    # ── stopping ──────────────────────────────────────────────────────────────────────────────────

    def interrupt(self, cancellation: asyncio.CancelledError) -> None:
        """The caller has cancelled: acts in progress stop, and nothing more begins."""
        if self.interruption is None:
            self.interruption = cancellation
            self._wake()

    def _wake(self) -> None:
        """Wake what sleeps or listens, and abort acts in progress when the run is cancelled."""
        self._listening.notify()
        current = _task_or_none()
        for task in [*self._sleeping, *(self._acting if self.is_cancelled else ())]:
            if task is not current:
                task.cancel()


def _current_task() -> "asyncio.Task[Any]":
    task = asyncio.current_task()
    assert task is not None
    return task


def _task_or_none() -> "asyncio.Task[Any] | None":
    """Return the current task; None for a caller outside the event loop."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
