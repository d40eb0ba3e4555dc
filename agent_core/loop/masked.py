"""Marks of masked secrets among the arguments of a call: a tool would take one for the value. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from agent_core.outputs import Json, JsonValue
from agent_core.rules import rules_of
from agent_core.words.catalogue import ENGLISH, Words
from utools.schema.faults import Fault, shown
from utools.schema.pointer import pointer_of
from utools.secrets.finds import mark_of

OPENING = b"[redacted:"
MOST = 64
"""Sets of formats whose marks are kept."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks that the masking of a run leaves. A text that only looks like one is data."""

    marks: Sequence[str] = ()

    def faults(self, args: Any, words: Words = ENGLISH) -> list[Fault]:
        """Return the values, and keys, that hold a mark."""
        if not self.marks or OPENING not in orjson.dumps(args):
            return []
        return [self._fault(at, mark, text, words) for at, text in _texts(args, ()) if (mark := self._find(text))]

    def _find(self, text: str) -> str | None:
        return next((mark for mark in self.marks if mark in text), None)

    def _fault(self, at: tuple[str | int, ...], mark: str, text: str, words: Words) -> Fault:
        pointer, expected = pointer_of(at), words.unmasked.format(mark=mark)
        problem, got = words.must_be.format(expected=expected), shown(text)
        return Fault(pointer, expected, got, words.fault.format(at=pointer, problem=problem, got=got))


def marks_of(started: Mapping[str, Any]) -> Marks:
    """Return the marks of a run, from its `run_started` record; none before such calls were refused."""
    return marks_in(started.get("redaction") or ()) if rules_of(started)["masking"] > 1 else Marks()


def marks_in(redaction: Sequence[Json]) -> Marks:
    """Return the marks that these rules of a redactor leave."""
    found: list[str] = []
    for rule in redaction:
        found += _marks_of_formats(tuple(rule["formats"])) if "formats" in rule else (rule["replacement"],)
    return Marks(tuple(found))


@lru_cache(MOST)
def _marks_of_formats(formats: tuple[str, ...]) -> tuple[str, ...]:
    """Return the marks of formats, which are the same in nearly all runs."""
    return tuple(map(mark_of, formats))


def _texts(
    value: JsonValue | tuple[Any, ...], at: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the texts and keys of a value with their places."""
    match value:
        case str():
            yield at, value
        case dict():
            for key, below in value.items():
                yield (*at, key), key
                yield from _texts(below, (*at, key))
        case list() | tuple():
            for index, below in enumerate(value):
                yield from _texts(below, (*at, index))
        case _:
            return
