"""References in a plan: `{{steps.N.path}}` in a step's parameters is what step N gave. Pure.

A key of the path is `.name`, `.0`, `[0]` or `["name"]`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from agent_core.outputs import Json, JsonValue
from agent_core.protocol.clip import as_text
from agent_core.words.catalogue import Words
from utools.lazy_pattern import lazy_compile
from utools.schema.pointer import pointer_of
from utools.schema.value_shape import ANYTHING, Shape


class Grammar(NamedTuple):
    """What is a reference, with its step and its path; what is a key of a path; what only looks like a reference."""

    reference: re.Pattern[str]
    key: re.Pattern[str]
    lookalike: re.Pattern[str]


_DOTTED = r"\.[^.{}\s]+"
_KEY = r"""\.[^.{}\[\]\s|]+|\[\d+\]|\["[^"{}]+"\]|\['[^'{}]+'\]"""
_STEP = r"steps(?:\.(?=\d+[^\d\]])|\[(?=\d+\]))(\d{1,6})\]?"


def _grammar(step: str, key: str, lookalike: str) -> Grammar:
    reference = rf"\{{\{{\s*{step}((?:{key})*)\s*\}}\}}"
    return Grammar(lazy_compile(reference), lazy_compile(key), lazy_compile(lookalike))


GRAMMARS: Final[Mapping[int, Grammar]] = {
    1: _grammar(r"steps\.(\d{1,6})", _DOTTED, "(?!)"),
    **dict.fromkeys((2, 3, 4), _grammar(_STEP, _KEY, r"\{\{\s*steps?\b[^{}]*\}\}")),
}
"""By the version of the rules for plans (agent_core/rules.py)."""
EXAMPLE: Final = "{{steps.1.name}}"
MAX_NAMED = 8
"""Keys that an error names."""


class MissingValue(Exception):
    """A reference leads nowhere; the message says why, for the model."""


def find_references(parameters: Json, grammar: Grammar) -> Iterator[tuple[str, list[int]]]:
    """Yield each text of the parameters that refers to steps: its pointer, and the numbers of the steps."""
    for at, text in _texts(parameters, ()):
        if numbers := [int(match[1]) for match in grammar.reference.finditer(text)]:
            yield at, numbers


def find_lookalikes(parameters: Json, grammar: Grammar) -> Iterator[tuple[str, str]]:
    """Yield what looks like a reference in the parameters and is none: the pointer to its text, and itself."""
    for at, text in _texts(parameters, ()):
        for match in grammar.lookalike.finditer(text):
            if not grammar.reference.fullmatch(match[0]):
                yield at, match[0]


def _texts(value: JsonValue, at: tuple[str | int, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield pointer_of(at), value
    elif isinstance(value, dict | list):
        members: Iterable[tuple[str | int, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
        for key, below in members:
            yield from _texts(below, (*at, key))


def fill_references(
    parameters: Json, outputs: Mapping[int, Any], grammar: Grammar, words: Words, shape: Shape = ANYTHING
) -> Json:
    """Return the parameters with each reference replaced by what that step gave: a whole text keeps its JSON type,
    unless by their `shape` only a text may stand there, as which it is written then.

    What is filled in is not looked at again. MissingValue for a step without an output, and for a path that leads
    nowhere.
    """

    def fill(value: JsonValue, shape: Shape) -> Any:
        if isinstance(value, dict):
            return {key: fill(below, shape.at(key)) for key, below in value.items()}
        if isinstance(value, list):
            return [fill(below, shape.items()) for below in value]
        if not isinstance(value, str):
            return value
        if whole := grammar.reference.fullmatch(value.strip()):
            found = look_up(whole)
            return as_text(found) if shape.kinds() == ["string"] else found
        return grammar.reference.sub(lambda match: as_text(look_up(match)), value)

    def look_up(match: "re.Match[str]") -> Any:
        return _look_up(match, [_name_of(key) for key in grammar.key.findall(match[2])], outputs, words)

    filled: Json = fill(parameters, shape)
    return filled


def _name_of(key: str) -> str:
    """Return a key of a path without its marks."""
    if key.startswith("."):
        return key[1:]
    return key[2:-2] if key[1] in "\"'" else key[1:-1]


def _look_up(match: "re.Match[str]", path: Sequence[str], outputs: Mapping[int, Any], words: Words) -> Any:
    number = int(match[1])
    if number not in outputs:
        raise MissingValue(words.no_step_output.format(reference=match[0], step=number))
    value: JsonValue = outputs[number]
    for key in path:
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise MissingValue(words.no_such_value.format(reference=match[0], key=key, known=_known(value, words)))
    return value


def _known(value: JsonValue, words: Words) -> str:
    """Return what a value has in place of a key that it lacks."""
    if isinstance(value, dict) and value:
        more = ", …" if len(value) > MAX_NAMED else ""
        return ", ".join([str(key)[:60] for key in list(value)[:MAX_NAMED]]) + more
    if isinstance(value, list) and value:
        return f"0…{len(value) - 1}"
    return words.nothing_below
