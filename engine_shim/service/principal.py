"""Principal: who calls a server, and what they may do."""

from dataclasses import dataclass
from typing import Final, Literal

Scope = Literal["read", "run", "decide", "admin"]
SCOPES: Final[tuple[Scope, ...]] = ("read", "run", "decide", "admin")


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls: the name that records have, their tenant, and their scopes. `admin` includes all others."""

    id: str
    name: str
    tenant: str | None
    scopes: frozenset[Scope]

    def allows(self, scope: Scope) -> bool:
        """Return whether they may do what needs the scope."""
        return scope in self.scopes or "admin" in self.scopes
