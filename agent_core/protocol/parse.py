"""The Action/Final protocol: one JSON object a reply, read strictly or not at all. Pure."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import orjson

from agent_core.protocol import strict_json
from agent_core.protocol.errors import (
    ONE_OBJECT,
    Kind,
    ProtocolError,
    check_object,
    explain_empty,
    explain_flaw,
    explain_not_json,
)
from agent_core.protocol.wrappings import BOM, WHITE_SPACE, unwrap

__all__ = [
    "Action",
    "Final",
    "Kind",
    "Mode",
    "Plan",
    "PlanStep",
    "ProtocolError",
    "Step",
    "parse",
    "read_value",
    "render",
]

MAX_BYTES = 2**20

Mode = Literal["strict", "tolerant"]


@dataclass(frozen=True, slots=True)
class Action:
    """A tool to call. `stripped` names what tolerant parsing took off the reply."""

    tool: str
    args: dict[str, Any]
    thought: str | None = None
    stripped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Final:
    """The answer: a string, or any JSON value where the node has an `answer_schema`."""

    answer: Any
    thought: str | None = None
    stripped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanStep:
    step: int
    description: str
    tool: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps numbered from 1, legal only where a plan was asked for: the caller knows."""

    steps: tuple[PlanStep, ...]
    thought: str | None = None
    stripped: tuple[str, ...] = ()


Step = Action | Final | Plan


def parse(
    text: str | None, *, mode: Mode = "strict", finish_reason: str = "stop", any_answer: bool = False
) -> Step | ProtocolError:
    """The one step that a model's reply is, or why it is none. It never raises, on any input.

    `tolerant` also takes a leading byte order mark, a leading `<think>` block, one code fence around the
    object, and the first of several objects if that is an action. JSON inside prose is never looked for.
    """
    reply = text if isinstance(text, str) else ""
    error = _check_size(reply, finish_reason)
    if error:
        return error
    if mode != "tolerant":
        return _read(reply, any_answer)
    body, stripped = unwrap(reply)
    step = _read(body, any_answer)
    if isinstance(step, ProtocolError) and step.kind == "multiple_values":
        first = _read_first_action(body)
        step, stripped = (first, (*stripped, "trailing")) if first else (step, stripped)
    return replace(step, stripped=stripped) if stripped and not isinstance(step, ProtocolError) else step


def render(step: Action | Final) -> str:
    """The canonical text of a step, as a transcript shows it: compact, its keys in the protocol's order."""
    match step:
        case Action(tool, args, thought):
            reply: dict[str, Any] = {"type": "action", "tool": tool, "args": args}
        case Final(answer, thought):
            reply = {"type": "final", "answer": answer}
    if thought is not None:
        reply["thought"] = thought
    return orjson.dumps(reply).decode()


# --- the text around the object -------------------------------------------------------------------


def _check_size(reply: str, finish_reason: str) -> ProtocolError | None:
    if not reply.strip(WHITE_SPACE):
        return explain_empty()
    if len(reply) * 4 > MAX_BYTES and (size := len(reply.encode("utf-8", "surrogatepass"))) > MAX_BYTES:
        return ProtocolError(
            "too_large",
            f"The reply has {size} bytes, and at most {MAX_BYTES} are read. Send a much shorter one.",
        )
    if finish_reason == "length":
        return ProtocolError(
            "truncated", "The reply was cut off because it reached the output limit. Send a shorter one."
        )
    return None


def _read_first_action(body: str) -> Action | None:
    spans = strict_json.find_values(body) or []
    if not all(body[start] == "{" for start, _ in spans):
        return None
    start, end = spans[0]
    step = _read(body[start:end], any_answer=False)
    return step if isinstance(step, Action) else None


# --- the object -----------------------------------------------------------------------------------


def read_value(body: str) -> Any:
    """The JSON value of a text, or the ProtocolError that says why it is refused."""
    try:
        value = strict_json.decode(body)
    except ValueError:
        return _explain_undecodable(body)
    flaw = strict_json.find_flaw(value)
    return explain_flaw(flaw) if flaw else value


def _read(body: str, any_answer: bool) -> Step | ProtocolError:
    value = read_value(body)
    if isinstance(value, ProtocolError):
        return value
    return check_object(value, any_answer=any_answer) or _make_step(value)


def _make_step(value: dict[str, Any]) -> Step:
    thought = value.get("thought")
    match value["type"]:
        case "action":
            return Action(value["tool"], value["args"], thought)
        case "final":
            return Final(value["answer"], thought)
        case _:
            return Plan(tuple(PlanStep(**step) for step in value["steps"]), thought)


def _explain_undecodable(body: str) -> ProtocolError:
    match strict_json.find_values(body):
        case []:
            return explain_empty()
        case [_]:
            return ProtocolError(
                "too_deep", f"The reply nests brackets too deep. Use at most {strict_json.MAX_DEPTH} levels."
            )
        case [_, *_]:
            return ProtocolError(
                "multiple_values",
                "The reply holds more than one JSON value. Send only the next step, as one JSON object; "
                "what a tool returns is told to you afterwards.",
            )
    return _explain_broken(body)


def _explain_broken(body: str) -> ProtocolError:
    start = body.find("{")
    if start < 0:
        return ProtocolError(
            "not_json",
            f'The reply holds no JSON object. {ONE_OBJECT} An answer stands in a final, under "answer".',
        )
    end = strict_json.scan(body, start)
    if isinstance(end, strict_json.Malformed):
        return explain_not_json(body, end)
    if (body[:start] + body[end:]).strip(WHITE_SPACE) == BOM:
        return explain_not_json(body, strict_json.Malformed(body.index(BOM), "a byte order mark is not allowed"))
    return ProtocolError("surrounding_text", f"Other text stands around the JSON object. {ONE_OBJECT}")
