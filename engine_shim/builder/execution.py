"""Execution: the handle of a graph's run while it runs; awaited, it gives the result."""

import asyncio
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, Generic

from agent_core.errors import AnswerError, DecisionError
from agent_core.journal.control import Decisions, last_control
from agent_core.journal.path import nesting_depth
from agent_core.journal.reader import read_run
from agent_core.journal.record import Tape
from agent_core.run.answer_type import AnswerReader
from agent_core.run.events import Event
from agent_core.statuses import RunStatus
from engine_shim.builder.journal import node_records, tool_calls
from engine_shim.builder.state import (
    AgentState,
    Answer,
    Chunk,
    ExecutionResult,
    ExecutionStatus,
    Message,
    ToolCallRecord,
)
from engine_shim.definition.model import ROOT
from engine_shim.errors import DefinitionError
from engine_shim.runs.drive import OnEvent, RunResult
from engine_shim.runs.engine import Engine

STATUSES = {"failed": ExecutionStatus.ERROR}
"""The engine's words for a status that have another one here."""
ENDED = (ExecutionStatus.COMPLETED, ExecutionStatus.CANCELLED, ExecutionStatus.ERROR)


class Execution(Generic[Answer]):
    """A run of a graph. It goes on in the event loop in which it was begun; any process may pause or cancel it by `id`.

    Awaited, it gives the result once it has ended or waits for a person. While it is paused, it is waited for.
    """

    def __init__(
        self,
        engine: Engine,
        run_id: str,
        nodes: tuple[str, ...],
        send_chunk: Callable[[Chunk], None] | None,
        *,
        ends: Collection[str],
        answer: AnswerReader,
        deps: object,
        on_event: OnEvent,
    ) -> None:
        self.id = run_id
        self._engine, self._nodes, self._send_chunk, self._on_event = engine, nodes, send_chunk, on_event
        self._ends, self._answer, self._deps = ends, answer, deps
        self._begun, self._resumed = asyncio.Event(), asyncio.Event()
        self._decisions: Decisions | None = None
        self._work = asyncio.create_task(self._drive())

    def __await__(self) -> Generator[Any, None, ExecutionResult[Answer]]:
        return asyncio.shield(self._work).__await__()

    @property
    def start_time(self) -> datetime:
        """When it began."""
        return datetime.fromisoformat(read_run(self._tape(), ROOT).at)

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, for better or worse."""
        return self.status() in ENDED

    def status(self) -> ExecutionStatus:
        """Return how far it has come. ERROR too when it could not be driven on: awaiting it says why."""
        if self._work.done() and not self._work.cancelled():
            error = self._work.exception()
            if error is not None and not isinstance(error, AnswerError):
                return ExecutionStatus.ERROR
        return _status_of(self._engine.status(self.id))

    def iteration_count(self) -> int:
        """Return how many visits of nodes have begun."""
        return len(node_records(self._tape(), self._nodes))

    def get_tool_calls(self) -> list[ToolCallRecord]:
        """Return the calls that its nodes have made so far, in order."""
        return tool_calls(self._tape(), self._nodes)

    def add_message(self, content: str) -> None:
        """Add a user's message: the next question of a node has it. DecisionError when the execution has ended."""
        self._engine.add_message(self.id, content)

    def add_history(self, message: Message) -> None:
        """Add a message of a finished turn, {role, content} of a user or an assistant, to what the next question has.

        A model has read what is before it, so it joins the conversation where that is now.
        """
        given = message if isinstance(message, Mapping) else {}
        if given.get("role") not in ("user", "assistant") or not isinstance(given.get("content"), str):
            raise DefinitionError("must be {role, content} of a user or an assistant", where="message", value=message)
        self._engine.add_message(self.id, message["content"], role=message["role"])

    # ── stopping ──────────────────────────────────────────────────────────────────────────────────

    async def pause(self) -> None:
        """Let what is under way be answered, and begin nothing more until it is resumed."""
        await self._begun.wait()
        await self._engine.pause(self.id)

    async def resume(self, decisions: Decisions | None = None) -> None:
        """Go on after a pause, or with a person's decisions on what waits, by (strand, n) of the result's `waiting`.

        Does nothing while it runs.
        """
        if self._work.done():
            self._decisions = decisions
            self._work = asyncio.create_task(self._drive())
        elif last_control(self._tape()) == "pause":
            self._decisions = decisions
            self._resumed.set()

    async def abort(self) -> None:
        """End it for good: what is under way is aborted."""
        await self._begun.wait()
        await self._engine.cancel(self.id)
        self._resumed.set()

    # ── driving ───────────────────────────────────────────────────────────────────────────────────

    async def stop(self) -> None:
        """End it as `abort` does, unless it has ended, and wait for its end."""
        with suppress(DecisionError):
            await self.abort()
        await asyncio.wait({self._work})

    async def _drive(self) -> ExecutionResult[Answer]:
        self._begun.set()
        result = await self._go_on()
        while result.status == "paused":
            await self._resumed.wait()
            self._resumed.clear()
            result = await self._go_on()
        return self._result(result)

    async def _go_on(self) -> RunResult:
        decisions, self._decisions = self._decisions, None
        return await self._engine.resume(self.id, decisions=decisions, deps=self._deps, on_event=self._show)

    def _show(self, event: Event) -> None:
        """Hand the event on, and a piece of an answer by itself; not those of agents that are tools, or that judge
        edges."""
        if self._on_event is not None:
            self._on_event(event)
        is_own = event["node"] in self._nodes and nesting_depth(event["strand"]) == 1
        if self._send_chunk is not None and is_own and event["event"] == "answer_delta":
            self._send_chunk(Chunk(event["text"], node=event["node"], strand=event["strand"]))

    def _result(self, run: RunResult) -> ExecutionResult[Answer]:
        tape = self._tape()
        external = read_run(tape, ROOT).external
        result = ExecutionResult[Any](
            status=_status_of(run.status),
            final_state=AgentState(external["history"], [*external["context"], *run.messages]),
            execution_path=node_records(tape, self._nodes),
            final_message=_last_answer(run.messages),
            iterations=len(run.path),
            waiting=run.waiting,
            error=run.error,
            final_answer=_answer_at(self._ends, run),
        )
        if result.final_answer is None and not result.success:
            return result
        return replace(result, final_answer=self._answer.make(result.final_answer, self.id, result))

    def _tape(self) -> Tape:
        return self._engine.store.journal.load(self.id)


def _status_of(status: RunStatus) -> ExecutionStatus:
    return STATUSES.get(status) or ExecutionStatus(status)


def _answer_at(ends: Collection[str], run: RunResult) -> Any:
    """Return what the end point answered that was visited last; None where the run has not completed."""
    answers = (run.nodes[key].get("final_answer") for key in reversed(run.path) if key in ends)
    return next(answers, None) if run.status == "completed" else None


def _last_answer(messages: list[Message]) -> str | None:
    """Return what the last agent answered, if any has."""
    answers = (each["content"] for each in messages if each["role"] == "assistant" and not each.get("tool_calls"))
    return next(reversed(list(answers)), None)
