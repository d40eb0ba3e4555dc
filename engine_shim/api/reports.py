"""Routes for the auditor's report."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BeforeValidator

from engine_shim.api.access import Access, Caller
from engine_shim.api.answers import write_json
from engine_shim.api.problems import open_router, responses
from engine_shim.api.runs import aware, check_date
from engine_shim.report.report import Report
from engine_shim.store.entries import RunFilter

Since = Annotated[datetime | None, BeforeValidator(check_date)]
OfWorkflow = Annotated[str | None, Query(max_length=256)]


def report_routes(access: Access) -> APIRouter:
    """Return the routes for the report."""
    router = open_router("report")
    read = access.needs("read")

    @router.get("/report", response_model=Report, responses=responses())
    async def show_report(since: Since = None, workflow: OfWorkflow = None, caller: Caller = read) -> Response:
        """Return what the newest runs say that began since a time: what ran, who decided what, refusals, models and
        versions, policies that changed, incidents, erasures, and what was verified. Each table has the command that
        shows the same on the host."""
        return write_json(await make_report(caller, since, workflow))

    return router


async def make_report(caller: Caller, since: datetime | None, workflow: str | None) -> Report:
    """Return the report of a caller's tenant. Raises DefinitionError for a time without a zone, and OverSpent."""
    return await caller.tenant.report(RunFilter(workflow=workflow, since=aware(since)), caller.checks)
