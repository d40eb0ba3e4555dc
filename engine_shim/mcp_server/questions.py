"""Waiting calls as questions: the form that a client shows to a person, and the decision in its answer. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson
from mcp_types import ElicitRequestFormParams, ElicitResult

from agent_core.decisions import WITHOUT_FIELDS, Decision, Deny, Done
from agent_core.outputs import Json, WaitingCall
from agent_core.protocol.clip import clip
from utools.json_text import parse_json
from utools.schema.json_value import as_json

LONGEST_ARGS: Final = 8_000
DECLINED: Final = "declined at the client"
APPROVAL: Final = ("approve", "deny")
IN_DOUBT: Final = ("retry", "skip", "fail", "done")


def key_of(call: WaitingCall) -> str:
    """Return how a question is named: the place of the call that waits."""
    return f"{call['strand']}:{call['n']}"


def choices_of(call: WaitingCall) -> tuple[str, ...]:
    """Return what may be decided about a call."""
    return IN_DOUBT if call["reason"] == "in_doubt" else APPROVAL


def describe_call(call: WaitingCall) -> str:
    """Return a call that waits, for the person who decides: its tool, its arguments, and why."""
    why = "may or may not have happened" if call["reason"] == "in_doubt" else f"needs your decision ({call['reason']})"
    more = f": {message}" if (message := call.get("message")) else ""
    return f"{call['tool']} {clip(orjson.dumps(call['args']).decode(), LONGEST_ARGS)} {why}{more}"


def form_of(call: WaitingCall, run: str) -> ElicitRequestFormParams:
    """Return the question about a call."""
    choices = choices_of(call)
    properties: Json = {"decision": {"type": "string", "title": "Decision", "enum": list(choices)}}
    if "deny" in choices:
        about = "Why it is denied; the model reads it"
        properties["message"] = {"type": "string", "title": "Message", "description": about}
    if "done" in choices:
        about = "What the call gave, if it is done: JSON"
        properties["output"] = {"type": "string", "title": "Output", "description": about}
    schema = {"type": "object", "properties": properties, "required": ["decision"]}
    return ElicitRequestFormParams(message=f"{describe_call(call)}, in run {run}", requested_schema=schema)


def read_decision(call: WaitingCall, answer: ElicitResult) -> Decision | None:
    """Return what the person decided; None for one who did not, and for an answer that is no choice.

    Who declines the form denies the call; a call in doubt waits on then.
    """
    content: Mapping[str, Any] = answer.content or {}
    choice = content.get("decision") if answer.action == "accept" else None
    if answer.action == "decline" and "deny" in choices_of(call):
        return Deny(DECLINED)
    if choice not in choices_of(call):
        return None
    if choice == "done":
        return _read_done(str(content.get("output") or "null"))
    return Deny(str(content.get("message") or "")) if choice == "deny" else WITHOUT_FIELDS[str(choice)]()


def _read_done(text: str) -> Done | None:
    """Return that a write is done, with the result that a person wrote; None for what is no JSON: it waits on."""
    try:
        return Done(as_json(parse_json(text)))
    except ValueError:
        return None


def read_decisions(calls: Iterable[WaitingCall], answers: Mapping[str, object]) -> dict[tuple[str, int], Decision]:
    """Return the decisions in the answers to several questions, each under the key of its call."""
    found = {}
    for call in calls:
        answer = answers.get(key_of(call))
        if isinstance(answer, ElicitResult) and (decision := read_decision(call, answer)):
            found[call["strand"], call["n"]] = decision
    return found
