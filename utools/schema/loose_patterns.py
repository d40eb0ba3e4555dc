"""Patterns of a Narrowing that say what is allowed, and look as if they said it of a part of the text. Pure."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from utools.lazy_pattern import lazy_compile
from utools.schema.shape import walk

NAMED = ("properties", "patternProperties", "dependentSchemas")
"""Keywords whose next segment in a pointer is a name."""
BEGINNING = lazy_compile(r"(?:\(\?[a-zA-Z]+\))?(?:\^|\\A|\(*(?:\.\*|\[\\s\\S\]\*))")
END = lazy_compile(r"(?:\$|\\Z|(?:\.\*|\[\\s\\S\]\*)\)*)\Z")


class LoosePattern(NamedTuple):
    """A pattern that must match the whole text, and does not show at both ends that its author means that."""

    pointer: str
    pattern: str


def find_loose_patterns(schema: dict[str, Any]) -> Iterator[LoosePattern]:
    """Yield the patterns of a narrowing that are anchored at no end, or at one, and that no negation turns round."""
    for pointer, each in walk(schema):
        pattern = each.get("pattern")
        if isinstance(pattern, str) and not _forbids(pointer) and not _shows_both_ends(pattern):
            yield LoosePattern(f"{pointer}/pattern", pattern)


def _shows_both_ends(pattern: str) -> bool:
    return BEGINNING.match(pattern) is not None and END.search(pattern) is not None


def _forbids(pointer: str) -> bool:
    """Return whether a schema says what is forbidden. One in `$defs` may, as it depends on who refers to it."""
    negated, parts = False, iter(pointer.split("/"))
    for part in parts:
        if part in NAMED:
            next(parts, None)
        if part == "$defs":
            return True
        negated ^= part in ("not", "if")
    return negated
