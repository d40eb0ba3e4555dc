"""What can be wrong with a reply: the kinds in their order, and words on which the model can act. Pure.

No message holds an opening brace: a small model would send it straight back.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal, get_args

from agent_core.protocol.strict_json import Flaw, Malformed

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


@dataclass(frozen=True, slots=True)
class ProtocolError:
    """Why a reply could not be read, in words on which the model that wrote it can act."""

    kind: Kind
    message: str


ONE_OBJECT = "Send exactly one JSON object, an action or a final, and nothing else."


# --- the text -------------------------------------------------------------------------------------


def explain_empty() -> ProtocolError:
    return ProtocolError("empty", f"The reply was empty. {ONE_OBJECT}")


def explain_not_json(body: str, broken: Malformed) -> ProtocolError:
    line = body.count("\n", 0, broken.position) + 1
    column = broken.position - body.rfind("\n", 0, broken.position)
    return ProtocolError(
        "not_json", f"The reply is not valid JSON, line {line} column {column}: {broken.reason}. {ONE_OBJECT}"
    )


def explain_flaw(flaw: Flaw) -> ProtocolError:
    at = _quote_pointer(flaw.pointer)
    match flaw.kind:
        case "duplicate_key":
            message = f"The key {_quote(flaw.what)} stands twice in the object at {at}. Give each key once."
        case "number_range":
            message = (
                f"The number at {at} is out of range ({_quote(flaw.what)}). "
                "Integers go from -2^63 to 2^64-1, others must be finite; send a longer number as a string."
            )
        case "lone_surrogate":
            message = f"The text at {at} holds half of a surrogate pair. Write the whole character instead."
    return ProtocolError(flaw.kind, message)


# --- the object -----------------------------------------------------------------------------------

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
    object: "any JSON value",
}
_ORDER = {kind: n for n, kind in enumerate(get_args(Kind))}


def check_object(value: Any, *, any_answer: bool) -> ProtocolError | None:
    """The first fault, in the order of the kinds, of a JSON value that should be a step."""
    if not isinstance(value, dict):
        return ProtocolError("not_object", f"The reply is {_TYPE_NAMES[type(value)]}. {ONE_OBJECT}")
    return min(_find_faults(value, any_answer), key=lambda found: _ORDER[found.kind], default=None)


def _find_faults(value: dict[str, Any], any_answer: bool) -> Iterator[ProtocolError]:
    kind = value.get("type")
    if "type" not in value:
        yield ProtocolError("missing_field", '"type" is missing. Set it to "action" or "final".')
    elif not isinstance(kind, str) or kind not in _FIELDS:
        yield _unknown_type_error(kind)
    is_action = kind == "action" or "tool" in value or "args" in value
    is_final = kind == "final" or "answer" in value
    if is_action and is_final:
        yield ProtocolError(
            "ambiguous",
            'The reply is both an action and a final. To call a tool send "type", "tool" and "args"; '
            'to answer send "type" and "answer".',
        )
    if isinstance(kind, str) and kind in _FIELDS:
        fields = _ANY_FINAL if kind == "final" and any_answer else _FIELDS[kind]
        yield from _find_field_faults(value, fields, "", spare=("type", "thought"))
        if "thought" in value and type(value["thought"]) is not str:
            yield _wrong_type_error("/thought", value["thought"], str)
        if type(value.get("steps")) is list:
            yield from _find_plan_faults(value["steps"])


def _unknown_type_error(kind: Any) -> ProtocolError:
    got = _quote(kind) if isinstance(kind, str) else _TYPE_NAMES[type(kind)]
    return ProtocolError(
        "unknown_type",
        f'"type" is {got}. It must be "action" to call a tool or "final" to answer '
        '("plan" only where a plan is asked for).',
    )


def _find_field_faults(
    value: dict[str, Any], fields: Mapping[str, type], pointer: str, *, spare: tuple[str, ...] = ()
) -> Iterator[ProtocolError]:
    for name, wanted in fields.items():
        if name not in value:
            yield ProtocolError("missing_field", f"{pointer}/{name} is missing. Add it: {_TYPE_NAMES[wanted]}.")
        elif wanted is not object and type(value[name]) is not wanted:
            yield _wrong_type_error(f"{pointer}/{name}", value[name], wanted)
    for name in value:
        if name not in fields and name not in spare:
            legal = ", ".join(f'"{field}"' for field in (*spare, *fields))
            yield ProtocolError(
                "unknown_field",
                f"{_quote(name)} is no field of {pointer or 'this object'}. It may hold {legal}.",
            )


def _find_plan_faults(steps: list[Any]) -> Iterator[ProtocolError]:
    if not steps:
        yield ProtocolError("wrong_type", "/steps is an empty list. Give at least one step.")
    for n, step in enumerate(steps):
        if type(step) is not dict:
            yield _wrong_type_error(f"/steps/{n}", step, dict)
            continue
        yield from _find_field_faults(step, _PLAN_STEP, f"/steps/{n}")
        if step.get("step") != n + 1:
            yield ProtocolError("wrong_type", f"/steps/{n}/step must be {n + 1}: number the steps from 1 up.")


def _wrong_type_error(pointer: str, got: Any, wanted: type) -> ProtocolError:
    hint = " Send it as it is, not as text in quotes." if type(got) is str else ""
    return ProtocolError(
        "wrong_type", f"{pointer} is {_TYPE_NAMES[type(got)]}. It must be {_TYPE_NAMES[wanted]}.{hint}"
    )


# --- what is quoted back --------------------------------------------------------------------------


def _quote(text: str) -> str:
    """A value quoted back, unless it is long or could be taken for a reply."""
    if len(text) > 60 or "{" in text:
        return f"a text of {len(text)} characters"
    return f'"{text}"' if text.isprintable() else ascii(text)


def _quote_pointer(pointer: str) -> str:
    names = [name if len(name) <= 60 and name.isprintable() and "{" not in name else "…" for name in pointer.split("/")]
    return "/".join(names[:8]) or "the top"
