"""The Action/Final protocol: one JSON object a reply, read strictly or not at all."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any, Literal, get_args

import orjson

from agent_core.loop import json_text

MAX_BYTES = 2**20

Kind = Literal[  # in the order in which they are looked for: the first that fits is reported
    "empty",
    "too_large",
    "truncated",
    "multiple_values",
    "surrounding_text",
    "not_json",
    "too_deep",
    "duplicate_key",
    "number_range",
    "lone_surrogate",
    "not_object",
    "unknown_type",
    "ambiguous",
    "missing_field",
    "wrong_type",
    "unknown_field",
]
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


@dataclass(frozen=True, slots=True)
class ProtocolError:
    """Why a reply could not be read, in words on which the model that wrote it can act."""

    kind: Kind
    message: str


Step = Action | Final | Plan


def parse(
    text: str | None, *, mode: Mode = "strict", finish_reason: str = "stop", any_answer: bool = False
) -> Step | ProtocolError:
    """The one step that a model's reply is, or why it is none. Never raises, on any input.

    `tolerant` also takes a leading byte order mark, a leading `<think>` block, one code fence around the
    object, and the first of several objects if that is an action. JSON inside prose is never looked for.
    """
    reply = text if isinstance(text, str) else ""
    unreadable = _unreadable(reply, finish_reason)
    if unreadable:
        return unreadable
    if mode != "tolerant":
        return _read(reply, any_answer)
    body, stripped = _unwrap(reply)
    step = _read(body, any_answer)
    if isinstance(step, ProtocolError) and step.kind == "multiple_values":
        first = _first_action(body)
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

_ONE_OBJECT = "Send exactly one JSON object, an action or a final, and nothing else."


def _unreadable(reply: str, finish_reason: str) -> ProtocolError | None:
    if not reply.strip(json_text.WHITE_SPACE):
        return _empty()
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


def _empty() -> ProtocolError:
    return ProtocolError("empty", f"The reply was empty. {_ONE_OBJECT}")


def _unwrap(reply: str) -> tuple[str, tuple[str, ...]]:
    body, stripped = reply.strip(json_text.WHITE_SPACE), []
    if reply.startswith("\ufeff"):
        body = body[1:].lstrip(json_text.WHITE_SPACE)
        stripped.append("bom")
    if body.startswith("<think>") and "</think>" in body:
        body = body.partition("</think>")[2].lstrip(json_text.WHITE_SPACE)
        stripped.append("think")
    if len(body) >= 6 and body.startswith("```") and body.endswith("```"):
        body = body[3:-3].removeprefix("json")
        stripped.append("fence")
    return body, tuple(stripped)


def _first_action(body: str) -> Action | None:
    spans = json_text.values(body) or []
    if not all(body[start] == "{" for start, _ in spans):
        return None
    start, end = spans[0]
    step = _read(body[start:end], any_answer=False)
    return step if isinstance(step, Action) else None


# --- the object -----------------------------------------------------------------------------------


def _read(body: str, any_answer: bool) -> Step | ProtocolError:
    try:
        value = json_text.decode(body)
    except ValueError:
        return _undecodable(body)
    flaw = json_text.flaw(value)
    return _flawed(flaw) if flaw else _step(value, any_answer)


def _undecodable(body: str) -> ProtocolError:
    match json_text.values(body):
        case []:
            return _empty()
        case [_]:
            return ProtocolError(
                "too_deep", f"The reply nests brackets too deep. Use at most {json_text.MAX_DEPTH} levels."
            )
        case [_, *_]:
            return ProtocolError(
                "multiple_values",
                "The reply holds more than one JSON value. Send only the next step, as one JSON object; "
                "what a tool returns is told to you afterwards.",
            )
    brace = body.find("{")
    found = json_text.scan(body, max(brace, 0))
    if isinstance(found, json_text.Malformed):
        return _not_json(body, found)
    if brace >= 0:
        return ProtocolError("surrounding_text", f"Other text stands around the JSON object. {_ONE_OBJECT}")
    return _not_json(body, json_text.Malformed(found, "the text goes on after a complete value"))


def _not_json(body: str, broken: json_text.Malformed) -> ProtocolError:
    line = body.count("\n", 0, broken.position) + 1
    column = broken.position - body.rfind("\n", 0, broken.position)
    return ProtocolError(
        "not_json",
        f"The reply is not valid JSON, line {line} column {column}: {broken.reason}. {_ONE_OBJECT}",
    )


def _flawed(flaw: json_text.Flaw) -> ProtocolError:
    at = _shown_pointer(flaw.pointer)
    match flaw.kind:
        case "duplicate_key":
            message = f"The key {_shown(flaw.what)} stands twice in the object at {at}. Give each key once."
        case "number_range":
            message = (
                f"The number at {at} is out of range ({_shown(flaw.what)}). "
                "Integers go from -2^63 to 2^64-1, others must be finite; send a longer number as a string."
            )
        case "lone_surrogate":
            message = f"The text at {at} holds half of a surrogate pair. Write the whole character instead."
    return ProtocolError(flaw.kind, message)


# --- the step -------------------------------------------------------------------------------------

_FIELDS: Mapping[str, Mapping[str, type]] = {
    "action": {"tool": str, "args": dict},
    "final": {"answer": str},
    "plan": {"steps": list},
}
_ANY_FINAL: Mapping[str, type] = {"answer": object}
_PLAN_STEP: Mapping[str, type] = {"step": int, "description": str, "tool": str, "parameters": dict}
_TYPE_NAMES = {
    str: "a string",
    dict: "an object",
    list: "a list",
    int: "an integer",
    float: "a number",
    bool: "a boolean",
    NoneType: "null",
}
_ORDER = {kind: n for n, kind in enumerate(get_args(Kind))}


def _step(value: Any, any_answer: bool) -> Step | ProtocolError:
    if not isinstance(value, dict):
        return ProtocolError("not_object", f"The reply is {_TYPE_NAMES[type(value)]}. {_ONE_OBJECT}")
    kind = value.get("type")
    fault = min(_faults(value, kind, any_answer), key=lambda found: _ORDER[found.kind], default=None)
    if fault:
        return fault
    thought = value.get("thought")
    match kind:
        case "action":
            return Action(value["tool"], value["args"], thought)
        case "final":
            return Final(value["answer"], thought)
        case _:
            return Plan(tuple(PlanStep(**step) for step in value["steps"]), thought)


def _faults(value: dict[str, Any], kind: Any, any_answer: bool) -> Iterator[ProtocolError]:
    if "type" not in value:
        yield ProtocolError("missing_field", '"type" is missing. Set it to "action" or "final".')
    elif not isinstance(kind, str) or kind not in _FIELDS:
        yield _unknown_type(kind)
        return
    is_action = kind == "action" or "tool" in value or "args" in value
    is_final = kind == "final" or "answer" in value
    if is_action and is_final and kind != "plan":
        yield ProtocolError(
            "ambiguous",
            'The reply is both an action and a final. To call a tool send "type", "tool" and "args"; '
            'to answer send "type" and "answer".',
        )
    if kind in _FIELDS:
        fields = _ANY_FINAL if kind == "final" and any_answer else _FIELDS[kind]
        yield from _field_faults(value, fields, "")
        yield from _plan_faults(value) if kind == "plan" else ()


def _unknown_type(kind: Any) -> ProtocolError:
    got = _shown(kind) if isinstance(kind, str) else _TYPE_NAMES[type(kind)]
    return ProtocolError(
        "unknown_type",
        f'"type" is {got}. It must be "action" to call a tool or "final" to answer '
        '("plan" only where a plan is asked for).',
    )


def _field_faults(value: dict[str, Any], fields: Mapping[str, type], pointer: str) -> Iterator[ProtocolError]:
    for name, wanted in fields.items():
        if name not in value:
            yield ProtocolError("missing_field", f"{pointer}/{name} is missing. Add it: {_wanted(wanted)}.")
        elif wanted is not object and type(value[name]) is not wanted:
            yield _wrong_type(f"{pointer}/{name}", value[name], wanted)
    extras = value.keys() - fields.keys()
    for name in extras if pointer else extras - {"type", "thought"}:
        yield ProtocolError(
            "unknown_field",
            f"{_shown(name)} is not a field here. Leave it out, or put a tool's argument into args.",
        )
    if not pointer and "thought" in value and type(value["thought"]) is not str:
        yield _wrong_type("/thought", value["thought"], str)


def _plan_faults(value: dict[str, Any]) -> Iterator[ProtocolError]:
    steps = value.get("steps")
    if not isinstance(steps, list):
        return
    if not steps:
        yield ProtocolError("wrong_type", "/steps is an empty list. Give at least one step.")
    for n, step in enumerate(steps):
        if not isinstance(step, dict):
            yield _wrong_type(f"/steps/{n}", step, dict)
            continue
        yield from _field_faults(step, _PLAN_STEP, f"/steps/{n}")
        if step.get("step") != n + 1:
            yield ProtocolError(
                "wrong_type", f"/steps/{n}/step must be {n + 1}: number the steps from 1 upwards."
            )


def _wrong_type(pointer: str, got: Any, wanted: type) -> ProtocolError:
    return ProtocolError(
        "wrong_type", f"{pointer} is {_TYPE_NAMES[type(got)]}. It must be {_wanted(wanted)}."
    )


def _wanted(wanted: type) -> str:
    return _TYPE_NAMES.get(wanted, "any JSON value")


def _shown(text: str) -> str:
    """A value quoted back, unless it is long or could be taken for a reply."""
    if len(text) > 60 or "{" in text:
        return f"a text of {len(text)} characters"
    return f'"{text}"' if text.isprintable() else ascii(text)


def _shown_pointer(pointer: str) -> str:
    names = [
        name if len(name) <= 60 and name.isprintable() and "{" not in name else "…"
        for name in pointer.split("/")
    ]
    return "/".join(names[:8]) or "the top"
