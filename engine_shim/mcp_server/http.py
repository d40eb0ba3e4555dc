"""McpEndpoint: the server over streamable HTTP, as a route for an app; callers show a token, as they do elsewhere."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp

from engine_shim.mcp_server.callers import ServiceTokens
from engine_shim.mcp_server.server import build_server
from engine_shim.service.service import Service

PATH: Final = "/mcp"
MAX_SESSIONS: Final = 1000
IDLE_S: Final = 30 * 60.0
"""How many sessions may be open, and how long one may be idle: they cost memory."""


class McpEndpoint:
    """The endpoint of a service. Whoever mounts it checks hosts, origins and sizes, as `Guard` does."""

    def __init__(self, service: Service) -> None:
        self._manager = StreamableHTTPSessionManager(
            build_server(service), session_idle_timeout=IDLE_S, max_sessions=MAX_SESSIONS
        )
        self._app: ASGIApp = StreamableHTTPASGIApp(self._manager)
        if not service.is_open:
            backend = BearerAuthBackend(ServiceTokens(service))
            self._app = AuthenticationMiddleware(
                AuthContextMiddleware(RequireAuthMiddleware(self._app, [])), backend=backend
            )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Serve sessions until the end of the block."""
        return self._manager.run()


def mount_endpoint(app: Starlette, service: Service) -> None:
    """Serve MCP at `/mcp` of an app whose lifespan has the service running."""
    endpoint, lifespan = McpEndpoint(service), app.router.lifespan_context

    @asynccontextmanager
    async def run(served: Starlette) -> AsyncIterator[Any]:
        async with lifespan(served) as state, endpoint.running():
            yield state

    app.router.lifespan_context = run
    app.router.routes.append(Route(PATH, endpoint))


def create_app(service: Service) -> Starlette:
    """An app that serves MCP alone."""
    app = Starlette(lifespan=lambda _: service.running())
    mount_endpoint(app, service)
    return app
