"""Shares: how much of a server one token, one tenant and all of them together may have at a time."""

import resource
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from engine_shim.errors import EngineError

MOST_RUNS: Final = 2000
"""Runs that are driven or wait for their turn in one process."""
MOST_REQUESTS: Final = 2000
MOST_STREAMS: Final = 2000
MOST_SESSIONS: Final = 1000
"""Sessions of MCP, which cost memory."""
FOR_OTHERS: Final = 64
"""Descriptors that a server needs for anything but connections: stores, sources, models."""


class OverShare(EngineError):
    """A caller, their tenant or the server has as much under way as it may have; a later attempt may find room."""

    def __init__(self, whose: str, most: int, what: str) -> None:
        super().__init__(f"{whose} has {most} {what} under way, and may have no more at a time; try again later")


class TooManyRuns(OverShare):
    """As many runs as there may be are under way."""


@dataclass(slots=True)
class Share:
    """How many of something are under way. A token may have half of what its tenant may have, and one of several
    tenants half of what all may have."""

    what: str
    most: int
    has_tenants: bool = False
    error: type[OverShare] = OverShare
    _all: int = 0
    _tenants: Counter[str | None] = field(default_factory=Counter)
    _tokens: Counter[tuple[str | None, str]] = field(default_factory=Counter)

    @property
    def of_tenant(self) -> int:
        """How many a tenant may have."""
        return self.most // 2 if self.has_tenants else self.most

    @property
    def of_token(self) -> int:
        """How many a token may have."""
        return max(1, self.of_tenant // 2)

    def is_full(self, tenant: str | None, token: str) -> bool:
        """Return whether a token has as many as it may have."""
        return self._tokens[tenant, token] >= self.of_token

    def check(self, tenant: str | None, token: str | None) -> None:
        """OverShare where one more is too much; without a token only for the tenant and for all."""
        if token is not None and self.is_full(tenant, token):
            raise self.error("this token", self.of_token, self.what)
        if self._tenants[tenant] >= self.of_tenant:
            raise self.error("this tenant", self.of_tenant, self.what)
        if self._all >= self.most:
            raise self.error("this server", self.most, self.what)

    def add(self, tenant: str | None, token: str | None, number: int = 1) -> None:
        """Count one that begins, or with -1 one that ends."""
        self._all += number
        self._tenants[tenant] += number
        if token is not None:
            self._tokens[tenant, token] += number
            if not self._tokens[tenant, token]:
                del self._tokens[tenant, token]

    @contextmanager
    def take(self, tenant: str | None, token: str) -> Iterator[None]:
        """Have one more within the block. OverShare where that is too much."""
        self.check(tenant, token)
        self.add(tenant, token)
        try:
            yield
        finally:
            self.add(tenant, token, -1)


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of one server."""

    runs: Share
    requests: Share
    streams: Share
    sessions: Share

    @classmethod
    def of_server(cls, *, has_tenants: bool) -> "Shares":
        """Return those of a server with or without tenants. Streams leave half of the descriptors to requests."""
        open_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        unlimited = open_files == resource.RLIM_INFINITY
        streams = MOST_STREAMS if unlimited else max(4, min(MOST_STREAMS, (open_files - FOR_OTHERS) // 2))
        return cls(
            Share("runs", MOST_RUNS, has_tenants, TooManyRuns),
            Share("requests", MOST_REQUESTS, has_tenants),
            Share("streams", streams, has_tenants),
            Share("sessions of MCP", MOST_SESSIONS, has_tenants),
        )
