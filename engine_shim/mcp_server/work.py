"""Work: the run that a call stands for, of a workflow or of a turn with an agent, in the words of a call."""

import asyncio
from contextlib import suppress
from typing import Final, Protocol

from mcp_types import CallToolResult

from agent_core.agents.errors import AgentNotFound
from agent_core.agents.reply import ChatReply
from agent_core.effects import FinishReason, Json
from agent_core.errors import DecisionError
from agent_core.journal.control import Decisions
from agent_core.run.run_id import new_run_id
from engine_shim.definition.errors import problem_of, refuse
from engine_shim.definition.validate import CheckedWorkflow
from engine_shim.mcp_server.names import Target
from engine_shim.mcp_server.offers import MESSAGE_SCHEMA
from engine_shim.mcp_server.results import reply_result, run_result
from engine_shim.service.talks import MAX_TOKENS, MAX_TOOL_CALLS, Talks
from engine_shim.service.tenants import Tenant
from utools.schema.compiled import compile_schema

WAIT_S: Final = 7 * 24 * 3600.0
"""How long a call stays with its run; the run goes on afterwards."""


class Work(Protocol):
    """A run, from its start or from a later question on, until it has ended or waits. One task uses it."""

    run: str

    async def find_waiting(self) -> list[Json]:
        """The calls that wait for a person, once it is at rest."""
        ...

    async def start(self, arguments: Json) -> None:
        """Begin the run. DefinitionError for arguments that do not fit, with nothing written."""
        ...

    async def decide(self, decisions: Decisions) -> None:
        """Go on with the run. DecisionError for what fits nothing that waits."""
        ...

    async def rest(self) -> None:
        """Wait until the run has ended or waits, or this process is about to end."""
        ...

    async def cancel(self) -> None:
        """End the run for good, if it has not ended."""
        ...

    async def result(self) -> CallToolResult:
        """What came of it so far."""
        ...


def open_work(tenant: Tenant, target: Target, by: str, run: str = "") -> Work:
    """The work of a tool, that of a run which waits where one is named. WorkflowNotFound, AgentNotFound."""
    if target.kind == "workflow":
        return WorkflowRun(tenant, tenant.workflows.get(target.name), by, run)
    if tenant.talks is None:
        raise AgentNotFound(target.name, [])
    return AgentTurn(tenant, tenant.talks, tenant.talks.choose_agent(target.name), by, run)


class WorkflowRun:
    """A run of a workflow."""

    def __init__(self, tenant: Tenant, workflow: CheckedWorkflow, by: str, run: str) -> None:
        self.run, self._tenant, self._workflow, self._by = run, tenant, workflow, by

    async def find_waiting(self) -> list[Json]:
        return (await self._tenant.view(self.run)).waiting

    async def start(self, arguments: Json) -> None:
        self.run, _ = await self._tenant.runs.submit(self._workflow, arguments, by=self._by)

    async def decide(self, decisions: Decisions) -> None:
        await self._tenant.runs.decide(self.run, decisions, by=self._by)

    async def rest(self) -> None:
        await self._tenant.runs.wait(self.run, WAIT_S)

    async def cancel(self) -> None:
        with suppress(DecisionError):  # it has ended
            await self._tenant.engine.cancel(self.run, by=self._by)

    async def result(self) -> CallToolResult:
        return run_result(await self._tenant.view(self.run), self._workflow.definition)


class AgentTurn:
    """A turn of a conversation with an agent."""

    def __init__(self, tenant: Tenant, talks: Talks, agent: str, by: str, run: str) -> None:
        self.run, self._tenant, self._talks, self._agent, self._by = run or new_run_id(), tenant, talks, agent, by
        self._turn: asyncio.Task[ChatReply] | None = None
        self._reply: ChatReply | None = None

    async def find_waiting(self) -> list[Json]:
        return self._reply.waiting if self._reply else (await self._tenant.view(self.run)).waiting

    async def start(self, arguments: Json) -> None:
        refuse(problem_of(fault, "external") for fault in compile_schema(MESSAGE_SCHEMA).faults(arguments))
        turn = self._talks.chat(
            arguments["message"],
            arguments.get("conversation_id"),
            agent=self._agent,
            max_tool_calls=MAX_TOOL_CALLS,
            max_tokens=MAX_TOKENS,
            by=self._by,
            run_id=self.run,
        )
        self._turn = asyncio.create_task(turn)

    async def decide(self, decisions: Decisions) -> None:
        self._turn = asyncio.create_task(self._talks.decide(self.run, decisions, by=self._by))

    async def rest(self) -> None:
        assert self._turn is not None
        self._reply = await self._turn

    async def cancel(self) -> None:
        self._talks.cancel(self.run)

    async def result(self) -> CallToolResult:
        return reply_result(self._reply or await self._unanswered())

    async def _unanswered(self) -> ChatReply:
        """The reply of a turn on which nothing was decided."""
        view = await self._tenant.view(self.run)
        reason: FinishReason = "awaiting_approval" if view.waiting else "paused"
        return ChatReply(False, "", view.conversation or "", self.run, reason, waiting=view.waiting)
