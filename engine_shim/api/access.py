"""Access: who calls, by the bearer token of the request, and what the scopes of that allow."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Header, HTTPException, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from engine_shim.api.problems import HELD
from engine_shim.api.refusal import Refusal, Refused
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

            async def find_local(request: Request) -> Caller:
                return await self._admit(request, await BEARER(request), scope)

            return Security(find_local)

        async def find(
            request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)]
        ) -> Caller:
            return await self._admit(request, credentials, scope)

        return Security(find)

    @property
    def anybody(self) -> Any:
        """What a route depends on that asks for no caller: that the service runs."""

        async def check_running() -> None:
            self._check_running()

        return Depends(check_running)

    def _check_running(self) -> None:
        if not self.service.is_running:
            raise Refused(NOT_RUNNING)

    async def _admit(
        self, request: Request, credentials: HTTPAuthorizationCredentials | None, scope: Scope | None
    ) -> Caller:
        """Return the caller, who has one request more under way until its answer is sent."""
        self._check_running()
        caller = await self._check(credentials.credentials if credentials else None, scope)
        request.scope[HELD].enter_context(caller.take(self.service.shares.requests))
        return caller

    async def _check(self, token: str | None, scope: Scope | None) -> Caller:
        principal = await self.service.find_caller(token)
        if principal is None:
            raise HTTPException(401, "this needs a token that the server knows: `Authorization: Bearer act_…`")
        if scope is not None and not principal.allows(scope):
            raise HTTPException(403, f"the token {principal.name!r} lacks the scope {scope!r}")
        service, checks = self.service, Account(self.service.checks, principal.tenant, principal.id)
        return Caller(principal, service.tenant_of(principal), service.watch, service.shares.streams, checks)
