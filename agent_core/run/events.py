"""What happens in a run, as events: derived from its records, so that any process with the journal can tell them."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent_core.effects import Json
from agent_core.journal.path import is_within, name_of
from agent_core.journal.record import Row, Tape
from agent_core.protocol.clip import as_text, clip

log = logging.getLogger("agent_core")
Event = dict[str, Any]
"""{"event", "strand", "n", "node", …}; the event is one of step_started, answer_delta, answer_discarded, thought,
action, tool_progress, observation, repair, plan, plan_step, waiting, finished."""


def events_of(record: Json) -> Iterator[Event]:
    """The events of one record, without their strand and number."""
    match record:
        case {"kind": "asked", "ask": "model"}:
            yield {"event": "step_started", "step": record["step"], "model": record["model"]}
        case {"kind": "decided"}:
            yield from _decision_events(record)
        case {"kind": "answered", "reply": "did"}:
            yield _observation(record["success"], record["output"], record["error"], record["seconds"])
        case {"kind": "answered", "reply": "failed"}:
            yield _observation(False, None, record["message"], record["seconds"])
        case {"kind": "waiting", "tool": tool}:
            why = {"message": record["message"]} if record.get("message") else {}
            yield {"event": "waiting", "reason": record["reason"], "tool": tool, "args": record["args"], **why}
        case {"kind": "run_finished"}:
            keys = ("finish_reason", "status", "final_answer", "error", "usage")
            yield {"event": "finished", **{key: record[key] for key in keys if key in record}}


def _decision_events(record: Json) -> Iterator[Event]:
    step = record["step"]
    if "thought" in record:
        yield {"event": "thought", "step": step, "text": record["thought"]}
    if "unreadable" in record:
        yield {"event": "repair", "step": step, **record["unreadable"]}
    if "plan" in record:
        yield {"event": "plan", "step": step, "steps": record["plan"]}
    if "refused" in record:
        yield {"event": "repair", "step": step, **record["refused"]}
    if "plan_step" in record:
        status = record["plan_step"]
        yield {"event": "plan_step", **status, "step": step, "plan_step": status["step"]}
    for call in record.get("calls", ()):
        if call["verdict"] == "refuse":
            yield {"event": "repair", "step": step, "kind": call["reason"], "message": call["message"]}
        elif "limit" not in record:
            yield {"event": "action", "step": step, "id": call["id"], "tool": call["tool"], "args": call["args"]}


def _observation(success: bool, output: Any, error: str | None, seconds: float) -> Event:
    text = as_text(output) if success else error or ""
    return {"event": "observation", "success": success, "text": text, "seconds": seconds}


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
    limits: dict[str, int | None] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    streaming: set[str] = field(default_factory=set)
    agents: set[str] = field(default_factory=set)
    wants_answers: bool = True

    def resume_from(self, tape: Tape) -> None:
        """Know the runs of a tape without telling of them again."""
        for path, rows in tape.items():
            self._follow(path, rows[0].record())
            self._follow(path, rows[-1].record())

    def __call__(self, row: Row) -> None:
        record = row.record()
        if row.path in self.streaming:
            self._settle_answer(row, record)
        self._follow(row.path, record)
        if record["kind"] == "asked":
            self._show_plain_call(row, record)
        if record["kind"] == "answered" and self.asked.get(row.path) == "model":
            return  # a reply is shown by the decision about it, a failure by how the run ends
        for event in events_of(record):
            if event["event"] == "observation":
                text = event["text"]
                event = {**event, "text": clip(text, self._limit_of(row.path)), "characters": len(text)}
            self._emit(row.path, row.n, event)

    def _follow(self, path: str, record: Json) -> None:
        match record:
            case {"kind": "asked"}:
                self.asked[path] = record["ask"]
            case {"kind": "run_started"}:
                self.limits[path] = record.get("config", {}).get("observation_max_len")
                if record["loop"] == "agent":
                    self.agents.add(path)

    def _show_plain_call(self, row: Row, record: Json) -> None:
        """A call that a workflow's node makes; those of an agent are told when they are decided."""
        if record["ask"] == "tool" and not any(is_within(row.path, agent) for agent in self.agents):
            self._emit(row.path, row.n, {"event": "action", "tool": record["tool"], "args": record["args"]})

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

    def _settle_answer(self, row: Row, record: Json) -> None:
        """A provisional answer is valid when the reply is decided to be the final, else it is discarded."""
        if record["kind"] == "decided" and record.get("final"):
            self.streaming.remove(row.path)
        elif not (record["kind"] == "answered" and record.get("reply") == "said"):
            self.show_delta(row.path, row.n, None)

    def _emit(self, strand: str, n: int, event: Event) -> None:
        try:
            self.callback({**event, "strand": strand, "n": n, "node": name_of(strand)})
        except Exception:  # a listener's mistake must not end the run that it listens to
            log.exception("an event listener failed")

    def _limit_of(self, path: str) -> int | None:
        owners = [owner for owner in self.limits if is_within(path, owner)]
        return self.limits[max(owners, key=len)] if owners else None
