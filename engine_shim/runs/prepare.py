"""What runs start from on this host: the `run_started` bodies of workflows, those they invoke, and their agents."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_core.effects import Inherited, Json
from agent_core.journal.record import FORMAT
from agent_core.models.client import ModelClient, ModelInfoOf
from agent_core.run.clock import now
from agent_core.run.node import CODE as AGENT
from agent_core.run.node import agent_preparer, agent_tool
from agent_core.run.prepare import Prepare, installed_version
from agent_core.run.secrets import Secrets
from agent_core.run.tool_policies import effect_as_data
from engine_shim.definition.inputs import external_of
from engine_shim.definition.invoke import CODE as INVOKE
from engine_shim.definition.invoke import invoke_tool, invoked
from engine_shim.definition.model import Definition, Workflow, load_workflow
from engine_shim.definition.validate import check
from engine_shim.errors import DefinitionError
from utools.errors import ToolError
from utools.registry import ToolRegistry

ROOT = "flow"
SINGLE_CALL_TIMEOUT = 30.0
"""Seconds for a plain tool's node that does not say otherwise."""


class Preparer:
    """Prepares the runs of one host. `base` is the directory that a workflow's relative paths start from."""

    def __init__(self, registry: ToolRegistry, secrets: Secrets, base: Path, info: ModelInfoOf | None = None) -> None:
        self._registry, self._secrets, self._base, self._info = registry, secrets, base, info
        self._redactor = secrets.redactor()

    def by_tool(self) -> dict[str, Prepare]:
        """How each kind of run is started, by the code of its tool."""
        return {ROOT: self.root, AGENT: self._agent, INVOKE: self._invoked}

    def root(self, run: str, path: str, config: Any, inherited: Inherited) -> Json:
        """The `run_started` body of the run of {definition, external}."""
        return self._flow(run, load_workflow(config["definition"]), config["external"], inherited)

    def _invoked(self, run: str, path: str, config: Any, inherited: Inherited) -> Json:
        workflow = invoked(config, self._base / inherited.get("base", ""))
        check(workflow, self._registry)
        external = external_of(workflow.definition, config.get("inputs", {}))
        below = os.path.relpath(workflow.base, self._base)
        return self._flow(run, workflow, external, {**inherited, **({"base": below} if below != "." else {})})

    def _agent(self, run: str, path: str, config: Any, inherited: Inherited) -> Mapping[str, Any]:
        """An agent's run; the script of a model, too, is relative to the definition that names it."""
        below = inherited.get("base", "")
        kind, colon, file = str(config.get("model")).partition(":")
        if below and kind == "scripted" and colon:
            config = {**config, "model": f"scripted:{Path(below) / file}"}
        prepare = agent_preparer(self._registry, self._redactor, self._base / below, self._info)
        return prepare(run, path, config, inherited)

    def _flow(self, run: str, workflow: Workflow, external: Json, inherited: Inherited) -> Json:
        definition = workflow.definition
        handed = {name: inherited[name] for name in ("trusted", "base") if name in inherited}
        return {
            "loop": "flow",
            "format": FORMAT,
            "run": run,
            "at": now(),
            "definition": self._redactor.value(workflow.as_json()),
            "external": self._redactor.value(external),
            "env": self._env(definition),
            "limits": _limits(definition, inherited),
            **({"handed": handed} if handed else {}),
            "tools": {node.tool: self._tool(node.tool) for node in definition.nodes},
            "redaction": self._redactor.rules,
            "versions": {"agent_core": installed_version()},
        }

    def _env(self, definition: Definition) -> Json:
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
                values[name] = self._redactor.text(os.environ[name])
            else:
                raise DefinitionError("this variable is not set", where=f"env/{index}", value=name)
        return values

    def _tool(self, code: str) -> Json:
        tool = self._registry.get(code)
        within = None if tool.effect == "nested" else SINGLE_CALL_TIMEOUT
        schema = self._registry.schema(code).schema
        return {"schema": schema, "effect": effect_as_data(tool), "idempotent": tool.idempotent, "within": within}


def _limits(definition: Definition, inherited: Inherited) -> Json:
    """What a workflow run may take in all, bound by what its parent has left."""
    bounds = [seconds for seconds in (definition.timeout or None, inherited.get("seconds")) if seconds is not None]
    limits: Json = {name: inherited[name] for name in ("tool_calls", "tokens", "cost") if name in inherited}
    return {**limits, "seconds": min(bounds, default=None)}


def with_runs(registry: ToolRegistry, model: ModelClient | None) -> ToolRegistry:
    """The registry with the tools in it that are runs themselves: agents, and other workflows."""
    known = {tool.code for tool in registry.all()}
    for tool in (agent_tool(registry, model), invoke_tool()):
        if tool.code not in known:
            registry.register(tool)
    return registry
