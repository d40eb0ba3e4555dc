"""AsyncRunStore: a run store as an event loop uses it: what may wait for a network is done in a thread of the store."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from agent_core.journal.record import Row, Tape
from agent_core.run.blocking import run_blocking
from agent_core.statuses import EndedStatus, RunStatus
from engine_shim.store.entries import RunEntry
from engine_shim.store.index import RunIndex
from engine_shim.store.leases import Signal
from engine_shim.store.run_store import RunStore

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AsyncRunStore:
    """The verbs of a run store and of its index. RunNotFound for a run that the store does not hold.

    A caller who is cancelled leaves the step to its end.
    """

    store: RunStore

    async def run_blocking(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what a step of several parts gives, which may use the store as it likes."""
        return await run_blocking(self.store.journal, step, *args, **kwargs)

    # ── journal ───────────────────────────────────────────────────────────────────────────────────

    async def load(self, run: str) -> Tape:
        """Return the rows of a run, none for one that the journal does not hold."""
        return await self.run_blocking(self.store.journal.load, run)

    async def tail(self, run: str, after: int = 0) -> list[tuple[int, Row]]:
        """Return the rows of a run behind a position, each with its own."""
        return await self.run_blocking(self.store.tail, run, after)

    # ── index ─────────────────────────────────────────────────────────────────────────────────────

    @property
    def _index(self) -> RunIndex:
        return RunIndex(self.store)

    async def find_base(self, run: str) -> Path:
        """Return the directory that a run's relative paths start from. Damaged where its records are not whole."""
        _, base = await self.run_blocking(self._index.load, run)
        return base

    async def entry(self, run: str) -> RunEntry | None:
        return await self.run_blocking(self.store.entry, run)

    async def has_started(self, run: str) -> bool:
        """Return whether the store holds the beginning of this run."""
        return await self.run_blocking(self._index.has_started, run)

    async def status(self, run: str) -> RunStatus:
        return await self.run_blocking(self._index.status, run)

    async def final_status(self, run: str) -> EndedStatus | None:
        """Return how a run ended, by its journal; None while it has not."""
        return await self.run_blocking(self._index.final_status, run)

    async def set_status(self, run: str, status: RunStatus) -> None:
        await self.run_blocking(self._index.set_status, run, status)

    async def note_let_go(self, run: str) -> None:
        await self.run_blocking(self._index.note_let_go, run)

    async def last_control(self, run: str) -> str | None:
        """Return the last request about a run: pause, resume or cancel; None when there was none."""
        return await self.run_blocking(self._index.last_control, run)

    # ── beside the runs ───────────────────────────────────────────────────────────────────────────

    async def holder(self, run: str) -> str | None:
        """Return the driver that has the lease on a run; None without one."""
        return await self.run_blocking(self.store.leases.holder, run)

    async def signal(self, run: str, signal: Signal) -> bool:
        """Signal a run's driver; False without one."""
        return await self.run_blocking(self.store.leases.signal, run, signal)

    async def takeovers(self, run: str) -> int:
        """Return how often a run was taken over since it had a new record."""
        return await self.run_blocking(self.store.takeovers, run)

    async def add_takeover(self, run: str) -> None:
        await self.run_blocking(self.store.add_takeover, run)

    async def forget_takeovers(self, run: str) -> None:
        await self.run_blocking(self.store.forget_takeovers, run)
