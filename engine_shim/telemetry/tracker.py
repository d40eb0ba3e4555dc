"""Tracker: from the records of a run to the operations that begin and end with them. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from agent_core.effects import Json
from agent_core.journal.path import is_within, name_of, parent_of
from engine_shim.telemetry.endings import ending_of_act, ending_of_run
from engine_shim.telemetry.operations import Began, Change, Ended, Operation, Place
from engine_shim.telemetry.planning import Planning


@dataclass(slots=True)
class Tracker:
    """The operations of one run. `runs` are its open workflows and agents by their strand, `acts` the open questions
    and calls by theirs: a strand does one thing at a time."""

    runs: dict[str, Operation] = field(default_factory=dict)
    acts: dict[str, Operation] = field(default_factory=dict)
    planning: dict[str, Planning] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)

    def open(self) -> list[Operation]:
        """The operations under way, each after the one that it lies under."""
        plans = [each.operation for each in self.planning.values() if each.operation is not None]
        found = [*self.runs.values(), *plans, *self.acts.values()]
        return sorted(found, key=lambda each: (each.place.path.count("/"), each.kind in ("chat", "execute_tool")))

    def follow(self, path: str, n: int, record: Json) -> Iterator[Change]:
        """What begins and ends with a record."""
        match record:
            case {"kind": "run_started"}:
                yield self._begin_run(path, record)
            case {"kind": "asked", "ask": "model"}:
                yield from self._begin_question(path, n, record)
            case {"kind": "asked", "ask": "tool"}:
                yield self._begin_act(path, n, "execute_tool", record["tool"], record)
            case {"kind": "answered" | "cancelled"}:
                yield from self._end_act(path, record)
            case {"kind": "waiting", "reason": "in_doubt"}:
                yield from self._end_act(path, record)
            case {"kind": "decided"}:
                yield from self._decide(path, record)
            case {"kind": "run_finished"}:
                yield from self._end_run(path, record)

    # ── runs ──────────────────────────────────────────────────────────────────────────────────────

    def _begin_run(self, path: str, record: Json) -> Began:
        owner = self._run_above(parent_of(path))
        workflow, agent = (owner.workflow, owner.agent) if owner else ("", "")
        conversation = owner.conversation if owner else None
        config: Json = {}
        if "definition" in record:
            kind, name = "invoke_workflow", record["definition"]["id"]
            workflow, agent = name, ""
        else:
            note, config = record.get("agent", {}), record["config"]
            kind, name = "invoke_agent", note.get("name") or name_of(path)
            agent, conversation = name, note.get("conversation", conversation)
        if config.get("mode") == "plan":
            self.planning[path] = Planning(replans=config["plan"]["on_failure"] == "replan")
        operation = Operation(
            cast(Any, kind),
            name,
            Place(path, 0),
            self._place_above(parent_of(path)),
            workflow,
            agent,
            conversation,
            max(record.get("forked", {}).get("at", ""), record["at"], owner.began or "" if owner else ""),
            record,
            config,
        )
        self.runs[path], self.steps[path] = operation, 0
        return Began(operation)

    def _end_run(self, path: str, record: Json) -> Iterator[Ended]:
        ending = ending_of_run(record)
        planning = self.planning.pop(path, None)
        if planning is not None and planning.operation is not None:
            yield Ended(planning.operation, record, *ending)
        for open_path in [each for each in self.acts if is_within(each, path)]:
            del self.acts[open_path]
        operation, steps = self.runs.pop(path, None), self.steps.pop(path, 0)
        if operation is not None:
            steps -= operation.started.get("spent", {}).get("steps", 0)
            yield Ended(operation, record, *ending, None, record["at"], steps)

    # ── questions and calls ───────────────────────────────────────────────────────────────────────

    def _begin_question(self, path: str, n: int, record: Json) -> Iterator[Began]:
        self.steps[path] = record["step"]
        planning, run = self.planning.get(path), self.runs.get(path)
        if planning is not None and run is not None and planning.asks_for_plan() and planning.operation is None:
            planning.operation = Operation(
                "plan", run.name, Place(path, n, "plan"), run.place, run.workflow, run.agent, run.conversation
            )
            yield Began(planning.operation)
        yield self._begin_act(path, n, "chat", record["model"], record)

    def _begin_act(self, path: str, n: int, kind: Any, name: str, record: Json) -> Began:
        owner = self._run_above(path)
        planning = self.planning.get(path)
        parent = self._place_above(path)
        if kind == "chat" and planning is not None and planning.operation is not None:
            parent = planning.operation.place
        about = (owner.workflow, owner.agent, owner.conversation) if owner else ("", "", None)
        config, step = (owner.config, self.steps.get(owner.place.path) or None) if owner else ({}, None)
        operation = Operation(kind, name, Place(path, n), parent, *about, None, record, config, step)
        self.acts[path] = operation
        return Began(operation)

    def _end_act(self, path: str, record: Json) -> Iterator[Ended]:
        operation = self.acts.pop(path, None)
        if operation is not None:
            yield Ended(operation, record, *ending_of_act(record), record.get("seconds"), record.get("at"))

    def _decide(self, path: str, record: Json) -> Iterator[Ended]:
        planning = self.planning.get(path)
        if planning is None:
            return
        planned = planning.operation
        if planned is not None and planning.is_settled_by(record):
            planning.operation = None
            yield Ended(planned, record)
        planning.follow(record)

    # ── what lies above ───────────────────────────────────────────────────────────────────────────

    def _run_above(self, path: str) -> Operation | None:
        """The innermost open run that a strand belongs to."""
        while path:
            if path in self.runs:
                return self.runs[path]
            path = parent_of(path)
        return None

    def _place_above(self, path: str) -> Place | None:
        """Where what begins in a strand lies: under the call that it was made by, else under the run."""
        while path:
            if path in self.acts and self.acts[path].kind == "execute_tool":
                return self.acts[path].place
            if path in self.runs:
                return self.runs[path].place
            path = parent_of(path)
        return None
