"""build_server(): the protocol's requests, answered by a service."""

import logging
from importlib.metadata import version
from typing import Final

from mcp.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    CallToolRequestParams,
    CallToolResult,
    CancelledNotificationParams,
    ListToolsResult,
    PaginatedRequestParams,
)

from agent_core.errors import AgentCoreError, Damaged, DefinitionError, JournalError, Newer
from engine_shim.definition.errors import problems_in
from engine_shim.errors import EngineError
from engine_shim.mcp_server.callers import Context, find_caller
from engine_shim.mcp_server.calls import Calls, Outcome, call_key
from engine_shim.mcp_server.offers import list_tools
from engine_shim.mcp_server.results import error_result
from engine_shim.service.service import Service
from utools.errors import ToolError

NAME: Final = "agent-core"
ROUND_S: Final = 24 * 3600.0
"""How long a person may take to answer what a client is told to ask."""
INSTRUCTIONS: Final = (
    "Each tool is a workflow (run_…) or an agent (ask_…). A call that needs a person's decision is asked about, "
    "or the result says what waits and how it is decided."
)
log = logging.getLogger("engine_shim.mcp_server")


def build_server(service: Service) -> "Server[dict[str, object]]":
    """Return the MCP server of a service, for any of its transports."""
    calls = Calls()

    async def answer_list(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        caller = await find_caller(service, context)
        caller.require("read", "run")
        return ListToolsResult(tools=list_tools(caller.tenant))

    async def answer_call(context: Context, params: CallToolRequestParams) -> Outcome:
        caller = await find_caller(service, context)
        caller.require("run")
        try:
            return await calls.make(context, params, caller)
        except MCPError:
            raise
        except (DefinitionError, EngineError, AgentCoreError, ToolError) as error:
            return _refuse(error)
        except Exception as error:  # the edge of the protocol: the client hears nothing of our mistakes but that
            log.exception("a call of the tool %s failed by a mistake in this program", params.name)
            raise MCPError(INTERNAL_ERROR, "a mistake in the server; its log says more") from error

    async def cancel_call(context: Context, params: CancelledNotificationParams) -> None:
        calls.cancel(call_key(context, params.request_id))

    server: Server[dict[str, object]] = Server(
        NAME,
        version=version("agent-core"),
        instructions=INSTRUCTIONS,
        on_list_tools=answer_list,
        on_call_tool=answer_call,
    )
    server.add_notification_handler("notifications/cancelled", CancelledNotificationParams, cancel_call)
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(ttl=ROUND_S), default_audience=NAME))
    return server


def _refuse(error: Exception) -> CallToolResult:
    """Return the result of a call that could not be made: each fault of its arguments with its place, no file of the
    host."""
    if isinstance(error, JournalError) and not isinstance(error, (Damaged, Newer)):
        log.error("a call met a store that cannot be used: %s", error)
        return error_result("the server cannot use its store now; its log says why")
    if not isinstance(error, DefinitionError):
        return error_result(str(error))
    faults = []
    for problem in problems_in(error):
        key = problem.where.removeprefix("external").lstrip("/") if problem.where.startswith("external") else ""
        faults.append(f"{key}: {problem.message}" if key else problem.message)
    return error_result("\n".join(faults))
