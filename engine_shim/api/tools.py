"""Routes for tools: the list, the changes since their approval, and the execution of some."""

import asyncio
from typing import Any, Final

from fastapi import APIRouter, Response

from agent_core.statuses import OPEN
from engine_shim.api.access import Access, Caller, TraceParent
from engine_shim.api.answers import write_json
from engine_shim.api.problems import open_router, responses
from engine_shim.api.run_answers import Key, Wait, locate
from engine_shim.api.tool_models import Approval, ApproveRequest, ExecuteRequest, Execution, ToolChanges, ToolList

GOES_ON: Final[dict[int | str, dict[str, Any]]] = {202: {"model": Execution, "description": "The run goes on"}}


def tool_routes(access: Access) -> APIRouter:
    """Return the routes for the tools of a host."""
    router = open_router("tools")
    read, admin = access.needs("read"), access.needs("admin")

    @router.get("/tools", response_model=ToolList, responses=responses())
    async def list_tools(caller: Caller = read) -> Response:
        """Return the tools that workflows and agents may use, and which sources of tools cannot be used, and why."""
        tools = caller.tenant.tools
        return write_json({"tools": await asyncio.to_thread(tools.describe), "left_out": tools.describe_left_out()})

    @router.get("/tools/changes", response_model=ToolChanges, responses=responses())
    async def list_tool_changes(caller: Caller = admin) -> Response:
        """Return what MCP servers and other hosts offer otherwise than was approved. To ask them takes a while."""
        return write_json(await access.service.review_tools(caller.principal))

    @router.post("/tools/approve", response_model=Approval, responses=responses(409))
    async def approve_tools(body: ApproveRequest, caller: Caller = admin) -> Response:
        """Approve the changes that a digest names, and no others, as `agent-core tools approve` does."""
        return write_json(await access.service.review_tools(caller.principal, body.digest))

    @router.post("/tools/{code}/execute", response_model=Execution, responses={**GOES_ON, **responses(404, 409, 429)})
    async def execute_tool(
        code: str,
        body: ExecuteRequest,
        wait: Wait = True,
        idempotency_key: Key = None,
        traceparent: TraceParent = None,
        caller: Caller = admin,
    ) -> Response:
        """Execute a tool by itself, as a run of one step: checked, recorded, with the operator's presets. It is 202
        while the run continues, which `GET /runs/{id}` shows, and `POST /runs/{id}/cancel` ends."""
        tools, key = caller.tenant.tools, idempotency_key
        done = await tools.execute(code, body.args, by=caller.name, key=key, trace=traceparent, wait=wait)
        return write_json(done, 202 if done["status"] in OPEN else 200, locate(caller.scope, done["run_id"]))

    return router
