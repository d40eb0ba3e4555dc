"""References in a plan: `{{steps.N.path}}` in a step's parameters is what step N gave. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agent_core.effects import Json
from agent_core.protocol.clip import as_text
from agent_core.words.catalogue import Words
from utools.schema.pointer import pointer_of

_REFERENCE = re.compile(r"\{\{\s*steps\.(\d{1,6})((?:\.[^.{}\s]+)*)\s*\}\}")
MAX_NAMED = 8
"""Keys that an error names."""


class MissingValue(Exception):
    """A reference leads nowhere; the message says why, for the model."""


def find_references(parameters: Json) -> Iterator[tuple[str, list[int]]]:
    """Each text of the parameters that refers to steps: its pointer, and the numbers of the steps."""
    yield from _find(parameters, ())


def _find(value: Any, at: tuple[str | int, ...]) -> Iterator[tuple[str, list[int]]]:
    if isinstance(value, str):
        if numbers := [int(match[1]) for match in _REFERENCE.finditer(value)]:
            yield pointer_of(at), numbers
    elif isinstance(value, dict | list):
        for key, below in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _find(below, (*at, key))


def fill_references(parameters: Json, outputs: Mapping[int, Any], words: Words) -> Json:
    """The parameters with each reference replaced by what that step gave: a whole text keeps its JSON type.

    What is filled in is not looked at again. MissingValue for a step without an output, and for a path that leads
    nowhere.
    """
    filled: Json = _fill(parameters, outputs, words)
    return filled


def _fill(value: Any, outputs: Mapping[int, Any], words: Words) -> Any:
    if isinstance(value, dict):
        return {key: _fill(below, outputs, words) for key, below in value.items()}
    if isinstance(value, list):
        return [_fill(below, outputs, words) for below in value]
    if not isinstance(value, str):
        return value
    if whole := _REFERENCE.fullmatch(value.strip()):
        return _look_up(whole, outputs, words)
    return _REFERENCE.sub(lambda match: as_text(_look_up(match, outputs, words)), value)


def _look_up(match: "re.Match[str]", outputs: Mapping[int, Any], words: Words) -> Any:
    number, path = int(match[1]), match[2].split(".")[1:]
    if number not in outputs:
        raise MissingValue(words.no_step_output.format(reference=match[0], step=number))
    value = outputs[number]
    for key in path:
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise MissingValue(words.no_such_value.format(reference=match[0], key=key, known=_known(value, words)))
    return value


def _known(value: Any, words: Words) -> str:
    """What a value has in place of a key that it lacks."""
    if isinstance(value, dict) and value:
        more = ", …" if len(value) > MAX_NAMED else ""
        return ", ".join([str(key)[:60] for key in list(value)[:MAX_NAMED]]) + more
    if isinstance(value, list) and value:
        return f"0…{len(value) - 1}"
    return words.nothing_below
