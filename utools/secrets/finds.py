"""What was found in a text, and the text with it replaced. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

BLANK = "\0"
"""Stands for each character of what was found already: no format has it, and nothing continues across it."""


class Find(NamedTuple):
    """A secret in a text, and its name."""

    start: int
    end: int
    name: str


class Edit(NamedTuple):
    """A part of a text, and what stands in its place."""

    start: int
    end: int
    text: str


def mark_of(name: str) -> str:
    """Return what stands in the place of a secret."""
    return f"[redacted:{name}]"


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with these edits, which do not overlap and are in the order of the text."""
    parts, at = list[str](), 0
    for each in edits:
        parts += (text[at : each.start], each.text)
        at = each.end
    return "".join([*parts, text[at:]])


def blank_finds(text: str, found: Iterable[Find]) -> str:
    """Return the text, as long as it was, without what was found."""
    return apply_edits(text, (Edit(each.start, each.end, BLANK * (each.end - each.start)) for each in found))


def join_finds(found: Sequence[Find]) -> list[Find]:
    """Finds in the order of the text; those that overlap are one, named after the longest."""
    return list(_join(sorted(found, key=lambda each: (each.start, -each.end))))


def _join(found: Iterable[Find]) -> Iterator[Find]:
    last, length = None, 0
    for each in found:
        if last is None or each.start >= last.end:
            if last is not None:
                yield last
            last, length = each, each.end - each.start
            continue
        longer = each.end - each.start > length
        last = Find(last.start, max(last.end, each.end), each.name if longer else last.name)
        length = max(length, each.end - each.start)
    if last is not None:
        yield last
