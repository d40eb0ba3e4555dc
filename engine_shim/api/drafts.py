"""Routes for drafts: definitions that are checked and run as they stand, before anybody saves them."""

from fastapi import APIRouter, Response

from engine_shim.api.access import Access, Caller, TraceParent
from engine_shim.api.answers import write_json
from engine_shim.api.draft_models import DraftCheck, DraftRequest, DraftRunRequest
from engine_shim.api.problems import open_router, responses
from engine_shim.api.run_answers import CAME, Answered, Key, Nodes, Wait, answer_run


def draft_routes(access: Access) -> APIRouter:
    """Return the routes for drafts."""
    router = open_router("workflows")
    read, admin = access.needs("read"), access.needs("admin")

    @router.post("/drafts/check", response_model=DraftCheck, responses=responses(429))
    async def check_draft(body: DraftRequest, caller: Caller = read) -> Response:
        """Return what `agent-core validate` says of a text, its graph, and what its placeholders can name."""
        return write_json(await caller.tenant.check_draft(body.text, body.format, caller.checks))

    @router.post("/drafts/runs", response_model=Answered, responses={**CAME, **responses(429)}, status_code=200)
    async def run_draft(
        body: DraftRunRequest,
        wait: Wait = True,
        nodes: Nodes = False,
        idempotency_key: Key = None,
        traceparent: TraceParent = None,
        caller: Caller = admin,
    ) -> Response:
        """Run a text as it stands. The same text with an Idempotency-Key that came before is the run of that time."""
        run = await caller.tenant.run_draft(
            body.text,
            body.format,
            body.external,
            by=caller.name,
            key=idempotency_key,
            trace=traceparent,
            is_followed=not wait,
            account=caller.checks,
        )
        return await answer_run(caller, run, wait=wait, nodes=nodes)

    return router
