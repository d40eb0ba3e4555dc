"""TemporalDriver: lets workers drive a run, and follows it by its journal until it rests."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError, RPCStatusCode

from agent_core.errors import Damaged, JournalError
from agent_core.run.control import Stopping, StopSignal
from agent_core.run.events import EventSource, Watcher
from engine_shim.errors import EngineAway, EngineError
from engine_shim.host.config import TemporalConfig
from engine_shim.runs.drive import Job, RunResult
from engine_shim.runs.results import read_paused, read_result
from engine_shim.runs.run_index import ENDED, RunIndex
from engine_shim.runs.store import RunStore
from engine_shim.runs.temporal.connect import connect
from engine_shim.runs.temporal.rows import data_converter
from engine_shim.runs.temporal.settings import TASK, WORKFLOW, workflow_id

RESTS: Final = (*ENDED, "waiting", "paused")
SHORTEST_S: Final = 0.03
LONGEST_S: Final = 0.5
"""How often the journal of a run is looked at: often while something happens."""
AWAY_S: Final = 1.0
"""How long after it was away the server is asked again."""
PATIENCE_S: Final = 5.0
"""After how long without a worker the log says so."""
log = logging.getLogger("engine_shim")


class TemporalDriver:
    """Hands the runs of one store to Temporal. The journal is the truth: a run that Temporal has forgotten is handed in
    again, and goes on where it was."""

    def __init__(self, store: RunStore, config: TemporalConfig) -> None:
        self._store, self._index, self._config = store, RunIndex(store), config
        self._client: Client | None = None
        self.watch: Callable[[str], Watcher] | None = None

    async def drive(self, job: Job) -> RunResult:
        """The result of a run once it rests. EngineAway where there is no server, or it takes no run now."""
        word = job.stop.requested or "go on"
        if (rested := self._read_rested(job.run)) and word != "cancel":
            self._index.set_status(job.run, "paused" if word == "pause" else rested.status, rested.journal["count"])
            return rested
        if self._index.status(job.run) not in ENDED:
            self._index.set_status(job.run, "pending")
        handle = await self._wake(job.run, word)
        return await self._follow(job, handle)

    def _read_rested(self, run: str, status: str = "") -> RunResult | None:
        """The result of a run that rests; None while something is left to do, unless it is paused."""
        tape, _ = self._index.load(run)
        return read_result(run, tape) or (read_paused(run, tape) if status == "paused" else None)

    async def _wake(self, run: str, word: str) -> WorkflowHandle[Any, Any]:
        """Tell the run's workflow to look into the journal; start it where there is none."""
        try:
            self._client = self._client or await connect(self._config, data_converter())
        except EngineAway as error:
            raise EngineAway(f"{error}; run {run!r} is in the store, and `resume` goes on with it") from error
        try:
            return await self._client.start_workflow(
                WORKFLOW,
                run,
                id=workflow_id(self._config.queue, run),
                task_queue=self._config.queue,
                task_timeout=TASK,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                start_signal="wake",
                start_signal_args=[word],
                result_type=str,
            )
        except RPCError as error:
            raise EngineAway(
                f"Temporal at {self._config.address} does not take run {run!r}: {error.message}"
            ) from error

    async def _follow(self, job: Job, handle: WorkflowHandle[Any, Any]) -> RunResult:
        """Tell of what is appended, pass on who stops the run, and give its result once it rests."""
        follower, stops = _Follower(self._store, job.run, self._listener(job)), _Stops(job.stop)
        ended = asyncio.create_task(self._wait_closed(job.run, handle))
        pause_s, waited = SHORTEST_S, 0.0
        try:
            while True:
                if (how := stops.take()) and not await self._pass_on(job.run, how):
                    return RunResult(job.run, "running", {}, [], [], {}, None)
                has_news, status, result = self._look(job.run, follower)
                if result is not None:
                    return result
                if ended.done() and status:
                    self._check_failure(job.run, ended)
                pause_s = SHORTEST_S if has_news else min(pause_s * 1.5, LONGEST_S)
                waited = self._complain(job.run, waited, pause_s) if status == "pending" else 0.0
                await stops.wait(pause_s, ended)
        finally:
            ended.cancel()

    def _look(self, run: str, follower: "_Follower") -> tuple[bool, str, RunResult | None]:
        """Whether something is new, the status, empty while the store is away, and the result of a run at rest."""
        try:
            status, has_news = self._index.status(run), follower.tell()
            result = self._read_rested(run, status) if status in RESTS else None
            if result is not None:
                follower.tell()
            return has_news, status, result
        except JournalError as error:
            if isinstance(error, Damaged):
                raise
            log.warning("run %s cannot be looked at: %s", run, error)
            return False, "", None

    async def _pass_on(self, run: str, how: Stopping) -> bool:
        """Tell the workers that a run is to stop. False when this process only lets go of it, and they go on."""
        if how == "pause" and self._index.last_control(run) != "pause":
            return False
        await self._wake(run, how)
        return True

    async def _wait_closed(self, run: str, handle: WorkflowHandle[Any, Any]) -> None:
        """Wait until the workflow has ended, however long its server is away; one that has lost it is told anew."""
        while True:
            try:
                await handle.result()
                return
            except RPCError as error:
                log.warning("run %s: Temporal at %s is away: %s", run, self._config.address, error.message)
                await asyncio.sleep(AWAY_S)
                if error.status == RPCStatusCode.NOT_FOUND:
                    handle = await self._wake(run, "go on")

    def _check_failure(self, run: str, ended: "asyncio.Task[Any]") -> None:
        """EngineError for a workflow that ended before its run did."""
        error = ended.exception()
        if isinstance(error, WorkflowFailureError):
            cause: BaseException = error.cause
            while cause.__cause__ is not None:
                cause = cause.__cause__
            told = getattr(cause, "message", cause)
            raise EngineError(f"run {run!r} cannot be driven on by its worker: {told}") from error
        if error is not None:
            raise error

    def _complain(self, run: str, waited: float, more: float) -> float:
        if waited < PATIENCE_S <= waited + more:
            queue = self._config.queue
            log.warning("run %s waits for a worker on queue %s; start one: agent-core worker", run, queue)
        return waited + more

    def _listener(self, job: Job) -> Watcher | None:
        if job.on_event is not None:
            return EventSource(job.on_event)
        return None if self.watch is None else self.watch(job.run)


class _Follower:
    """Tells a listener of the rows that are appended to a run from now on."""

    def __init__(self, store: RunStore, run: str, listener: Watcher | None) -> None:
        self._store, self._run, self._listener = store, run, listener
        found = store.tail(run)
        self._after = found[-1][0] if found else 0
        if isinstance(listener, EventSource):
            listener.resume_from(store.journal.load(run))

    def tell(self) -> bool:
        """Whether there was something to tell."""
        found = self._store.tail(self._run, self._after)
        for position, row in found:
            self._after = position
            if self._listener is not None:
                self._listener(row)
        return bool(found)


class _Stops:
    """Hears from the event loop's other tasks that a run is to stop."""

    def __init__(self, stop: StopSignal) -> None:
        self._stop, self._taken, self._news = stop, stop.requested, asyncio.Event()
        stop.listeners.append(self._news.set)

    def take(self) -> Stopping | None:
        """What was requested since it was last asked."""
        self._news.clear()
        new = self._stop.requested if self._stop.requested != self._taken else None
        self._taken = self._stop.requested
        return new

    async def wait(self, seconds: float, ended: "asyncio.Task[Any]") -> None:
        """Wait a while, or until something is requested, or the workflow has ended."""
        news = asyncio.create_task(self._news.wait())
        others = [] if ended.done() else [ended]
        try:
            await asyncio.wait([news, *others], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()
