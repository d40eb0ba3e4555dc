"""A fault: what is wrong with a value, where, and what would be right. Pure."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from utools.schema.pointer import pointer_of
from utools.schema.shape import named_properties
from utools.schema.validation_pass import MOST

if TYPE_CHECKING:
    from jsonschema import ValidationError

SHOWN = 120
NAMED = 8
ECHO = "unevaluated"  # a property that is refused only because its branch failed for another reason
QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")

Path = tuple[str | int, ...]
Follow = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: JSON `pointer` (RFC 6901), `expected`, `got` (shortened JSON), a sentence."""

    pointer: str
    expected: str
    got: str
    message: str


@dataclass(frozen=True, slots=True)
class Found:
    """A fault before it is worded: its path, and the keyword that found it."""

    path: Path
    keyword: str
    expected: str
    value: Any
    problem: str
    absent: bool = False
    known: Sequence[str] | None = None  # for an unknown name: the names that exist


def faults(errors: "Iterable[ValidationError]", value: Any, follow: Follow) -> list[Fault]:
    """The first 100 faults that validation of `value` finds, in document order."""
    errors = iter(errors)
    first = next(errors, None)
    if first is None:
        return []
    found = list(islice((each for error in chain((first,), errors) for each in _found(error, follow)), MOST))
    sound = {each.path[:depth] for each in found if each.keyword != ECHO for depth in range(len(each.path) + 1)}
    found = [each for each in found if each.keyword != ECHO or each.path[:-1] not in sound]
    orders: dict[int, dict[str, int]] = {}
    found.sort(key=lambda each: _position(each.path, value, orders))
    return list(dict.fromkeys(map(_word_fault, found)))


def _word_fault(found: Found) -> Fault:
    """The fault in words."""
    pointer = pointer_of(found.path)
    got = "nothing" if found.absent else shown(found.value)
    tail = "" if found.absent else f", got {got}"
    problem = found.problem if found.known is None else _not_known(str(found.path[-1]), found.known)
    return Fault(pointer, found.expected, got, f"{pointer or 'The value'} {problem}{tail}.")


def shown(value: Any, limit: int = SHOWN) -> str:
    """`value` as JSON, shortened."""
    if isinstance(value, str):
        value = value[: limit + 1]
    try:
        text = _beginning(json.JSONEncoder(ensure_ascii=False, default=repr).iterencode(value), limit)
    except (ValueError, RecursionError):
        text = repr(type(value))
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _beginning(pieces: Iterable[str], limit: int) -> str:
    """As many of the pieces as exceed `limit`, or all of them."""
    text = ""
    for piece in pieces:
        text += piece
        if len(text) > limit:
            break
    return text


def _found(error: "ValidationError", follow: Follow) -> list[Found]:
    path = tuple(error.absolute_path)
    keyword = str(error.validator)
    limit: Any = error.validator_value
    value: Any = error.instance
    match keyword:
        case "required":
            return [_missing(path, name, keyword) for name in limit if name not in value and _is_about(error, name)]
        case "dependentRequired":
            names = [name for key, many in limit.items() if key in value for name in many]
            return [_missing(path, name, keyword) for name in dict.fromkeys(names) if name not in value]
        case "additionalProperties" | "unevaluatedProperties":
            return _unknown(error, path, follow)
        case "anyOf" | "oneOf" if error.context:
            return _best_branch(error, follow)
    expected = _describe_expected(keyword, limit, error.message)
    if _is_name(error):
        return [Found((*path, value), keyword, expected, value, f"is not allowed as a name: it must be {expected}")]
    return [Found(path, keyword, expected, value, f"must be {expected}")]


def _is_name(error: "ValidationError") -> bool:
    """Whether the name of a property is wrong, not its value."""
    above = list(error.relative_schema_path)[-3:-1]
    return isinstance(error.instance, str) and above[-1:] == ["propertyNames"] and above[0] != "properties"


def _is_about(error: "ValidationError", name: str) -> bool:
    """Whether an error is the one about this property: jsonschema makes one for each that is missing."""
    return error.message == f"{name!r} is a required property"


def _missing(path: Path, name: str, keyword: str) -> Found:
    return Found((*path, name), keyword, "a value", None, "is required but missing", absent=True)


def _not_known(name: str, known: Sequence[str]) -> str:
    """Which property may have been meant; if none comes near, the first of those that exist."""
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return f"is not a known property (did you mean {near[0]}?)"
    return f"is not a known property (known: {', '.join(known[:NAMED]) or 'none'}{', …' if len(known) > NAMED else ''})"


def hint(name: str, known: Iterable[str]) -> str:
    """Which name may have been meant, or which names exist."""
    names = list(known)
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(names) or 'none'}"


def _unknown(error: "ValidationError", path: Path, follow: Follow) -> list[Found]:
    """One fault for each property that no schema names, or only a branch that does not fit."""
    schema: Any = error.schema
    value: Any = error.instance
    known = sorted(named_properties(schema, follow)) if isinstance(schema, dict) else []
    expected = f"one of the properties {', '.join(known)}" if known else "no such property"
    quoted = frozenset(QUOTED.findall(error.message))
    extras = [name for name in value if repr(name) in quoted]
    return [
        Found((*path, name), ECHO, expected, value[name], "is not allowed in this combination")
        if name in known
        else Found((*path, name), "unknown", expected, value[name], "", known=known)
        for name in extras
    ]


def _best_branch(error: "ValidationError", follow: Follow) -> list[Found]:
    """The faults of the alternative that the value was most likely meant to be."""
    branches: dict[Any, list[Found]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.schema_path[0], []).extend(_found(inner, follow))
    path = tuple(error.absolute_path)
    near = {key: many for key, many in branches.items() if not any(_is_of_another_kind(each, path) for each in many)}
    if not near:
        return [_none_fits(list(branches.values()), path, error)]
    tags = [[each for each in many if each.keyword in {"const", "enum"}] for many in near.values()]
    paths = {each.path for many in tags for each in many}
    if len(near) > 1 and all(tags) and len(paths) == 1:
        return [_join_faults([each for many in tags for each in many])]
    return min(near.values(), key=lambda many: (any(f.keyword in {"const", "enum"} for f in many), len(many)))


def _is_of_another_kind(found: Found, path: Path) -> bool:
    """Whether the branch is for another kind of value altogether."""
    return found.path == path and found.keyword in {"type", "const", "enum"}


def _none_fits(branches: list[list[Found]], path: Path, error: "ValidationError") -> Found:
    here = [each for many in branches for each in many if _is_of_another_kind(each, path)]
    return (
        _join_faults(here)
        if here
        else Found(path, str(error.validator), "a valid value", error.instance, "is not valid")
    )


def _join_faults(found: list[Found]) -> Found:
    first = found[0]
    expected = " or ".join(dict.fromkeys(each.expected for each in found))
    return Found(first.path, first.keyword, expected, first.value, f"must be {expected}")


def _position(path: Path, value: Any, orders: dict[int, dict[str, int]]) -> tuple[int, ...]:
    """The index of each step in the document; what is missing comes last. `orders` caches the order of names."""
    position: list[int] = []
    for part in path:
        if isinstance(value, dict):
            order = orders.get(id(value)) or orders.setdefault(id(value), {key: at for at, key in enumerate(value)})
            position.append(order.get(str(part), len(order)))
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int):
            position.append(part)
            value = value[part]
    return tuple(position)


def _describe_expected(keyword: str, limit: Any, message: str) -> str:
    """What would be right, as a phrase that follows "must be"."""
    match keyword:
        case "type":
            return " or ".join(map(_kind, [limit] if isinstance(limit, str) else limit))
        case "enum":
            return f"one of {shown(limit, 400)}"
        case "const":
            return shown(limit, 400)
        case "not" if limit == {}:
            return "absent: nothing is allowed here"
    phrase = PHRASES.get(keyword)
    return phrase.format(shown(limit)) if phrase else f"valid ({message[:SHOWN]})"


def _kind(name: str) -> str:
    return "null" if name == "null" else f"an {name}" if name[0] in "aio" else f"a {name}"


PHRASES = {
    "minLength": "at least {} characters long",
    "maxLength": "at most {} characters long",
    "pattern": "a string that matches the pattern {}",
    "control": "free of control characters",
    "minimum": ">= {}",
    "maximum": "<= {}",
    "exclusiveMinimum": "> {}",
    "exclusiveMaximum": "< {}",
    "multipleOf": "a multiple of {}",
    "minItems": "at least {} items long",
    "maxItems": "at most {} items long",
    "uniqueItems": "free of repeated items",
    "contains": "a list with an item that fits {}",
    "minProperties": "an object with at least {} properties",
    "maxProperties": "an object with at most {} properties",
    "items": "a list without further items",
    "unevaluatedItems": "a list without further items",
    "oneOf": "valid under exactly one of the alternatives",
    "not": "something other than what {} describes",
    "None": "absent: nothing is allowed here",
}
