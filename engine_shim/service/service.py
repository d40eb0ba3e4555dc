"""Service: what a server of a host is, whatever asks it: its tenants, its tokens, and the work in its background."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from agent_core.errors import JournalAway
from agent_core.outputs import Json
from agent_core.run.blocking import run_blocking
from engine_shim.host.config import HostConfig
from engine_shim.intervals import RECOVERY_INTERVAL_S, SOURCE_INTERVAL_S
from engine_shim.service.metrics import open_metrics
from engine_shim.service.principal import Principal
from engine_shim.service.shares import Shares
from engine_shim.service.spent import Spent
from engine_shim.service.tenants import Tenant, Tenants
from engine_shim.service.timers import Timers
from engine_shim.service.token_watch import TokenWatch
from engine_shim.service.tokens import Tokens
from engine_shim.service.tool_review import HostOnly, ToolReview
from engine_shim.service.worker_pool import WorkerPool
from engine_shim.telemetry.telemetry import Telemetry
from utools.databases.store_address import StoreAddress

GRACE_S: Final = 20.0
"""How long what is under way may take when the server ends."""
LOCAL: Final = Principal("local", "local", None, frozenset({"admin"}))
"""Who calls a server that asks for no token."""
log = logging.getLogger("engine_shim")


@dataclass(slots=True)
class Service:
    """A host that is served. With `is_open` it asks for no token, and any caller may do anything; with
    `closes_by_token` until there is a token."""

    tenants: Tenants
    tokens: Tokens
    is_open: bool = False
    closes_by_token: bool = False
    grace: float = GRACE_S
    is_running: bool = False
    is_closing: bool = False
    telemetry: Telemetry = field(default_factory=Telemetry)
    store_failures: int = 0
    """How often background work failed because the store was away."""
    shares: Shares = field(default_factory=lambda: Shares.of_server(has_tenants=False))
    reviews: WorkerPool = field(default_factory=lambda: WorkerPool(1))
    watch: TokenWatch = field(init=False)
    checks: Spent = field(init=False)
    """Seconds in which texts that came over HTTP were checked."""
    _work: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.watch = TokenWatch(self.tokens, self._find_over)
        self.checks = Spent("checks", has_tenants=len(self.tenants) > 1)

    @classmethod
    def of_host(
        cls,
        config: HostConfig,
        store: StoreAddress,
        *,
        model: str | None = None,
        is_open: bool = False,
        telemetry: Telemetry | None = None,
    ) -> "Service":
        """Return the service of a host. DefinitionErrors for what is wrong with its configuration, workflows and
        agents.

        Without `telemetry` its runs are counted for Prometheus, and told to the providers that the program has set up.
        """
        telemetry = telemetry or Telemetry(metrics=open_metrics())
        shares = Shares.of_server(has_tenants=bool(config.tenants))
        tenants = Tenants(config, store, model, telemetry, shares)
        return cls(tenants, Tokens(tenants[None].store.database), is_open, telemetry=telemetry, shares=shares)

    async def find_caller(self, token: str | None) -> Principal | None:
        """Return the caller with this token; None if the server does not know it."""
        if await self.check_open():
            return LOCAL
        found = await run_blocking(self.tokens, self.tokens.find, token) if token else None
        return found if found is not None and found.tenant in self.tenants else None

    async def check_open(self) -> bool:
        """Return whether the server asks for no token; the first token closes it at once, whichever process makes
        it."""
        if self.is_open and self.closes_by_token:
            self.is_open = not await run_blocking(self.tokens, self.tokens.any_existed)
        return self.is_open

    def find_clock_difference(self) -> float | None:
        """Return by how many seconds this machine's clock is ahead of that of its stores, where it is most; None where
        they agree within a second."""
        found = [seconds for each in self.tenants.values() if (seconds := each.clock.find_difference()) is not None]
        return max(found, key=abs, default=None)

    def _find_over(self, held: set[str]) -> set[str]:
        """Return those of the tokens by id that hold no longer; who called without one has none once the server is
        closed."""
        local = held & {LOCAL.id}
        is_closed = not self.is_open or (self.closes_by_token and self.tokens.any_existed())
        return self.tokens.find_over(held - local) | (local if is_closed else set())

    def tenant_of(self, caller: Principal) -> Tenant:
        """Return the tenant whose runs, conversations and tools a caller sees."""
        return self.tenants[caller.tenant]

    async def review_tools(self, caller: Principal, digest: str | None = None) -> Json:
        """Return what pinned sources offer otherwise than was approved; with a `digest`, that is approved: {approved,
        restart_needed}. HostOnly for a tenant's caller, ChangedMeanwhile, DefinitionError for a broken lock file."""
        if caller.tenant is not None:
            raise HostOnly
        review = ToolReview(self.tenants[None].config)
        if digest is None:
            return await self.reviews.run(review.find_changes)
        approved = await self.reviews.run(review.approve, digest)
        return {"approved": approved, "restart_needed": approved > 0}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take up what an earlier process has left, and serve until the end of the block; it may serve again. All that
        a first act needs is built before."""
        self.is_closing = False
        for tenant in self.tenants.values():
            tenant.runs.driven.open()
            await tenant.engine.warm_up()
        self._work = [asyncio.create_task(self._keep_on(work)) for work in self._background()]
        self.is_running = True
        try:
            yield
        finally:
            self.is_running = False
            self.let_go()
            for task in self._work:
                task.cancel()
            await asyncio.gather(*self._work, return_exceptions=True)
            await asyncio.gather(*(tenant.close(self.grace) for tenant in self.tenants.values()))

    def let_go(self) -> None:
        """Begin to end: take no more runs, and let those go who follow or wait for one."""
        self.is_closing = True
        for tenant in self.tenants.values():
            tenant.runs.let_go()

    def _background(self) -> Iterator[Callable[[], Awaitable[None]]]:
        """Yield the tasks of a server while it serves."""
        yield self._recover_forever
        yield self.watch.run_forever
        for tenant in self.tenants.values():
            if tenant.engine.registry._left_out:
                yield partial(_take_up_forever, tenant)
            yield tenant.triggers.run_forever
            yield Timers(tenant.runs).run_forever
            if tenant.store.clock.is_remote:
                yield tenant.clock.run_forever
            yield from (sender.run_forever for sender in tenant.senders)

    async def _recover_forever(self) -> None:
        while True:
            for tenant in self.tenants.values():
                if taken := await tenant.runs.recover():
                    log.info("resumed %d runs that another process had left", taken)
            await asyncio.sleep(RECOVERY_INTERVAL_S)

    async def _keep_on(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work until it is cancelled; begin it again after an error, such as a store that is away."""
        while True:
            try:
                await work()
            except JournalAway as error:
                self.store_failures += 1
                log.warning("the background work of the server waits for its store: %s", error)
            except Exception:  # one that only the log can be told of
                log.exception("the background work of the server failed, and begins again")
            await asyncio.sleep(RECOVERY_INTERVAL_S)


async def _take_up_forever(tenant: Tenant) -> None:
    """Take up the sources that are back, with the workflows that need them. Agents that need them need a restart."""
    while tenant.engine.registry._left_out:
        await asyncio.sleep(SOURCE_INTERVAL_S)
        await asyncio.to_thread(tenant.take_up_again)
