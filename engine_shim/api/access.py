"""Access: who calls, by the bearer token of the request, and what the scopes of that allow."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import Depends, Header, HTTPException, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.types import Scope as ASGIScope

from engine_shim.api.refusal import Refusal, Refused
from engine_shim.api.served_route import HELD
from engine_shim.service.principal import Principal, Scope
from engine_shim.service.service import Service
from engine_shim.service.shares import Share
from engine_shim.service.spent import Account
from engine_shim.service.tenants import Tenant
from engine_shim.service.token_watch import TokenWatch

BEARER = HTTPBearer(auto_error=False, description="A token of `agent-core token new`.")
NOT_RUNNING: Final = Refusal(
    503, "not_running", "the service does not run: the lifespan of its app has to enter `service.running()`"
)

TraceParent = Annotated[
    str | None, Header(description="The caller's span (W3C Trace Context). An invalid one is passed over.")
]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and their tenant."""

    principal: Principal
    tenant: Tenant
    watch: TokenWatch
    streams: Share
    checks: Account
    scope: ASGIScope = field(repr=False)
    """The request."""

    def held(self) -> AbstractContextManager[asyncio.Event]:
        """While something is held open for them: an event that is set once their token holds no longer."""
        return self.watch.holding(self.principal.id)

    def take(self, share: Share) -> AbstractContextManager[None]:
        """While one more of something is under way for the caller. OverShare where that is too much."""
        return share.take(self.principal.tenant, self.principal.id)

    def allows(self, scope: Scope) -> bool:
        """Return whether they may do what needs the scope."""
        return self.principal.allows(scope)

    @property
    def name(self) -> str:
        """The name of the caller in records."""
        return self.principal.name


NeedsCaller = Callable[..., Awaitable[Caller]]


@dataclass(frozen=True, slots=True)
class Access:
    """Finds the callers of a service."""

    service: Service

    def needs(self, scope: Scope | None) -> Any:
        """Return what a route depends on that only callers of a scope may use: 401 without a token, 403 without the
        scope. None is any caller that the server knows."""
        if self.service.is_open:  # the document says nothing of tokens then, which may be asked for later
            return Security(_LocalAdmission(self, scope))
        return Security(_TokenAdmission(self, scope))

    @property
    def anybody(self) -> Any:
        """What a route depends on that asks for no caller: that the service runs."""
        return Depends(_Running(self.service))

    async def admit(self, request: Request, token: str | None, scope: Scope | None) -> Caller:
        """Return the caller, who has one request more under way until its answer is sent."""
        if not self.service.is_running:
            raise Refused(NOT_RUNNING)
        caller = await self._check(token, scope, request.scope)
        request.scope[HELD].enter_context(caller.take(self.service.shares.requests))
        return caller

    async def _check(self, token: str | None, scope: Scope | None, request: ASGIScope) -> Caller:
        principal = await self.service.find_caller(token)
        if principal is None:
            raise HTTPException(401, "this needs a token that the server knows: `Authorization: Bearer act_…`")
        if scope is not None and not principal.allows(scope):
            raise HTTPException(403, f"the token {principal.name!r} lacks the scope {scope!r}")
        service, checks = self.service, Account(self.service.checks, principal.tenant, principal.id)
        tenant, watch, streams = service.tenant_of(principal), service.watch, service.shares.streams
        return Caller(principal, tenant, watch, streams, checks, request)


@dataclass(frozen=True, slots=True, eq=False)
class _Admission:
    """Admits the callers of a scope."""

    access: Access
    scope: Scope | None

    async def admit(self, request: Request) -> Caller:
        credentials = await BEARER(request)
        return await self.access.admit(request, credentials.credentials if credentials else None, self.scope)


class _LocalAdmission(_Admission):
    """The document says nothing of a token."""

    async def __call__(self, request: Request) -> Caller:
        return await self.admit(request)


class _TokenAdmission(_Admission):
    """The document says that it asks for a token."""

    async def __call__(
        self, request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)]
    ) -> Caller:
        return await self.admit(request)


@dataclass(frozen=True, slots=True, eq=False)
class _Running:
    """Admits anybody, once the service runs."""

    service: Service

    async def __call__(self, request: Request) -> None:
        await self.admit(request)

    async def admit(self, request: Request) -> None:
        if not self.service.is_running:
            raise Refused(NOT_RUNNING)
