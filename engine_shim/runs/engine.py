"""Engine: begins runs of workflows on one host."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from agent_core.agents.catalog import AgentCatalog
from agent_core.journal.control import Decisions
from agent_core.journal.reader import read_run
from agent_core.models.client import ModelClient
from agent_core.run.arguments import model_of
from agent_core.run.cancellation import require_asyncio
from agent_core.run.control import StopSignal
from agent_core.run.event_stream import stream_events
from agent_core.run.events import Event, StreamResult
from agent_core.run.secrets import Secrets
from agent_core.run.sync import run_sync
from engine_shim.definition.errors import refuse
from engine_shim.definition.load import Workflow
from engine_shim.definition.model import ROOT
from engine_shim.definition.validate import CheckedWorkflow
from engine_shim.host.config import HostConfig, TemporalConfig
from engine_shim.host.find import NAME, load_host_config
from engine_shim.host.registry import build_registry
from engine_shim.runs.agents import build_catalog
from engine_shim.runs.drive import Job, OnEvent, RunResult
from engine_shim.runs.forking import Forking, OnBegin
from engine_shim.runs.grant import Grants
from engine_shim.runs.host_check import HostCheck
from engine_shim.runs.models import HostModels
from engine_shim.runs.open_grants import name_model, open_grants, open_turn_grant
from engine_shim.runs.prepare import open_registry, with_runs
from engine_shim.runs.steering import OnTaken, check_reachable
from engine_shim.store.open import shared_database, store_of
from engine_shim.store.run_store import RunStore, StrPath
from engine_shim.telemetry.run_telemetry import RunTelemetry
from engine_shim.telemetry.telemetry import Telemetry
from utools.files.protected_paths import protect_name
from utools.limiter import Limiter, Line
from utools.registry import ToolRegistry
from utools.tool import Tool

MAX_RUNNING = 100
T = TypeVar("T")


class Engine(Forking):
    """Runs workflows on one host. Any number of runs may be under way at once; `max_running` are driven, the others
    wait in order.

    `registry`, or a list of tools, defaults to the built-in tools under the working directory, `store`, or its address
    (a SQLite file, a PostgreSQL URL), to AGENT_CORE_STORE, else to a file in the user's data directory. `model`, a
    client or `provider:name`, answers for every model name; without it the names of the definitions are looked up.
    `agents` are those that an agent's node may name.
    `telemetry` is told what the runs do; without it the providers are, that the program has set up for OpenTelemetry.
    With `temporal` the workers at that server drive the runs, and this process follows them. `grants` are what
    definitions may use, in place of `registry`, `secrets` and `base_urls`. Engines that share the driving of runs have
    `slots` in place of `max_running`.
    """

    def __init__(
        self,
        registry: ToolRegistry | Iterable[Tool] | None = None,
        *,
        store: RunStore | StrPath | None = None,
        model: ModelClient | str | None = None,
        secrets: Secrets | None = None,
        base_urls: Mapping[str, str] | None = None,
        default_provider: str = "openai",
        max_running: int = MAX_RUNNING,
        agents: AgentCatalog | None = None,
        telemetry: Telemetry | None = None,
        temporal: TemporalConfig | None = None,
        grants: Grants | None = None,
        slots: Line | None = None,
    ) -> None:
        model, opened = model_of(model), store_of(store)
        if grants is None:
            tools = with_runs(open_registry(registry, shared_database(opened)), model)
            known = (secrets or Secrets()).hiding((base_urls or {}).values())
            load = opened.journal.load
            models = HostModels(model, base_urls=base_urls, default_provider=default_provider, tape_of=load)
            grants = Grants.alike(tools, known, models)
        protect_name(NAME)
        told = RunTelemetry(telemetry or Telemetry(), opened, default_provider)
        super().__init__(opened, grants, agents, told, slots or Limiter(max_running).line(None), temporal)

    @classmethod
    def from_config(
        cls,
        path: StrPath | None = None,
        *,
        store: RunStore | StrPath | None = None,
        model: ModelClient | str | None = None,
    ) -> "Engine":
        """Return the engine of the host that this file configures; without a path, of the one that the command line
        finds.

        DefinitionErrors for what is wrong with the file.
        """
        return cls.of_host(load_host_config(None if path is None else Path(path)), store=store, model=model)

    @classmethod
    def of_host(
        cls,
        config: HostConfig,
        *,
        store: RunStore | StrPath | None = None,
        model: ModelClient | str | None = None,
        telemetry: Telemetry | None = None,
        is_worker: bool = False,
        is_served: bool = False,
        slots: Line | None = None,
    ) -> "Engine":
        """Return the engine of a host by its configuration, as it was read; a worker drives runs itself. Of one that
        `is_served`, others start the runs."""
        opened = store_of(store, config.store_address)
        client = name_model(config, opened, model) if isinstance(model, str) else model_of(model)
        registry = with_runs(build_registry(config, shared_database(opened)), client)
        grants = open_grants(config, registry, client, opened.journal.load, is_served=is_served or is_worker)
        engine = cls(
            store=opened,
            model=client,
            default_provider=config.default_provider,
            agents=build_catalog(config, registry),
            grants=replace(grants, turns=open_turn_grant(config, registry, opened, model)),
            slots=slots,
            telemetry=telemetry,
            temporal=config.temporal if config.engine == "temporal" and not is_worker else None,
        )
        engine._starter.host = "" if config.file is None else str(config.file.resolve())
        return engine

    # ── running ───────────────────────────────────────────────────────────────────────────────────

    async def run(
        self,
        workflow: Workflow | CheckedWorkflow | Mapping[str, Any] | StrPath,
        *,
        external: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        is_new: bool = False,
        submitter: str | None = None,
        deps: object = None,
        on_begin: OnBegin = None,
        on_taken: OnTaken = None,
        on_event: OnEvent = None,
    ) -> RunResult:
        """Run a workflow, a definition or a file from its inputs. DefinitionError, with nothing written, when it
        cannot be run.

        The `default`s that the definition's `inputs` declare replace what `external` lacks. A `run_id` that the store
        holds already is resumed, or, when the run is finished, gives its result again; RunBusy while it is driven.
        `is_new` says that the id was made just now, so that the store is not searched for it. A run with a `submitter`
        is driven on by its servers after a restart.
        `deps` is an object that the tools of the run, and of all nested in it, get as `context.deps`. It is neither
        recorded nor shown to a model, and whoever resumes the run gives it anew.
        `on_begin` is called with the run's id, once its inputs are checked, before anything is written, and perhaps in
        a thread; `on_taken` once all is written, and it is driven.
        """
        require_asyncio()
        if deps is not None:
            check_reachable(has_workers=self.has_workers)
        start = await self._runs.run_blocking(self._starter.prepare, workflow, external, run_id, is_new=is_new)

        def write(stop: StopSignal) -> Job:
            if on_begin is not None:
                on_begin(start.run)
            if self._starter.write(start, submitter):
                check = HostCheck(start.preparer.grant)
                refuse(check.recorded_problems(self._index.load_to_go_on(start.run), start.checked.base))
                self._controls.apply_last(start.run, stop, "caller")
            return Job(start.run, start.spec, start.preparer, stop, on_event, start.conversation, deps)

        return await self._drive(start.run, write, on_taken)

    def begin(
        self,
        workflow: Workflow | CheckedWorkflow | Mapping[str, Any] | StrPath,
        *,
        external: Mapping[str, Any] | None = None,
        run_id: str | None = None,
    ) -> str:
        """Write how a run begins, for `resume` to drive, and give its id. Raises what `run` does."""
        start = self._starter.prepare(workflow, external, run_id)
        with self.lease_keeper.holding(start.run):
            self._starter.write(start)
        return start.run

    def has_begun(self, run_id: str) -> bool:
        """Return whether the store holds the beginning of this run."""
        return self._index.has_started(run_id)

    def forget_unbegun(self, run_id: str) -> bool:
        """Delete what a store holds of a run whose beginning could not be written. False for one that has begun.

        RunBusy while somebody begins it.
        """
        with self.lease_keeper.holding(run_id):
            return not self.has_begun(run_id) and self.store.forget(run_id)

    def has_begun_with(self, run_id: str, workflow: Workflow | CheckedWorkflow, *, external: Mapping[str, Any]) -> bool:
        """Return whether a run of the store began with these inputs, as the records have them, in whichever version."""
        tape = self.store.journal.load(run_id)
        if ROOT not in tape:
            return True  # its next driver writes how it begins
        given = self._starter.prepare(workflow, external, None).body["external"]
        recorded = read_run(tape, ROOT).external
        return all(name in recorded and recorded[name] == given[name] for name in external)

    def run_sync(
        self,
        workflow: Workflow | CheckedWorkflow | Mapping[str, Any] | StrPath,
        *,
        external: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        is_new: bool = False,
        submitter: str | None = None,
        deps: object = None,
        on_begin: OnBegin = None,
        on_taken: OnTaken = None,
        on_event: OnEvent = None,
    ) -> RunResult:
        """`run` for a caller without an event loop; inside one, it runs in a thread of its own."""
        return run_sync(
            lambda: self.run(
                workflow,
                external=external,
                run_id=run_id,
                is_new=is_new,
                submitter=submitter,
                deps=deps,
                on_begin=on_begin,
                on_taken=on_taken,
                on_event=on_event,
            )
        )

    def stream(
        self,
        workflow: Workflow | CheckedWorkflow | Mapping[str, Any] | StrPath,
        *,
        external: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        deps: object = None,
    ) -> AsyncGenerator[Event | StreamResult[RunResult], None]:
        """Yield the events of `run` as they happen, and last `{"event": "result", "result": …}` with its result.

        The run begins with the iteration and never waits for it. To stop iterating cancels the run;
        `contextlib.aclosing` around the iterator waits for its end there.
        """
        return stream_events(
            lambda hear: self.run(workflow, external=external, run_id=run_id, deps=deps, on_event=hear)
        )

    def stream_resumed(
        self, run_id: str, *, decisions: Decisions | None = None, by: str = "caller", deps: object = None
    ) -> AsyncGenerator[Event | StreamResult[RunResult], None]:
        """Yield the events of `resume` as `stream` yields those of `run`."""
        return stream_events(lambda hear: self.resume(run_id, decisions=decisions, by=by, deps=deps, on_event=hear))
