"""Driving: takes a run of a store, and drives it to its rest."""

import logging
from collections.abc import Callable

from agent_core.agents.catalog import AgentCatalog
from agent_core.errors import Abandoned, JournalError
from agent_core.journal.operations import Spec
from agent_core.journal.reader import read_run
from agent_core.run.blocking import finish_blocking
from agent_core.run.cancellation import in_own_task, require_asyncio
from agent_core.run.control import StopSignal
from agent_core.run.event_listener import check_callback
from agent_core.run.executor import Executor
from engine_shim.definition.errors import refuse
from engine_shim.definition.model import ROOT
from engine_shim.errors import DefinitionError, EngineError
from engine_shim.host.config import TemporalConfig
from engine_shim.runs.controls import RunControls
from engine_shim.runs.drive import Driver, Job, OnEvent, RunDriver, RunResult, Watch
from engine_shim.runs.grant import Grants
from engine_shim.runs.host_check import HostCheck
from engine_shim.runs.lease_keeper import LeaseKeeper
from engine_shim.runs.starter import RunStarter
from engine_shim.runs.turn_order import TurnOrder
from engine_shim.runs.warm_up import warm_up
from engine_shim.store.async_store import AsyncRunStore
from engine_shim.store.index import RunIndex
from engine_shim.store.run_store import RunStore
from engine_shim.telemetry.run_telemetry import RunTelemetry
from utools.limiter import Line

OnTaken = Callable[[], None] | None
log = logging.getLogger("engine_shim")


class Driving:
    """Drives the runs of a store on one host, in this process or, with `temporal`, by the workers at that server.

    `slots` are those in which runs are driven.
    """

    def __init__(
        self,
        store: RunStore,
        grants: Grants,
        agents: AgentCatalog | None,
        telemetry: RunTelemetry,
        slots: Line,
        temporal: TemporalConfig | None,
    ) -> None:
        self.store, self._agents, self._grants, self._telemetry, self._slots = store, agents, grants, telemetry, slots
        self.registry, self._secrets = grants.own.registry, grants.own.secrets
        self._runs = AsyncRunStore(store)
        self._starter = RunStarter(store, grants, agents)
        self._index, self._controls = RunIndex(store), RunControls(store)
        self._lease_keeper = LeaseKeeper(store.leases)
        self._turn_order = TurnOrder()
        self._local = RunDriver(store, slots, telemetry.observe)
        self._driver: Driver = self._local if temporal is None else _open_temporal(store, temporal)

    @property
    def host(self) -> str:
        """The configuration file of this host; empty where there is none."""
        return self._starter.host

    @property
    def _has_workers(self) -> bool:
        """Whether workers drive its runs, which go on without this process."""
        return self._driver is not self._local

    def _check_caller(self, on_event: OnEvent, deps: object) -> None:
        """NoEventLoop outside an event loop; DefinitionError for an `on_event` that is none, and for `deps` that do not
        reach who drives the runs."""
        require_asyncio()
        if on_event is not None:
            check_callback(on_event)
        if deps is not None and self._has_workers:
            message = "workers drive the runs of this engine, and no object of this process reaches them; leave it out"
            raise DefinitionError(message, where="deps")

    def _watch(self, watch: Watch) -> None:
        """Let each run that is driven from now on without `on_event` have the watcher that this gives for its id."""
        self._driver.watch = watch

    def _keep_results(self, keep: Callable[[RunResult], None]) -> None:
        """Let `keep` have the result of each run that this process drives, before the list of runs tells of it."""
        self._local.keep = keep

    def _executor(self, run_id: str) -> Executor:
        """Return what a run of the store needs of this host, for a driver elsewhere. DefinitionError when this
        host lacks a tool, a model's key or a secret that it needs."""
        tape, base = self._index.load(run_id)
        grant = self._grants.of_run(read_run(tape, ROOT))
        refuse(HostCheck(grant).recorded_problems(tape, base))
        return self._local.executor(
            run_id, self._starter.preparer(grant, base, begun=True), self._local.observe(run_id)
        )

    def release(self) -> None:
        """Let go of the runs that this engine drives: what is under way in them is answered, and nothing more begins.

        No record says so. Each is `pending` then, and can be resumed.
        """
        self._lease_keeper.pause_all()

    def _abandon(self) -> None:
        """Write nothing more into the runs that this engine drives, as if its process had died: each ends by Abandoned
        where it would append a record. They can be resumed."""
        self._lease_keeper.abandon_all()

    async def warm_up(self) -> None:
        """Import and build what a first act needs, without asking, calling or writing anything. A server and a worker
        do so before they take work. Where workers drive the runs, they do."""
        if not self._has_workers:
            await warm_up(self._grants, self._runs)

    async def close(self) -> None:
        """Close the store and the connections of models that were named; a later run opens them again. A client that
        the engine was given as its `model` stays open."""
        await self._grants.close()
        self.store.close()

    async def _drive(self, run: str, write: Callable[[StopSignal], Job], on_taken: OnTaken = None) -> RunResult:
        """Take a run, write what it begins or goes on with, and drive it: to its end where the caller is cancelled."""
        return await in_own_task(self._take_and_drive(run, write, on_taken))

    async def _take_and_drive(self, run: str, write: Callable[[StopSignal], Job], on_taken: OnTaken) -> RunResult:
        stop = None
        try:
            async with self._lease_keeper.driving(run) as stop:
                job, cancellation = await finish_blocking(self.store.journal, lambda: write(stop))
                if on_taken is not None:
                    on_taken()
                async with self._turn_order.driving(job.conversation, stop) as interruption:
                    cancellation = cancellation or interruption
                    if cancellation is None:
                        return await self._driver.drive(job)
                    if not self._has_workers:
                        stop.request("cancel")
                        await self._driver.drive(job)
                    raise cancellation
        except Abandoned:
            if stop is not None and not stop.is_abandoned:
                await self._note_let_go(run)
            raise

    async def _note_let_go(self, run: str) -> None:
        """Note in the index that a run was let go of, and what its late answers have changed, unless it is driven."""
        try:
            async with self._lease_keeper.driving(run):
                await self._runs.note_let_go(run)
        except (EngineError, JournalError) as error:
            log.debug("late answers of run %s are not noted in the index: %s", run, error)

    def _job_of(self, run: str, stop: StopSignal, on_event: OnEvent = None, deps: object = None) -> Job:
        """Return what is to be driven of a run, by its journal."""
        tape, base = self._index.load(run)
        recorded = read_run(tape, ROOT)
        spec = Spec(ROOT, {"definition": recorded.definition, "external": recorded.external})
        preparer = self._starter.preparer(self._grants.of_run(recorded), base, begun=True)
        return Job(run, spec, preparer, stop, on_event, recorded.conversation, deps)


def _open_temporal(store: RunStore, temporal: TemporalConfig) -> Driver:
    """Return the driver by workers at Temporal. DefinitionError where what that needs is not installed."""
    try:
        from engine_shim.runs.temporal.driver import TemporalDriver
    except ImportError:
        message = "runs on Temporal need the extra temporal: pip install 'agent-core[temporal]'"
        raise DefinitionError(message, where="engine") from None
    return TemporalDriver(store, temporal)
