"""Nodes that wait for a time or a signal. Pure."""

from collections.abc import Generator
from typing import Any

from agent_core.effects import AwaitEvent, CallReply, Effect, Elapsed, Event, Stop, ToolCall, ToolReply
from agent_core.outputs import Json
from engine_shim.flow.approval import make_call


def call_and_await(call: ToolCall) -> Generator[Effect, Any, CallReply]:
    """Make a call whose result says for what the node waits, and wait for that."""
    reply = yield from make_call(call)
    if not isinstance(reply, ToolReply) or not reply.success:
        return reply
    event: Event | Stop = yield AwaitEvent(call, reply.output["until"], reply.output["signal"])
    if isinstance(event, Stop):
        return event
    return reply._replace(output=_describe(event, reply.output["until"]), at=event.at)


def _describe(event: Event, until: str | None) -> Json:
    """Return the output of the node."""
    if isinstance(event, Elapsed):
        return {"signal": None, "data": None, "by": None, "at": event.at, "until": until}
    return {"signal": event.name, "data": event.data, "by": event.by, "at": event.at, "until": until}
