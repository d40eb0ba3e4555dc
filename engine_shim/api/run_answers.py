"""answer_run(): what routes answer that begin a run, or let it go on."""

from typing import Annotated, Any

from fastapi import Header, Query, Response

from engine_shim.api.access import Caller
from engine_shim.api.answers import write_json
from engine_shim.api.links import RUN_LINKS
from engine_shim.api.models import Run
from engine_shim.runs.store import OPEN

MAX_WAIT_S = 300.0
"""How long a caller may wait for a run; it goes on afterwards."""
CAME: dict[int | str, dict[str, Any]] = {
    200: {"description": "The run has ended, or waits", "links": RUN_LINKS},
    202: {"model": Run, "description": "The run goes on", "links": RUN_LINKS},
}
Wait = Annotated[bool, Query(description="Answer when the run has ended or waits; else at once.")]
Nodes = Annotated[bool, Query(description="With the outputs of all nodes, as `nodes`.")]
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=256)]


async def answer_run(caller: Caller, run_id: str, *, wait: bool, nodes: bool) -> Response:
    """The run: 200 once it has ended or waits, 202 while it goes on."""
    if wait:
        await caller.tenant.runs.wait(run_id, MAX_WAIT_S)
    else:
        caller.tenant.runs.feeds.expect(run_id)
    view = await caller.tenant.view(run_id)
    is_open = view.status in OPEN
    return write_json(view.as_json(nodes=nodes), 202 if is_open else 200, {"Location": f"/runs/{run_id}"})
