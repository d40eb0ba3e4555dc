"""HostTools: the tools of a host as a server shows them, and executes those that the operator lists."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from agent_core.agents.catalog import AgentCatalog
from agent_core.outputs import Json
from engine_shim.definition.errors import Problem, problem_of, refuse
from engine_shim.definition.load import load_workflow
from engine_shim.definition.uses import uses_of
from engine_shim.definition.validate import CheckedWorkflow, check
from engine_shim.host.config import ExecutableTool
from engine_shim.runs.engine import Engine
from engine_shim.service.run_service import RunService
from engine_shim.service.workflows import WorkflowCatalog
from utools.errors import UnknownTool
from utools.registry import ToolRegistry
from utools.tool import Tool

NODE: Final = "call"
BUILT_IN: Final = "built in"
STRICTNESS: Final = ("never", "on_write", "always")
WAIT_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class HostTools:
    """The tools of one tenant. `listed` are codes and globs of those that may be executed by themselves, each as it is
    or with a person's approval."""

    engine: Engine
    runs: RunService
    listed: Sequence[str | ExecutableTool]
    workflows: WorkflowCatalog

    def describe(self) -> list[Json]:
        """Return all tools, as a list shows them."""
        registry: ToolRegistry = self.engine.registry
        users, agents = find_users(self.workflows.list(), registry), _find_agents(self.engine._agents)
        return [
            {
                "code": tool.code,
                "description": tool.description,
                "effect": tool.effect if isinstance(tool.effect, str) else "depends",
                "executable": self._may_execute(tool),
                "config_schema": registry._schema(tool.code).schema,
                "output_schema": tool.output_schema,
                "source": registry._origins.get(tool.code, BUILT_IN),
                "idempotent": tool.idempotent,
                "pinned": tool.fingerprint is not None,
                "used_by": users.get(tool.code, []),
                "agents": agents.get(tool.code, []),
            }
            for tool in registry.all()
        ]

    def describe_left_out(self) -> list[Json]:
        """Return the sources, and single tools of them, that this host has to do without, and why."""
        return [{"name": each.name, "why": each.why} for each in self.engine.registry._left_out]

    async def execute(
        self,
        code: str,
        args: Mapping[str, Any],
        *,
        by: str,
        key: str | None,
        trace: str | None = None,
        wait: bool = True,
    ) -> Json:
        """Execute a tool, as a run of one step: {run_id, status, success, output, error}; with `wait`, once it has
        ended or waits for a person, or after WAIT_S.

        UnknownTool for one that the operator does not list, DefinitionErrors for arguments that do not fit, and for
        those that only an operator may set.
        """
        listed = [tool.code for tool in self.engine.registry.all() if self._may_execute(tool)]
        if code not in listed:
            raise UnknownTool(code, listed)
        refuse(self._argument_problems(code, args))
        config = {name: f'{{{{external.args["{name}"]}}}}' for name in args}
        definition = {
            "id": f"tool-{re.sub('[^A-Za-z0-9_-]', '-', code)}",
            "nodes": [{"id": NODE, "tool": code, "config": config, **self._approval(code)}],
        }
        checked = check(load_workflow(definition), self.engine.registry)
        run, _ = await self.runs.submit(checked, {"args": dict(args)}, by=by, key=key, trace=trace)
        if wait:
            await self.runs.wait(run, WAIT_S)
        view = await self.runs.view(run)
        succeeded = view.status == "completed"
        output = view.outputs.get(NODE) if succeeded else None
        return {"run_id": run, "status": view.status, "success": succeeded, "output": output, "error": view.error}

    def _argument_problems(self, code: str, args: Mapping[str, Any]) -> Iterator[Problem]:
        for name in sorted(self.engine.registry._schema(code).author_keys & args.keys()):
            yield Problem(f"args/{name}", "only the operator sets this, in presets of agent-core.yaml")
        for fault in self.engine.registry.validate(code, args):
            yield problem_of(fault, "args")

    def _may_execute(self, tool: Tool) -> bool:
        return tool.effect != "nested" and not tool.node_only and any(True for _ in self._entries(tool.code))

    def _entries(self, code: str) -> Iterator[ExecutableTool]:
        for each in self.listed:
            entry = ExecutableTool(tool=each) if isinstance(each, str) else each
            if fnmatchcase(code, entry.tool):
                yield entry

    def _approval(self, code: str) -> dict[str, str]:
        """Return the strictest approval of the entries that list a tool, as a node has it."""
        strictest = max((entry.approval for entry in self._entries(code)), key=STRICTNESS.index)
        return {} if strictest == "never" else {"approval": strictest}


def find_users(workflows: Mapping[str, Mapping[str, CheckedWorkflow]], registry: ToolRegistry) -> dict[str, list[Json]]:
    """Return who uses each tool: the nodes, and the agents in nodes, of each workflow's newest version."""
    codes = [tool.code for tool in registry.all()]
    found: dict[str, list[Json]] = {}
    for versions in workflows.values():
        definition = next(iter(versions.values())).definition
        about = {"workflow": definition.id, "version": definition.version}
        for use in uses_of(definition, codes):
            if use.by_agent and registry.get(use.tool).node_only:
                continue
            node = definition.nodes[int(use.where.split("/")[1])].id
            user = {**about, "node": node, "how": "agent" if use.by_agent else "node"}
            users = found.setdefault(use.tool, [])
            if user not in users:
                users.append(user)
    return found


def _find_agents(catalog: AgentCatalog | None) -> dict[str, list[str]]:
    """Return the agents of the catalogue that have each tool."""
    found: dict[str, list[str]] = {}
    for agent in catalog.list() if catalog is not None else ():
        for code in catalog.config_of(agent.name)[1]["kept"] if catalog is not None else ():
            found.setdefault(code, []).append(agent.name)
    return found
