"""Spent: how many seconds of heavy work a token, a tenant and all of them together may have within a minute."""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import Final

from engine_shim.errors import EngineError
from engine_shim.service.shares import OverShare

PERIOD_S: Final = 60.0
MOST_SECONDS: Final = 60.0
"""Of one processor, for all who call a server."""
_MICRO: Final = 1_000_000


class OverSpent(OverShare):
    """A caller, their tenant or the server has had its seconds; within a minute there are new ones."""

    def __init__(self, whose: str, most: float, what: str) -> None:
        EngineError.__init__(self, f"{whose} has had its {most:g} seconds of {what} within a minute; try again later")


@dataclass(slots=True)
class Spent:
    """Seconds that were worked for callers within the last minute. One of several tenants may have half of what all may
    have, and a token half of what its tenant may have. Any thread may add to it."""

    what: str
    most: float = MOST_SECONDS
    has_tenants: bool = False
    clock: Callable[[], float] = monotonic
    _entries: deque[tuple[float, str | None, str, int]] = field(default_factory=deque)
    _all: int = 0
    _tenants: Counter[str | None] = field(default_factory=Counter)
    _tokens: Counter[tuple[str | None, str]] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    @property
    def of_tenant(self) -> float:
        """How many seconds a tenant may have."""
        return self.most / 2 if self.has_tenants else self.most

    @property
    def of_token(self) -> float:
        """How many seconds a token may have."""
        return self.of_tenant / 2

    def check(self, tenant: str | None, token: str) -> None:
        """OverSpent where the caller, their tenant or all have had their seconds."""
        with self._lock:
            self._drop_old()
            spent = (
                ("this token", self._tokens[tenant, token], self.of_token),
                ("this tenant", self._tenants[tenant], self.of_tenant),
                ("this server", self._all, self.most),
            )
        for whose, micros, most in spent:
            if micros >= most * _MICRO:
                raise OverSpent(whose, most, self.what)

    def add(self, tenant: str | None, token: str, seconds: float) -> None:
        """Count work that was done for a caller."""
        micros = max(1, round(seconds * _MICRO))
        with self._lock:
            self._entries.append((self.clock(), tenant, token, micros))
            self._count(tenant, token, micros)

    def _drop_old(self) -> None:
        while self._entries and self._entries[0][0] <= self.clock() - PERIOD_S:
            _, tenant, token, micros = self._entries.popleft()
            self._count(tenant, token, -micros)

    def _count(self, tenant: str | None, token: str, micros: int) -> None:
        self._all += micros
        self._tenants[tenant] += micros
        self._tokens[tenant, token] += micros
        if not self._tokens[tenant, token]:
            del self._tokens[tenant, token]


@dataclass(frozen=True, slots=True)
class Account:
    """What one caller has of some `Spent`."""

    spent: Spent
    tenant: str | None
    token: str

    def check(self) -> None:
        """OverSpent where the caller may have no more at present."""
        self.spent.check(self.tenant, self.token)

    def add(self, seconds: float) -> None:
        """Count seconds that were worked for the caller."""
        self.spent.add(self.tenant, self.token, seconds)
