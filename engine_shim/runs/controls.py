"""RunControls: messages, signals, and requests to pause, cancel or resume a run: in its journal, and to its driver."""

import asyncio
from typing import Any, Final

from agent_core.errors import DecisionError
from agent_core.journal.control import Control, Decisions
from agent_core.outputs import Json
from agent_core.run.control import StopSignal, append_control, append_decisions, append_message, append_signal
from agent_core.run.secrets import Secrets, signing_keys
from agent_core.statuses import ENDED
from engine_shim.intervals import CONTROL_INTERVAL_S
from engine_shim.store.async_store import AsyncRunStore
from engine_shim.store.index import RunIndex
from engine_shim.store.leases import Signal
from engine_shim.store.run_store import RunStore

PATIENCE_S: Final = 10.0
"""How long a request waits for the run's driver to obey it."""


def record_decisions(store: RunStore, secrets: Secrets, run: str, decisions: Decisions, *, by: str) -> None:
    """Record decisions on what waits in an agent's run that another program drives: its next attempt goes on with them.
    DecisionError, with nothing written, for a decision that fits nothing that waits."""
    keys, redactor = signing_keys(), secrets.redactor()
    append_decisions(store.journal, run, decisions, registry=None, by=by, redactor=redactor, keys=keys)


class RunControls:
    """The requests about the runs of a store. RunNotFound for a run that it does not hold."""

    def __init__(self, store: RunStore) -> None:
        self._store, self._index = store, RunIndex(store)
        self._runs = AsyncRunStore(store)

    def append(self, run: str, control: Control, by: str) -> None:
        """Write the request into the run's journal. DecisionError for a run that has ended."""
        self._check_goes_on(run)
        append_control(self._store.journal, run, control, by=by, keys=signing_keys())

    def append_message(self, run: str, message: Json, by: str) -> None:
        """Write a message, {role, content}, into the run's journal. DecisionError for a run that has ended."""
        self._check_goes_on(run)
        append_message(self._store.journal, run, message, by=by, keys=signing_keys())
        self._store.leases.signal(run, "message")

    def append_signal(self, run: str, name: str, data: Any, by: str) -> None:
        """Write a signal into the run's journal. DecisionError for a run that has ended."""
        self._check_goes_on(run)
        append_signal(self._store.journal, run, name, data, by=by, keys=signing_keys())
        self._store.leases.signal(run, "message")

    def _check_goes_on(self, run: str) -> None:
        if status := self._index.final_status(run):
            raise DecisionError(f"run {run!r} has ended as {status}")
        self._index.load_to_go_on(run)  # else what was changed would be signed

    def apply_last(self, run: str, stop: StopSignal, by: str) -> None:
        """Let a paused run continue; a run that was cancelled while its driver did not see the signal still ends."""
        if self._index.final_status(run):
            return
        if self._index.last_control(run) == "cancel":
            stop.request("cancel")
        elif self._index.status(run) == "paused":
            self.append(run, "resume", by)

    async def has_reached_driver(self, run: str, signal: Signal) -> bool:
        """Signal the run's driver to stop it, and wait a while until it releases the run.

        False when a run has no driver and has not stopped: its driver may have died, or have released it without
        seeing the signal.
        """
        looks = int(PATIENCE_S / CONTROL_INTERVAL_S)
        if not await self._runs.signal(run, signal):
            return await self._has_stopped(run, signal)
        for _ in range(looks):
            if await self._runs.holder(run) is None:
                return await self._has_stopped(run, signal)
            await asyncio.sleep(CONTROL_INTERVAL_S)
        return True

    async def _has_stopped(self, run: str, signal: Signal) -> bool:
        status = await self._runs.status(run)
        return status in ENDED or (signal == "pause" and status == "paused")
