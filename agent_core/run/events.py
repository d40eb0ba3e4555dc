"""What happens in a run, as events: derived from its records, so that any process with the journal can tell them."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent_core.effects import Failed, Json, ModelReply, ToolReply
from agent_core.journal.path import name_of
from agent_core.journal.reader import (
    Answered,
    Call,
    Decided,
    Fact,
    Question,
    Reader,
    RecordedRun,
    RunFinished,
    Waiting,
)
from agent_core.journal.record import Row, Tape
from agent_core.protocol.clip import as_text, clip

log = logging.getLogger("agent_core")
Event = dict[str, Any]
"""{"event", "strand", "n", "node", …}; the event is one of step_started, answer_delta, answer_discarded, thought,
action, tool_progress, observation, repair, plan, plan_step, waiting, finished."""


def events_of(fact: Fact) -> Iterator[Event]:
    """Yield the events of what a record says, without their strand and number."""
    match fact:
        case Question(step=step, model=model):
            yield {"event": "step_started", "step": step, "model": model}
        case Decided():
            yield from _decision_events(fact)
        case Answered(answer=ToolReply() | Failed() as answer):
            text = as_text(answer.output) if isinstance(answer, ToolReply) and answer.success else fact.error or ""
            yield {"event": "observation", "success": fact.succeeded, "text": text, "seconds": answer.seconds}
        case Waiting(tool=str(tool)):
            why = {"message": fact.message} if fact.message else {}
            yield {"event": "waiting", "reason": fact.reason, "tool": tool, "args": fact.args, **why}
        case RunFinished():
            yield {"event": "finished", **_ending(fact)}


def _ending(fact: RunFinished) -> Json:
    if not fact.is_agent:
        return {"status": fact.reason, "error": fact.error}
    return {"finish_reason": fact.reason, "final_answer": fact.answer, "error": fact.error, "usage": fact.usage}


def _decision_events(decided: Decided) -> Iterator[Event]:
    step = decided.step
    if decided.thought is not None:
        yield {"event": "thought", "step": step, "text": decided.thought}
    if decided.unreadable is not None:
        yield {"event": "repair", "step": step, **decided.unreadable}
    if decided.plan is not None:
        yield {"event": "plan", "step": step, "steps": decided.plan}
    if decided.refused is not None:
        yield {"event": "repair", "step": step, **decided.refused}
    if (status := decided.plan_step) is not None:
        yield {"event": "plan_step", **status, "step": step, "plan_step": status["step"]}
    for call in decided.calls:
        if call["verdict"] == "refuse":
            yield {"event": "repair", "step": step, "kind": call["reason"], "message": call["message"]}
        elif decided.limit is None:
            yield {"event": "action", "step": step, "id": call["id"], "tool": call["tool"], "args": call["args"]}


class Watcher(Protocol):
    """A driver's listener that also sees what no record holds: pieces of answers, and the progress of tools."""

    @property
    def wants_answers(self) -> bool:
        """Whether the next answer is to be shown while it is being written."""
        ...

    def __call__(self, row: Row) -> None: ...

    def show_progress(self, strand: str, n: int, text: str, fraction: float | None) -> None: ...

    def show_delta(self, strand: str, n: int, text: str | None) -> None: ...


@dataclass(slots=True)
class EventSource:
    """A driver's listener that turns rows into events and hands them to `callback`.

    The `action` of a workflow's plain node has neither step nor id. Texts of observations are cut as the run's model
    sees them. `streaming` are the strands of whose last reply a piece of the answer was shown.
    """

    callback: Callable[[Event], None]
    reader: Reader = field(default_factory=Reader)
    streaming: set[str] = field(default_factory=set)
    wants_answers: bool = True

    def resume_from(self, tape: Tape) -> None:
        """Know the runs of a tape without telling of them again."""
        self.reader = Reader()
        for path in sorted(tape, key=lambda path: path.count("/")):
            self.reader.read(tape[path][0])
            self.reader.read(tape[path][-1])

    def __call__(self, row: Row) -> None:
        fact = self.reader.read(row)
        if row.path in self.streaming:
            self._settle_answer(fact)
        match fact:
            case Call():
                self._show_plain_call(fact)
            case Answered(asked=Question()):
                return  # a reply is shown by the decision about it, a failure by how the run ends
        for event in events_of(fact):
            if event["event"] == "observation":
                text = event["text"]
                event = {**event, "text": clip(text, _limit_of(fact.run)), "characters": len(text)}
            self._emit(row.path, row.n, event)
        if isinstance(fact, RunFinished):
            self.reader.forget(row.path)

    def _show_plain_call(self, call: Call) -> None:
        """A call that a workflow's node makes; those of an agent are told when they are decided."""
        if call.run is None or not call.run.is_within_agent:
            self._emit(call.strand, call.n, {"event": "action", "tool": call.tool, "args": call.args})

    def show_progress(self, strand: str, n: int, text: str, fraction: float | None) -> None:
        """A tool's own word while it runs, perhaps from its own thread; no record holds it."""
        self._emit(strand, n, {"event": "tool_progress", "text": text, "fraction": fraction})

    def show_delta(self, strand: str, n: int, text: str | None) -> None:
        """A piece of an answer that is still being written, provisional until the reply has been read.

        None discards what was shown of it.
        """
        if text:
            self.streaming.add(strand)
            self._emit(strand, n, {"event": "answer_delta", "text": text})
        elif text is None and strand in self.streaming:
            self.streaming.remove(strand)
            self._emit(strand, n, {"event": "answer_discarded"})

    def _settle_answer(self, fact: Fact) -> None:
        """A provisional answer is valid when the reply is decided to be the final, else it is discarded."""
        match fact:
            case Decided(is_final=True):
                self.streaming.remove(fact.strand)
            case Answered(answer=ModelReply()):
                pass
            case _:
                self.show_delta(fact.strand, fact.n, None)

    def _emit(self, strand: str, n: int, event: Event) -> None:
        try:
            self.callback({**event, "strand": strand, "n": n, "node": name_of(strand)})
        except Exception:  # a listener's mistake must not end the run that it listens to
            log.exception("an event listener failed")


def _limit_of(run: RecordedRun | None) -> int | None:
    """Return how many characters of an observation the model of a run sees; None for all."""
    return None if run is None else run.config.get("observation_max_len")
