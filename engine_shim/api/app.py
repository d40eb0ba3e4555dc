"""create_app() and create_router(): the HTTP API of a service, by itself or in another program."""

from collections.abc import Collection
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import PlainTextResponse, RedirectResponse
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from agent_core.run.events import Event
from engine_shim.api.access import Access, Caller
from engine_shim.api.answers import write_json
from engine_shim.api.chat import chat_routes
from engine_shim.api.decision_links import WritePage, decision_routes
from engine_shim.api.drafts import draft_routes
from engine_shim.api.guard import LOOPBACK, protect
from engine_shim.api.ledger import ledger_routes
from engine_shim.api.models import Health, Me
from engine_shim.api.openai import openai_routes, write_refusal
from engine_shim.api.problems import open_router, refusal_of, responses
from engine_shim.api.refusal import Refusal
from engine_shim.api.reports import report_routes
from engine_shim.api.runs import run_routes
from engine_shim.api.tools import tool_routes
from engine_shim.api.triggers import trigger_routes
from engine_shim.api.workflows import workflow_routes
from engine_shim.service.metrics import write_metrics
from engine_shim.service.principal import SCOPES
from engine_shim.service.service import Service

NO_ROUTE: Final = "there is nothing at this path; /openapi.json lists every path"
NO_OPENAI: Final = (
    "there is nothing at this path: of OpenAI's API this server has /v1/models and /v1/chat/completions; "
    "set your client to chat completions, and its base URL to one that ends in /v1"
)
OF_OPENAI: Final = ("/models", "/chat/completions", "/completions", "/responses", "/embeddings")
"""What clients of OpenAI ask for that have a base URL without /v1."""
NO_MCP: Final = "this server offers no MCP: pip install 'agent-core[mcp]', and start it again"
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
METRICS: dict[int | str, dict[str, Any]] = {
    200: {"description": "Metrics", "content": {"text/plain": {"schema": {"type": "string"}}}}
}


def create_router(service: Service, *, write_page: WritePage | None = None) -> APIRouter:
    """Return all routes of a service, for a FastAPI app that is yours.

    Your app checks hosts, origins and sizes then, and its lifespan enters `service.running()`; until it has, all routes
    answer 503. With `write_page` (`write_decision_page` of `engine_shim.web`) browsers get decision links as pages.
    """
    access, router = Access(service), APIRouter()
    parts = (workflow_routes, draft_routes, run_routes, chat_routes, tool_routes, trigger_routes, openai_routes)
    for routes in (*parts, report_routes, ledger_routes, _system_routes):
        router.routes += routes(access).routes  # a router within a router would be searched twice for each request
    router.routes += decision_routes(access, write_page).routes
    return router


def create_app(
    service: Service,
    *,
    hosts: Collection[str] = LOOPBACK,
    origins: Collection[str] = (),
    write_page: WritePage | None = None,
) -> FastAPI:
    """Return the API by itself: it serves what is asked of `hosts`, also to pages of `origins`. With `write_page`
    browsers get decision links as pages."""
    app = FastAPI(
        title="agent-core",
        version=version("agent-core"),
        description="Workflows whose agents call tools under limits, and records that prove it.",
        lifespan=lambda _: service.running(),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.router.routes += create_router(service, write_page=write_page).routes
    protect(app, hosts, origins, _write_refusal)
    app.add_exception_handler(HTTPException, _answer_problem)
    app.add_exception_handler(Exception, _answer_problem)
    app.openapi = lambda: _describe(app)  # type: ignore[method-assign]
    return app


def _system_routes(access: Access) -> APIRouter:
    router = open_router("system")
    service, about, admin = access.service, version("agent-core"), access.needs("admin")
    anyone = access.needs(None)

    @router.head("/health", include_in_schema=False, dependencies=[access.anybody])
    @router.get("/health", response_model=Health, responses=responses(), dependencies=[access.anybody])
    async def show_health() -> Response:
        """Return whether the server serves; it asks for no token."""
        status, difference = "ending" if service.is_closing else "ok", service.find_clock_difference()
        return write_json({"status": status, "version": about, "clock_difference_s": difference})

    @router.get("/me", response_model=Me, responses=responses())
    async def show_caller(caller: Caller = anyone) -> Response:
        """Return who calls, and what their token allows."""
        principal = caller.principal
        scopes = [each for each in SCOPES if principal.allows(each)]
        about_caller = {"name": principal.name, "tenant": principal.tenant, "scopes": scopes}
        return write_json({**about_caller, "is_open": service.is_open, "version": about})

    @router.get("/metrics", response_class=PlainTextResponse, responses={**METRICS, **responses()})
    async def show_metrics(caller: Caller = admin) -> Response:
        """Return what the runs did, for Prometheus: to the host's own token that of all tenants, to a tenant's its
        own."""
        metrics, blocking = service.telemetry.metrics, caller.tenant.runs.store.run_blocking
        if metrics is None:
            raise HTTPException(503, "this server counts nothing: pip install 'agent-core[web]'")
        tenants, reader = service.tenants.values(), caller.principal.tenant
        text = await blocking(write_metrics, metrics, tenants, reader, service.store_failures)
        return Response(text, media_type=metrics.content_type)

    return router


async def _answer_problem(request: Request, error: Exception) -> Response:
    """Return the answer to what no route of ours has handled."""
    refusal = refusal_of(error)
    if refusal.status == 404 and (answer := _redirect_slash(request.scope)):
        return answer
    path = request.url.path.removeprefix(request.scope.get("root_path", ""))  # below a program that mounts the app
    allowed = ", ".join(_allowed_methods(request.scope)) if refusal.status == 405 else ""
    if allowed:
        refusal = replace(refusal, detail=f"this path takes {allowed}; /openapi.json lists every path")
    elif refusal.status == 404:
        refusal = replace(refusal, detail=_explain_nothing(path))
    answer = _write_refusal(path, refusal)
    if allowed:
        answer.headers["Allow"] = allowed
    return answer


def _write_refusal(path: str, refusal: Refusal) -> Response:
    """Return a refusal in the shape that clients of its path read."""
    return write_refusal(refusal) if _is_openais(path) else refusal.response()


def _explain_nothing(path: str) -> str:
    if path in ("/mcp", "/mcp/"):
        return NO_MCP
    return NO_OPENAI if _is_openais(path) else NO_ROUTE


def _is_openais(path: str) -> bool:
    return f"{path}/".startswith("/v1/") or path in OF_OPENAI


def _redirect_slash(scope: Scope) -> Response | None:
    """Return the answer to a path with a slash too many at its end. It is relative, as a proxy may speak TLS, and have
    this server below another path."""
    path, _, rest = scope["path"].rpartition("/")
    name, query = quote(path.rpartition("/")[2], safe=""), scope["query_string"].decode("latin-1")
    if rest or not name or not _allowed_methods({**scope, "path": path}):
        return None
    return RedirectResponse(f"../{name}{query and '?'}{query}", 307)


def _allowed_methods(scope: Scope) -> list[str]:
    """Return the methods of all routes at the path of a request."""
    routes = scope["app"].router.routes
    asked = {method: {**scope, "method": method} for method in METHODS}
    return [method for method in METHODS if any(each.matches(asked[method])[0] is Match.FULL for each in routes)]


def _describe(app: FastAPI) -> dict[str, object]:
    """Return the OpenAPI document, with a model for each kind of event."""
    if app.openapi_schema is None:
        app.openapi_schema = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        events = TypeAdapter(Event).json_schema(ref_template="#/components/schemas/Event{model}")
        models = {f"Event{name}": {**each, "title": f"Event{name}"} for name, each in events.pop("$defs").items()}
        app.openapi_schema["components"]["schemas"] |= {"Event": {**events, "title": "Event"}, **models}
    return app.openapi_schema
