"""A fault: what is wrong with a value, where, and what would be right. Pure."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from utools.lazy_pattern import lazy_compile
from utools.near_names import may_look, near_names
from utools.schema.pointer import pointer_of
from utools.schema.shape import named_properties
from utools.schema.validation_pass import MOST
from utools.words.catalogue import ENGLISH, Words

if TYPE_CHECKING:
    from jsonschema import ValidationError

SHOWN = 120
NAMED = 8
ECHO = "unevaluated"  # a property that is refused only because its branch failed for another reason
QUOTED = lazy_compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")

Path = tuple[str | int, ...]
Follow = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: JSON `pointer` (RFC 6901), `expected`, `got` (shortened JSON), a sentence.

    The words are those of the language that was asked for.
    """

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


def faults(errors: "Iterable[ValidationError]", value: Any, follow: Follow, words: Words = ENGLISH) -> list[Fault]:
    """Return the first 100 faults that validation of `value` finds, in document order."""
    return word_faults((each for error in errors for each in _found(error, follow, words)), value, words)


def word_faults(every: Iterable[Found], value: Any, words: Words) -> list[Fault]:
    """Return the first 100 of these faults in words, in document order."""
    found = list(islice(every, MOST))
    if not found:
        return []
    sound = {each.path[:depth] for each in found if each.keyword != ECHO for depth in range(len(each.path) + 1)}
    found = [each for each in found if each.keyword != ECHO or each.path[:-1] not in sound]
    orders: dict[int, dict[str, int]] = {}
    found.sort(key=lambda each: _position(each.path, value, orders))
    return list(dict.fromkeys([_word_fault(each, words) for each in found]))


def _word_fault(found: Found, words: Words) -> Fault:
    """Return the fault in words."""
    pointer = pointer_of(found.path)
    got = words.nothing if found.absent else shown(found.value)
    problem = found.problem if found.known is None else _not_known(str(found.path[-1]), found.known, words)
    sentence = words.fault_without_value if found.absent else words.fault
    return Fault(pointer, found.expected, got, sentence.format(at=pointer or words.the_value, problem=problem, got=got))


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


def _found(error: "ValidationError", follow: Follow, words: Words) -> list[Found]:
    path = tuple(error.absolute_path)
    keyword = str(error.validator)
    limit: Any = error.validator_value
    value: Any = error.instance
    match keyword:
        case "required":
            return [missing(path, name, words) for name in limit if name not in value and _is_about(error, name)]
        case "dependentRequired":
            names = [name for key, many in limit.items() if key in value for name in many]
            return [missing(path, name, words) for name in dict.fromkeys(names) if name not in value]
        case "additionalProperties" | "unevaluatedProperties":
            return _unknown(error, path, follow, words)
        case "anyOf" | "oneOf" if error.context:
            return _best_branch(error, follow, words)
    expected = _describe_expected(keyword, limit, error.message, words)
    if _is_name(error):
        return [Found((*path, value), keyword, expected, value, words.not_a_name.format(expected=expected))]
    return [_refused(path, keyword, expected, value, words)]


def refused(path: Path, keyword: str, limit: Any, value: Any, words: Words) -> Found:
    """Return the fault of a value that a keyword refuses, whose words need no message of jsonschema's."""
    return _refused(path, keyword, _describe_expected(keyword, limit, "", words), value, words)


def _refused(path: Path, keyword: str, expected: str, value: Any, words: Words) -> Found:
    return Found(path, keyword, expected, value, words.must_be.format(expected=expected))


def _is_name(error: "ValidationError") -> bool:
    """Return whether the name of a property is wrong, not its value."""
    above = list(error.relative_schema_path)[-3:-1]
    return isinstance(error.instance, str) and above[-1:] == ["propertyNames"] and above[0] != "properties"


def _is_about(error: "ValidationError", name: str) -> bool:
    """Return whether an error is the one about this property: jsonschema makes one for each that is missing."""
    return error.message == f"{name!r} is a required property"


def missing(path: Path, name: str, words: Words) -> Found:
    """Return the fault of an object without a property that it needs."""
    return Found((*path, name), "required", words.any_value, None, words.missing, absent=True)


def _not_known(name: str, known: Sequence[str], words: Words) -> str:
    """Return which property may have been meant; if none comes near, the first of those that exist."""
    near = near_names(name, known)
    names = f"{', '.join(known[:NAMED]) or words.none}{', …' if len(known) > NAMED else ''}"
    hint = words.did_you_mean.format(name=near[0]) if near else words.known.format(names=names)
    return words.unknown_property.format(hint=hint)


def hint(name: str, known: Iterable[str]) -> str:
    """Return which name may have been meant, or which names exist."""
    names = list(known)
    if not may_look():
        return f"there are {', '.join([*names[:NAMED], '…'])}"
    near = near_names(name, names)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(names) or 'none'}"


def _unknown(error: "ValidationError", path: Path, follow: Follow, words: Words) -> list[Found]:
    value: Any = error.instance
    quoted = frozenset(QUOTED.findall(error.message))
    return unknown([name for name in value if repr(name) in quoted], value, error.schema, path, follow, words)


def unknown(
    extras: Iterable[str], value: Mapping[str, Any], schema: Any, path: Path, follow: Follow, words: Words
) -> list[Found]:
    """Return one fault for each property that no schema names, or only a branch that does not fit."""
    known = sorted(named_properties(schema, follow)) if isinstance(schema, dict) else []
    names = ", ".join(known)
    expected = words.known_properties.format(names=names) if known else words.no_property
    return [
        Found((*path, name), ECHO, words.left_out.format(names=names), value[name], words.not_combined)
        if name in known
        else Found((*path, name), "unknown", expected, value[name], "", known=known)
        for name in extras
    ]


def _best_branch(error: "ValidationError", follow: Follow, words: Words) -> list[Found]:
    """Return the faults of the alternative that the value was most likely meant to be."""
    branches: dict[Any, list[Found]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.schema_path[0], []).extend(_found(inner, follow, words))
    path = tuple(error.absolute_path)
    near = {key: many for key, many in branches.items() if not any(_is_of_another_kind(each, path) for each in many)}
    if not near:
        return [_none_fits(list(branches.values()), path, error, words)]
    tags = [[each for each in many if each.keyword in {"const", "enum"}] for many in near.values()]
    paths = {each.path for many in tags for each in many}
    if len(near) > 1 and all(tags) and len(paths) == 1:
        return [_join_faults([each for many in tags for each in many], words)]
    return min(near.values(), key=lambda many: (any(f.keyword in {"const", "enum"} for f in many), len(many)))


def _is_of_another_kind(found: Found, path: Path) -> bool:
    """Return whether the branch is for another kind of value altogether."""
    return found.path == path and found.keyword in {"type", "const", "enum"}


def _none_fits(branches: list[list[Found]], path: Path, error: "ValidationError", words: Words) -> Found:
    here = [each for many in branches for each in many if _is_of_another_kind(each, path)]
    if here:
        return _join_faults(here, words)
    return Found(path, str(error.validator), words.valid, error.instance, words.not_valid)


def _join_faults(found: list[Found], words: Words) -> Found:
    first = found[0]
    expected = words.or_.join(dict.fromkeys(each.expected for each in found))
    return Found(first.path, first.keyword, expected, first.value, words.must_be.format(expected=expected))


def _position(path: Path, value: Any, orders: dict[int, dict[str, int]]) -> tuple[int, ...]:
    """Return the index of each step in the document; what is missing comes last. `orders` caches the order of names."""
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


def _describe_expected(keyword: str, limit: Any, message: str, words: Words) -> str:
    """Return what would be right, as a phrase that follows "must be"."""
    match keyword:
        case "type":
            return words.or_.join([words.types[name] for name in ([limit] if isinstance(limit, str) else limit)])
        case "enum":
            return words.one_of.format(limit=shown(limit, 400))
        case "const":
            return shown(limit, 400)
        case "not" if limit == {}:
            return words.absent
    if phrase := words.by_keyword.get(keyword):
        return phrase.format(limit=shown(limit))
    return words.other_keyword.format(keyword=keyword, limit=shown(limit), message=message[:SHOWN])
