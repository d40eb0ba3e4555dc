"""Preparer: the `run_started` bodies of the runs of this host, of workflows, those they invoke, and their agents."""

import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from agent_core.agents.catalog import AgentCatalog
from agent_core.inherited import Inherited
from agent_core.journal.record import FORMAT
from agent_core.journal.strand import Loops
from agent_core.models.client import ModelClient
from agent_core.outputs import Json
from agent_core.records import TurnNote
from agent_core.rules import CURRENT
from agent_core.run.agent_drive import agent_preparer
from agent_core.run.agent_tool import agent_tool
from agent_core.run.clock import now
from agent_core.run.prepare import Prepare, installed_version
from agent_core.run.tool_policies import effect_as_data
from engine_shim.definition.check_agents import find_prompt_files
from engine_shim.definition.errors import message_of, refuse
from engine_shim.definition.invoke import invoke_tool, load_invoked
from engine_shim.definition.model import AGENT, INVOKE, ROOT, Definition, read_definition
from engine_shim.definition.validate import CheckedWorkflow, check
from engine_shim.errors import DefinitionError
from engine_shim.flow.flow import flow
from engine_shim.flow.state import CompiledFlow
from engine_shim.runs.grant import Grant
from engine_shim.runs.loops import LOOPS
from utools.defaults import host_calls, host_registry
from utools.errors import ToolError
from utools.registry import ToolRegistry
from utools.secrets.text_cipher import TextCipher
from utools.tool import Tool

if TYPE_CHECKING:
    from utools.databases.postgres_database import PostgresDatabase


SINGLE_CALL_TIMEOUT = 30.0
"""Seconds that the call of a plain tool may take, unless the node says otherwise."""


class Preparer:
    """Prepares the runs of one host. `base` is the directory that a workflow's relative paths start from, and `grant`
    what it may use.

    `checked` is the workflow that is about to run: its definition is not read again, nor its graph built again.
    `catalog` has the agents that invoked workflows may name. `begun` says that the run continues: what it invokes is
    refused only if it cannot run at all.
    """

    def __init__(
        self,
        grant: Grant,
        base: Path,
        checked: CheckedWorkflow | None = None,
        catalog: AgentCatalog | None = None,
        *,
        begun: bool = False,
    ) -> None:
        self.base, self.grant, self._catalog, self._begun = base, grant, catalog, begun
        self._registry, self._info = grant.registry, grant.models.info(base)
        self.redactor = grant.secrets.redactor()
        self._compiled: dict[str, CompiledFlow] = {}
        if checked is not None:
            self._add_plan(checked)

    def by_tool(self) -> dict[str, Prepare]:
        """Return how each kind of run is started, by the code of its tool."""
        return {ROOT: self._prepare_root, AGENT: self._prepare_agent, INVOKE: self._prepare_invoked}

    def loops(self) -> Loops:
        """Return the loop of each kind of run; those of workflows start from what was checked here."""
        return {**LOOPS, "flow": lambda started: flow(started, self._compiled.get(_digest(started["definition"])))}

    def start(self, run: str, checked: CheckedWorkflow, external: Json, inherited: Inherited) -> Json:
        """Return the `run_started` body of a workflow's run."""
        body = self._make_body(run, checked.definition, checked.data, external, inherited)
        return body if checked.agent is None else {**body, "turn": _note_turn(checked.agent, external)}

    def _add_plan(self, checked: CheckedWorkflow) -> None:
        self._compiled[_digest(checked.data)] = CompiledFlow(checked.definition, checked.graph)

    def _prepare_root(self, run: str, path: str, config: Any, inherited: Inherited) -> Json:
        """Return the body of the run of {definition, external}."""
        definition = read_definition(config["definition"])
        return self._make_body(run, definition, config["definition"], config["external"], inherited)

    def _prepare_invoked(self, run: str, path: str, config: Any, inherited: Inherited) -> Json:
        workflow = load_invoked(config, self.base / inherited.get("base", ""), self.grant.bounds)
        checked = check(workflow, self._registry, self._catalog, begun=self._begun)
        self._add_plan(checked)
        below = os.path.relpath(checked.base, self.base)
        handed: Inherited = {**inherited, "base": below} if below != "." else inherited
        return self.start(run, checked, checked.external_of(config.get("inputs", {})), handed)

    def _prepare_agent(self, run: str, path: str, config: Any, inherited: Inherited) -> Mapping[str, Any]:
        """Return an agent's run; the script of a model, too, is relative to the definition that names it."""
        if self.grant.bounds.from_http:
            refuse(find_prompt_files(config, ""))
        below = inherited.get("base", "")
        kind, colon, file = str(config.get("model")).partition(":")
        if below and kind == "scripted" and colon:
            config = {**config, "model": f"scripted:{Path(below) / file}"}
        prepare = agent_preparer(self._registry, self.redactor, self.base / below, self._info)
        return prepare(run, path, config, inherited)

    def _make_body(
        self, run: str, definition: Definition, data: Mapping[str, Any], external: Json, inherited: Inherited
    ) -> Json:
        handed = {name: value for name, value in inherited.items() if name in ("trusted", "sources", "base")}
        return {
            "loop": "flow",
            "format": FORMAT,
            "run": run,
            "at": now(),
            "definition": self.redactor.value(data),
            "external": self.redactor.value(external),
            "env": self._read_env(definition),
            **({"from": "http"} if self.grant.bounds.from_http else {}),
            "limits": _limits(definition, inherited),
            **({"handed": handed} if handed else {}),
            "tools": {node.tool: self._describe_tool(node.tool) for node in definition.nodes},
            "redaction": self.redactor.rules,
            "versions": {"agent_core": installed_version()},
            "rules": CURRENT,
        }

    def _read_env(self, definition: Definition) -> Json:
        """Return the values of the plain variables. DefinitionError for one that is not set, or not given, and for a
        forbidden secret."""
        values: Json = {}
        secrets = definition.secrets
        for index, entry in enumerate(definition.env):
            name = entry if isinstance(entry, str) else entry.name
            if name in secrets:
                try:
                    self.grant.secrets(name)
                except ToolError as error:
                    raise DefinitionError(str(error), where=f"env/{index}") from None
                continue
            try:
                values[name] = self.redactor.text(self.grant.variables.read(name))
            except DefinitionError as error:
                raise DefinitionError(message_of(error), where=f"env/{index}") from None
        return values

    def _describe_tool(self, code: str) -> Json:
        tool = self._registry.get(code)
        within = None if tool.effect == "nested" else SINGLE_CALL_TIMEOUT
        schema = self._registry._schema(code).schema
        known = {"schema": schema, "effect": effect_as_data(tool), "idempotent": tool.idempotent, "within": within}
        if tool.awaits:
            known["awaits"] = True
        return {**known, "inward": True} if tool.inward else known


def _note_turn(agent: str, external: Json) -> TurnNote:
    note: TurnNote = {"name": agent}
    if "conversation_id" in external:
        note["conversation"] = external["conversation_id"]
    return note


def _digest(definition: Mapping[str, Any]) -> str:
    return sha256(orjson.dumps(definition)).hexdigest()


def _limits(definition: Definition, inherited: Inherited) -> Json:
    """Return the limits of a workflow run, bound by what its parent has left."""
    bounds = [seconds for seconds in (definition.timeout or None, inherited.get("seconds")) if seconds is not None]
    limits = {name: value for name, value in inherited.items() if name in ("tool_calls", "tokens", "cost")}
    return {**limits, "seconds": min(bounds, default=None)}


def with_runs(registry: ToolRegistry, model: ModelClient | None) -> ToolRegistry:
    """Return the registry with the tools in it that are runs themselves: agents, and other workflows."""
    known = {tool.code for tool in registry.all()}
    for tool in (agent_tool(registry, model), invoke_tool()):
        if tool.code not in known and registry._refusal(tool.code) is None:
            registry.register(tool)
    return registry


def open_registry(
    tools: ToolRegistry | Iterable[Tool] | None, database: "PostgresDatabase | None", cipher: TextCipher | None
) -> ToolRegistry:
    """Return the registry itself, or one with these tools, or with the built-in ones, whose calls and conversations are
    in the Redis of REDIS_URL, else in the database if there is one."""
    if tools is not None:
        return ToolRegistry.from_tools(tools, calls=host_calls(database=database, cipher=cipher))
    return host_registry(database=database, cipher=cipher)
