"""flow(): the loop of a workflow run. It asks for node visits and returns an outcome. Pure."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import orjson

from agent_core.loop.effects import (
    Cancelled,
    Did,
    Effect,
    Failed,
    FinishReason,
    Json,
    Outcome,
    Suspended,
    ToolCall,
    Visit,
    Visits,
)
from agent_core.loop.judge import compiled_schema, effect_of
from engine_shim.errors import DefinitionError
from engine_shim.graph.definition import Definition
from engine_shim.graph.problem import told
from engine_shim.graph.schedule import Graph, graph_of, schedule
from engine_shim.graph.template import render

_REASONS: dict[str, FinishReason] = {"completed": "final", "cancelled": "cancelled", "waiting": "awaiting_approval"}


@dataclass(frozen=True, slots=True)
class FlowOutcome:
    """How a workflow run came out. `result` is what a caller gets, all but `journal`."""

    result: Json
    at: str
    seconds: float
    usage: Json
    waiting: tuple[Json, ...] = ()

    @property
    def finish_reason(self) -> FinishReason:
        return _REASONS.get(self.result["status"], "tool_error")

    def finished(self) -> Json:
        told = {key: self.result[key] for key in ("status", "path", "error")}
        return {**told, "at": self.at, "output": sha256(orjson.dumps(self.result)).hexdigest()}

    def answer(self) -> Did:
        error = self.result["error"]
        success = self.result["status"] == "completed"
        message = None if success else f"the workflow ended as {self.result['status']}: {(error or {}).get('message')}"
        return Did(success, self.result["outputs"], message, self.at, self.seconds, usage=self.usage)


@dataclass(slots=True)
class _Progress:
    """What has happened so far, whatever the order in which branches ended."""

    started: Json
    definition: Definition
    graph: Graph
    outputs: Json = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)
    errors: dict[str, Json] = field(default_factory=dict)
    waiting: dict[str, tuple[Json, ...]] = field(default_factory=dict)
    cancelled: bool = False
    at: str = ""

    def names(self) -> Json:
        return {
            "external": self.started["external"],
            "env": self.started["env"],
            "nodes": self.outputs,
            "run": {"id": self.started["run"]},
        }


def flow(started: Json) -> Generator[Effect, Any, Outcome]:
    """One workflow run, from its `run_started` record to its outcome."""
    definition = Definition.model_validate(started["definition"])
    progress = _Progress(started, definition, graph_of(definition), at=started["at"])
    first = _start(progress)
    if first:
        yield Visits(tuple(first), lambda visit, reply, journal: _ended(progress, visit, reply, journal))
    return _outcome(progress)


def _start(progress: _Progress) -> list[Visit]:
    """The visits that may start now.

    A branch that failed, waits or was cancelled stops; the others go on. If they stopped as well, what had started
    by then would depend on time, and a replay would find another path.
    """
    visits: list[Visit] = []
    for name in schedule(progress.graph, progress.finished):
        if name not in progress.begun:
            progress.begun.add(name)
            if call := _call(progress, name):
                visits.append(Visit(name, 1, call))
    return visits


def _call(progress: _Progress, name: str) -> ToolCall | None:
    """The node's call with its placeholders filled; None when that failed, and with it the run."""
    index = progress.graph.order.index(name)
    node = progress.definition.nodes[index]
    where = f"nodes/{index}/config"
    tool = progress.started["tools"][node.tool]
    try:
        config = render(node.config, progress.names(), where=where)
    except DefinitionError as error:
        progress.errors[name] = _definition_error(error)
        return None
    if faults := compiled_schema(tool["schema"]).faults(config):
        message = " ".join(fault.message for fault in faults)
        progress.errors[name] = {"kind": "definition", "message": message, "where": where}
        return None
    effect = effect_of({**tool, "preset": {}}, config) or "write"
    return ToolCall(name, node.tool, config, config, effect, tool["within"], tool["idempotent"])


def _ended(progress: _Progress, visit: Visit, reply: Any, journal: Json | None) -> Sequence[Visit]:
    """Take in what a visit came to, and name those that may start now."""
    name = visit.node
    match reply:
        case Did(success=True):
            _finish(progress, name, reply.output, reply.at)
        case Did() | Failed():
            _failed(progress, name, reply)
        case Cancelled(at):
            progress.cancelled, progress.at = True, max(progress.at, at)
        case Suspended(waiting=waiting):
            progress.waiting[name] = waiting
        case _:
            _nested(progress, name, reply, journal)
    return _start(progress)


def _finish(progress: _Progress, name: str, output: Any, at: str) -> None:
    progress.outputs[name] = output
    progress.finished.add(name)
    progress.at = max(progress.at, at)


def _failed(progress: _Progress, name: str, reply: Did | Failed) -> None:
    """A plain tool's failure, or a nested run that could not be started."""
    kind = reply.reason if isinstance(reply, Failed) and reply.reason == "definition" else "tool_error"
    message = reply.message if isinstance(reply, Failed) else reply.error or "the tool failed"
    progress.errors[name] = {"kind": kind, "message": message, "where": name}
    progress.outputs[name] = {"error": message, "output": reply.output if isinstance(reply, Did) else None}
    progress.at = max(progress.at, reply.at)


def _nested(progress: _Progress, name: str, outcome: Any, journal: Json | None) -> None:
    """A nested run's outcome; its output is there to read however it ended."""
    progress.outputs[name] = {**outcome.output, "journal": journal}
    if outcome.waiting:
        progress.waiting[name] = outcome.waiting
        return
    answer = outcome.answer()
    progress.at = max(progress.at, answer.at)
    if outcome.finish_reason == "cancelled":
        progress.cancelled = True
    elif answer.success:
        progress.finished.add(name)
    else:
        message = (outcome.output.get("error") or {}).get("message", answer.error)
        progress.errors[name] = {"kind": outcome.finish_reason, "message": message, "where": name}


def _outcome(progress: _Progress) -> FlowOutcome:
    ranks = progress.graph.ranks()
    path = sorted(progress.begun, key=ranks.__getitem__)
    errors = [progress.errors[name] for name in path if name in progress.errors]
    outputs = {name: progress.outputs[name] for name in path if name in progress.outputs}
    waiting = tuple(entry for name in path for entry in progress.waiting.get(name, ()))
    if not (progress.cancelled or errors or waiting):
        try:
            outputs |= render(progress.definition.outputs, progress.names(), where="outputs")
        except DefinitionError as error:
            errors = [_definition_error(error)]
    status = _status(progress, bool(errors), bool(waiting))
    result = {
        "run_id": progress.started["run"],
        "status": status,
        "outputs": outputs,
        "path": path,
        "waiting": list(waiting),
        "error": errors[0] if errors else None,
    }
    return FlowOutcome(result, progress.at, 0.0, {}, waiting if status == "waiting" else ())


def _definition_error(error: DefinitionError) -> Json:
    return {"kind": "definition", "message": told(error), "where": error.where}


def _status(progress: _Progress, failed: bool, waiting: bool) -> str:
    if progress.cancelled:
        return "cancelled"
    if failed:
        return "failed"
    return "waiting" if waiting else "completed"
