"""What happens in a run, as events: read off its records, so that any process that sees the journal can tell them."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from agent_core.effects import Json
from agent_core.journal.record import Row, name_of
from agent_core.protocol.clip import as_text, clip

log = logging.getLogger("agent_core")
Event = dict[str, Any]
"""{"event", "strand", "n", "node", …}; the event is one of step_started, answer_delta, answer_discarded, thought,
action, tool_progress, observation, repair, waiting, finished."""


def events_of(record: Json) -> Iterator[Event]:
    """The events that one record tells, without their place."""
    match record:
        case {"kind": "asked", "ask": "model"}:
            yield {"event": "step_started", "step": record["step"], "model": record["model"]}
        case {"kind": "decided"}:
            yield from _decided(record)
        case {"kind": "answered", "reply": "did"}:
            yield _observation(record["success"], record["output"], record["error"], record["seconds"])
        case {"kind": "answered", "reply": "failed"}:
            yield _observation(False, None, record["message"], record["seconds"])
        case {"kind": "waiting", "tool": tool}:
            yield {"event": "waiting", "reason": record["reason"], "tool": tool, "args": record["args"]}
        case {"kind": "run_finished"}:
            told = ("finish_reason", "status", "final_answer", "error", "usage")
            yield {"event": "finished", **{key: record[key] for key in told if key in record}}


def _decided(record: Json) -> Iterator[Event]:
    step = record["step"]
    if "thought" in record:
        yield {"event": "thought", "step": step, "text": record["thought"]}
    if "unreadable" in record:
        yield {"event": "repair", "step": step, **record["unreadable"]}
    for call in record.get("calls", ()):
        if call["verdict"] == "refuse":
            yield {"event": "repair", "step": step, "kind": call["reason"], "message": call["message"]}
        elif "limit" not in record:
            yield {"event": "action", "step": step, "id": call["id"], "tool": call["tool"], "args": call["args"]}


def _observation(success: bool, output: Any, error: str | None, seconds: float) -> Event:
    text = as_text(output) if success else error or ""
    return {"event": "observation", "success": success, "text": text, "seconds": seconds}


@dataclass(slots=True)
class Events:
    """A listener that turns rows into events. Texts of observations are cut as the run's model sees them."""

    tell: Callable[[Event], None]
    limits: dict[str, int | None] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    shown: set[str] = field(default_factory=set)
    """Strands of whose last reply a piece of the answer was told."""

    def __call__(self, row: Row) -> None:
        record = row.record()
        if row.path in self.shown:
            self._settle(row, record)
        if record["kind"] == "asked":
            self.asked[row.path] = record["ask"]
        if record["kind"] == "answered" and self.asked.get(row.path) == "model":
            return  # what a model said is told by what was decided on it, and a failure by how the run ends
        if record["kind"] == "run_started":
            self.limits[row.path] = record.get("config", {}).get("observation_max_len")
        for event in events_of(record):
            if event["event"] == "observation":
                whole = event["text"]
                event = {**event, "text": clip(whole, self._limit(row.path)), "characters": len(whole)}
            self._tell(row.path, row.n, event)

    def progress(self, strand: str, n: int, text: str, fraction: float | None) -> None:
        """What a tool tells of itself while it runs, from its own thread if it has one; it stands in no record."""
        self._tell(strand, n, {"event": "tool_progress", "text": text, "fraction": fraction})

    def delta(self, strand: str, n: int, text: str | None) -> None:
        """A piece of an answer that is still being written, provisional until the reply has been read. None: what was
        told of it is void."""
        if text:
            self.shown.add(strand)
            self._tell(strand, n, {"event": "answer_delta", "text": text})
        elif text is None and strand in self.shown:
            self.shown.remove(strand)
            self._tell(strand, n, {"event": "answer_discarded"})

    def _settle(self, row: Row, record: Json) -> None:
        """A provisional answer stands when the reply is decided to be the final, and is void when anything else is."""
        if record["kind"] == "decided" and record.get("final"):
            self.shown.remove(row.path)
        elif not (record["kind"] == "answered" and record.get("reply") == "said"):
            self.delta(row.path, row.n, None)

    def _tell(self, strand: str, n: int, event: Event) -> None:
        try:
            self.tell({**event, "strand": strand, "n": n, "node": name_of(strand)})
        except Exception:  # a listener's mistake must not end the run that it listens to
            log.exception("an event listener failed")

    def _limit(self, path: str) -> int | None:
        owners = [owner for owner in self.limits if path == owner or path.startswith(f"{owner}/")]
        return self.limits[max(owners, key=len)] if owners else None
