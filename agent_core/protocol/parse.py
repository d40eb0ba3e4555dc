"""The Action/Final protocol: one JSON object a reply, read strictly or not at all. Pure."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import orjson

from agent_core.protocol import strict_json
from agent_core.protocol.errors import (
    Kind,
    ProtocolError,
    check_object,
    explain_broken,
    explain_empty,
    explain_json_fault,
)
from agent_core.protocol.wrappings import BOM, WHITE_SPACE, unwrap
from agent_core.rules import EARLIEST
from agent_core.words.catalogue import ENGLISH, Words

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
    """A step of a plan: a tool with its parameters."""

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
    text: str | None,
    *,
    mode: Mode = "strict",
    finish_reason: str = "stop",
    any_answer: bool = False,
    words: Words = ENGLISH,
    rules: int = EARLIEST["replies"],
) -> Step | ProtocolError:
    """Read the one step that a model's reply is. JSON inside prose is never looked for.

    Args:
        text: The reply.
        mode: "strict", or "tolerant", which also takes a leading byte order mark, a leading `<think>` block, one code
            fence around the object, and the first of several objects if that is an action.
        finish_reason: Why the model stopped; after "length" the reply is cut off.
        any_answer: Whether the answer may be any JSON value, where it has a schema; else it is a text.
        words: The texts of the language of an error; English by default.
        rules: The version of the rules for replies (agent_core/rules.py). By the second, which runs follow, the
            beginning of the think block may be missing.

    Returns:
        The Action, Final or Plan; or the ProtocolError that says why the reply is none. It is returned, never raised.

    Example:
        ```python
        from agent_core import Action, Final, ProtocolError, parse

        assert parse('{"type":"final","answer":"42"}') == Final("42")
        assert parse('{"type":"action","tool":"stock","args":{"q":"A-17"}}') == Action("stock", {"q": "A-17"})
        assert isinstance(parse("The answer is 42."), ProtocolError)
        ```
    """
    reply = text if isinstance(text, str) else ""
    error = _check_size(reply, finish_reason, words)
    if error:
        return error
    if mode != "tolerant":
        return _read(reply, any_answer, words)
    body, stripped = unwrap(reply, rules=rules)
    step = _read(body, any_answer, words)
    if isinstance(step, ProtocolError) and step.kind == "multiple_values":
        first = _read_first_action(body)
        step, stripped = (first, (*stripped, "trailing")) if first else (step, stripped)
    return replace(step, stripped=stripped) if stripped and not isinstance(step, ProtocolError) else step


def render(step: Step) -> str:
    """Return the canonical text of a step, as a transcript shows it: compact, its keys in the protocol's order."""
    match step:
        case Action(tool, args, thought):
            reply: dict[str, Any] = {"type": "action", "tool": tool, "args": args}
        case Final(answer, thought):
            reply = {"type": "final", "answer": answer}
        case Plan(steps, thought):
            reply = {"type": "plan", "steps": [asdict(each) for each in steps]}
    if thought is not None:
        reply["thought"] = thought
    return orjson.dumps(reply).decode()


# --- the text around the object -------------------------------------------------------------------


def _check_size(reply: str, finish_reason: str, words: Words) -> ProtocolError | None:
    if not reply.strip(WHITE_SPACE):
        return explain_empty(words)
    if len(reply) * 4 > MAX_BYTES and (size := len(reply.encode("utf-8", "surrogatepass"))) > MAX_BYTES:
        return ProtocolError("too_large", words.too_large.format(size=size, most=MAX_BYTES))
    if finish_reason == "length":
        return ProtocolError("truncated", words.cut_off)
    return None


def _read_first_action(body: str) -> Action | None:
    spans = strict_json.find_values(body) or []
    if not all(body[start] == "{" for start, _ in spans):
        return None
    start, end = spans[0]
    step = _read(body[start:end], any_answer=False, words=ENGLISH)
    return step if isinstance(step, Action) else None


# --- the object -----------------------------------------------------------------------------------


def read_value(body: str, words: Words = ENGLISH) -> Any:
    """Return the JSON value of a text, or the ProtocolError that says why it is refused."""
    value = strict_json.decode_sound(body)
    if value is not None:
        return value
    try:
        value = strict_json.decode(body)
    except ValueError:
        return _explain_undecodable(body, words)
    fault = strict_json.find_json_fault(value)
    return explain_json_fault(fault, words) if fault else value


def _read(body: str, any_answer: bool, words: Words) -> Step | ProtocolError:
    value = read_value(body, words)
    match value:  # the usual reply first: it has what an action has, and nothing else
        case {"type": "action", "tool": str(tool), "args": dict(), "thought": str(thought)} if len(value) == 4:
            return Action(tool, value["args"], thought)
        case {"type": "action", "tool": str(tool), "args": dict()} if len(value) == 3:
            return Action(tool, value["args"])
        case ProtocolError():
            return value
        case _:
            pass
    return check_object(value, any_answer=any_answer, words=words) or _make_step(value)


def _make_step(value: dict[str, Any]) -> Step:
    thought = value.get("thought")
    match value["type"]:
        case "action":
            return Action(value["tool"], value["args"], thought)
        case "final":
            return Final(value["answer"], thought)
        case _:
            return Plan(tuple(PlanStep(**step) for step in value["steps"]), thought)


def _explain_undecodable(body: str, words: Words) -> ProtocolError:
    match strict_json.find_values(body):
        case []:
            return explain_empty(words)
        case [_]:
            return ProtocolError("too_deep", words.too_deep_reply.format(depth=strict_json.MAX_DEPTH))
        case [_, *_]:
            return ProtocolError("multiple_values", words.several_values)
        case _:
            return _explain_malformed(body, words)


def _explain_malformed(body: str, words: Words) -> ProtocolError:
    start = body.find("{")
    if start < 0:
        return ProtocolError("not_json", words.no_object.format(one_object=words.one_object))
    end = strict_json.scan(body, start)
    if isinstance(end, strict_json.Malformed):
        return explain_broken(body, end, words)
    if (body[:start] + body[end:]).strip(WHITE_SPACE) == BOM:
        return explain_broken(body, strict_json.Malformed(body.index(BOM), "byte_order_mark"), words)
    return ProtocolError("surrounding_text", words.surrounding_text.format(one_object=words.one_object))
