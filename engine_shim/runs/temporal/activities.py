"""RunActivities: what a worker does for the workflows of runs. Each may come again, and then does what is missing."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Final, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from agent_core.effects import Classify, Failed, InDoubt
from agent_core.errors import Damaged, JournalError, Lost
from agent_core.journal.approvals import DIED, doubt_record
from agent_core.journal.control import waiting_calls
from agent_core.journal.operations import Act, Begin, Slot
from agent_core.journal.record import Row
from agent_core.journal.signature import Keys, split_own_strands
from agent_core.journal.store import Journal
from agent_core.records import encode_answer
from agent_core.run.appender import Appender
from agent_core.run.control import StopSignal, cancel_pending, sign_run
from agent_core.statuses import ENDED, RunStatus
from engine_shim.runs.temporal.heart import Heart
from engine_shim.runs.temporal.liveness import beating, finish_despite_cancel, was_given_up
from engine_shim.runs.temporal.passing_writer import PassingWriter, ShownAct
from engine_shim.runs.temporal.references import AT_HAND, NotOnTape, find_on_tape
from engine_shim.runs.temporal.rows import Rows
from engine_shim.runs.temporal.run_host import RunHosts
from engine_shim.store.index import RunIndex
from engine_shim.store.run_store import RunStore
from utools.retry import Pauses, retry

T = TypeVar("T")
_ENDS: Final = ("answered", "cancelled", "waiting")
"""What ends an act."""
PAUSES: Final = Pauses(0.5, longest=0.5)
"""How long an answer waits for a store that is away, before it is appended again."""


class RunActivities:
    """The activities on one store. Nothing that blocks runs in the event loop, so that acts continue telling that they
    live."""

    def __init__(
        self,
        store: RunStore,
        hosts: RunHosts,
        keys: Keys | None,
        heart: Heart | None = None,
        passing: PassingWriter | None = None,
    ) -> None:
        self._store, self._index, self._hosts, self._keys = store, RunIndex(store), hosts, keys
        self._heart, self._passing = heart, passing or PassingWriter(None)

    @property
    def _journal(self) -> Journal:
        return self._store.journal

    def all(self) -> list[Any]:
        steps = [self.load, self.read_strand, self.begin, self.classify, self.append, self.act]
        return [*steps, self.rest, self.is_paused, self.withdraw]

    # ── before and after a drive ──────────────────────────────────────────────────────────────────

    @activity.defn
    async def load(self, run: str, _: None) -> Rows:
        """Return all rows of a run that is about to be driven. Damaged where they are not whole, DefinitionErrors where
        this worker lacks what the run needs; with nothing written."""
        self._hosts.find(run)
        return await asyncio.to_thread(self._load, run)

    def _load(self, run: str) -> Rows:
        tape = self._index.load_to_go_on(run)
        if self._index.status(run) not in ENDED:
            self._index.set_status(run, "running")
        return Rows(run, tuple(row for rows in tape.values() for row in rows))

    @activity.defn
    async def read_strand(self, run: str, path: str) -> Rows:
        """Return the rows of one strand."""
        tape = await asyncio.to_thread(self._journal.load, run)
        return Rows(run, tuple(tape.get(path, ())))

    @activity.defn
    async def rest(self, run: str, told: list[Any]) -> str:
        """Append what ends a run that has settled, if anything does; sign it, and note its status, and the time of its
        earliest wait if it has one. Gives the status, or `running` where something for which it waits, at [strand, n],
        was decided or has come meanwhile."""
        status, waiting, *last = told
        if last:
            await self._append(run, AT_HAND.get(run, last[0]), may_rest=True)
        return await asyncio.to_thread(self._rest, run, status, waiting)

    def _rest(self, run: str, status: RunStatus, waiting: Sequence[tuple[str, int]]) -> RunStatus:
        if self._keys is not None:
            sign_run(self._journal, run, self._keys)
        own, _ = split_own_strands(self._journal.load(run))
        if status == "waiting" and any(len(own[strand]) > n + 1 for strand, n in waiting):
            return "running"
        self._index.settle(run, status, sum(map(len, own.values())), waiting_calls(own))
        if status in ENDED:
            self._hosts.drop(run)
        if status == "waiting" and self._index.has_event(run):
            self._index.set_status(run, "running")
            return "running"
        return status

    @activity.defn
    async def is_paused(self, run: str, _: None) -> bool:
        """Return whether a run was paused that waits for a time which has come."""
        return await asyncio.to_thread(self._index.status, run) == "paused"

    @activity.defn
    async def withdraw(self, run: str, _: None) -> None:
        """Cancel what waits for people in a run that is cancelled."""
        await asyncio.to_thread(cancel_pending, self._journal, run, self._keys)

    # ── operations ────────────────────────────────────────────────────────────────────────────────

    @activity.defn
    async def begin(self, run: str, reference: list[Any]) -> Any:
        """Prepare a nested run, and append what is pending and how it begins. {failed} where it cannot."""
        begin: Begin = AT_HAND.get(run, reference)
        body = await self._hosts.find(run).executor.begin(begin)
        if isinstance(body, Failed):
            return {"failed": body._asdict()}
        row = begin.slot.row(begin.started(body))
        try:
            await self._append(run, [*begin.rows, row])
        except ApplicationError as lost:
            return await self._read_stored(run, begin.slot, lost, "run_started")
        return Rows(run, (row,))

    @activity.defn
    async def classify(self, run: str, reference: list[Any]) -> str:
        """Return what a call would do."""
        classify: Classify = AT_HAND.get(run, reference)
        return self._hosts.find(run).executor.classify(classify)

    @activity.defn
    async def append(self, run: str, told: list[Any]) -> bool:
        """Append rows; whether the last one is new."""
        *reference, settled, may_rest = told
        rows: Sequence[Row] = AT_HAND.get(run, reference)
        return await self._append(run, rows, may_rest=may_rest if settled else None)

    @activity.defn
    async def act(self, run: str, told: list[Any]) -> Any:
        """Append what is pending, act, append the answer. Of an attempt that comes again, only what is missing."""
        *reference, may_rest = told
        async with beating(self._heart) as pulse, self._passing.showing(run) as shown:
            act = await self._find_act(run, reference)
            shown.begin(act)
            host = self._hosts.find(run)
            admission = await host.executor.admit(act)
            pulse.begin(monotonic())
            is_claimed = bool(act.rows) and await self._append(run, act.rows)
            if not is_claimed or was_given_up(pulse):  # then another attempt may have begun meanwhile
                if (stored := await self._read_row(run, act.slot, *_ENDS)) is not None:
                    return stored
                if act.once_only:
                    return await self._append_doubt(run, act, DIED)
            try:
                executor = await shown.executor(host.executor)
                reply = await finish_despite_cancel(executor.act(act, admission), is_aborted_with_run=True)
            except asyncio.CancelledError:
                if activity.is_worker_shutdown():
                    raise
                return None
            return await finish_despite_cancel(self._append_reply(run, act, reply, may_rest, shown))

    async def _find_act(self, run: str, reference: Sequence[Any]) -> Act:
        if AT_HAND.has(run, reference):
            act: Act = AT_HAND.get(run, reference)
            return act
        tape = await asyncio.to_thread(self._journal.load, run)
        try:
            return find_on_tape(run, tape, reference, self._hosts.find(run).executor.classify)
        except NotOnTape as error:
            raise _lost(reference[1], reference[2], str(error)) from error

    async def _append(self, run: str, rows: Sequence[Row], *, may_rest: bool | None = None) -> bool:
        appender = self._appender(run, may_rest)
        try:
            is_new = True
            if may_rest is None:
                is_new = await appender.append(rows)
            else:
                await appender.append_settled(rows)
        except Lost as error:
            raise _lost(error.path, error.n) from error
        await self._tell(run, rows)
        return is_new

    async def _append_reply(self, run: str, act: Act, reply: Any, may_rest: bool, shown: ShownAct) -> Rows:
        await shown.settle()
        if isinstance(reply, InDoubt):
            return await self._append_doubt(run, act, reply.message, reply.seconds)
        return await self._append_answer(run, act, reply, may_rest)

    async def _append_answer(self, run: str, act: Act, reply: Any, may_rest: bool) -> Rows:
        """Append an answer, for as long as the store is away; a late one finds what was recorded in its place."""
        row = act.slot.row(encode_answer(reply))

        async def append() -> None:
            appender = self._appender(run, may_rest)
            if act.once_only:
                await appender.append_answer(act, reply)
            else:
                await appender.append_settled([row])

        def is_away(error: Exception) -> bool:
            if not isinstance(error, JournalError) or isinstance(error, Damaged | Lost):
                return False
            activity.logger.warning("run %s: an answer is kept until the store is back: %s", run, error)
            return True

        try:
            await retry(append, is_away, PAUSES)
        except Lost as error:
            if act.once_only:
                await self._wake()
            return await self._read_stored(run, act.slot, _lost(error.path, error.n), *_ENDS)
        await self._tell(run, [row])
        return Rows(run, (row,))

    async def _wake(self) -> None:
        """Let the workflow look into the journal: it may rest over the doubt to which an answer came late."""
        with suppress(RPCError):
            workflow = activity.client().get_workflow_handle(activity.info().workflow_id or "")
            await workflow.signal("wake", "go on")

    async def _append_doubt(self, run: str, act: Act, message: str, seconds: float = 0.0) -> Rows:
        """Put a write to a person, unless its answer is there."""
        row = act.slot.row(doubt_record(act.effect, message, seconds))
        try:
            await self._append(run, [row], may_rest=True)
        except ApplicationError as lost:
            return await self._read_stored(run, act.slot, lost, *_ENDS)
        return Rows(run, (row,))

    async def _read_stored(self, run: str, slot: Slot, lost: ApplicationError, *kinds: str) -> Rows:
        """Return what another driver wrote first, if it is one of these kinds."""
        if (stored := await self._read_row(run, slot, *kinds)) is None:
            raise lost
        return stored

    async def _read_row(self, run: str, slot: Slot, *kinds: str) -> Rows | None:
        """Return the row that is in a slot; None where there is none. Lost where it is of another kind."""
        rows = (await asyncio.to_thread(self._journal.load, run)).get(slot.path, [])
        if len(rows) <= slot.n:
            return None
        if rows[slot.n].record()["kind"] not in kinds:
            raise _lost(slot.path, slot.n)
        return Rows(run, (rows[slot.n],))

    async def _tell(self, run: str, rows: Sequence[Row]) -> None:
        self._hosts.find(run).tell(rows, lambda: self._journal.load(run))

    def _appender(self, run: str, may_rest: bool | None) -> Appender:
        appender = _ThreadAppender(run, self._journal, self._keys, (), StopSignal(), 0)
        appender.may_rest = bool(may_rest)
        return appender


class _ThreadAppender(Appender):
    """Appends in a thread. A store that is away is an error: Temporal tries again."""

    async def retry_until_available(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(work)


def _lost(path: str, n: int, why: str = "another driver was first") -> ApplicationError:
    return ApplicationError(why, path, n, type=Lost.__name__, non_retryable=True)
