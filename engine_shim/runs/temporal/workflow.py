"""AgentRun: the workflow of one run, from where its tape ends to its outcome. DrivenRun: what its kinds share."""

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from agent_core.errors import AgentCoreError, Lost
from agent_core.journal.chain import check_chains
from agent_core.journal.control import due_of
from agent_core.journal.recorder import Ended, continue_run
from agent_core.journal.strand import Run
from agent_core.run.control import Stopping, StopSignal
from agent_core.run.driver import LiveDriver
from agent_core.statuses import ENDED
from engine_shim.definition.model import ROOT
from engine_shim.flow.outcome import FlowOutcome
from engine_shim.runs.loops import LOOPS
from engine_shim.runs.temporal.backend import TemporalBackend, perform
from engine_shim.runs.temporal.rows import Rows
from engine_shim.runs.temporal.settings import MAX_DRIVES, WORKFLOW
from engine_shim.runs.temporal.timeouts import task_timeout


class DrivenRun:
    """Drives a run whose beginning is in the journal, rests while it waits or is paused, and ends with it.

    Decisions, messages and requests are in the journal before a signal comes; the signal says that it is to be read.
    """

    def __init__(self) -> None:
        self._status, self._waiting = "pending", list[Any]()
        self._stop = StopSignal()
        self._is_woken = False
        self._outcome: FlowOutcome | None = None

    @workflow.signal
    def wake(self, word: str) -> None:
        """Something was written into the run's journal: decisions, a message, a request to pause, cancel or resume.

        A pause wakes nobody. It holds until the run has come to rest by it and is woken after that.
        """
        self._is_woken = self._is_woken or word != "pause"
        if word in ("pause", "cancel"):
            self._stop.request("cancel" if word == "cancel" else "pause")
        else:
            if self._status == "running":
                self._stop.note_messages()

    @workflow.query
    def status(self) -> dict[str, Any]:
        """{status, waiting, events}: how the run is, what waits in it, and how long its history is."""
        return {
            "status": self._status,
            "waiting": self._waiting,
            "events": workflow.info().get_current_history_length(),
        }

    async def _drive_to_end(self, run: str) -> str:
        """Drive a run, however often it rests, until it has ended; gives its status."""
        while True:
            self._is_woken, self._status = False, "running"
            self._status = await self._drive_on(run)
            if self._status == "running":
                continue
            if self._status in ENDED:
                return self._status
            if self._stop.requested == "cancel":
                await perform("withdraw", run)
                continue
            await self._wait_until_woken(run, due_of(self._waiting))
            self._stop = StopSignal(None if self._stop.requested == "pause" else self._stop.requested)
            if workflow.info().is_continue_as_new_suggested():
                self._continue_as_new(run)

    async def _wait_until_woken(self, run: str, due: str | None) -> None:
        """Wait for a signal, or until nodes wait no longer, unless the run is paused then."""
        if due is not None and self._status == "waiting":
            left = max(datetime.fromisoformat(due) - workflow.now(), timedelta(milliseconds=1))
            with suppress(TimeoutError):
                return await workflow.wait_condition(lambda: self._is_woken, timeout=left)
            if not await perform("is_paused", run):
                return None
        return await workflow.wait_condition(lambda: self._is_woken)

    async def _drive_on(self, run: str) -> str:
        """Drive from the tape until the run comes to rest, and anew where another driver was first; gives its status,
        which is `running` where something has come meanwhile for which it waits."""
        for _ in range(MAX_DRIVES):
            with suppress(Lost):
                return await self._drive(run)
            workflow.logger.info("run %s: another driver wrote first; driving again from the tape", run)
        raise ApplicationError(f"run {run}: lost {MAX_DRIVES} races against other drivers", non_retryable=True)

    async def _drive(self, run: str) -> str:
        loaded: Rows = await perform("load", run)
        tape, stop = check_chains(run, loaded.tape()), self._stop
        backend = TemporalBackend(run, tape, stop)
        driver = LiveDriver(backend, stop)
        walk = asyncio.create_task(driver.run(continue_run(Run(run, tape, LOOPS), ROOT)))
        await self._wait_for(walk, backend)
        ended = await walk
        if not (isinstance(ended, Ended) and isinstance(ended.outcome, FlowOutcome)):
            raise ApplicationError(f"run {run} is no workflow's: {ended}", non_retryable=True)
        self._outcome = ended.outcome
        status, self._waiting = ended.outcome.output["status"], list(ended.outcome.waiting)
        if status == "paused":
            self._is_woken = False
        return await backend.rest(status, [[each["strand"], each["n"]] for each in self._waiting])

    async def _wait_for(self, walk: "asyncio.Task[Any]", backend: TemporalBackend) -> None:
        """Wait until a walk has ended; where the history is long, continue in a new one once nothing is under way."""
        while not walk.done():
            try:
                await workflow.wait_condition(lambda: walk.done() or backend.is_held)
            except asyncio.CancelledError:  # by somebody at Temporal
                self._stop.request("cancel")
            if backend.is_held:
                self._continue_as_new(backend.run)

    def _continue_as_new(self, run: str) -> None:
        workflow.continue_as_new(args=self._next_args(run), task_timeout=task_timeout())

    def _next_args(self, run: str) -> list[Any]:
        """Return what the next history of the same run is given."""
        raise NotImplementedError


@workflow.defn(name=WORKFLOW, failure_exception_types=[AgentCoreError])
class AgentRun(DrivenRun):
    """The workflow of a run that a client has written and handed in."""

    @workflow.run
    async def run(self, run: str, word: Stopping | None = None) -> str:
        """Returns the run's status when it has ended. `word` is what a history before this one was told."""
        if word is not None:
            self._stop.request(word)
        return await self._drive_to_end(run)

    def _next_args(self, run: str) -> list[Any]:
        return [run, self._stop.requested]
