"""TemporalDriver: lets workers drive a run, and follows it by its journal until it rests."""

import asyncio
import logging
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, Literal, TypeVar

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError, RPCStatusCode

from agent_core.run.control import Stopping
from agent_core.run.retries import patience_of_host
from agent_core.run.row_listener import AnswerListener
from agent_core.statuses import ENDED, RunStatus
from engine_shim.errors import EngineAway, EngineError
from engine_shim.host.config import TemporalConfig
from engine_shim.intervals import SERVER_INTERVAL_S
from engine_shim.runs.drive import Job, RunResult, Watch
from engine_shim.runs.temporal.connect import ServerWatch, connect
from engine_shim.runs.temporal.follow import Follower, StoreWatch, read_settled
from engine_shim.runs.temporal.rows import data_converter
from engine_shim.runs.temporal.settings import WORKFLOW, workflow_id
from engine_shim.store.async_store import AsyncRunStore
from engine_shim.store.index import RunIndex
from engine_shim.store.run_store import RunStore

FINAL: Final = (
    RPCStatusCode.INVALID_ARGUMENT,
    RPCStatusCode.NOT_FOUND,
    RPCStatusCode.PERMISSION_DENIED,
    RPCStatusCode.FAILED_PRECONDITION,
    RPCStatusCode.UNIMPLEMENTED,
    RPCStatusCode.UNAUTHENTICATED,
)
"""What a server says that refuses a run for good."""
PATIENCE_S: Final = 5.0
"""After how long without a worker the log says so."""
OTHER_RELEASE: Final = "[TMPRL1100]"
"""How Temporal begins to say that a workflow asks for something else than in its history."""
GoOn = Literal["go on"]
T = TypeVar("T")
log = logging.getLogger("engine_shim")


class TemporalDriver:
    """Hands the runs of one store to Temporal. The journal is the truth: a run that Temporal has forgotten is handed in
    again, and continues where it was."""

    def __init__(self, store: RunStore, config: TemporalConfig) -> None:
        self._store, self._index, self._config = store, RunIndex(store), config
        self._runs = AsyncRunStore(store)
        self._client: Client | None = None
        self._store_watch = StoreWatch(store)
        self._server, self._patience = ServerWatch(config.address), patience_of_host()
        self.watch: Watch | None = None

    async def drive(self, job: Job) -> RunResult:
        """Return the result of a run once it rests. EngineError where there is no server, or where it refuses the
        run."""
        word: Stopping | GoOn = job.stop.requested or "go on"
        if settled := await self._runs.run_blocking(self._note_handed_in, job.run, word):
            return settled
        taken = None if word == "go on" else word
        listener = job.listener(self.watch)
        is_shown = listener is not None and listener.wants_answers
        follower = await self._runs.run_blocking(self._open_follower, job, taken, listener, is_shown=is_shown)
        handle = await self._wake(job.run, word)  # last: of what a worker appends from now on, nothing is missed
        return await self._follow(job, handle, follower)

    def _open_follower(
        self, job: Job, taken: Stopping | None, listener: AnswerListener | None, *, is_shown: bool
    ) -> Follower:
        """Return what follows the run. A feed reads what passes itself, and is there before its run begins."""
        passing = self._store_watch.open_reader(job.run) if is_shown else None
        shown = None if job.on_event is None else passing
        return Follower(self._store, job.run, job.stop, taken, listener, shown)

    def _note_handed_in(self, run: str, word: str) -> RunResult | None:
        """Note that a run is to continue; its result where it rests, and stays so."""
        if (settled := read_settled(self._index, run)) and word != "cancel":
            is_paused = word == "pause" and settled.status not in ENDED
            status: RunStatus = "paused" if is_paused else settled.status
            self._index.set_status(run, status, settled.journal["count"])
            return settled
        if self._index.status(run) not in ENDED:
            self._index.set_status(run, "pending")
        return None

    async def _wake(self, run: str, word: str) -> WorkflowHandle[Any, Any]:
        """Tell the run's workflow to look into the journal; start it where there is none. A server that goes away
        meanwhile is waited for."""
        later = f"run {run!r} is in the store, and `resume` goes on with it"
        try:
            client = await self._connected()
            async with asyncio.timeout(self._patience):
                while True:
                    with suppress(_Away):
                        return await self._start(client, run, word)
                    await asyncio.sleep(SERVER_INTERVAL_S)
                    await self._server.wait_until_back(client)
        except EngineAway as error:
            raise EngineAway(f"{error}; {later}") from error
        except EngineError as error:
            raise EngineError(f"{error}; {later}") from error
        except TimeoutError as error:
            away = f"Temporal at {self._config.address} has been away for {self._patience:g} s"
            raise EngineAway(f"{away}; {later}") from error

    async def _start(self, client: Client, run: str, word: str) -> WorkflowHandle[Any, Any]:
        try:
            return await client.start_workflow(
                WORKFLOW,
                run,
                id=workflow_id(self._config.queue, run),
                task_queue=self._config.queue,
                task_timeout=timedelta(seconds=self._config.task_timeout),
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                start_signal="wake",
                start_signal_args=[word],
            )
        except RPCError as error:
            if error.status in FINAL:
                raise EngineError(f"Temporal at {self._config.address} does not take it: {error.message}") from error
            raise _Away from error

    async def _connected(self) -> Client:
        self._client = self._client or await connect(self._config, data_converter())
        return self._client

    async def _follow(self, job: Job, handle: WorkflowHandle[Any, Any], follower: Follower) -> RunResult:
        """Tell of what is appended, pass on who stops the run, and give its result once it rests."""
        ended = self._await_end(job.run, handle, follower)
        complaint = asyncio.get_running_loop().call_later(PATIENCE_S, self._complain, job.run)
        try:
            with self._store_watch.telling(follower):
                while True:
                    if (how := follower.take_stop()) and not await self._pass_on(job.run, how):
                        return RunResult(job.run, "running", {}, [], [], {}, None)
                    if job.stop.has_messages:
                        job.stop.has_messages = False
                        await self._wake(job.run, "message")
                    is_over = ended.done()  # before the look: a run is settled before its workflow ends
                    status, result = await follower.look()
                    if result is not None and (job.stop.requested != "cancel" or result.status in ENDED):
                        return result  # a run that is cancelled rests once more before what waits is withdrawn
                    if status != "pending":
                        complaint.cancel()
                    if is_over and status and self._is_outdated(job.run, ended):
                        ended = self._await_end(job.run, await self._wake(job.run, "go on"), follower)
                    await follower.wait()
        finally:
            complaint.cancel()
            ended.cancel()

    def _await_end(self, run: str, handle: WorkflowHandle[Any, Any], follower: Follower) -> "asyncio.Task[None]":
        """Return a task that ends with the workflow, once its follower is told to look."""

        async def wait() -> None:
            try:
                await self._wait_closed(run, handle)
            finally:
                follower.look_soon()

        return asyncio.create_task(wait())

    async def _pass_on(self, run: str, how: Stopping) -> bool:
        """Tell the workers that a run is to stop. False when this process only lets go of it, and they continue."""
        if how == "pause" and await self._runs.last_control(run) != "pause":
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
                await asyncio.sleep(SERVER_INTERVAL_S)
                await self._server.wait_until_back(await self._connected())
                if error.status == RPCStatusCode.NOT_FOUND:
                    log.warning("run %s: Temporal has lost it, and is given it again", run)
                    handle = await self._wake(run, "go on")

    def _is_outdated(self, run: str, ended: "asyncio.Task[Any]") -> bool:
        """Return whether a workflow failed since its history is another release's: a new one continues by the journal.

        EngineError for any other end of a workflow before its run's.
        """
        error = ended.exception()
        if error is None:
            return False
        if not isinstance(error, WorkflowFailureError):
            raise error
        cause: BaseException = error.cause
        while cause.__cause__ is not None:
            cause = cause.__cause__
        told = str(getattr(cause, "message", cause))
        if told.startswith(OTHER_RELEASE):
            log.warning("run %s: its history is of another release; a new workflow goes on by the journal", run)
            return True
        raise EngineError(f"run {run!r} cannot be driven on by its worker: {told}") from error

    def _complain(self, run: str) -> None:
        log.warning("run %s waits for a worker on queue %s; start one: agent-core worker", run, self._config.queue)


class _Away(Exception):
    """The server cannot be reached, or has too much to do."""
