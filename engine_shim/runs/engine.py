"""Engine: runs workflows, and goes on with those that were interrupted or waited."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from agent_core.audit.fork import fork_rows
from agent_core.audit.replay import AGENT_LOOPS
from agent_core.errors import DecisionError
from agent_core.journal.chain import is_finished
from agent_core.journal.control import Control, Decisions
from agent_core.journal.operations import Spec
from agent_core.journal.record import chain_row, genesis
from agent_core.models.client import ModelClient
from agent_core.run.clock import now
from agent_core.run.control import StopSignal, append_control, append_decisions, cancel_pending
from agent_core.run.driver import drive
from agent_core.run.events import Event, EventSource
from agent_core.run.executor import Executor
from agent_core.run.run_id import check_run_id, new_run_id
from agent_core.run.secrets import Secrets, signing_keys
from agent_core.run.sync import run_sync
from engine_shim.definition.inputs import external_of
from engine_shim.definition.model import Workflow, load_workflow
from engine_shim.definition.validate import check
from engine_shim.errors import DefinitionError, RunBusy
from engine_shim.flow.flow import flow
from engine_shim.flow.outcome import FlowOutcome
from engine_shim.runs.lease_keeper import LeaseKeeper
from engine_shim.runs.leases import Wish
from engine_shim.runs.models import HostModels
from engine_shim.runs.prepare import ROOT, Preparer, with_runs
from engine_shim.runs.result import RunResult
from engine_shim.runs.run_index import ENDED, RunIndex, check_tools
from engine_shim.runs.store import RunEntry, RunStore, SqliteRunStore, default_store
from utools.defaults import default_registry
from utools.limiter import Limiter
from utools.registry import ToolRegistry

LOOPS = {**AGENT_LOOPS, "flow": flow}
MAX_RUNNING = 100
PATIENCE_S, GLANCE_S = 10.0, 0.05
"""How long a request to pause or cancel waits for the run's driver to heed it, and how often it looks."""


class Engine:
    """Runs workflows on one host. Any number of runs may be under way at once; `max_running` are driven, the others
    wait in order.

    `registry` defaults to the built-in tools under the working directory, `store` to a SQLite file in the user's
    data directory. `model` answers for every model name; without it the names of the definitions are looked up.
    """

    def __init__(
        self,
        registry: ToolRegistry | None = None,
        *,
        store: RunStore | None = None,
        model: ModelClient | None = None,
        secrets: Secrets | None = None,
        base_urls: Mapping[str, str] | None = None,
        default_provider: str = "openai",
        max_running: int = MAX_RUNNING,
    ) -> None:
        self.registry = with_runs(registry or default_registry(), model)
        self.store = store or SqliteRunStore(default_store())
        self._secrets = (secrets or Secrets()).hiding((base_urls or {}).values())
        self._models = HostModels(
            model, base_urls=base_urls, default_provider=default_provider, tape_of=self.store.journal.load
        )
        self._held = RunIndex(self.store)
        self._places, self._steering = Limiter(max_running), LeaseKeeper(self.store.claims)

    # ── running ───────────────────────────────────────────────────────────────────────────────────

    async def run(
        self,
        workflow: Workflow,
        *,
        external: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> RunResult:
        """Run a workflow from its inputs. DefinitionError, with nothing written, when it cannot be run.

        The `default`s that the definition's `inputs` declare stand in for what `external` lacks. A `run_id` that the
        store holds already goes on, or, when it is finished, gives its result again; RunBusy while it is driven.
        """
        check(workflow, self.registry)
        self._models.check(workflow)
        given = external_of(workflow.definition, external or {})
        run = new_run_id() if run_id is None else check_run_id(run_id)
        spec = Spec(ROOT, {"definition": workflow.as_json(), "external": given})
        body = self._preparer(workflow.base).root(run, ROOT, spec.config, {})
        with self._steering.driving(run) as stop:
            begun = self._held.begun(run, body)
            if not begun or self.store.entry(run) is None:
                definition, base = workflow.definition, str(workflow.base.resolve())
                self.store.save(RunEntry(run, definition.id, definition.version, "pending", body["at"], base))
            if begun:
                self._take_up(run, stop, "caller")
            else:
                started = chain_row(ROOT, 0, genesis(run, ROOT), {"kind": "run_started", **body})
                self.store.journal.append(run, [started])
            return await self._drive(run, spec, workflow.base, stop, on_event)

    async def resume(
        self,
        run_id: str,
        *,
        decisions: Decisions | None = None,
        by: str = "caller",
        on_event: Callable[[Event], None] | None = None,
    ) -> RunResult:
        """Go on with a run: where its process died, where it waited, or was paused. A finished one gives its result,
        and one that was to be cancelled ends.

        RunNotFound when the store holds no such run, RunBusy while somebody drives it, DefinitionError when this host
        lacks a tool that it needs, and DecisionError for a decision that fits nothing that waits; with nothing written.
        """
        tape, _ = self._held.run(run_id)
        if not is_finished(tape, ROOT):
            check_tools(tape, self.registry)
        with self._steering.driving(run_id) as stop:
            if decisions:
                append_decisions(self.store.journal, run_id, decisions, by=by, redactor=self._secrets.redactor())
            self._take_up(run_id, stop, by)
            return await self._go_on(run_id, stop, on_event)

    async def fork(
        self,
        run_id: str,
        at: tuple[str, int],
        *,
        new_id: str | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> RunResult:
        """A new run with this one's past up to record n of a strand, `at` (strand, n), and on from there.

        What was answered before is not asked again; the record, and whatever followed from it, is done anew. The
        run itself stays as it is. RunNotFound when the store holds no such run, DefinitionError when there is no such
        record, when the past cannot be told under another run id, or when this host lacks a tool.
        """
        tape, base = self._held.run(run_id)
        check_tools(tape, self.registry)
        if not (isinstance(at[0], str) and type(at[1]) is int):
            raise DefinitionError("must be (strand, n)", where="at", value=at)
        new = new_run_id() if new_id is None else check_run_id(new_id)
        if self.store.journal.load(new):
            raise DefinitionError("there is such a run already; choose another id", where="new_id", value=new)
        rows = fork_rows(run_id, tape, at, new, loops=LOOPS)
        with self._steering.driving(new) as stop:
            definition = load_workflow(tape[ROOT][0].record()["definition"]).definition
            self.store.save(RunEntry(new, definition.id, definition.version, "pending", now(), str(base)))
            self.store.journal.append(new, rows)
            return await self._go_on(new, stop, on_event)

    def run_sync(self, workflow: Workflow, **options: Any) -> RunResult:
        """`run` for a caller without an event loop."""
        return run_sync(lambda: self.run(workflow, **options))

    def workflow(self, run_id: str) -> Workflow:
        """The workflow as the run began with it. RunNotFound when the store holds no such run."""
        tape, base = self._held.run(run_id)
        return load_workflow(tape[ROOT][0].record()["definition"], base=base)

    async def close(self) -> None:
        """Let go of the models' connections and of the store; a later run opens them anew."""
        await self._models.close()
        self.store.close()

    # ── stopping ──────────────────────────────────────────────────────────────────────────────────

    async def pause(self, run_id: str, *, by: str = "caller") -> str:
        """Let what is under way in a run answer, and begin nothing more until it is resumed. Gives its status then.

        Whichever process drives it, does so; its status may still be `running` when a call takes its time.
        RunNotFound when the store holds no such run, DecisionError when it has ended.
        """
        self._note(run_id, "pause", by)
        while not await self._heeded(run_id, "pause"):
            with suppress(RunBusy), self._steering.driving(run_id):
                self._held.index(run_id, self._held.ended(run_id) or "paused")
                break
            await asyncio.sleep(GLANCE_S)
        return self._held.status(run_id)

    async def cancel(self, run_id: str, *, by: str = "caller") -> str:
        """End a run for good: what is under way is aborted, what waits is withdrawn. Gives its status then.

        Whichever process drives it, does so. RunNotFound when the store holds no such run, DecisionError when it has
        ended.
        """
        self._note(run_id, "cancel", by)
        while not await self._heeded(run_id, "cancel"):
            with suppress(RunBusy), self._steering.driving(run_id) as stop:
                stop.request("cancel")
                await self._go_on(run_id, stop, None)
                break
            await asyncio.sleep(GLANCE_S)
        return self._held.status(run_id)

    async def _heeded(self, run: str, wish: Wish) -> bool:
        """Ask the run's driver, and wait a while for it to let go. False when nobody drives a run that is not stopped:
        its driver may have died, or have let go without a look at what was wished."""
        claims, looks = self.store.claims, int(PATIENCE_S / GLANCE_S)
        stopped = (*ENDED, "paused") if wish == "pause" else ENDED
        if not claims.wish(run, wish):
            return self._held.status(run) in stopped
        for _ in range(looks):
            if claims.driver(run) is None:
                return self._held.status(run) in stopped
            await asyncio.sleep(GLANCE_S)
        return True

    def _take_up(self, run: str, stop: StopSignal, by: str) -> None:
        """Let a run that was paused go on; one that was cancelled, by a driver that never heard of it, still ends."""
        if self._held.ended(run):
            return
        if self._held.last_word(run) == "cancel":
            stop.request("cancel")
        elif self._held.status(run) == "paused":
            self._note(run, "resume", by)

    def _note(self, run: str, word: Control, by: str) -> None:
        if status := self._held.ended(run):
            raise DecisionError(f"run {run!r} has ended as {status}")
        append_control(self.store.journal, run, word, by=by, keys=signing_keys())

    # ── driving ───────────────────────────────────────────────────────────────────────────────────

    async def _go_on(self, run: str, stop: StopSignal, on_event: Callable[[Event], None] | None) -> RunResult:
        tape, base = self._held.run(run)
        started = tape[ROOT][0].record()
        spec = Spec(ROOT, {"definition": started["definition"], "external": started["external"]})
        return await self._drive(run, spec, base, stop, on_event)

    async def _drive(
        self, run: str, spec: Spec, base: Path, stop: StopSignal, on_event: Callable[[Event], None] | None
    ) -> RunResult:
        try:
            async with nullcontext() if stop.requested == "cancel" else self._places.slot():
                if self._held.status(run) not in ENDED:
                    self._held.index(run, "running")
                result = await self._stoppable(run, spec, base, stop, on_event)
        except asyncio.CancelledError:
            stop.request("cancel")
            self._held.index(run, (await self._stoppable(run, spec, base, stop, on_event)).status)
            raise
        self._held.index(run, result.status)
        return result

    async def _stoppable(
        self, run: str, spec: Spec, base: Path, stop: StopSignal, on_event: Callable[[Event], None] | None
    ) -> RunResult:
        """Drive the run. One that is cancelled ends, whatever waited, was held back by a pause, or is in doubt."""
        result = await self._driven(run, spec, base, stop, on_event)
        while stop.requested == "cancel" and result.status not in ENDED:
            cancel_pending(self.store.journal, run)
            result = await self._driven(run, spec, base, stop, on_event)
        return result

    async def _driven(
        self, run: str, spec: Spec, base: Path, stop: StopSignal, on_event: Callable[[Event], None] | None
    ) -> RunResult:
        listener = EventSource(on_event) if on_event else None
        prepare, models = self._preparer(base).by_tool(), self._models.at(base)
        executor = Executor(run, self.registry, models, prepare, self._secrets, self._secrets.redactor(), listener)
        ended = await drive(
            run,
            ROOT,
            spec,
            journal=self.store.journal,
            executor=executor,
            loops=LOOPS,
            listener=listener,
            keys=signing_keys(),
            stop=stop,
        )
        assert isinstance(ended.outcome, FlowOutcome)
        return RunResult(**ended.outcome.output, journal={k: ended.journal[k] for k in ("head", "count")})

    def _preparer(self, base: Path) -> Preparer:
        return Preparer(self.registry, self._secrets, base, self._models.info(base))
