"""Engine: runs workflows, and goes on with those that were interrupted or waited."""

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_core.door import Door, now
from agent_core.drive import decide, drive
from agent_core.events import Event, Events
from agent_core.journal.chain import checked, complete
from agent_core.journal.decide import Decisions
from agent_core.journal.operations import Spec
from agent_core.journal.record import FORMAT, Tape
from agent_core.journal.seal import keys_of_host
from agent_core.loop.effects import Json
from agent_core.models.client import ModelClient, Models
from agent_core.models.providers import Providers
from agent_core.node import CODE as AGENT
from agent_core.node import agent_preparer, agent_tool
from agent_core.own_loop import in_own_loop
from agent_core.policy import effect_as_data
from agent_core.prepare import own_version
from agent_core.replayer import AGENT_LOOPS
from agent_core.run_id import checked_run_id, new_run_id
from agent_core.secrets import Secrets
from engine_shim.errors import DefinitionError, RunNotFound
from engine_shim.graph.definition import Definition, Workflow, load_workflow
from engine_shim.graph.flow import flow
from engine_shim.graph.flow_outcome import FlowOutcome
from engine_shim.graph.inputs import external_of
from engine_shim.graph.problem import told
from engine_shim.graph.validate import check, known_config
from engine_shim.runs.store import RunEntry, RunStore, SqliteRunStore
from utools.defaults import default_registry
from utools.errors import ToolError
from utools.guards.redaction import Redactor
from utools.registry import ToolRegistry

ROOT = "flow"
LOOPS = {**AGENT_LOOPS, "flow": flow}
SINGLE_CALL_TIMEOUT = 30.0
"""Seconds for a plain tool's node, until nodes can set their own."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run came to. `status` is completed, failed, cancelled or waiting; `outputs` are by node id."""

    run_id: str
    status: str
    outputs: dict[str, Any]
    path: list[str]
    waiting: list[dict[str, Any]]
    journal: dict[str, Any]
    error: dict[str, Any] | None

    def as_json(self) -> Json:
        return {name: getattr(self, name) for name in self.__slots__}


class Engine:
    """Runs workflows on one host. Any number of runs may be under way at once.

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
    ) -> None:
        self.registry = with_agent(registry or default_registry(), model)
        self.store = store or SqliteRunStore(default_store())
        self._model, self._secrets = model, secrets or Secrets()
        self._base_urls, self._default_provider = base_urls or {}, default_provider
        self._providers: dict[Path, Providers] = {}

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
        store holds already goes on, or, when it is finished, gives its result again.
        """
        check(workflow, self.registry)
        self._check_models(workflow)
        given = external_of(workflow.definition, external or {})
        run = new_run_id() if run_id is None else checked_run_id(run_id)
        spec = Spec(ROOT, {"definition": workflow.as_json(), "external": given})
        body = self._prepare(run, ROOT, spec.config, {})
        if not self._begun(run, body):
            definition, base = workflow.definition, str(workflow.base.resolve())
            self.store.save(RunEntry(run, definition.id, definition.version, "running", body["at"], base))
        return await self._drive(run, spec, workflow.base, on_event)

    async def resume(
        self,
        run_id: str,
        *,
        decisions: Decisions | None = None,
        by: str = "caller",
        on_event: Callable[[Event], None] | None = None,
    ) -> RunResult:
        """Go on with a run: where its process died, or where it waited. A finished run gives its result again.

        RunNotFound when the store holds no such run, DefinitionError when this host lacks a tool that it needs, and
        DecisionError for a decision that fits nothing that waits; with nothing written.
        """
        tape, base = self._held(run_id)
        self._check_tools(tape)
        if decisions:
            decide(self.store.journal, run_id, decisions, by=by, redactor=self._secrets.redactor())
        started = tape[ROOT][0].record()
        spec = Spec(ROOT, {"definition": started["definition"], "external": started["external"]})
        return await self._drive(run_id, spec, base, on_event)

    def run_sync(self, workflow: Workflow, **options: Any) -> RunResult:
        """`run` for a caller without an event loop."""
        return in_own_loop(lambda: self.run(workflow, **options))

    def workflow(self, run_id: str) -> Workflow:
        """The workflow as the run began with it. RunNotFound when the store holds no such run."""
        tape, base = self._held(run_id)
        return load_workflow(tape[ROOT][0].record()["definition"], base=base)

    async def close(self) -> None:
        """Let go of the models' connections and of the store; a later run opens them anew."""
        for providers in self._providers.values():
            await providers.close()
        self.store.close()

    def _held(self, run: str) -> tuple[Tape, Path]:
        """A run's tape, whole, and the directory that its relative paths start from."""
        tape, entry = self.store.journal.load(run), self.store.entry(run)
        if ROOT not in tape or entry is None:
            raise RunNotFound(run)
        return checked(run, tape), Path(entry.base)

    def _check_tools(self, tape: Tape) -> None:
        """A run that is not finished needs the tools that it began with; another host may not have them."""
        if complete(tape, ROOT):
            return
        records = [rows[0].record() for rows in tape.values()]
        needed = {code for record in records if record["kind"] == "run_started" for code in record["tools"]}
        if missing := sorted(needed - {tool.code for tool in self.registry.all()}):
            told = (
                f"this host has no tool {missing[0]!r}, which the run needs; was it started with another configuration?"
            )
            raise DefinitionError(told, where="host configuration")

    def _begun(self, run: str, body: Json) -> bool:
        """Whether the store holds this run already. DefinitionError when it began with something else."""
        tape = checked(run, self.store.journal.load(run))
        if tape and ROOT not in tape:
            raise DefinitionError(f"run {run!r} is not a workflow's; choose another id", where="run_id")
        if ROOT not in tape:
            return False
        started = tape[ROOT][0].record()
        for key in ("definition", "external"):
            if started[key] != body[key]:
                raise DefinitionError(f"run {run!r} began with another {key}; choose another id", where="run_id")
        return True

    async def _drive(self, run: str, spec: Spec, base: Path, on_event: Callable[[Event], None] | None) -> RunResult:
        redactor = self._secrets.redactor()
        prepare = {AGENT: agent_preparer(self.registry, redactor, base), ROOT: self._prepare}
        listener = Events(on_event) if on_event else None
        progress = listener.progress if listener else None
        door = Door(run, self.registry, self._models(base), prepare, self._secrets, redactor, progress)
        keys, journal = keys_of_host(), self.store.journal
        try:
            ended = await drive(run, ROOT, spec, journal=journal, door=door, loops=LOOPS, listener=listener, keys=keys)
        except asyncio.CancelledError:
            self._index(run, "cancelled")
            raise
        assert isinstance(ended.outcome, FlowOutcome)
        result = RunResult(**ended.outcome.output, journal={k: ended.journal[k] for k in ("head", "count")})
        self._index(run, result.status)
        return result

    def _index(self, run: str, status: str) -> None:
        entry = self.store.entry(run)
        if entry is not None:
            self.store.save(RunEntry(run, entry.workflow, entry.version, status, entry.started_at, entry.base))

    def _models(self, base: Path) -> Models:
        model = self._model
        if model is not None:
            return lambda *_: model
        if base not in self._providers:
            self._providers[base] = Providers(base, self._base_urls, self._default_provider)
        return self._providers[base]

    def _check_models(self, workflow: Workflow) -> None:
        """A model that cannot be asked at all is the definition's fault: told before anything starts."""
        models = self._models(workflow.base)
        for index, node in enumerate(workflow.definition.nodes):
            config = known_config(node)
            if node.tool != AGENT or config["model"] != node.config.get("model"):
                continue
            try:
                models(config["model"], config)
            except DefinitionError as error:
                raise DefinitionError(told(error), where=f"nodes/{index}/config/model") from None

    def _prepare(self, run: str, path: str, config: Any, inherited: Json) -> Json:
        """The `run_started` body of a workflow run."""
        definition = load_workflow(config["definition"]).definition
        redactor = self._secrets.redactor()
        return {
            "loop": "flow",
            "format": FORMAT,
            "run": run,
            "at": now(),
            "definition": redactor.value(config["definition"]),
            "external": redactor.value(config["external"]),
            "env": self._env(definition, redactor),
            "limits": _limits(definition, inherited),
            **({"handed": {"trusted": inherited["trusted"]}} if "trusted" in inherited else {}),
            "tools": {node.tool: self._tool(node.tool) for node in definition.nodes},
            "redaction": redactor.rules,
            "versions": {"agent_core": own_version()},
        }

    def _env(self, definition: Definition, redactor: Redactor) -> Json:
        """The values of the plain variables. DefinitionError for one that is not set, or a secret not allowed."""
        values: Json = {}
        for index, entry in enumerate(definition.env):
            name = entry if isinstance(entry, str) else entry.name
            if name in definition.secrets:
                try:
                    self._secrets(name)
                except ToolError as error:
                    raise DefinitionError(str(error), where=f"env/{index}") from None
            elif name in os.environ:
                values[name] = redactor.text(os.environ[name])
            else:
                raise DefinitionError("this variable is not set", where=f"env/{index}", value=name)
        return values

    def _tool(self, code: str) -> Json:
        tool = self.registry.get(code)
        within = None if tool.effect == "nested" else SINGLE_CALL_TIMEOUT
        schema = self.registry.schema(code).schema
        return {"schema": schema, "effect": effect_as_data(tool), "idempotent": tool.idempotent, "within": within}


def _limits(definition: Definition, inherited: Json) -> Json:
    """What a workflow run may take in all, bound by what its parent has left."""
    bounds = [seconds for seconds in (definition.timeout or None, inherited.get("seconds")) if seconds is not None]
    limits: Json = {name: inherited[name] for name in ("tool_calls", "tokens", "cost") if name in inherited}
    return {**limits, "seconds": min(bounds, default=None)}


def with_agent(registry: ToolRegistry, model: ModelClient | None) -> ToolRegistry:
    """The registry with the tool `agent_core` in it."""
    if AGENT not in (tool.code for tool in registry.all()):
        registry.register(agent_tool(registry, model))
    return registry


def default_store() -> Path:
    """The run store's file: AGENT_CORE_STORE, or one in the user's data directory."""
    if given := os.environ.get("AGENT_CORE_STORE"):
        return Path(given)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "agent-core" / "runs.db"
