"""The edits by which secrets are taken out of a JSON value within a text, leaf by leaf. Pure."""

import json
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from utools.secrets.finds import Edit, Find, mark_of
from utools.secrets.json_values import Span, find_around, find_leaves

Numbers = Mapping[int | float, str]
"""The numbers that secrets are, each with the name of its secret."""


def edit_leaves(
    text: str, value: Span, found: Sequence[Find], numbers: Numbers, mask: Callable[[str], str], *, hides: bool
) -> list[Edit] | None:
    """Return the new leaves of a JSON value in a text; None if what was `found` is more than one of them, or cannot be
    taken out.

    A leaf that is a text becomes what `mask` makes of it, a key too, and one of the `numbers` the mark of its name.
    With `hides`, leaves in which nothing was found are looked at as well.
    """
    leaves = find_leaves(text, value)
    strings, starts = leaves.strings(), [each.start for each in found]
    edits = [*_edit_numbers(text, leaves.numbers, numbers), *_edit_keys(text, leaves.keys, mask)]
    for leaf in leaves.texts:
        if not hides and bisect_left(starts, leaf.start) == bisect_left(starts, leaf.end):
            continue
        plain = json.loads(text[slice(*leaf)], strict=False)
        if (clean := mask(plain)) != plain:
            edits.append(Edit(*leaf, _quote(clean)))
    taken = {each.start for each in edits}
    for each in found:
        around = find_around(strings, each.start - 1, each.end + 1)
        if around is None:
            if find_around(leaves.numbers, each.start, each.end) is None:
                return None
        elif around.start not in taken:  # it is there only as it is written, not as it is read
            rest = f"{text[around.start : each.start]}{mark_of(each.name)}{text[each.end : around.end]}"
            if not _is_string(rest):
                return None
            taken.add(around.start)
            edits.append(Edit(*around, rest))
    return edits


def _edit_numbers(text: str, leaves: Iterable[Span], numbers: Numbers) -> Iterator[Edit]:
    for leaf in leaves if numbers else ():
        number = _number(text[slice(*leaf)])
        if number in numbers:
            yield Edit(*leaf, _quote(mark_of(numbers[number])))


def _edit_keys(text: str, objects: Iterable[Sequence[Span]], mask: Callable[[str], str]) -> Iterator[Edit]:
    """Yield the new keys of each object: those that were equal still are, those that were not are not."""
    for keys in objects:
        plain = [json.loads(text[slice(*key)], strict=False) for key in keys]
        different = list(dict.fromkeys(plain))
        clean = [_keep_if_equal(key, mask(key)) for key in different]
        if any(new is not key for new, key in zip(clean, different, strict=True)):
            names = dict(zip(different, number_duplicates(clean, different), strict=True))
            yield from (
                Edit(*leaf, _quote(names[key])) for leaf, key in zip(keys, plain, strict=True) if names[key] != key
            )


def _keep_if_equal(old: str, new: str) -> str:
    return old if new == old else new


def _quote(text: str) -> str:
    """Return the JSON of a text; a lone surrogate stays an escape."""
    return json.dumps(text, ensure_ascii=not _is_encodable(text))


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_string(text: str) -> bool:
    """Return whether a text is the JSON of one text."""
    try:
        return isinstance(json.loads(text, strict=False), str)
    except ValueError:
        return False


def _number(literal: str) -> int | float:
    """Return the number that a literal says; not a number for one that is too long for a secret."""
    if len(literal) > 30:
        return math.nan
    return int(literal) if literal.lstrip("-").isdigit() else float(literal)


def number_duplicates(clean: Sequence[Any], keys: Iterable[Any]) -> Iterator[Any]:
    """Yield the cleaned keys of an object; keys that became equal are numbered from 2, unchanged keys stay as they
    are."""
    pairs = list(zip(clean, keys, strict=True))
    taken = {key for name, key in pairs if name is key}
    numbers: dict[str, Iterator[int]] = {}
    for name, key in pairs:
        new = name
        while name is not key and new in taken:
            new = f"{name} {next(numbers.setdefault(name, count(2)))}"
        taken.add(new)
        yield new
