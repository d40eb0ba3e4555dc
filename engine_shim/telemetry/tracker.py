"""Tracker: from the records of a run to the operations that begin and end with them. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, assert_never

from agent_core.journal.facts import Answered, Call, Cancelled, Decided, Question, RunFinished, RunStarted, Waiting
from agent_core.journal.path import is_within, parent_of
from agent_core.journal.reader import Reader
from agent_core.journal.record import Row
from engine_shim.telemetry.endings import ending_of
from engine_shim.telemetry.operations import Began, Change, Ended, Operation, Place
from engine_shim.telemetry.planning import Planning


@dataclass(slots=True)
class Tracker:
    """The operations of one run. `runs` are its open workflows and agents by their strand, `acts` the open questions
    and calls by theirs: a strand does one thing at a time."""

    runs: dict[str, Operation] = field(default_factory=dict)
    acts: dict[str, Operation] = field(default_factory=dict)
    planning: dict[str, Planning] = field(default_factory=dict)
    reader: Reader = field(default_factory=Reader)

    def open(self) -> list[Operation]:
        """Return the operations under way, each after the one that it lies under."""
        plans = [each.operation for each in self.planning.values() if each.operation is not None]
        found = [*self.runs.values(), *plans, *self.acts.values()]
        return sorted(found, key=lambda each: (each.place.path.count("/"), each.kind in ("chat", "execute_tool")))

    def follow(self, row: Row) -> Iterator[Change]:
        """Yield what begins and ends with a row."""
        match fact := self.reader.read(row):
            case RunStarted():
                yield self._begin_run(fact)
            case Question():
                yield from self._begin_question(fact)
            case Call():
                yield self._begin_act(fact, "execute_tool", fact.tool)
            case Answered() | Cancelled() | Waiting(reason="in_doubt"):
                yield from self._end_act(fact)
            case Decided():
                yield from self._decide(fact)
            case RunFinished():
                yield from self._end_run(fact)
            case _:
                pass

    # ── runs ──────────────────────────────────────────────────────────────────────────────────────

    def _begin_run(self, started: RunStarted) -> Began:
        run, path = started.begun, started.strand
        if run.config.get("mode") == "plan":
            self.planning[path] = Planning(replans=run.config["plan"]["on_failure"] == "replan")
        operation = Operation(
            "invoke_workflow" if run.definition else "invoke_agent",
            run.name,
            Place(path, 0),
            self._place_above(parent_of(path)),
            run.workflow,
            run.agent,
            run.conversation,
            run.began,
            run,
        )
        self.runs[path] = operation
        return Began(operation)

    def _end_run(self, ended: RunFinished) -> Iterator[Ended]:
        path, ending = ended.strand, ending_of(ended)
        planning = self.planning.pop(path, None)
        if planning is not None and planning.operation is not None:
            yield Ended(planning.operation, ended, *ending)
        for open_path in [each for each in self.acts if is_within(each, path)]:
            del self.acts[open_path]
        operation, run = self.runs.pop(path, None), ended.run
        if operation is not None and run is not None:
            steps = (run.step or 0) - run.earlier_steps
            yield Ended(operation, ended, *ending, None, ended.at, steps)
        self.reader.forget(path)

    # ── questions and calls ───────────────────────────────────────────────────────────────────────

    def _begin_question(self, question: Question) -> Iterator[Began]:
        planning, run = self.planning.get(question.strand), self.runs.get(question.strand)
        if planning is not None and run is not None and planning.asks_for_plan() and planning.operation is None:
            place = Place(question.strand, question.n, "plan")
            planning.operation = Operation(
                "plan", run.name, place, run.place, run.workflow, run.agent, run.conversation
            )
            yield Began(planning.operation)
        yield self._begin_act(question, "chat", question.model)

    def _begin_act(self, act: Question | Call, kind: Literal["chat", "execute_tool"], name: str) -> Began:
        run, planning = act.run, self.planning.get(act.strand)
        parent = self._place_above(act.strand)
        if kind == "chat" and planning is not None and planning.operation is not None:
            parent = planning.operation.place
        about = (run.workflow, run.agent, run.conversation) if run else ("", "", None)
        call, step = act if isinstance(act, Call) else None, run.step if run else None
        operation = Operation(kind, name, Place(act.strand, act.n), parent, *about, None, run, call, step)
        self.acts[act.strand] = operation
        return Began(operation)

    def _end_act(self, fact: Answered | Cancelled | Waiting) -> Iterator[Ended]:
        operation = self.acts.pop(fact.strand, None)
        if operation is not None:
            yield Ended(operation, fact, *ending_of(fact), *_time_of(fact))

    def _decide(self, decided: Decided) -> Iterator[Ended]:
        planning = self.planning.get(decided.strand)
        if planning is None:
            return
        planned = planning.operation
        if planned is not None and planning.is_settled_by(decided):
            planning.operation = None
            yield Ended(planned, decided)
        planning.follow(decided)

    # ── what lies above ───────────────────────────────────────────────────────────────────────────

    def _place_above(self, path: str) -> Place | None:
        """Return where what begins in a strand lies: under the call that it was made by, else under the run."""
        while path:
            if path in self.acts and self.acts[path].kind == "execute_tool":
                return self.acts[path].place
            if path in self.runs:
                return self.runs[path].place
            path = parent_of(path)
        return None


def _time_of(fact: Answered | Cancelled | Waiting) -> tuple[float | None, str | None]:
    """Return how many seconds an act took, and when it ended, as far as the record says."""
    match fact:
        case Answered(answer=answer):
            return answer.seconds, answer.at
        case Cancelled(at=at):
            return None, at
        case Waiting(seconds=seconds):
            return seconds, None
    assert_never(fact)
