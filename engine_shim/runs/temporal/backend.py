"""TemporalBackend: what a driver asks for, done by activities of any worker. It lives in a workflow."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any, Final

from temporalio import exceptions, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutType, is_cancelled_exception
from temporalio.workflow import ActivityCancellationType

from agent_core.effects import Cancelled, Classify, Failed, InDoubt, ReadMessage, Signalled
from agent_core.errors import Lost
from agent_core.journal.operations import Act, Begin, started_body
from agent_core.journal.path import CONTROL
from agent_core.journal.record import Record, Row, Tape
from agent_core.records import decode_answer
from agent_core.run.admission import Admission
from agent_core.run.appender import may_be_last
from agent_core.run.backend import Guard
from agent_core.run.clock import write_time
from agent_core.run.control import StopSignal
from agent_core.run.inbox import Inbox
from engine_shim.flow.branch import is_of_node
from engine_shim.runs.temporal.references import AT_HAND, are_found_again, reference_to, reference_to_rows
from engine_shim.runs.temporal.rows import Rows
from engine_shim.runs.temporal.settings import FINAL, LONGEST, SHORT
from engine_shim.runs.temporal.timeouts import heartbeat_timeout

RETRY: Final = RetryPolicy(
    initial_interval=timedelta(milliseconds=100), maximum_interval=timedelta(seconds=5), non_retryable_error_types=FINAL
)
AGAIN: Final = timedelta(seconds=1)
COMPLETED: Final = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
ONCE: Final = RetryPolicy(maximum_attempts=1)
LEAN: Final = "lean"
"""A change, by its name: rows after an answer in the journal are appended by their act, not before it; those that end
a run, as it comes to rest."""
UNTIL_SILENT: Final = replace(RETRY, non_retryable_error_types=[*FINAL, "TemporalTimeout:Heartbeat"])
"""For acts that may come again: Temporal tries them again itself, except after a silence, since it would wait no longer
for the next attempt."""


class TemporalBackend:
    """The backend of one walk along a tape. Once its history is long it begins nothing more."""

    def __init__(self, run: str, tape: Tape, stop: StopSignal) -> None:
        self.run, self.tape = run, tape
        self._in_flight, self._is_full = 0, False
        self._written = {path: len(rows) for path, rows in tape.items()}
        self._may_rest = any(may_be_last(rows[-1]) for rows in tape.values())
        self._stop, self._inbox = stop, Inbox(run, self, stop, is_of_node)
        self._inbox.resume_from(tape)
        self._last: tuple[Row, ...] = ()
        self._is_lean = workflow.patched(LEAN)

    @property
    def is_held(self) -> bool:
        """Whether it has begun nothing more for the length of its history, and nothing is under way."""
        return self._is_full and self._in_flight == 0

    def now(self) -> str:
        return write_time(workflow.now())

    def read_clock(self) -> str:
        """Return the time of Temporal's server."""
        return self.now()

    def load(self, run: str) -> Tape:
        """Return the tape, for the inbox."""
        return self.tape

    async def append(self, rows: Sequence[Row], *, settled: bool = False) -> None:
        self._may_rest = self._may_rest or any(map(may_be_last, rows))
        new = self._find_new(rows)
        if new and self._is_lean and new[-1].kind == "run_finished" and may_be_last(new[-1]):
            self._last = new
        elif new:
            await self._append(new, settled=settled)

    async def rest(self, status: str, waiting: list[list[Any]]) -> str:
        """Append what ends the run, and note the status that it rests with; gives what the run's status is then."""
        if not self._last:
            return str(await perform("rest", self.run, [status, waiting]))
        reference = reference_to_rows(self._last)
        with AT_HAND.holding(self.run, reference, self._last):
            return str(await perform("rest", self.run, [status, waiting, reference]))

    async def begin(self, begin: Begin) -> Any:
        reference = reference_to(begin)
        with AT_HAND.holding(self.run, reference, begin):
            begun = await self._perform("begin", reference)
        if not isinstance(begun, Rows):
            return Failed(**begun["failed"])
        self._note_written([*begin.rows, *begun.rows])
        return started_body(begun.rows[0].record())

    async def classify(self, classify: Classify) -> str:
        reference = reference_to(classify)
        with AT_HAND.holding(self.run, reference, classify):
            return str(await self._perform("classify", reference))

    async def take_messages(self, strand: str) -> tuple[ReadMessage, ...]:
        if self._stop.has_messages:
            await self._read_control()
            if self._inbox.accepts(strand):
                self._inbox.read()
        return self._inbox.take(strand)

    async def take_signal(self, name: str) -> Signalled | None:
        if self._stop.has_messages:
            await self._read_control()
            self._inbox.read()
        return self._inbox.take_signal(name)

    async def _read_control(self) -> None:
        told: Rows = await self._perform("read_strand", CONTROL)
        self.tape[CONTROL] = list(told.rows)

    def must_admit(self, act: Act) -> bool:
        return False  # the activity waits, before it claims

    async def admit(self, act: Act) -> Admission | None:
        raise AssertionError

    async def act(self, act: Act, rows: Sequence[Row], admission: Admission | None, guard: Guard) -> Any:
        if self._stop.requested == "cancel":
            if rows and not await self._append(rows, settled=False):
                raise Lost(rows[-1].path, rows[-1].n)
            return Cancelled(self.now())
        if self._is_lean:
            rows = self._find_new(rows)
        if not are_found_again(rows[:-1]):
            await self.append(rows[:-1])
        reference = reference_to(act)
        with AT_HAND.holding(self.run, reference, replace(act, rows=self._find_new(rows))):
            reply = await guard(self._act(act, [*reference, self._may_rest]))
        self._note_written(rows)
        return self._read_reply(reply)

    async def _act(self, act: Act, told: list[Any]) -> Any:
        """Return what the activity gives. A write's has one attempt: the next claim finds what became of it. After a
        silence the next attempt may be silent for longer."""
        within = LONGEST if act.effect.within is None else timedelta(seconds=act.effect.within) + SHORT
        for attempt in count():
            try:
                async with self._beginning():
                    return await perform_act(self.run, told, within=within, once=act.once_only, attempt=attempt)
            except ActivityError as error:
                if is_cancelled_exception(error):
                    return None
                if not _may_come_again(act, error.cause):
                    raise
                if not isinstance(error.cause, exceptions.TimeoutError):
                    await workflow.sleep(AGAIN)
        raise AssertionError

    def _read_reply(self, reply: Any) -> Any:
        match reply:
            case Rows(rows=(row,)):
                self._note_written([row])
                return self._decode(row.record())
            case Cancelled():
                return reply
            case _:
                return Cancelled(self.now())

    def _decode(self, record: Record) -> Any:
        match record["kind"]:
            case "cancelled":
                return Cancelled(record["at"])
            case "waiting":
                self._may_rest = True
                return InDoubt(record["message"], self.now(), record["seconds"])
            case _:
                return decode_answer(record)

    async def _append(self, rows: Sequence[Row], *, settled: bool) -> bool:
        """Append rows; whether the last one is new."""
        reference = reference_to_rows(rows)
        with AT_HAND.holding(self.run, reference, rows):
            is_new = await self._perform("append", [*reference, settled, settled and self._may_rest])
        self._note_written(rows)
        return bool(is_new)

    def _find_new(self, rows: Sequence[Row]) -> tuple[Row, ...]:
        """Return the rows that are not in the journal, by what this walk knows."""
        return tuple(row for row in rows if row.n >= self._written.get(row.path, 0))

    def _note_written(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._written[row.path] = max(row.n + 1, self._written.get(row.path, 0))

    async def _perform(self, name: str, told: Any) -> Any:
        async with self._beginning():
            return await perform(name, self.run, told)

    @asynccontextmanager
    async def _beginning(self) -> AsyncIterator[None]:
        """Begin something, unless the history is long: then nothing more begins."""
        if workflow.info().is_continue_as_new_suggested():
            self._is_full = True
            await workflow.wait_condition(lambda: False)
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1


async def perform(name: str, run: str, told: Any = None) -> Any:
    """Return what a step on the store gives, by the worker that walks: history has its end alone. Raises Lost when
    another driver was first, ApplicationError for what retries do not mend. A store that is away is tried again until
    it is back.
    """
    with _raising_lost():
        return await workflow.execute_local_activity(
            name, args=[run, told], start_to_close_timeout=SHORT, retry_policy=RETRY, cancellation_type=COMPLETED
        )


def _may_come_again(act: Act, cause: BaseException | None) -> bool:
    """Return whether the workflow asks for an act again, which failed for this reason."""
    if isinstance(cause, exceptions.TimeoutError):
        return act.once_only or cause.type == TimeoutType.HEARTBEAT
    return act.once_only and not (isinstance(cause, ApplicationError) and cause.non_retryable)


async def perform_act(run: str, told: Any, *, within: timedelta, once: bool, attempt: int) -> Any:
    """Return what an act comes to, by any worker, in its `attempt` from 0. Raises what `perform` does."""
    with _raising_lost():
        return await workflow.execute_activity(
            "act",
            args=[run, told],
            start_to_close_timeout=within,
            heartbeat_timeout=heartbeat_timeout(attempt),
            retry_policy=ONCE if once else UNTIL_SILENT,
            cancellation_type=COMPLETED,
        )


@contextmanager
def _raising_lost() -> Iterator[None]:
    try:
        yield
    except (ActivityError, ApplicationError) as error:  # a local activity raises its error as it is
        cause = error.cause if isinstance(error, ActivityError) else error
        if isinstance(cause, ApplicationError) and cause.type == Lost.__name__:
            raise Lost(*cause.details) from error
        raise
