"""MemoryRunStore: runs that end with their process."""

import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_core.statuses import ENDED, OPEN, ListedStatus, RunStatus
from engine_shim.store.clock import StoreClock
from engine_shim.store.entries import ALL, RunEntry, RunFilter, place_of
from engine_shim.store.leases import Leases, MemoryLeases

if TYPE_CHECKING:
    from agent_core.journal.record import Row


class MemoryRunStore:
    """Runs of this process, gone with it."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        from agent_core.journal.memory import MemoryJournal

        self.journal: MemoryJournal = MemoryJournal()
        self.leases: Leases = MemoryLeases(clock=clock)
        self.clock = StoreClock.of_machine(clock)
        self._entries: dict[str, RunEntry] = {}
        self._submitters: dict[str, str] = {}
        self._traces: dict[str, str] = {}
        self._due: dict[str, str | None] = {}

    def save(self, entry: RunEntry) -> None:
        older = self._entries.get(entry.run)
        if older is not None and older.status in ENDED and older.status != entry.status:
            return
        self._entries[entry.run] = entry
        if entry.submitter is not None:
            self.save_submission(entry.run, entry.submitter)

    def entry(self, run: str) -> RunEntry | None:
        entry = self._entries.get(run)
        return None if entry is None else replace(entry, submitter=self._submitters.get(run))

    def entries(self, wanted: RunFilter = ALL) -> list[RunEntry]:
        chosen = filter(wanted.admits, self._entries.values())
        return sorted(chosen, key=place_of, reverse=True)[: wanted.limit]

    def count_statuses(self, host: str, statuses: Collection[RunStatus]) -> Counter[str]:
        return Counter(entry.status for entry in self.entries(RunFilter(statuses, host=host)))

    def find(self, beginning: str, *, limit: int) -> list[str]:
        runs = {*self._entries, *self.journal.runs()}
        return sorted(run for run in runs if run.startswith(beginning))[:limit]

    def tail(self, run: str, after: int = 0) -> "list[tuple[int, Row]]":
        return self.journal.tail(run, after)

    def poll_status(self, runs: Collection[str]) -> dict[str, tuple[ListedStatus, int]]:
        found = [entry for run in runs if (entry := self._entries.get(run))]
        return {entry.run: (entry.status, max((n for n, _ in self.tail(entry.run)), default=0)) for entry in found}

    def list_news(self, after: int) -> dict[str, int]:
        return {}

    def list_orphaned(self, host: str) -> list[str]:
        found = [
            each.run for each in reversed(self.entries(RunFilter(OPEN, host=host))) if each.run in self._submitters
        ]
        held = self.leases.held(found)
        return [run for run in found if run not in held]

    def save_due(self, run: str, due: str | None) -> None:
        self._due[run] = due

    def due(self, run: str) -> str | None:
        return self._due.get(run)

    def list_due(self, host: str, now: str) -> list[str]:
        waiting = [each.run for each in self.entries(RunFilter(("waiting",), host=host))]
        due = [(at, run) for run in waiting if run in self._submitters and (at := self._due.get(run)) and at <= now]
        return [run for _, run in sorted(due)]

    def save_submission(self, run: str, submitter: str) -> None:
        self._submitters.setdefault(run, submitter)

    def submitter(self, run: str) -> str | None:
        return self._submitters.get(run)

    def save_trace(self, run: str, traceparent: str) -> None:
        self._traces.setdefault(run, traceparent)

    def trace(self, run: str) -> str | None:
        return self._traces.get(run)

    def takeovers(self, run: str) -> int:
        return 0  # its runs are gone with their process

    def add_takeover(self, run: str) -> None:
        pass

    def forget_takeovers(self, run: str) -> None:
        pass

    def forget(self, run: str) -> bool:
        journaled = self.journal.delete(run)
        self._submitters.pop(run, None)
        self._traces.pop(run, None)
        self._due.pop(run, None)
        return self._entries.pop(run, None) is not None or journaled

    def close(self) -> None:
        self.journal.close()
