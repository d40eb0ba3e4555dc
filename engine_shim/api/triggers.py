"""Routes for triggers, and for the webhooks that start runs."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response

from engine_shim.api.access import Access, Caller
from engine_shim.api.answers import write_json
from engine_shim.api.models import TriggerList
from engine_shim.api.problems import open_router, responses
from engine_shim.api.refusal import Refusal, Refused
from engine_shim.api.run_answers import RESPONDED, locate, write_response
from engine_shim.api.run_models import RunStatusView
from engine_shim.service.responses import wait_response
from engine_shim.service.tenants import Tenant
from engine_shim.service.triggers import refuse_caller
from engine_shim.service.workflows import WorkflowNotFound

MAX_RESPONSE_S = 20.0
"""How long the caller of a webhook waits for the response of a `respond` node; services give up after some 30."""
Signed = Annotated[str, Header(min_length=1, max_length=4096)]
BODY: dict[str, Any] = {
    "requestBody": {
        "description": "What happened; the trigger's `inputs` say what of it the run gets.",
        "content": {"application/json": {"schema": {}}},
        "required": True,
    },
    "security": [],
}


def trigger_routes(access: Access) -> APIRouter:
    """Return the routes for triggers. A webhook shows no token: its signature says who it is."""
    router = open_router("triggers")
    read, tenants = access.needs("read"), access.service.tenants

    @router.get("/triggers", response_model=TriggerList, responses=responses())
    async def list_triggers(caller: Caller = read) -> Response:
        """Return what starts runs without a caller: by the clock, and by webhooks."""
        return write_json({"triggers": await caller.tenant.triggers.describe()})

    @router.post(
        "/triggers/{name}",
        response_model=RunStatusView,
        status_code=202,
        responses={**responses(400, 429), **RESPONDED},
        openapi_extra=BODY,
        dependencies=[access.anybody],
    )
    async def call_trigger(
        request: Request, name: str, webhook_id: Signed, webhook_timestamp: Signed, webhook_signature: Signed
    ) -> Response:
        """Start the run of a webhook, signed as Standard Webhooks says. The same `webhook-id` is the same run. The
        answer is what a `respond` node of the workflow says, if it has one."""
        return await _start(tenants[None], name, request)

    @router.post(
        "/tenants/{tenant}/triggers/{name}",
        response_model=RunStatusView,
        status_code=202,
        responses={**responses(400, 429), **RESPONDED},
        openapi_extra=BODY,
        dependencies=[access.anybody],
    )
    async def call_tenant_trigger(
        request: Request,
        tenant: str,
        name: str,
        webhook_id: Signed,
        webhook_timestamp: Signed,
        webhook_signature: Signed,
    ) -> Response:
        """Start the run of a tenant's webhook."""
        if tenant not in tenants:
            refuse_caller(request.headers, await request.body())
        return await _start(tenants[tenant], name, request)

    return router


async def _start(tenant: Tenant, name: str, request: Request) -> Response:
    try:
        run = await tenant.triggers.call(name, request.headers, await request.body())
    except WorkflowNotFound as error:  # it is the trigger that names the workflow, no field of the request
        raise Refused(Refusal(404, "not_found", str(error))) from None
    if (response := await wait_response(tenant.runs, run, MAX_RESPONSE_S)) is not None:
        return write_response(request.scope, run, response)
    view = await tenant.view(run)
    return write_json({"run_id": run, "status": view.status}, 202, locate(request.scope, run))
