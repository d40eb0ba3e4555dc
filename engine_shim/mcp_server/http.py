"""McpEndpoint: the server over streamable HTTP, as a route for an app; callers show a token, as they do elsewhere."""

from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware, get_access_token
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.types import ASGIApp, Message

from engine_shim.mcp_server.callers import ServiceTokens
from engine_shim.mcp_server.mount import mount
from engine_shim.mcp_server.server import build_server
from engine_shim.mcp_server.sessions import Sessions
from engine_shim.service.service import LOCAL, Service
from engine_shim.service.shares import MOST_SESSIONS
from engine_shim.service.token_watch import answer_until

IDLE_S: Final = 30 * 60.0
"""How long a session may be idle: it costs memory."""


class HeldRequests:
    """Requests that continue for as long as the token of their caller holds: answers of MCP may be streams."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        token = get_access_token()
        with self._service.watch.holding(LOCAL.id if token is None else str(token.client_id)) as over:
            await answer_until(over, self._app, scope, receive, send)


class WholeRequests:
    """Requests that have come as a whole. A client that hangs up before is no mistake of the server, for which the
    library takes it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        parts, has_more = list[bytes](), True
        while has_more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            parts.append(message.get("body", b""))
            has_more = message.get("more_body", False)
        whole = iter([{"type": "http.request", "body": b"".join(parts), "more_body": False}])

        async def receive_whole() -> Message:
            return next(whole, None) or await receive()

        await self._app(scope, receive_whole, send)


class McpEndpoint:
    """The endpoint of a service."""

    def __init__(self, service: Service) -> None:
        self._manager = StreamableHTTPSessionManager(
            build_server(service), session_idle_timeout=IDLE_S, max_sessions=MOST_SESSIONS
        )
        self._service, backend = service, BearerAuthBackend(ServiceTokens(service))
        self._open: ASGIApp = Sessions(WholeRequests(StreamableHTTPASGIApp(self._manager)), service)
        held = HeldRequests(self._open, service)
        self._closed = AuthenticationMiddleware(AuthContextMiddleware(RequireAuthMiddleware(held, [])), backend=backend)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        app = HeldRequests(self._open, self._service) if await self._service.check_open() else self._closed
        await app(scope, receive, send)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Serve sessions until the end of the block."""
        return self._manager.run()


def create_app(service: Service) -> Starlette:
    """Return an app that serves MCP alone."""
    app = Starlette(lifespan=lambda _: service.running())
    mount(app, McpEndpoint(service))
    return app
