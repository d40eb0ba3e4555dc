"""Work: the run that a call stands for, of a workflow or of a turn with an agent."""

from contextlib import suppress
from typing import Final

from mcp_types import CallToolResult

from agent_core.agents.errors import AgentNotFound
from agent_core.errors import DecisionError
from agent_core.journal.control import Decisions
from agent_core.outputs import Json, WaitingCall
from engine_shim.definition.errors import problem_of, refuse
from engine_shim.mcp_server.names import Target
from engine_shim.mcp_server.offers import MESSAGE_SCHEMA
from engine_shim.mcp_server.results import reply_result, run_result
from engine_shim.runs.conversations import reply_of
from engine_shim.service.conversations import ConversationService
from engine_shim.service.tenants import Tenant
from utools.schema.compiled import compile_schema

WAIT_S: Final = 7 * 24 * 3600.0
"""How long a call stays with its run; the run continues afterwards."""


class Work:
    """A run, from its start or from a later question on, until it has ended or waits. One task uses it."""

    def __init__(self, tenant: Tenant, target: Target, by: str, run: str = "") -> None:
        """`run` is one that waits. WorkflowNotFound, AgentNotFound."""
        self.run, self._tenant, self._target, self._by = run, tenant, target, by
        self._workflow = tenant.workflows.get(target.name) if target.kind == "workflow" else None
        if self._workflow is None:
            self._conversations().host.choose_agent(target.name)

    async def find_waiting(self) -> list[WaitingCall]:
        """Return the calls that wait for a person, once the run is settled."""
        return (await self._tenant.view(self.run)).waiting

    async def start(self, arguments: Json) -> None:
        """Begin the run. DefinitionError for arguments that do not fit, with nothing written."""
        if self._workflow is not None:
            self.run, _ = await self._tenant.runs.submit(self._workflow, arguments, by=self._by)
            return
        refuse(problem_of(fault, "external") for fault in compile_schema(MESSAGE_SCHEMA).faults(arguments))
        message, conversation = arguments["message"], arguments.get("conversation_id")
        begun = await self._conversations().begin(message, conversation, agent=self._target.name, by=self._by)
        self.run = begun.run

    async def decide(self, decisions: Decisions) -> None:
        """Go on with the run. DecisionError for what fits nothing that waits."""
        await self._tenant.runs.decide(self.run, decisions, by=self._by)

    async def wait_settled(self) -> None:
        """Wait until the run has ended or waits, or this process is about to end."""
        await self._tenant.runs.wait(self.run, WAIT_S)

    async def cancel(self) -> None:
        """End the run for good, if it has not ended."""
        with suppress(DecisionError):  # it has ended
            await self._tenant.engine.cancel(self.run, by=self._by)

    async def result(self) -> CallToolResult:
        """Return what came of it so far."""
        view = await self._tenant.view(self.run)
        if self._workflow is None:
            return reply_result(reply_of(view.conversation or "", view))
        return run_result(view, self._workflow.definition)

    def _conversations(self) -> ConversationService:
        if self._tenant.conversations is None:
            raise AgentNotFound(self._target.name, [])
        return self._tenant.conversations
