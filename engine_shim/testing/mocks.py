"""MockedHost: the tools of a host with mocks in place of nodes and tools, and with no write that is not mocked."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agent_core.journal.path import node_of
from agent_core.run.clock import now
from engine_shim.definition.load import Workflow
from engine_shim.definition.model import AGENT, INVOKE
from engine_shim.evals.canned import canned_tool
from engine_shim.evals.cases import CannedAnswer, CannedTool
from engine_shim.testing.cases import Mock
from utools.registry import ToolRegistry
from utools.tool import Args, Tool, ToolContext, ToolResult

NESTED = (AGENT, INVOKE)


@dataclass(slots=True)
class MockedHost:
    """The tools and the workflow of one case. `unmocked` are the tools of the calls that would have written, `unsent`
    how many signals of each name no node has waited for yet."""

    workflow: Workflow
    tools: ToolRegistry
    unsent: Counter[str]
    unmocked: list[str] = field(default_factory=list)


def mock_host(
    workflow: Workflow, tools: ToolRegistry, mocks: Mapping[str, Mock], signals: Iterable[str] = ()
) -> MockedHost:
    """Return a host for one run. A mocked node or tool gives what its mock says; all else is done if it only reads.

    A node that waits takes one of the `signals`, by name; without one its time has come at once.
    """
    found = MockedHost(workflow, ToolRegistry(calls=tools._calls), Counter(signals))
    for tool in tools.all():
        mocked = _mocked(tool, workflow, mocks, tools, found.unmocked)
        found.tools.register(_without_time(mocked, found.unsent) if mocked.awaits else mocked, known_good=True)
    replaced = {name: mock for name, mock in mocks.items() if _is_replaced(workflow, name, tools)}
    for name, mock in replaced.items():
        found.tools.register(_can(mock, f"mock.{name}", None))
    if replaced:
        found.workflow = _with_tools(workflow, {name: f"mock.{name}" for name in replaced})
    return found


def _is_replaced(workflow: Workflow, name: str, tools: ToolRegistry) -> bool:
    """Return whether a node's mock takes the place of its tool: it is a run of its own, or waits."""
    code = workflow.nodes[name].tool if name in workflow.nodes else ""
    return code in NESTED or (code in tools and tools.get(code).awaits)


def _without_time(tool: Tool, unsent: Counter[str]) -> Tool:
    """Return a tool that waits for a signal that is to be sent, and else for no time."""

    async def execute(args: Args, context: ToolContext) -> Any:
        wait = await tool.execute(args, context)
        if unsent[wait["signal"]]:
            unsent[wait["signal"]] -= 1
            return {**wait, "until": None}
        return wait if wait["until"] is None else {**wait, "until": now()}

    return replace(tool, execute=execute)


def _with_tools(workflow: Workflow, tools: Mapping[str, str]) -> Workflow:
    """Return the workflow whose nodes call these tools in place of runs of their own."""
    definition = workflow.definition
    nodes = [
        node.model_copy(update={"tool": tools[node.id]}) if node.id in tools else node for node in definition.nodes
    ]
    return replace(workflow, definition=definition.model_copy(update={"nodes": nodes}))


def _mocked(tool: Tool, workflow: Workflow, mocks: Mapping[str, Mock], real: ToolRegistry, unmocked: list[str]) -> Tool:
    """Return the tool as the case has it: mocked for a node, mocked for all, or as it is where it reads."""
    users = [name for name, node in workflow.nodes.items() if node.tool == tool.code and name in mocks]
    by_node = {name: _can(mocks[name], tool.code, tool) for name in users}
    by_code = _can(mocks[tool.code], tool.code, tool) if tool.code in mocks else None
    if tool.awaits:
        return tool if by_code is None else replace(tool, execute=by_code.execute, check=None, awaits=False)
    if tool.effect == "read" and not by_node and by_code is None:
        return tool

    async def execute(args: Args, context: ToolContext) -> Any:
        mock = by_node.get(node_of(context.strand) or "") or by_code
        if mock is not None:
            return await mock.execute(args, context)
        if tool.effect_of(args) == "read":
            return await real.execute(tool.code, args, context, validated=True)
        unmocked.append(tool.code)
        return ToolResult(False, error=f"{tool.code} writes and is not mocked: a test does not call it")

    return replace(tool, execute=execute, check=None, cache=None)


def as_canned(mock: Mock) -> CannedTool:
    """Return the answers of a mock as evals have them."""
    return CannedTool(answers=mock.answers or [CannedAnswer(output=mock.output, error=mock.error)])


def _can(mock: Mock, code: str, real: Tool | None) -> Tool:
    return canned_tool(code, as_canned(mock), real)
