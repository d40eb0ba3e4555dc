"""What the reply to a node's call means for the node: its output, how it failed, whether another try may help. Pure."""

from dataclasses import dataclass
from typing import Any

from agent_core.effects import Cancelled, Failed, Stop, Suspended, ToolCall, ToolReply
from agent_core.outputs import Json
from engine_shim.flow.outcome import FlowOutcome
from engine_shim.flow.state import State

RETRIED = ("model_error", "tool_error")
"""Failures that may not happen again the next time."""
_OWN_KINDS = ("definition", "policy_denied")
"""Failures of a call that was not made; whatever else fails is the tool's error."""


@dataclass(frozen=True, slots=True)
class End:
    """How a call ended. `output` is what later nodes read, `kind` and `message` say how it failed, if it did.

    `answer` has its time and what it used. `spent` is what a nested run has used up, earlier attempts included; None
    for a plain call. `may_pass` says that it may be tried again.
    """

    output: Any
    answer: ToolReply | Failed
    kind: str | None = None
    message: str = ""
    spent: Json | None = None
    may_pass: bool = False


def read_end(state: State, call: ToolCall, reply: Any, journal: Json | None) -> End | Stop:
    """Return the end of a call. A reply that stops the run is given back."""
    match reply:
        case Cancelled() | Suspended():
            return reply
        case ToolReply(success=True):
            return End(reply.output, reply)
        case ToolReply() | Failed():
            return _read_failure(call, state.tools[call.tool]["within"], reply)
        case _:
            return _read_nested_end(state, reply, journal)


def nested_output(state: State, outcome: Any, journal: Json | None) -> Json:
    """Return what later nodes read of a nested run: of a workflow that declares outputs, those alone."""
    is_declared = state.gives_declared and isinstance(outcome, FlowOutcome)
    return {**(outcome.result() if is_declared else outcome.output), "journal": journal}


def _read_failure(call: ToolCall, usual: float | None, reply: ToolReply | Failed) -> End:
    """Read the end of a tool that failed, or a nested run that could not start; `usual` is its usual time, seconds."""
    kind, is_permanent = "tool_error", isinstance(reply, ToolReply) and reply.permanent
    if isinstance(reply, Failed):
        out_of_time = reply.reason == "timeout" and call.within != usual
        kind = reply.reason if reply.reason in _OWN_KINDS else "timeout" if out_of_time else kind
    message = reply.message if isinstance(reply, Failed) else reply.error or "the tool failed"
    output = {"error": {"kind": kind, "message": message}, "output": getattr(reply, "output", None)}
    may_pass = kind in RETRIED and not call.once_only and not is_permanent
    return End(output, reply, kind, message, may_pass=may_pass)


def _read_nested_end(state: State, outcome: Any, journal: Json | None) -> End | Suspended:
    """Read the end of a nested run, whose output can be read however it ended."""
    if outcome.waiting:
        return Suspended(outcome.finish_reason, outcome.waiting)
    answer, output = outcome.answer(), nested_output(state, outcome, journal)
    if answer.success:
        return End(output, answer, spent=outcome.spent)
    message = (outcome.output.get("error") or {}).get("message", answer.error)
    may_pass = outcome.finish_reason in RETRIED and not outcome.spent["writes"]
    return End(output, answer, outcome.finish_reason, message, outcome.spent, may_pass)
