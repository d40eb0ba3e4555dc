"""Routes for workflows: what can be run, the run of one, its text, and a new version of it."""

from typing import Any

from fastapi import APIRouter, Response

from engine_shim.api.access import Access, Caller, TraceParent
from engine_shim.api.answers import write_json
from engine_shim.api.draft_models import SaveRequest, WorkflowSource
from engine_shim.api.models import WorkflowDetail, WorkflowList
from engine_shim.api.problems import open_router, responses
from engine_shim.api.run_answers import CAME, RESPONDED, Answered, Key, Nodes, Wait, answer_run
from engine_shim.api.run_models import RunRequest
from engine_shim.definition.model import RESPOND
from engine_shim.definition.validate import CheckedWorkflow

SAVED: dict[int | str, dict[str, Any]] = {
    200: {"model": WorkflowDetail, "description": "It was saved before, with the same text"}
}


def workflow_routes(access: Access) -> APIRouter:
    """Return the routes for workflows."""
    router = open_router("workflows")
    read, run, admin = access.needs("read"), access.needs("run"), access.needs("admin")

    @router.get("/workflows", response_model=WorkflowList, responses=responses())
    async def list_workflows(caller: Caller = read) -> Response:
        """Return the workflows that can be run, each with its versions."""
        found = caller.tenant.workflows.list().values()
        return write_json({"workflows": [_describe(each) for versions in found for each in versions.values()]})

    @router.get("/workflows/{name}", response_model=WorkflowDetail, responses=responses(404))
    async def show_workflow(name: str, caller: Caller = read) -> Response:
        """Return one version of a workflow, `id@version`, or the newest one of `id`."""
        return write_json(_detail(caller.tenant.workflows.get(name)))

    @router.get("/workflows/{name}/source", response_model=WorkflowSource, responses=responses(404))
    async def show_source(name: str, caller: Caller = read) -> Response:
        """Return the text of the file that defines a version of a workflow, comments and all."""
        return write_json(caller.tenant.files.read_source(name))

    @router.put(
        "/workflows/{name}", response_model=WorkflowDetail, status_code=201, responses={**SAVED, **responses(409, 429)}
    )
    async def save_workflow(name: str, body: SaveRequest, caller: Caller = admin) -> Response:
        """Save a text as a new version of the workflow `name`, in a file of its own; older versions stay callable."""
        save = caller.tenant.save_version
        saved, is_new = await save(name, body.text, body.format, body.expects, caller.checks)
        return write_json(_detail(saved), 201 if is_new else 200)

    @router.post(
        "/workflows/{name}/runs",
        response_model=Answered,
        responses={**CAME, **responses(404, 429), **RESPONDED},
        status_code=200,
    )
    async def submit_run(
        name: str,
        body: RunRequest,
        wait: Wait = True,
        nodes: Nodes = False,
        idempotency_key: Key = None,
        traceparent: TraceParent = None,
        caller: Caller = run,
    ) -> Response:
        """Run a workflow, `id@version` or the newest version of `id`. With an Idempotency-Key that came before, it is
        the run of that time."""
        tenant = caller.tenant
        workflow = tenant.workflows.get(name)
        about: dict[str, Any] = {"key": idempotency_key, "trace": traceparent, "is_followed": not wait}
        if body.callback_url is not None:
            about["callback"] = tenant.open_callback(body.callback_url, decides=caller.allows("decide"))
        found, _ = await tenant.runs.submit(workflow, body.external, by=caller.name, **about)
        responds = wait and any(node.tool == RESPOND for node in workflow.definition.nodes)
        return await answer_run(caller, found, wait=wait, nodes=nodes, is_own=True, responds=responds)

    return router


def _detail(workflow: CheckedWorkflow) -> dict[str, Any]:
    return {**_describe(workflow), "definition": dict(workflow.data)}


def _describe(workflow: CheckedWorkflow) -> dict[str, Any]:
    definition = workflow.definition
    return {
        "id": definition.id,
        "version": definition.version,
        "name": definition.name or definition.id,
        "description": definition.description or "",
        "inputs": definition.inputs,
    }
