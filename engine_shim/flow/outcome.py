"""FlowOutcome: the result of a workflow run, as its caller, its parent and its journal get it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, get_args

import orjson

from agent_core.effects import ToolReply
from agent_core.outputs import FinishReason, Json, WaitingCall
from agent_core.statuses import RunStatus
from agent_core.words.catalogue import words_in
from engine_shim.definition.errors import message_of
from engine_shim.definition.template import render
from engine_shim.errors import DefinitionError
from engine_shim.flow.branch import judgement_name
from engine_shim.flow.conversation import RunValues, messages_at_the_end
from engine_shim.flow.state import Key, State, VisitState
from engine_shim.flow.visit_limit import exceeded

_REASONS: dict[str, FinishReason] = {"completed": "final", "cancelled": "cancelled", "paused": "paused"}
_WAITING: tuple[FinishReason, ...] = ("in_doubt", "awaiting_approval", "awaiting_event")
"""Why a run waits; of several the first one counts."""
_KINDS = get_args(FinishReason)


@dataclass(frozen=True, slots=True)
class FlowOutcome:
    """How a workflow run ended.

    `output` is the result as a program gets it, all but `journal`: the `nodes`' outputs, and those that the definition
    declares. `declared` are the latter alone, None where it declares none; `gives_declared` says that a model which
    called the workflow gets them alone, as the run's rules have it. `failed` are the visits (node, n) whose failures
    made the run fail, `messages` those that its agents have added.
    """

    output: Json
    at: str
    seconds: float
    usage: Json
    spent: Json
    nodes: Json
    declared: Json | None
    gives_declared: bool
    waiting: tuple[WaitingCall, ...] = ()
    failed: tuple[Key, ...] = ()
    messages: Sequence[Json] = ()

    @property
    def finish_reason(self) -> FinishReason:
        status: RunStatus = self.output["status"]
        kind: Any = (self.output["error"] or {}).get("kind")
        if status == "waiting":
            reasons = {entry["reason"] for entry in self.waiting}
            found: list[FinishReason] = [reason for reason in _WAITING if reason in reasons]
            return found[0] if found else "awaiting_approval"
        return _REASONS.get(status, kind if kind in _KINDS else "tool_error")

    def result(self) -> Json:
        """Return the output with the declared outputs alone, where the definition declares any."""
        return self.output if self.declared is None else {**self.output, "outputs": self.declared}

    def finished(self) -> Json:
        """Return the fields of the `run_finished` record."""
        fields = {key: self.output[key] for key in ("status", "path", "error")}
        return {**fields, "at": self.at, "output": sha256(orjson.dumps(self.output)).hexdigest()}

    def answer(self, language: str = "en") -> ToolReply:
        """Return the run as the result of the call that started it, for a model that reads this language."""
        error = self.output["error"]
        success = self.output["status"] == "completed"
        why, ended = (error or {}).get("message"), words_in(language).workflow_ended
        message = None if success else ended.format(status=self.output["status"], message=why)
        outputs = (self.result() if self.gives_declared else self.output)["outputs"]
        return ToolReply(success, outputs, message, self.at, self.seconds, usage=self.usage)


def outcome_of(state: State) -> FlowOutcome:
    """Return the outcome of a run in which nothing more can be done, for now or for good."""
    visits = sorted(state.visits.values(), key=lambda visit: (visit.rank, state.index[visit.node], visit.n))
    errors = [visit.error for visit in visits if visit.error]
    waiting = tuple(entry for visit in visits for entry in visit.waiting)
    nodes = {visit.node: visit.output for visit in visits if _is_latest(state, visit) and visit.has_output}
    declared: Json = {}
    if not (state.cancelled or errors or waiting):
        errors = [error] if (error := exceeded(state)) else []
    if not (state.cancelled or errors or waiting):
        try:
            names, quoted = state.names(state.latest_outputs(), RunValues(state)), state.has_quoted_keys
            declared = render(state.definition.outputs, names, where="outputs", quoted=quoted)
        except DefinitionError as error:
            errors = [error_of(error)]
    status = _status(state, bool(errors), waiting)
    result = {
        "run_id": state.run,
        "status": status,
        "outputs": nodes | declared,
        "path": [visit.node for visit in visits],
        "waiting": [entry for entry in waiting if entry["reason"] != "paused"],
        "error": errors[0] if errors else None,
    }
    state.budget.seconds = max([state.budget.seconds, *(visit.start + visit.seconds for visit in visits)])
    spent = state.budget.spent()
    usage = {**state.budget.usage(), "writes": spent["writes"]}
    open_calls = waiting if status in ("waiting", "paused") else ()
    failed = tuple(_failed_visit(state, visit) for visit in visits if visit.error)
    messages = messages_at_the_end(state)
    given = declared if state.definition.outputs else None
    ended = (result, state.at, state.budget.seconds, usage, spent, nodes, given, state.gives_declared)
    return FlowOutcome(*ended, open_calls, failed, messages)


def _failed_visit(state: State, visit: VisitState) -> Key:
    """Return the visit itself, or the judgement of its edge that failed."""
    for edge in state.graph.outgoing[visit.node]:
        if visit.error is not None and visit.error["where"] == f"edges/{edge.index}" and edge.ask:
            return judgement_name(edge), visit.n
    return visit.key


def _is_latest(state: State, visit: VisitState) -> bool:
    return state.latest[visit.node] == visit.n


def error_of(error: DefinitionError) -> Json:
    """Return a fault of the definition that showed only during the run."""
    return {"kind": "definition", "message": message_of(error), "where": error.where}


def _status(state: State, failed: bool, waiting: tuple[WaitingCall, ...]) -> RunStatus:
    """Return the status. A pause comes first: what it delays may still change how the run ends."""
    if any(entry["reason"] == "paused" for entry in waiting):
        return "paused"
    if state.cancelled:
        return "cancelled"
    if failed:
        return "failed"
    return "waiting" if waiting else "completed"
