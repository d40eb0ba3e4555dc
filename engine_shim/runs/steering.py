"""Steering: goes on with the runs of a store: drives, resumes, stops and looks at them."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from agent_core.agents.catalog import AgentCatalog
from agent_core.errors import Abandoned, JournalError
from agent_core.journal.control import Decisions, Role
from agent_core.journal.operations import Spec
from agent_core.journal.reader import read_run
from agent_core.run.blocking import finish_blocking
from agent_core.run.cancellation import in_own_task, require_asyncio
from agent_core.run.control import Stopping, StopSignal, append_decisions
from agent_core.run.executor import Executor
from agent_core.run.row_listener import AnswerListener
from agent_core.run.secrets import signing_keys
from agent_core.run.shown_tools import codes_let_go
from agent_core.statuses import STOPPED, RunStatus
from engine_shim.definition.errors import refuse
from engine_shim.definition.load import Workflow, load_workflow
from engine_shim.definition.model import ROOT
from engine_shim.errors import DefinitionError, EngineError, RunBusy
from engine_shim.host.config import TemporalConfig
from engine_shim.intervals import CONTROL_INTERVAL_S
from engine_shim.runs.controls import RunControls
from engine_shim.runs.drive import Driver, Job, OnEvent, RunDriver, RunResult
from engine_shim.runs.grant import Grants
from engine_shim.runs.host_check import HostCheck
from engine_shim.runs.lease_keeper import LeaseKeeper
from engine_shim.runs.results import read_result
from engine_shim.runs.starter import RunStarter
from engine_shim.runs.turn_order import TurnOrder
from engine_shim.runs.warm_up import warm_up
from engine_shim.store.async_store import AsyncRunStore
from engine_shim.store.index import RunIndex
from engine_shim.store.run_store import RunStore
from engine_shim.telemetry.run_telemetry import RunTelemetry
from utools.limiter import Line
from utools.schema.json_value import NotJson, as_json
from utools.signal_name import check_signal

RECOVERY = "recovery"
"""Who resumes a run that a server has left, without a request."""
OnTaken = Callable[[], None] | None
log = logging.getLogger("engine_shim")


class Steering:
    """The runs of a store on one host. `slots` are those in which runs are driven, in this process or, with `temporal`,
    by the workers at that server."""

    def __init__(
        self,
        store: RunStore,
        grants: Grants,
        agents: AgentCatalog | None,
        telemetry: RunTelemetry,
        slots: Line,
        temporal: TemporalConfig | None,
    ) -> None:
        self.store, self.agents, self.grants, self.telemetry, self.slots = store, agents, grants, telemetry, slots
        self.registry, self._secrets = grants.own.registry, grants.own.secrets
        self._runs = AsyncRunStore(store)
        self._starter = RunStarter(store, grants, agents)
        self._index, self._controls = RunIndex(store), RunControls(store)
        self.lease_keeper = LeaseKeeper(store.leases)
        self.turn_order = TurnOrder()
        self._local = RunDriver(store, slots, telemetry.observe)
        self._driver: Driver = self._local if temporal is None else _open_temporal(store, temporal)

    @property
    def host(self) -> str:
        """The configuration file of this host; empty where there is none."""
        return self._starter.host

    @property
    def has_workers(self) -> bool:
        """Whether workers drive its runs, which go on without this process."""
        return self._driver is not self._local

    async def resume(
        self,
        run_id: str,
        *,
        decisions: Decisions | None = None,
        by: str = "caller",
        deps: object = None,
        on_taken: OnTaken = None,
        on_event: OnEvent = None,
    ) -> RunResult:
        """Resume a run where its process died, where it waited, or was paused. A finished run gives its result, and a
        run that was to be cancelled ends.

        RunNotFound when the store holds no such run, RunBusy while somebody drives it, Damaged when its records are not
        whole, DefinitionError when this host lacks a tool, a model's key or a secret that it needs, and DecisionError
        for a decision that fits nothing that waits; with nothing written. `on_taken` is called once nothing refuses it.
        `deps` are those of `run`: what a run had before is not kept.
        """
        require_asyncio()
        if deps is not None:
            check_reachable(has_workers=self.has_workers)
        base = await self._runs.find_base(run_id)

        def write(stop: StopSignal) -> Job:
            tape = self._index.load_to_go_on(run_id)
            not_needed = codes_let_go(tape, decisions or {})
            grant = self.grants.of_run(read_run(tape, ROOT))
            refuse(HostCheck(grant).recorded_problems(tape, base, not_needed))
            if decisions:
                append_decisions(
                    self.store.journal,
                    run_id,
                    decisions,
                    registry=grant.registry,
                    by=by,
                    redactor=self._secrets.redactor(),
                    keys=signing_keys(),
                )
            if by != RECOVERY:
                self.store.forget_takeovers(run_id)
            self._controls.apply_last(run_id, stop, by)
            if self._index.status(run_id) in STOPPED:
                self._index.set_status(run_id, "pending")  # a reader sees now that it goes on
            return self._job_of(run_id, stop, on_event, deps)

        return await self._drive(run_id, write, on_taken)

    # ── messages and stopping ─────────────────────────────────────────────────────────────────────

    def add_message(self, run_id: str, content: str, *, role: Role = "user", by: str = "caller") -> None:
        """Add a message to a run, whichever process drives it: the next question of one of its agents has it.

        RunNotFound when the store holds no such run, DecisionError when it has ended.
        """
        text = self._secrets.redactor().text(content.encode("utf-8", "backslashreplace").decode())
        self._controls.append_message(run_id, {"role": role, "content": text}, by)
        self.lease_keeper.notify(run_id, "message")

    def send_signal(self, run_id: str, name: str, data: Any = None, *, by: str = "caller") -> bool:
        """Send a signal with JSON data to a run, whichever process drives it: the first node takes it that waits, or
        comes to wait, for one of this name. Returns whether the run waits for it without a driver, and needs `resume`.

        RunNotFound when the store holds no such run, DecisionError when it has ended, DefinitionError for a name that
        no signal can have, and for data that is not JSON.
        """
        check_signal(name)
        try:
            plain = self._secrets.redactor().value(as_json(data))
        except NotJson as error:
            raise DefinitionError(f"the data of a signal must be JSON: {error}", where="data") from None
        self._controls.append_signal(run_id, name, plain, by)
        self.lease_keeper.notify(run_id, "message")
        return self.has_event(run_id)

    def has_event(self, run_id: str) -> bool:
        """Return whether a run waits without a driver for a time or a signal that has come."""
        return self._index.status(run_id) == "waiting" and self._index.has_event(run_id)

    async def pause(self, run_id: str, *, by: str = "caller") -> RunStatus:
        """Let what is under way in a run be answered, and begin nothing more until it is resumed. Gives its status.

        It reaches the run in whichever process drives it; the status may still be `running` when a call takes long.
        RunNotFound when the store holds no such run, DecisionError when it has ended.
        """
        return await self._stop(run_id, "pause", by)

    async def cancel(self, run_id: str, *, by: str = "caller") -> RunStatus:
        """End a run for good: what is under way is aborted, what waits is withdrawn. Gives its status.

        It reaches the run in whichever process drives it. RunNotFound when the store holds no such run, DecisionError
        when it has ended.
        """
        return await self._stop(run_id, "cancel", by)

    async def _stop(self, run_id: str, how: Stopping, by: str) -> RunStatus:
        require_asyncio()
        await self._runs.run_blocking(self._controls.append, run_id, how, by)
        self.lease_keeper.notify(run_id, how)
        while not await self._controls.has_reached_driver(run_id, how):
            with suppress(RunBusy):
                await self._stop_here(run_id, how)
                break
            await asyncio.sleep(CONTROL_INTERVAL_S)
        return await self._runs.status(run_id)

    async def _stop_here(self, run_id: str, how: Stopping) -> None:
        """Stop a run without a driver."""
        if how == "cancel" or self.has_workers:

            def write(stop: StopSignal) -> Job:
                stop.request(how)
                return self._job_of(run_id, stop)

            await self._drive(run_id, write)
            return
        async with self.lease_keeper.driving(run_id):
            await self._runs.set_status(run_id, await self._runs.final_status(run_id) or "paused")

    # ── looking ───────────────────────────────────────────────────────────────────────────────────

    def workflow(self, run_id: str) -> Workflow:
        """Return the workflow as the run began with it. RunNotFound when the store holds no such run."""
        tape, base = self._index.load(run_id)
        return load_workflow(read_run(tape, ROOT).definition, base=base)

    def status(self, run_id: str) -> RunStatus:
        """Return a run's status: pending, running, or as in its result. RunNotFound when the store holds no such
        run."""
        return self._index.status(run_id)

    def result(self, run_id: str) -> RunResult | None:
        """Return the result of a run that has ended or waits, by its journal alone; None while it continues.

        RunNotFound when the store holds no such run, Damaged when its records are not whole.
        """
        tape, _ = self._index.load(run_id)
        return read_result(run_id, tape, self.store.clock.write_now())

    def watch(self, watch: Callable[[str], AnswerListener]) -> None:
        """Let each run that is driven from now on without `on_event` have the watcher that this gives for its id."""
        self._driver.watch = watch

    # ── driving ───────────────────────────────────────────────────────────────────────────────────

    def executor(self, run_id: str) -> Executor:
        """Return what a run of the store needs of this host, for a driver elsewhere. DefinitionError when this
        host lacks a tool, a model's key or a secret that it needs."""
        tape, base = self._index.load(run_id)
        grant = self.grants.of_run(read_run(tape, ROOT))
        refuse(HostCheck(grant).recorded_problems(tape, base))
        return self._local.executor(
            run_id, self._starter.preparer(grant, base, begun=True), self._local.observe(run_id)
        )

    def release(self) -> None:
        """Let go of the runs that this engine drives: what is under way in them is answered, and nothing more begins.

        No record says so. Each is `pending` then, and can be resumed.
        """
        self.lease_keeper.stop_all("pause")

    def abandon(self) -> None:
        """Write nothing more into the runs that this engine drives, as if its process had died: each ends by Abandoned
        where it would append a record. They can be resumed."""
        self.lease_keeper.abandon_all()

    async def warm_up(self) -> None:
        """Import and build what a first act needs, without asking, calling or writing anything. A server and a worker
        do so before they take work. Where workers drive the runs, they do."""
        if not self.has_workers:
            await warm_up(self.grants, self._runs)

    async def close(self) -> None:
        """Close the models' connections and the store; a later run opens them again."""
        await self.grants.close()
        self.store.close()

    async def _drive(self, run: str, write: Callable[[StopSignal], Job], on_taken: OnTaken = None) -> RunResult:
        """Take a run, write what it begins or goes on with, and drive it: to its end where the caller is cancelled."""
        return await in_own_task(self._take_and_drive(run, write, on_taken))

    async def _take_and_drive(self, run: str, write: Callable[[StopSignal], Job], on_taken: OnTaken) -> RunResult:
        stop = None
        try:
            async with self.lease_keeper.driving(run) as stop:
                job, cancellation = await finish_blocking(self.store.journal, lambda: write(stop))
                if on_taken is not None:
                    on_taken()
                async with self.turn_order.driving(job.conversation, stop) as interruption:
                    cancellation = cancellation or interruption
                    if cancellation is None:
                        return await self._driver.drive(job)
                    if not self.has_workers:
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
            async with self.lease_keeper.driving(run):
                await self._runs.note_let_go(run)
        except (EngineError, JournalError) as error:
            log.debug("late answers of run %s are not noted in the index: %s", run, error)

    def _job_of(self, run: str, stop: StopSignal, on_event: OnEvent = None, deps: object = None) -> Job:
        """Return what is to be driven of a run, by its journal."""
        tape, base = self._index.load(run)
        recorded = read_run(tape, ROOT)
        spec = Spec(ROOT, {"definition": recorded.definition, "external": recorded.external})
        preparer = self._starter.preparer(self.grants.of_run(recorded), base, begun=True)
        return Job(run, spec, preparer, stop, on_event, recorded.conversation, deps)


def check_reachable(*, has_workers: bool) -> None:
    """DefinitionError where `deps` do not reach who drives the runs."""
    if has_workers:
        message = "workers drive the runs of this engine, and no object of this process reaches them; leave it out"
        raise DefinitionError(message, where="deps")


def _open_temporal(store: RunStore, temporal: TemporalConfig) -> Driver:
    """Return the driver by workers at Temporal. DefinitionError where what that needs is not installed."""
    try:
        from engine_shim.runs.temporal.driver import TemporalDriver
    except ImportError:
        message = "runs on Temporal need the extra temporal: pip install 'agent-core[temporal]'"
        raise DefinitionError(message, where="engine") from None
    return TemporalDriver(store, temporal)
