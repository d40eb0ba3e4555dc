"""Routes for tools: what there is, and the execution of those that the operator lists."""

from typing import Annotated

from fastapi import APIRouter, Header, Response

from engine_shim.api.access import Access, Caller, TraceParent
from engine_shim.api.answers import write_json
from engine_shim.api.models import ExecuteRequest, Execution, ToolList
from engine_shim.api.problems import ProblemRoute, responses


def tool_routes(access: Access) -> APIRouter:
    """The routes for the tools of a host."""
    router = APIRouter(route_class=ProblemRoute, tags=["tools"])
    read, admin = access.needs("read"), access.needs("admin")

    @router.get("/tools", response_model=ToolList, responses=responses())
    async def list_tools(caller: Caller = read) -> Response:
        """The tools that workflows and agents may use."""
        return write_json({"tools": caller.tenant.tools.describe()})

    @router.post("/tools/{code}/execute", response_model=Execution, responses=responses(404, 409, 429))
    async def execute_tool(
        code: str,
        body: ExecuteRequest,
        idempotency_key: Annotated[str | None, Header(min_length=1, max_length=256)] = None,
        traceparent: TraceParent = None,
        caller: Caller = admin,
    ) -> Response:
        """Execute a tool by itself, as a run of one step: checked, recorded, with the operator's presets."""
        tools, key = caller.tenant.tools, idempotency_key
        done = await tools.execute(code, body.args, by=caller.name, key=key, trace=traceparent)
        return write_json(done)

    return router
