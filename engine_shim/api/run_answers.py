"""answer_run(): what routes answer that begin a run, or let it continue."""

from typing import Annotated, Any, Final

from fastapi import Header, Query, Response
from starlette.types import Scope

from agent_core.statuses import OPEN
from engine_shim.api.access import Caller
from engine_shim.api.answers import MANNERS, write_json
from engine_shim.api.links import RUN_LINKS
from engine_shim.api.run_models import Run, RunStatusView
from engine_shim.service.responses import RunResponse, wait_response

MAX_WAIT_S = 300.0
"""How long a caller may wait for a run; it continues afterwards."""
NO_BODY: Final = (204, 205, 304)
Answered = Run | RunStatusView
"""What is told of a run: all that a reader sees, or its id and status."""
RESPONDED: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "What a `respond` node of the workflow says, with its status; `Location` is the run",
        "content": {"application/json": {"schema": {}}},
    }
}
CAME: dict[int | str, dict[str, Any]] = {
    200: {"description": "The run has ended, or waits", "links": RUN_LINKS},
    202: {"model": Answered, "description": "The run goes on", "links": RUN_LINKS},
}
Wait = Annotated[bool, Query(description="Answer when the run has ended or waits; else at once.")]
Nodes = Annotated[bool, Query(description="With the outputs of all nodes, as `nodes`.")]
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=256)]


def locate(scope: Scope, run_id: str) -> dict[str, str]:
    """Return the header that says where a run is: below the path at which a proxy or a program mounts the app, and the
    prefix of its routes there."""
    root = scope.get("root_path", "")
    prefix = "/".join(scope["path"].removeprefix(root).split("/")[: -scope["route"].depth])
    return {"Location": f"{root}{prefix}/runs/{run_id}"}


def write_response(scope: Scope, run_id: str, response: RunResponse) -> Response:
    """Return what a workflow says to its caller; without its body where HTTP has none for the status."""
    if response.status in NO_BODY:
        return Response(None, response.status, {**MANNERS, **locate(scope, run_id)})
    return write_json(response.body, response.status, locate(scope, run_id))


async def answer_run(
    caller: Caller, run_id: str, *, wait: bool, nodes: bool, is_own: bool = False, responds: bool = False
) -> Response:
    """Return the run: 200 once it has ended or waits, 202 while it continues. Who may not read sees its id and status
    alone, unless it `is_own`: the caller has begun it. Of a workflow that `responds`, the others see what it says."""
    response = None
    if wait:
        response = await wait_response(caller.tenant.runs, run_id, MAX_WAIT_S) if responds else None
        if response is None:
            await caller.tenant.runs.wait(run_id, MAX_WAIT_S)
    else:
        caller.tenant.runs.feeds.expect(run_id)
    view = await caller.tenant.view(run_id)
    is_open = view.status in OPEN
    is_shown = caller.allows("read") or (is_own and view.submitted_by == caller.name)
    if response is not None and is_shown:
        return write_response(caller.scope, run_id, response)
    about = view.as_json(nodes=nodes) if is_shown else {"run_id": run_id, "status": view.status}
    return write_json(about, 202 if is_open else 200, locate(caller.scope, run_id))
