"""Sessions: how many sessions of MCP a token, a tenant and all may have; one that is idle gives way to a new one."""

from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

import orjson
from mcp.server.auth.middleware.auth_context import get_access_token
from starlette.responses import Response
from starlette.types import ASGIApp, Message

from engine_shim.service.principal import Principal
from engine_shim.service.service import Service
from engine_shim.service.shares import OverShare

HEADER: Final = b"mcp-session-id"
RETRY_AFTER_S: Final = 2


@dataclass(slots=True)
class _Session:
    """A session, and the requests of it that are under way."""

    principal: Principal
    user: Any
    used_at: float
    requests: int = 0


class Sessions:
    """Counts the sessions of an app that opens and ends them by streamable HTTP."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service, self._share = app, service, service.shares.sessions
        self._open: dict[bytes, _Session] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request: of a session, or one that may open another."""
        identity = dict(scope["headers"]).get(HEADER)
        if identity is None and scope["method"] == "POST":
            await self._answer_opening(scope, receive, send)
            return
        session = self._open.get(identity) if identity is not None else None
        if session is None:
            await self._app(scope, receive, send)
            return
        session.requests += 1
        try:
            await self._app(scope, receive, self._watch(identity, scope["method"], send))
        finally:
            session.requests -= 1
            session.used_at = monotonic()

    async def _answer_opening(self, scope: Any, receive: Any, send: Any) -> None:
        token = get_access_token()
        principal = await self._service.find_caller(token.token if token else None)
        if principal is None:
            await self._app(scope, receive, send)  # which refuses it
            return
        try:
            await self._make_room(principal)
        except OverShare as error:
            await _refuse(error)(scope, receive, send)
            return

        async def note(message: Message) -> None:
            identity = dict(message.get("headers", ())).get(HEADER)
            if identity is not None and message["status"] < 400 and identity not in self._open:
                self._open[identity] = _Session(principal, scope.get("user"), monotonic())
                self._share.add(principal.tenant, principal.id)
            await send(message)

        await self._app(scope, receive, note)

    async def _make_room(self, principal: Principal) -> None:
        """End idle sessions until the caller may have one more. OverShare where none that could give way is idle."""
        while True:
            try:
                self._share.check(principal.tenant, principal.id)
                return
            except OverShare:
                idle = self._find_idle(principal)
                if idle is None:
                    raise
                await self._end(idle)

    def _find_idle(self, principal: Principal) -> bytes | None:
        """Return the session that gives way: the caller's longest idle one, else one of their tenant as long as the
        tenant has room; None if all are in use.

        Sessions of other tenants stay.
        """
        is_full = self._share.is_full(principal.tenant, principal.id)

        def may_go(each: _Session) -> bool:
            is_own = each.principal.id == principal.id
            return not each.requests and (is_own or (each.principal.tenant == principal.tenant and not is_full))

        idle = ((key, each) for key, each in self._open.items() if may_go(each))
        found = [(each.principal.id != principal.id, each.used_at, key) for key, each in idle]
        return min(found)[2] if found else None

    async def _end(self, identity: bytes) -> None:
        """End a session as its client would."""
        session = self._open[identity]
        scope = {
            "type": "http",
            "method": "DELETE",
            "path": "/mcp",
            "query_string": b"",
            "headers": [(HEADER, identity)],
            **({} if session.user is None else {"user": session.user}),
        }

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            pass

        await self._app(scope, receive, send)
        self._forget(identity)

    def _watch(self, identity: bytes | None, method: str, send: Any) -> Any:
        """Return what sends the answers of a session, and sees whether it has ended."""

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start":
                is_gone = message["status"] == 404 or (method == "DELETE" and message["status"] < 400)
                if is_gone and identity is not None:
                    self._forget(identity)
            await send(message)

        return watch

    def _forget(self, identity: bytes) -> None:
        session = self._open.pop(identity, None)
        if session is not None:
            self._share.add(session.principal.tenant, session.principal.id, -1)


def _refuse(error: OverShare) -> Response:
    """Return the answer to a caller who wants more than their share: problem details, as the API has them."""
    told = {"type": "about:blank", "title": "Too many requests", "status": 429, "detail": str(error)}
    body = orjson.dumps({**told, "kind": "over_share", "errors": []})
    return Response(body, 429, {"Retry-After": str(RETRY_AFTER_S)}, "application/problem+json")
