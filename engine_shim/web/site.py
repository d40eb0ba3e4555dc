"""serve_page(): the page of a server, at /ui/, beside the HTTP API that it asks."""

import asyncio
import gzip
import hashlib
from functools import cache
from typing import Annotated, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from agent_core.audit.verify import verify
from agent_core.errors import Damaged, Newer
from agent_core.run.secrets import find_signer
from engine_shim.api.access import Access, Caller
from engine_shim.api.held_stream import HeldStream
from engine_shim.api.problems import open_router, responses
from engine_shim.api.reports import OfWorkflow, Since, make_report
from engine_shim.errors import DefinitionError, RunNotFound
from engine_shim.service.feed_merge import Position
from engine_shim.service.service import Service
from engine_shim.store.excerpts import write_excerpt
from engine_shim.web.bundle import STATIC, join_modules
from engine_shim.web.report_page import write_report_page
from engine_shim.web.run_page import write_excerpt_page, write_run_page

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
)
"""The page runs its own scripts alone, and speaks with its own server alone, whatever stands in a run."""
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


PAGE_METHODS: Final = ["GET", "HEAD"]
"""Monitors ask by HEAD."""
MOST_RUNS: Final = 200
"""How many runs one connection may follow."""
MOST_PLACES: Final = 1000
PLACES: Final = "Which: a strand, a record of it, or several; `flow`, `flow/planner.1:3`, `flow:0-4`."


class _Files(StaticFiles):
    """The page's files, each as a whole, asked for anew after an upgrade of the server."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        whole = [header for header in scope["headers"] if header[0] != b"range"]  # its refusals are plain text
        await super().__call__({**scope, "headers": whole}, receive, send)

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update({**HEADERS, "Accept-Ranges": "none"})
        return response


def serve_page(app: FastAPI, service: Service) -> None:
    """Serve the page of a service. It holds no data: what it shows it asks of the API, with the token of its user. Its
    addresses are relative: a proxy may have it below a path that this server does not know."""
    app.router.routes += _page_routes(Access(service)).routes

    @app.api_route("/ui/app.js", methods=PAGE_METHODS, include_in_schema=False)
    async def show_script(request: Request) -> Response:
        script, packed, tag = _prepare_script()
        headers = {**HEADERS, "ETag": tag, "Vary": "Accept-Encoding"}
        known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
        if tag in known:  # weakened by a proxy that packs what it passes on
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(packed, media_type="text/javascript", headers={**headers, "Content-Encoding": "gzip"})
        return Response(script, media_type="text/javascript", headers=headers)

    app.mount("/ui/static", _Files(directory=str(STATIC)), name="static")

    @app.api_route("/ui/{path:path}", methods=PAGE_METHODS, include_in_schema=False)
    async def show_page(request: Request, path: str) -> Response:
        above = path.count("/") - request.scope.get("raw_path", b"").upper().count(b"%2F")
        text = (STATIC / "index.html").read_text("utf-8").replace("{base}", "../" * above or "./")
        return HTMLResponse(text, headers=HEADERS)

    @app.api_route("/", methods=PAGE_METHODS, include_in_schema=False)
    @app.api_route("/ui", methods=PAGE_METHODS, include_in_schema=False)
    async def find_page() -> Response:
        return RedirectResponse("ui/", 307)


@cache
def _prepare_script() -> tuple[bytes, bytes, str]:
    """Return the page's script, the same packed, and its tag."""
    script = join_modules("app.js").encode()
    return script, gzip.compress(script, mtime=0), f'"{hashlib.sha256(script).hexdigest()[:32]}"'


def _page_routes(access: Access) -> APIRouter:
    router = open_router("runs")
    read = access.needs("read")

    @router.get("/runs/{run_id}/page", response_class=HTMLResponse, responses=responses(404, 409))
    async def export_page(run_id: str, caller: Caller = read) -> Response:
        """Return the run as one HTML file, which shows and proves it without a server."""
        await caller.tenant.runs.check_exists(run_id)
        page = await asyncio.to_thread(_write_page, caller, run_id)
        name = f"attachment; filename*=UTF-8''{quote(run_id, safe='')}.html"
        return HTMLResponse(page, headers={**HEADERS, "Content-Disposition": name})

    @router.get("/runs/{run_id}/excerpt", response_class=Response, responses=responses(404, 409))
    async def export_excerpt(
        run_id: str,
        records: Annotated[list[str], Query(min_length=1, max_length=MOST_PLACES, description=PLACES)],
        form: Annotated[
            Literal["html", "json"], Query(alias="format", description="A page that proves itself, or data.")
        ] = "html",
        caller: Caller = read,
    ) -> Response:
        """Return some records of the run, with what proves to a stranger that they stand in it; nothing of the others
        but their number."""
        await caller.tenant.runs.check_exists(run_id)
        text = await asyncio.to_thread(_write_excerpt, caller, run_id, records)
        name = f"attachment; filename*=UTF-8''{quote(run_id, safe='')}.{'excerpt.html' if form == 'html' else 'json'}"
        headers = {**HEADERS, "Content-Disposition": name}
        if form == "html":
            return HTMLResponse(await asyncio.to_thread(write_excerpt_page, run_id, text), headers=headers)
        return Response(text, media_type="application/json", headers=headers)

    @router.get("/report/page", response_class=HTMLResponse, responses=responses())
    async def export_report(since: Since = None, workflow: OfWorkflow = None, caller: Caller = read) -> Response:
        """Return the report as one HTML file, which needs no script and prints on A4."""
        report = await make_report(caller, since, workflow)
        name = f"attachment; filename=report-{report.made_at[:10]}.html"
        return HTMLResponse(write_report_page(report), headers={**HEADERS, "Content-Disposition": name})

    @router.get("/events", include_in_schema=False)
    async def follow_runs(
        run: Annotated[list[str], Query(min_length=1, max_length=MOST_RUNS)],
        after: Annotated[list[str], Query(max_length=MOST_RUNS)],
        caller: Caller = read,
    ) -> Response:
        """Return the events of all runs that the tabs of a browser look at, each after its own position, by one
        connection."""
        if len(run) != len(after):
            raise DefinitionError("must be given as often as run", where="query/after")
        wanted = [(each, Position.read(text)) for each, text in zip(run, after, strict=True)]
        missing = [at for at, (each, _) in enumerate(wanted) if not await _exists(caller, each)]
        frames = caller.tenant.runs.feeds.follow_many(wanted, missing)
        return HeldStream(caller, frames)

    return router


async def _exists(caller: Caller, run_id: str) -> bool:
    try:
        await caller.tenant.runs.check_exists(run_id)
    except RunNotFound:
        return False
    return True


def _write_excerpt(caller: Caller, run: str, wanted: list[str]) -> str:
    """Return an excerpt of a run. Damaged for a run of which a record is not as it was written, Newer for one that only
    a newer version can check."""
    store = caller.tenant.store
    tape = store.journal.load(run)
    found = verify([row for rows in tape.values() for row in rows], run_id=run)
    if found.first_bad:
        raise Damaged(found.first_bad["strand"], found.first_bad["n"], str(found.why))
    if found.contents == "newer":
        raise Newer(run, str(found.why))
    return write_excerpt(run, tape, wanted, store, find_signer())


def _write_page(caller: Caller, run: str) -> str:
    lines, _ = caller.tenant.export(run)
    return write_run_page(run, lines)
