"""Calls of plain nodes that a person has to let through before they are made. Pure."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from agent_core.decisions import Decision, Deny, Edit
from agent_core.effects import CallReply, CallTools, Effect, Failed, Stop, ToolCall, Wait
from agent_core.loop.judge import edit_faults, refuse_arguments
from agent_core.outputs import Json
from agent_core.policy import effect_of
from engine_shim.definition.model import Node
from engine_shim.flow.call import refuse_masked
from engine_shim.flow.state import State


@dataclass(frozen=True, slots=True)
class LetThrough:
    """A call that a person let through, perhaps with other arguments, and the reply to it."""

    call: ToolCall
    reply: CallReply


def needs_person(node: Node, call: ToolCall) -> bool:
    """Return whether a call waits for a person first."""
    return node.approval == "always" or (node.approval == "on_write" and call.effect == "write")


def make_call(call: ToolCall) -> Generator[Effect, Any, CallReply]:
    """Make one call."""
    replies: tuple[CallReply, ...] = yield CallTools((call,))
    return replies[0]


def ask_and_call(
    state: State, call: ToolCall, make: Callable[[ToolCall], Generator[Effect, Any, CallReply]] = make_call
) -> Generator[Effect, Any, LetThrough | Failed | Stop]:
    """Ask a person about a call, and make it unless that person refuses it."""
    settled = yield from ask_person(state, [call])
    if isinstance(settled, Stop):
        return settled
    if isinstance(settled[0], Failed):
        return settled[0]
    return LetThrough(settled[0], (yield from make(settled[0])))


def ask_person(state: State, calls: Sequence[ToolCall]) -> Generator[Effect, Any, list[ToolCall | Failed] | Stop]:
    """Each call as a person let it through, or the failure that its refusal is."""
    decisions = yield Wait(tuple(calls))
    if isinstance(decisions, Stop):
        return decisions
    return [_settle(state, call, decision) for call, decision in zip(calls, decisions, strict=True)]


def _settle(state: State, call: ToolCall, decision: Decision) -> ToolCall | Failed:
    match decision:
        case Deny(message, at=at):
            refusal = f"a person refused the call of {call.tool}" + (f": {message}" if message else "")
            return Failed("policy_denied", refusal, at, 0.0)
        case Edit(args, schema=schema):
            return _edit(state, call, args, schema)
        case _:
            return call


def _edit(state: State, call: ToolCall, args: Json, now: Json | None) -> ToolCall | Failed:
    """Return the call with a person's arguments, judged by the tool's schema as it is `now`, if that has changed.

    A secret is filled in only where the text for it is as it was.
    """
    if refusal := refuse_masked(state, call.tool, args):
        return Failed("policy_denied", refusal, "", 0.0)
    if faults := edit_faults(state.schemas[call.tool].schema, call.config, args, state.comparison, now):
        return Failed("policy_denied", refuse_arguments(call.tool, faults), "", 0.0)
    fills = [fill for fill in call.fills if _value_at(args, fill["at"]) == _value_at(call.config, fill["at"])]
    effect = effect_of(state.tools[call.tool], args) or "write"
    return call._replace(args=args, config=args, effect=effect, fills=fills)


def _value_at(value: Any, at: Sequence[Any]) -> Any:
    """Return what lies at these keys and indices; None where nothing does."""
    for key in at:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value
