"""What happens in a run, as events: derived from its records, so that any process with the journal can tell them."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any, cast

from agent_core.effects import Failed, ModelReply, ToolReply
from agent_core.errors import DefinitionError
from agent_core.journal.facts import (
    Answered,
    Call,
    Decided,
    Fact,
    Question,
    RecordedRun,
    Resolved,
    RunFinished,
    Waiting,
)
from agent_core.journal.path import name_of, outermost_first
from agent_core.journal.reader import Reader
from agent_core.journal.record import Row, Tape
from agent_core.outputs import FinishReason
from agent_core.protocol.clip import as_text, clip
from agent_core.records import PlanStatus
from agent_core.run import events
from agent_core.run.events import Event, Place

log = logging.getLogger("agent_core")


def events_of(fact: Fact) -> Iterator[Event]:
    """Yield the events of what a record says; texts of observations are cut as the run's model sees them."""
    match fact:
        case Question(step=step, model=model):
            yield {"event": "step_started", "step": step, "model": model, **_place(fact)}
        case Call(tool=tool, args=args) if fact.run is None or not fact.run.is_within_agent:
            yield {"event": "action", "tool": tool, "args": args, **_place(fact)}
        case Decided():
            yield from _decision_events(fact, _place(fact))
        case Answered(asked=Question()):
            pass  # a reply is shown by the decision about it, a failure by how the run ends
        case Answered(succeeded=True) if fact.begins_wait:
            pass  # what has come is shown
        case Answered(answer=ToolReply() | Failed() as answer):
            yield _observe(fact, answer)
        case Resolved(decision="elapsed" | "signalled"):
            yield _tell_event(fact)
        case Waiting(tool=str(tool)):
            yield _wait(fact, tool)
        case RunFinished():
            yield _end(fact)
        case _:
            pass


def check_callback(on_event: Any) -> None:
    """DefinitionError for what cannot be called with each event, or would have to be awaited."""
    if callable(on_event) and not iscoroutinefunction(on_event):
        return
    is_async = "; the stream functions give events to async code" if callable(on_event) else ""
    message = f"must be a function that takes an event, and is not async{is_async}"
    raise DefinitionError(message, where="on_event", value=on_event)


def _wait(fact: Waiting, tool: str) -> Event:
    event: events.Waiting = {
        "event": "waiting",
        "reason": fact.reason,
        "tool": tool,
        "args": fact.args,
        "strand": fact.strand,
        "n": fact.n,
        "node": name_of(fact.strand),
    }
    if fact.message:
        event["message"] = fact.message
    if fact.until is not None:
        event["until"] = fact.until
    if fact.signal is not None:
        event["signal"] = fact.signal
    return event


def _tell_event(fact: Resolved) -> Event:
    """Return what a node waited for, and has come."""
    text = "the time has come" if fact.signal is None else f"{fact.signal} by {fact.by}: {as_text(fact.data)}"
    return {
        "event": "observation",
        "success": True,
        "text": clip(text, _limit_of(fact.run)),
        "seconds": 0.0,
        "characters": len(text),
        **_place(fact),
    }


def _end(fact: RunFinished) -> Event:
    if fact.usage is None:
        return {"event": "finished", "status": cast(Any, fact.reason), "error": fact.error, **_place(fact)}
    return {
        "event": "finished",
        "finish_reason": cast(FinishReason, fact.reason),
        "final_answer": fact.answer,
        "error": fact.error,
        "usage": fact.usage,
        **_place(fact),
    }


def _observe(fact: Answered, answer: ToolReply | Failed) -> Event:
    text = as_text(answer.output) if isinstance(answer, ToolReply) and answer.success else fact.error or ""
    return {
        "event": "observation",
        "success": fact.succeeded,
        "text": clip(text, _limit_of(fact.run)),
        "seconds": answer.seconds,
        "characters": len(text),
        **_place(fact),
    }


def _decision_events(decided: Decided, place: Place) -> Iterator[Event]:
    step = decided.step
    if decided.thought is not None:
        yield {"event": "thought", "step": step, "text": decided.thought, **place}
    if (fault := decided.unreadable) is not None:
        yield {"event": "repair", "step": step, "kind": fault["kind"], "message": fault["message"], **place}
    if decided.plan is not None:
        yield {"event": "plan", "step": step, "steps": decided.plan, **place}
    if (fault := decided.refused) is not None:
        yield {"event": "repair", "step": step, "kind": fault["kind"], "message": fault["message"], **place}
    if (status := decided.plan_step) is not None:
        yield _tell_plan_step(decided, status)
    for call in decided.calls:
        if call["verdict"] == "refuse":
            kind, message = str(call.get("reason")), call.get("message", "")
            yield {"event": "repair", "step": step, "kind": kind, "message": message, **place}
        elif decided.limit is None:
            args = call["args"]
            yield {"event": "action", "step": step, "id": call["id"], "tool": call["tool"], "args": args, **place}


@dataclass(slots=True)
class EventListener:
    """A driver's listener that turns rows into events and hands them to `callback`.

    The `action` of a workflow's plain node has neither step nor id. Texts of observations are cut as the run's model
    sees them. `streaming` are the strands of whose last reply a piece of the answer was shown.
    """

    callback: Callable[[Event], None]
    reader: Reader = field(default_factory=lambda: Reader(is_brief=True))
    streaming: set[str] = field(default_factory=set)
    wants_answers: bool = True

    def resume_from(self, tape: Tape) -> None:
        """Know the runs of a tape without telling of them again."""
        self.reader = Reader(is_brief=True)
        for path in outermost_first(tape):
            self.reader.read(tape[path][0])
            self.reader.read(tape[path][-1])

    def __call__(self, row: Row) -> None:
        fact = self.reader.read(row)
        if row.path in self.streaming:
            self._settle_answer(fact)
        for event in events_of(fact):
            self._emit(event)
        if isinstance(fact, RunFinished):
            self.reader.forget(row.path)

    def show_progress(self, strand: str, n: int, text: str, fraction: float | None) -> None:
        """A tool's own word while it runs, perhaps from its own thread; no record holds it."""
        self._emit({"event": "tool_progress", "text": text, "fraction": fraction, **_make_place(strand, n)})

    def show_thought(self, strand: str, n: int, text: str) -> None:
        """A piece of a thought that is still being written; the event `thought` has all of it."""
        self._emit({"event": "thought_delta", "text": text, **_make_place(strand, n)})

    def show_delta(self, strand: str, n: int, text: str | None) -> None:
        """A piece of an answer that is still being written, provisional until the reply has been read.

        None discards what was shown of it.
        """
        if text:
            self.streaming.add(strand)
            self._emit({"event": "answer_delta", "text": text, **_make_place(strand, n)})
        elif text is None and strand in self.streaming:
            self.streaming.remove(strand)
            self._emit({"event": "answer_discarded", **_make_place(strand, n)})

    def _settle_answer(self, fact: Fact) -> None:
        """A provisional answer is valid when the reply is decided to be the final, else it is discarded."""
        match fact:
            case Decided(is_final=True):
                self.streaming.remove(fact.strand)
            case Answered(answer=ModelReply()):
                pass
            case _:
                self.show_delta(fact.strand, fact.n, None)

    def _emit(self, event: Event) -> None:
        try:
            self.callback(event)
        except Exception:  # a listener's mistake must not end the run that it listens to
            log.exception("an event listener failed")


def _limit_of(run: RecordedRun | None) -> int | None:
    """Return how many characters of an observation the model of a run sees; None for all."""
    return None if run is None else run.config.get("observation_max_len")


def _tell_plan_step(decided: Decided, status: PlanStatus) -> Event:
    event: events.PlanStep = {
        "event": "plan_step",
        "step": decided.step,
        "plan_step": status["step"],
        "status": status["status"],
        "strand": decided.strand,
        "n": decided.n,
        "node": name_of(decided.strand),
    }
    if "message" in status:
        event["message"] = status["message"]
    return event


def _place(fact: Fact) -> Place:
    return _make_place(fact.strand, fact.n)


def _make_place(strand: str, n: int) -> Place:
    return {"strand": strand, "n": n, "node": name_of(strand)}
