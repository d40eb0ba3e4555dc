"""Who calls, and what they may do: by the token of the HTTP request, or by the standard streams."""

from dataclasses import dataclass
from typing import Any

from mcp.server import ServerRequestContext
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST

from engine_shim.service.principal import Principal, Scope
from engine_shim.service.service import Service
from engine_shim.service.tenants import Tenant

LONGEST_NAME = 60
Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, their tenant, and their name in records of what they do and decide."""

    principal: Principal
    tenant: Tenant
    by: str

    def require(self, *scopes: Scope) -> None:
        """MCPError unless the caller has one of the scopes."""
        if not any(self.principal.allows(scope) for scope in scopes):
            message = f"the token {self.principal.name!r} lacks the scope {' or '.join(scopes)}"
            raise MCPError(INVALID_REQUEST, message)


async def find_caller(service: Service, context: Context) -> Caller:
    """Return the caller of a request. MCPError for an unknown one."""
    token = get_access_token()
    principal = await service.find_caller(token.token if token else None)
    if principal is None:
        raise MCPError(INVALID_REQUEST, "this needs a token that the server knows")
    client = context.session.client_params
    name = "".join(filter(str.isprintable, client.client_info.name))[:LONGEST_NAME] if client else ""
    by = f"{principal.name} ({name}, MCP)" if name else f"{principal.name} (MCP)"
    return Caller(principal, service.tenant_of(principal), by)


@dataclass(frozen=True, slots=True)
class ServiceTokens:
    """The tokens of a service, as the library wants to verify them."""

    service: Service

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what is known of a token; None for one that does not hold."""
        principal = await self.service.find_caller(token)
        if principal is None:
            return None
        return AccessToken(token=token, client_id=principal.id, scopes=sorted(principal.scopes))
