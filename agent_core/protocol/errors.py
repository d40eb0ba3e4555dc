"""What can be wrong with a reply: the kinds in their order, and what to say of each. Pure.

No message holds an opening brace: a small model would send it straight back.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal, cast, get_args

import orjson

from agent_core.outputs import JsonValue
from agent_core.protocol.strict_json import JsonFault, Malformed
from agent_core.words.catalogue import Words

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


# --- the text -------------------------------------------------------------------------------------


def explain_empty(words: Words) -> ProtocolError:
    return ProtocolError("empty", words.empty_reply.format(one_object=words.one_object))


def explain_broken(body: str, broken: Malformed, words: Words) -> ProtocolError:
    """Return the place at which a text stops being JSON."""
    line = body.count("\n", 0, broken.position) + 1
    column = broken.position - body.rfind("\n", 0, broken.position)
    why = _explain_problem(body, broken, words)
    message = words.not_json_reply.format(line=line, column=column, why=why, one_object=words.one_object)
    return ProtocolError("not_json", message)


def _explain_problem(body: str, broken: Malformed, words: Words) -> str:
    problem = "unexpected_with_hint" if broken.hint else broken.problem
    found = body[broken.position : broken.position + 1]
    return words.json_problems[problem].format(
        expected=words.json_expected.get(broken.state, "").format(),
        found=words.opening_brace if found == "{" else found if found.isprintable() else ascii(found).strip("'"),
        hint=words.json_hints.get(broken.hint or ""),
    )


def explain_json_fault(fault: JsonFault, words: Words) -> ProtocolError:
    at = _quote_pointer(fault.pointer, words)
    match fault.kind:
        case "duplicate_key":
            message = words.duplicate_key.format(key=_quote(fault.what, words), at=at)
        case "number_range":
            message = words.number_range.format(at=at, number=_quote(fault.what, words))
        case "lone_surrogate":
            message = words.lone_surrogate.format(at=at)
    return ProtocolError(fault.kind, message)


# --- the object -----------------------------------------------------------------------------------

_FIELDS: Mapping[str, Mapping[str, type]] = {
    "action": {"tool": str, "args": dict},
    "final": {"answer": str},
    "plan": {"steps": list},
}
_ANY_FINAL: Mapping[str, type] = {"answer": object}
_PLAN_STEP: Mapping[str, type] = {"step": int, "description": str, "tool": str, "parameters": dict}
_TYPES = {
    str: "string",
    dict: "object",
    list: "array",
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
    object: "any",
}
_ORDER = {kind: n for n, kind in enumerate(get_args(Kind))}
MAX_QUOTED = 60
"""Characters of a value that is quoted back."""


def check_object(value: JsonValue, *, any_answer: bool, words: Words) -> ProtocolError | None:
    """Return the first fault, in the order of the kinds, of a JSON value that should be a step."""
    if not isinstance(value, dict):
        kind = _name_kind(type(value), words)
        return ProtocolError("not_object", words.not_object.format(kind=kind, one_object=words.one_object))
    return min(_find_faults(value, any_answer, words), key=lambda found: _ORDER[found.kind], default=None)


def _find_faults(value: dict[str, Any], any_answer: bool, words: Words) -> Iterator[ProtocolError]:
    kind = value.get("type")
    if "type" not in value:
        yield ProtocolError("missing_field", words.no_type)
    elif not isinstance(kind, str) or kind not in _FIELDS:
        got = _quote(kind, words) if isinstance(kind, str) else _describe(kind, words)
        yield ProtocolError("unknown_type", words.unknown_type.format(got=got))
    is_action = kind == "action" or "tool" in value or "args" in value
    is_final = kind == "final" or "answer" in value
    if is_action and is_final:
        yield ProtocolError("ambiguous", words.both_types)
    if isinstance(kind, str) and kind in _FIELDS:
        fields = _ANY_FINAL if kind == "final" and any_answer else _FIELDS[kind]
        yield from _find_field_faults(value, fields, "", words, spare=("type", "thought"))
        if "thought" in value and type(value["thought"]) is not str:
            yield _wrong_type_error("/thought", value["thought"], str, words)
        if type(value.get("steps")) is list:
            yield from _find_plan_faults(value["steps"], words)


def _find_field_faults(
    value: dict[str, Any], fields: Mapping[str, type], pointer: str, words: Words, *, spare: tuple[str, ...] = ()
) -> Iterator[ProtocolError]:
    for name, wanted in fields.items():
        if name not in value:
            message = words.missing_field.format(at=f"{pointer}/{name}", kind=_name_kind(wanted, words))
            yield ProtocolError("missing_field", message)
        elif wanted is not object and type(value[name]) is not wanted:
            yield _wrong_type_error(f"{pointer}/{name}", value[name], wanted, words)
    for name in value:
        if name not in fields and name not in spare:
            legal = ", ".join(f'"{field}"' for field in (*spare, *fields))
            at = pointer or words.this_object
            message = words.unknown_field.format(field=_quote(name, words), at=at, fields=legal)
            yield ProtocolError("unknown_field", message)


def _find_plan_faults(steps: list[Any], words: Words) -> Iterator[ProtocolError]:
    if not steps:
        yield ProtocolError("wrong_type", words.no_steps)
    for n, step in enumerate(steps):
        if type(step) is not dict:
            yield _wrong_type_error(f"/steps/{n}", step, dict, words)
            continue
        fields = cast(dict[str, Any], step)
        yield from _find_field_faults(fields, _PLAN_STEP, f"/steps/{n}", words)
        if fields.get("step") != n + 1:
            yield ProtocolError("wrong_type", words.step_number.format(at=f"/steps/{n}/step", number=n + 1))


def _wrong_type_error(pointer: str, got: Any, wanted: type, words: Words) -> ProtocolError:
    hint = words.no_quotes if type(got) is str else ""
    kind = _name_kind(wanted, words)
    message = words.wrong_type.format(at=pointer, got=_describe(got, words), kind=kind, hint=hint)
    return ProtocolError("wrong_type", message)


# --- what is quoted back --------------------------------------------------------------------------


def _name_kind(kind: type, words: Words) -> str:
    return words.kinds[_TYPES[kind]]


def _describe(value: JsonValue, words: Words) -> str:
    """Return the kind of a value, and the value itself where it can be shown."""
    kind = _name_kind(type(value), words)
    shown = _quote(value, words) if isinstance(value, str) else orjson.dumps(value).decode()
    if value is None or (not isinstance(value, str) and (len(shown) > MAX_QUOTED or "{" in shown)):
        return kind
    return words.current.format(kind=kind, value=shown)


def _quote(text: str, words: Words) -> str:
    """Return a value quoted back, unless it is long or could be taken for a reply."""
    if len(text) > MAX_QUOTED or "{" in text:
        return words.long_text.format(count=len(text))
    return f'"{text}"' if text.isprintable() else ascii(text)


def _quote_pointer(pointer: str, words: Words) -> str:
    names = [
        name if len(name) <= MAX_QUOTED and name.isprintable() and "{" not in name else "…"
        for name in pointer.split("/")
    ]
    return "/".join(names[:8]) or words.top
