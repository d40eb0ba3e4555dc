"""Steering: goes on with the runs of a store: resumes, stops and looks at them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

from agent_core.errors import DecisionError
from agent_core.journal.control import Decisions, Role
from agent_core.journal.reader import read_run
from agent_core.run.cancellation import require_asyncio
from agent_core.run.control import Stopping, StopSignal, append_decisions
from agent_core.run.event_stream import stream_events
from agent_core.run.events import Event, StreamResult
from agent_core.run.secrets import signing_keys
from agent_core.run.shown_tools import codes_let_go
from agent_core.statuses import STOPPED, RunStatus
from engine_shim.definition.errors import refuse
from engine_shim.definition.load import Workflow, load_workflow
from engine_shim.definition.model import ROOT
from engine_shim.errors import DefinitionError, RunBusy
from engine_shim.intervals import CONTROL_INTERVAL_S
from engine_shim.runs.drive import Job, OnEvent, RunResult
from engine_shim.runs.driving import Driving, OnTaken
from engine_shim.runs.host_check import HostCheck
from engine_shim.runs.results import read_result
from utools.registry import ToolRegistry
from utools.schema.json_value import NotJson, as_json
from utools.signal_name import check_signal

RECOVERY = "recovery"
"""Who resumes a run that a server has left, without a request."""


class Steering(Driving):
    """The runs of a store on one host: resumed, stopped, looked at, and reached by messages."""

    async def resume(
        self,
        run_id: str,
        *,
        decisions: Decisions | None = None,
        by: str = "caller",
        deps: object = None,
        on_taken: OnTaken = None,
        on_event: OnEvent = None,
    ) -> RunResult:
        """Resume a run where its process died, where it waited, or where it was paused.

        A finished run gives its result, and a run that was to be cancelled ends.

        Args:
            run_id: The run's id.
            decisions: A person's decisions on what waits, by (strand, n) as in `RunResult.waiting`.
            by: Who decided.
            deps: An object that the tools get as `context.deps`, as of `run`: what the run had before is not kept.
            on_taken: Called once nothing refuses it.
            on_event: Called with each event, in the event loop.

        Returns:
            The result of the run.

        Raises:
            RunNotFound: The store holds no such run.
            RunBusy: Somebody drives the run at this moment.
            Damaged: Its records are not whole.
            DefinitionError: This host lacks a tool, a model's key or a secret that it needs; or workers drive the runs,
                which no `deps` reach.
            DecisionError: A decision that fits nothing that waits. Nothing was written then.
        """
        self._check_caller(on_event, deps)
        base = await self._runs.find_base(run_id)

        def write(stop: StopSignal) -> Job:
            tape = self._index.load_to_go_on(run_id)
            not_needed = codes_let_go(tape, decisions or {})
            grant = self._grants.of_run(read_run(tape, ROOT))
            refuse(HostCheck(grant).recorded_problems(tape, base, not_needed))
            if decisions:
                self._append_decisions(run_id, decisions, grant.registry, by)
            if by != RECOVERY:
                self.store.forget_takeovers(run_id)
            self._controls.apply_last(run_id, stop, by)
            if self._index.status(run_id) in STOPPED:
                self._index.set_status(run_id, "pending")  # a reader sees now that it goes on
            return self._job_of(run_id, stop, on_event, deps)

        return await self._drive(run_id, write, on_taken)

    def _append_decisions(self, run: str, decisions: Decisions, registry: ToolRegistry, by: str) -> None:
        """Append decisions to a run that a driver is due for from before that on: what ends here in between leaves no
        decided run that nobody drives."""
        status = self._index.status(run)
        if status in STOPPED:
            self._index.set_status(run, "pending")
        redactor, keys = self._secrets.redactor(), signing_keys()
        try:
            append_decisions(self.store.journal, run, decisions, registry=registry, by=by, redactor=redactor, keys=keys)
        except DecisionError:  # nothing was appended
            if status in STOPPED:
                self._index.set_status(run, status)
            raise

    def stream_resumed(
        self, run_id: str, *, decisions: Decisions | None = None, by: str = "caller", deps: object = None
    ) -> AsyncGenerator[Event | StreamResult[RunResult], None]:
        """Yield the events of `resume` as `stream` yields those of `run`.

        Args:
            run_id: The run's id.
            decisions: A person's decisions on what waits, by (strand, n) as in `RunResult.waiting`.
            by: Who decided.
            deps: What the tools of the run get as `context.deps`.
        """
        return stream_events(lambda hear: self.resume(run_id, decisions=decisions, by=by, deps=deps, on_event=hear))

    # ── messages and stopping ─────────────────────────────────────────────────────────────────────

    def add_message(self, run_id: str, content: str, *, role: Role = "user", by: str = "caller") -> None:
        """Add a message to a run, whichever process drives it: the next question of one of its agents has it.

        Args:
            run_id: The run's id.
            content: The text of the message.
            role: Whose message it is.
            by: Who sent it.

        Raises:
            RunNotFound: The store holds no such run.
            DecisionError: The run has ended.
            DefinitionError: The text is empty.
        """
        if not content:  # many vendors refuse a question that has such a message
            raise DefinitionError("must be a text that is not empty", where="content", value=content)
        text = self._secrets.redactor().text(content.encode("utf-8", "backslashreplace").decode())
        self._controls.append_message(run_id, {"role": role, "content": text}, by)
        self._lease_keeper.notify(run_id, "message")

    def send_signal(self, run_id: str, name: str, data: Any = None, *, by: str = "caller") -> bool:
        """Send a signal to a run, whichever process drives it: the first node takes it that waits, or comes to wait,
        for one of this name.

        Args:
            run_id: The run's id.
            name: The signal's name.
            data: JSON that the node gives.
            by: Who sent it.

        Returns:
            Whether the run waits for it without a driver, and needs `resume`.

        Raises:
            RunNotFound: The store holds no such run.
            DecisionError: The run has ended.
            DefinitionError: A name that no signal can have, or data that is not JSON.
        """
        check_signal(name)
        try:
            plain = self._secrets.redactor().value(as_json(data))
        except NotJson as error:
            raise DefinitionError(f"the data of a signal must be JSON: {error}", where="data") from None
        self._controls.append_signal(run_id, name, plain, by)
        self._lease_keeper.notify(run_id, "message")
        return self.has_event(run_id)

    def has_event(self, run_id: str) -> bool:
        """Return whether a run waits without a driver for a time or a signal that has come.

        Args:
            run_id: The run's id.
        """
        return self._index.status(run_id) == "waiting" and self._index.has_event(run_id)

    async def pause(self, run_id: str, *, by: str = "caller") -> RunStatus:
        """Let what is under way in a run be answered, and begin nothing more until it is resumed.

        It reaches the run in whichever process drives it.

        Args:
            run_id: The run's id.
            by: Who asked for it.

        Returns:
            Its status, which may still be `running` when a call takes long.

        Raises:
            RunNotFound: The store holds no such run.
            DecisionError: The run has ended.
        """
        return await self._stop(run_id, "pause", by)

    async def cancel(self, run_id: str, *, by: str = "caller") -> RunStatus:
        """End a run for good: what is under way is aborted, what waits is withdrawn.

        It reaches the run in whichever process drives it.

        Args:
            run_id: The run's id.
            by: Who asked for it.

        Returns:
            Its status.

        Raises:
            RunNotFound: The store holds no such run.
            DecisionError: The run has ended.
        """
        return await self._stop(run_id, "cancel", by)

    async def _stop(self, run_id: str, how: Stopping, by: str) -> RunStatus:
        require_asyncio()
        await self._runs.run_blocking(self._controls.append, run_id, how, by)
        self._lease_keeper.notify(run_id, how)
        while not await self._controls.has_reached_driver(run_id, how):
            with suppress(RunBusy):
                await self._stop_here(run_id, how)
                break
            await asyncio.sleep(CONTROL_INTERVAL_S)
        return await self._runs.status(run_id)

    async def _stop_here(self, run_id: str, how: Stopping) -> None:
        """Stop a run without a driver."""
        if how == "cancel" or self._has_workers:

            def write(stop: StopSignal) -> Job:
                stop.request(how)
                return self._job_of(run_id, stop)

            await self._drive(run_id, write)
            return
        async with self._lease_keeper.driving(run_id):
            await self._runs.set_status(run_id, await self._runs.final_status(run_id) or "paused")

    # ── looking ───────────────────────────────────────────────────────────────────────────────────

    def workflow(self, run_id: str) -> Workflow:
        """Return the workflow as the run began with it.

        Args:
            run_id: The run's id.

        Raises:
            RunNotFound: The store holds no such run.
        """
        tape, base = self._index.load(run_id)
        return load_workflow(read_run(tape, ROOT).definition, base=base)

    def status(self, run_id: str) -> RunStatus:
        """Return a run's status: pending, running, or as in its result.

        Args:
            run_id: The run's id.

        Raises:
            RunNotFound: The store holds no such run.
        """
        return self._index.status(run_id)

    def result(self, run_id: str) -> RunResult | None:
        """Return the result of a run that has ended or waits, by its journal alone; None while it continues.

        Args:
            run_id: The run's id.

        Raises:
            RunNotFound: The store holds no such run.
            Damaged: Its records are not whole.
        """
        tape, _ = self._index.load(run_id)
        return read_result(run_id, tape, self.store.clock.write_now())
