"""The node for any engine: `execute`, one attempt at an agent's run, which the next attempt goes on with.

NODE.md says what an engine gives, and what it gets.
"""

import asyncio
import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Final

from agent_core.config import AgentConfig
from agent_core.errors import DefinitionError
from agent_core.journal.control import Decisions
from agent_core.journal.store import Journal
from agent_core.models.client import ModelClient
from agent_core.run.agent_drive import drive_agent
from agent_core.run.agent_output import AgentOutput
from agent_core.run.arguments import model_of, open_lasting
from agent_core.run.blocking import run_blocking
from agent_core.run.cancellation import in_own_task
from agent_core.run.control import Stopping, StopSignal
from agent_core.run.decide import (
    BegunRun,
    decide,
    decide_sync,
    find_run,
    find_run_sync,
    list_waiting,
    list_waiting_sync,
)
from agent_core.run.event_listener import EventListener, check_callback
from agent_core.run.events import Event
from agent_core.run.run_id import check_run_id
from agent_core.run.secrets import Secrets
from agent_core.run.sync import run_sync
from utools.registry import ToolRegistry
from utools.tool import Tool

__all__ = [
    "AttemptStop",
    "BegunRun",
    "NodeContext",
    "decide",
    "decide_sync",
    "execute",
    "execute_sync",
    "find_run",
    "find_run_sync",
    "list_waiting",
    "list_waiting_sync",
    "make_run_id",
]
SHOWN: Final = 100
DIGITS: Final = 16
"""Characters of a made id that show its parts, and hexadecimal digits that tell two apart."""
log = logging.getLogger("agent_core")


class AttemptStop:
    """Ends one attempt at a run early, from any thread.

    What is wanted before the run has begun is done once it has. `cancel` outweighs `let_go`; neither can be taken back.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._wanted: Stopping | None = None
        self._apply: Callable[[], object] | None = None

    def cancel(self) -> None:
        """End the run as cancelled. What is under way is aborted; later attempts give the same outputs."""
        self._want("cancel")

    def let_go(self) -> None:
        """Leave the run to the next attempt. What is under way may answer, and nothing more begins."""
        self._want("pause")

    @property
    def wanted(self) -> Stopping | None:
        """Whether the run is to be cancelled, or let go of (`pause`)."""
        return self._wanted

    @contextmanager
    def heard_by(self, apply: Callable[[], object]) -> Iterator[None]:
        """Call `apply` in this event loop whenever something is wanted, until the end of the block."""
        loop = asyncio.get_running_loop()
        with self._lock:
            self._apply = lambda: loop.call_soon_threadsafe(apply)
        try:
            yield
        finally:
            with self._lock:
                self._apply = None

    def _want(self, how: Stopping) -> None:
        with self._lock:
            if self._wanted != "cancel":
                self._wanted = how
            if self._apply is not None:
                self._apply()


@dataclass(frozen=True, kw_only=True)
class NodeContext:
    """What an engine gives for one attempt at a node.

    `run_id` is the same for each attempt at one run, and another for each item of a mapped task; `attempt` counts from
    1. `journal` is where the run is recorded: what `run_agent` takes, in a place that outlives a worker. `tools` are
    all that the config may allow. `model`, a client or `provider:name`, answers in place of the config's. At
    `deadline`, a time with a zone, the run is let go. `decisions` are a person's, by (strand, n), on what waits; `by`
    names who decided. `secrets` are those that tools may read, `deps` is what they get as `context.deps`. By `stop`
    other threads end the attempt.
    """

    run_id: str
    journal: Journal | str | os.PathLike[str]
    tools: ToolRegistry | Iterable[Tool] = ()
    model: ModelClient | str | None = None
    attempt: int = 1
    deadline: datetime | None = None
    secrets: Secrets | None = None
    decisions: Decisions | None = None
    by: str = "caller"
    stop: AttemptStop = field(default_factory=AttemptStop)
    on_event: Callable[[Event], None] | None = None
    deps: object = field(default=None, repr=False)


async def execute(config: Mapping[str, Any] | AgentConfig, context: NodeContext) -> AgentOutput:
    """Run an agent to its outcome, on from where the journal of its run ends; gives the node's outputs.

    `config` is what the node's ConfigSchema says. A run that waits is an outcome, and so is one that was let go: see
    `AgentOutput.status`. One that has ended gives the same outputs again, without acting. Budgets are those of the run,
    whatever the number of attempts. DefinitionError for a config or a context that cannot be used, which no retry
    mends; DecisionError for a decision that fits nothing that waits; JournalError where the journal cannot be used,
    which a retry may mend. A caller who is cancelled cancels the run.
    """
    _check_context(context)
    run, seconds = check_run_id(context.run_id), _seconds_until(context.deadline)
    registry, model = ToolRegistry.from_tools(context.tools, where="tools"), model_of(context.model)
    request = _StopRequest(context.stop)
    with open_lasting(context.journal) as journal, context.stop.heard_by(request.pass_on):
        await _look_for_earlier(run, context.attempt, journal)
        timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, context.stop.let_go)
        if seconds == 0:  # nothing begins in a time that is over
            context.stop.let_go()
        work = drive_agent(
            config,
            registry,
            model,
            journal,
            run,
            context.decisions,
            context.secrets or Secrets(),
            context.by,
            deps=context.deps,
            listener=EventListener(context.on_event) if context.on_event else None,
            stop=request.signal,
            on_begin=request.begin,
        )
        try:
            return await in_own_task(work)
        finally:
            if timer is not None:
                timer.cancel()


def execute_sync(config: Mapping[str, Any] | AgentConfig, context: NodeContext) -> AgentOutput:
    """`execute` for a caller without an event loop; inside one, it runs in a thread of its own."""
    return run_sync(lambda: execute(config, context))


def make_run_id(*parts: str | int) -> str:
    """Return the id of a run by what an engine calls it, such as its workflow, task, run and item: the same for the
    same parts, another for others. They may have any character; as far as they fit, the id shows them."""
    if not parts:
        raise ValueError("make_run_id needs at least one part")
    if None in parts:
        raise ValueError(f"make_run_id: a part is None ({parts!r}); other runs would have the same id")
    told = [str(part) for part in parts]
    shown = re.sub(r"[^A-Za-z0-9_.]+", "-", ".".join(told))[:SHOWN].strip("-._")
    digest = hashlib.sha256(json.dumps(told).encode()).hexdigest()[:DIGITS]
    return f"{shown}-{digest}" if shown else digest


class _StopRequest:
    """Passes what is wanted of an attempt on to the driver, once the run has begun."""

    def __init__(self, stop: AttemptStop) -> None:
        self.signal, self._stop, self._has_begun = StopSignal(), stop, False

    def begin(self) -> None:
        self._has_begun = True
        self.pass_on()

    def pass_on(self) -> None:
        wanted = self._stop.wanted
        if self._has_begun and wanted is not None:
            self.signal.request(wanted)


async def _look_for_earlier(run: str, attempt: int, journal: Journal) -> None:
    """Warn where an attempt after the first has no record to go on from: what it did would be done again."""
    if attempt > 1 and not await run_blocking(journal, lambda: journal.load(run)):
        log.warning("run %s: attempt %d finds no record of an earlier one; is its journal in this place?", run, attempt)


def _check_context(context: Any) -> None:
    """DefinitionError for a value of another kind than the engine is asked for: it may come from an environment."""
    if not isinstance(context.attempt, int) or context.attempt < 1:
        raise DefinitionError("must be a number from 1", where="attempt", value=context.attempt)
    if not isinstance(context.deadline, datetime | None):
        raise DefinitionError("must be a datetime with a time zone", where="deadline", value=context.deadline)
    if not isinstance(context.by, str):
        raise DefinitionError("must be a name, as text", where="by", value=context.by)
    if not isinstance(context.stop, AttemptStop):
        raise DefinitionError("must be an AttemptStop of agent_core.node", where="stop", value=context.stop)
    if context.on_event is not None:
        check_callback(context.on_event)


def _seconds_until(deadline: datetime | None) -> float | None:
    if deadline is None:
        return None
    if deadline.tzinfo is None:
        raise DefinitionError(
            f"the deadline {deadline.isoformat()} has no time zone; give one: datetime.now(UTC) + …", where="deadline"
        )
    return max(0.0, (deadline - datetime.now(UTC)).total_seconds())
