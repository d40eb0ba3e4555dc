"""RunDriver: drives a run from its journal to its result, one layer around another: limit, stop, drive once."""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import Any, Protocol, TypeVar

from agent_core.errors import Abandoned
from agent_core.journal.operations import Spec
from agent_core.journal.record import Row, Tape
from agent_core.journal.recorder import Ended
from agent_core.outputs import Json, RunError, WaitingCall
from agent_core.run.control import StopSignal, cancel_pending
from agent_core.run.driver import drive
from agent_core.run.event_listener import EventListener
from agent_core.run.events import Event
from agent_core.run.executor import Executor
from agent_core.run.inbox import Inbox
from agent_core.run.retries import patience_of_host, retry_until_available
from agent_core.run.row_listener import ActListener, AnswerListener, Observe
from agent_core.run.secrets import signing_keys
from agent_core.statuses import ENDED, RunStatus
from engine_shim.definition.model import ROOT
from engine_shim.flow.branch import is_of_node
from engine_shim.flow.outcome import FlowOutcome
from engine_shim.intervals import SIGNAL_INTERVAL_S
from engine_shim.runs.prepare import Preparer
from engine_shim.store.entries import RunEntry
from engine_shim.store.index import RunIndex
from engine_shim.store.run_store import RunStore
from utools.limiter import Line

OnEvent = Callable[[Event], None] | None
Watch = Callable[[str], AnswerListener]
"""Gives what is told of a run, by its id."""
T = TypeVar("T")

_NOT_IN_JSON = ("messages", "nodes", "declared")


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run of a workflow.

    Attributes:
        run_id: The run's id.
        status: completed, failed, cancelled, waiting or paused.
        outputs: The outputs of the nodes by their ids, and those that the definition declares, which come first where
            they are called alike.
        path: The ids of the nodes that were visited, in their order.
        waiting: What it waits for: calls with their (strand, n), for the decisions of `Engine.resume`.
        journal: The head (hex) and the count of its records.
        error: {kind, message, …} of a run that failed, else None.
        messages: The messages that its agents have added to the conversation.
        nodes: The outputs of the nodes alone.
        declared: The outputs that the definition declares alone; None if it declares none.

    Example:
        ```python
        from engine_shim import Engine, RunResult

        flow = {"id": "sum", "nodes": [{"id": "add", "tool": "calculator", "config": {"expression": "2 + 3"}}]}
        result = Engine(store="runs.db").run_sync(flow)
        assert isinstance(result, RunResult)
        assert (result.status, result.path) == ("completed", ["add"])
        ```
    """

    run_id: str
    status: RunStatus
    outputs: dict[str, Any]
    path: list[str]
    waiting: list[WaitingCall]
    journal: dict[str, Any]
    error: RunError | None
    messages: list[dict[str, Any]] = field(default_factory=list, repr=False)
    nodes: dict[str, Any] = field(default_factory=dict, repr=False)
    declared: dict[str, Any] | None = field(default=None, repr=False)

    @classmethod
    def _from_ended(cls, ended: Ended) -> "RunResult":
        """Return the result of a run that came to rest."""
        assert isinstance(ended.outcome, FlowOutcome)
        journal = {key: ended.journal[key] for key in ("head", "count")}
        outcome = ended.outcome
        return cls(
            **outcome.output,
            journal=journal,
            messages=list(outcome.messages),
            nodes=outcome.nodes,
            declared=outcome.declared,
        )

    def as_json(self) -> Json:
        """Return the result as JSON, without `messages`, `nodes` and `declared`, which the outputs have."""
        return {name: getattr(self, name) for name in self.__slots__ if name not in _NOT_IN_JSON}


@dataclass(frozen=True, slots=True)
class Begun:
    """What was written just now of a run that begins: what the list has of it, and its first record."""

    entry: RunEntry
    started: Row
    at: float = field(default_factory=monotonic)

    @property
    def tape(self) -> Tape | None:
        """The run's tape; None where it waited so long for its turn that others may have written into it."""
        return {ROOT: [self.started]} if monotonic() - self.at < SIGNAL_INTERVAL_S else None


@dataclass(frozen=True, slots=True)
class Job:
    """A run to drive. `spec` is what it was started with; `preparer` prepares the runs in it. `conversation` is the
    stored one of which it is a turn. `deps` is what its caller gives the tools. `begun` saves reading a run that has
    just begun."""

    run: str
    spec: Spec
    preparer: Preparer
    stop: StopSignal
    on_event: OnEvent = None
    conversation: str | None = None
    deps: object = None
    begun: Begun | None = None

    def listener(self, watch: Watch | None) -> AnswerListener | None:
        """Return what is told of the run: its caller, else what `watch` gives."""
        if self.on_event is not None:
            return EventListener(self.on_event)
        return None if watch is None else watch(self.run)


class Driver(Protocol):
    """What drives the runs of a store, and tells the watcher that `watch` gives for each of them."""

    watch: Watch | None

    async def drive(self, job: Job) -> RunResult:
        """Return the result of the run once it has come to rest."""
        ...


class RunDriver:
    """Drives the runs of one store, as there are `slots`. `keep` gets each result before the list of runs tells of it.
    DefinitionError for keys that cannot sign, or a patience that is none."""

    def __init__(self, store: RunStore, slots: Line, observe: Observe) -> None:
        self._journal, self._index, self._clock = store.journal, RunIndex(store), store.clock
        self._keys, self._patience = signing_keys(), patience_of_host()
        self._slots, self.observe = slots, observe
        self.watch: Watch | None = None
        self.keep: Callable[[RunResult], None] | None = None

    async def drive(self, job: Job) -> RunResult:
        """Drive the run to its result, and keep its status in the index up to date.

        A caller who is cancelled cancels the run, which ends before the cancellation goes on. Abandoned for a run that
        another driver has taken over meanwhile.
        """
        while True:
            try:
                result = await self._run_with_limit(job)
            except asyncio.CancelledError:
                job.stop.request("cancel")
                again = replace(job, begun=None)
                await self._retry(job, partial(self._settle, await self._run_until_stopped(again)))
                raise
            if job.stop.is_lost and result.status not in ENDED:
                raise Abandoned(job.run)
            if self.keep is not None:
                self.keep(result)
            await self._retry(job, partial(self._settle, result))
            if job.stop.requested is not None or not await self._has_event(job, result):
                return result
            job = replace(job, begun=None)

    def _settle(self, result: RunResult) -> None:
        is_released = result.status == "paused" and self._index.last_control(result.run_id) != "pause"
        status: RunStatus = "pending" if is_released else result.status
        self._index.settle(result.run_id, status, result.journal["count"], result.waiting)

    async def _has_event(self, job: Job, result: RunResult) -> bool:
        """Return whether an event has come for which the run waits, since it was let go. Its status is set before that:
        who sends a signal later sees that the run waits, and resumes it."""
        if result.status != "waiting" or all(each["reason"] != "awaiting_event" for each in result.waiting):
            return False
        return await self._retry(job, partial(self._index.has_event, job.run))

    def _cancel_pending(self, job: Job) -> None:
        if job.stop.hold is not None:
            job.stop.hold.confirm()
        if job.stop.is_lost:
            raise Abandoned(job.run)
        cancel_pending(self._journal, job.run, self._keys)

    def _set_running(self, job: Job) -> None:
        if job.begun is None:
            self._index.set_status(job.run, "running", unless=ENDED)
        else:
            self._index.store.save(replace(job.begun.entry, status="running"))

    async def _retry(self, job: Job, work: Callable[[], T]) -> T:
        return await retry_until_available(self._journal, work, run=job.run, patience=self._patience)

    async def _run_with_limit(self, job: Job) -> RunResult:
        """Wait for a slot among the runs that are driven; a cancelled run needs none."""
        async with nullcontext() if job.stop.requested == "cancel" else self._slots.slot():
            await self._retry(job, partial(self._set_running, job))
            return await self._run_until_stopped(job)

    async def _run_until_stopped(self, job: Job) -> RunResult:
        """Drive a run; a cancelled one ends, even if something waits, a pause delays it, or a call is in doubt."""
        result = await self._run_once(job)
        while job.stop.requested == "cancel" and result.status not in ENDED:
            await self._retry(job, partial(self._cancel_pending, job))
            result = await self._run_once(replace(job, begun=None))
        return result

    def executor(
        self,
        run: str,
        preparer: Preparer,
        observer: ActListener | None,
        listener: AnswerListener | None = None,
    ) -> Executor:
        """Return what a run needs of this host."""
        grant, prepare, models = preparer.grant, preparer.by_tool(), preparer.grant.models.at(preparer.base)
        about = (models, prepare, grant.secrets, preparer.redactor, listener, observer, self._clock.read)
        return Executor(run, grant.registry, *about)

    async def _run_once(self, job: Job) -> RunResult:
        listener = job.listener(self.watch)
        inbox = Inbox(job.run, self._journal, job.stop, is_of_node)
        observer = await self._retry(job, partial(self.observe, job.run))
        executor, stop = self.executor(job.run, job.preparer, observer, listener), job.stop
        ended = await drive(
            job.run,
            ROOT,
            job.spec,
            journal=self._journal,
            executor=replace(executor, is_let_go=lambda: stop.is_abandoned or stop.is_lost, deps=job.deps),
            loops=job.preparer.loops(),
            listener=listener,
            keys=self._keys,
            stop=job.stop,
            inbox=inbox,
            patience=self._patience,
            begun=None if job.begun is None else job.begun.tape,
        )
        return RunResult._from_ended(ended)
