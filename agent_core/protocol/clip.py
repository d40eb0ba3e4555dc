"""Shortening texts: head and tail stay, and a mark between them gives the length of the cut. Pure."""

from typing import Any, Final

import orjson

from agent_core.outputs import JsonValue
from agent_core.words.catalogue import ENGLISH, Words

LEFT_OUT: Final = "…"
"""The key under which a shortened object says how many keys it lacks."""
SHORTEST_LEAF: Final = 48
"""Characters of a text within JSON below which none is cut: its mark would be as long."""
ITEM_SIZE: Final = 24
"""Characters that an item of a list, or a pair of an object, is reckoned with."""


def clip(text: str, limit: int | None, words: Words = ENGLISH) -> str:
    """`text` in at most `limit` characters; None or 0 means no limit."""
    if not limit or len(text) <= limit:
        return text
    mark, head, tail = _divide(len(text), limit, words)
    return f"{text[:head]}{mark}{text[len(text) - tail :]}" if mark else text[:limit]


def find_cut(length: int, limit: int, words: Words = ENGLISH) -> tuple[int, int]:
    """Return where `clip` cuts a text of this length, which is longer than `limit`: the first character left out, how
    many."""
    _, head, tail = _divide(length, limit, words)
    return head, length - head - tail


def _divide(length: int, limit: int, words: Words) -> tuple[str, int, int]:
    """Return the mark, and the lengths of head and tail; no mark where there is no room for one."""
    mark = words.clipped.format(count=length - limit)
    keep = limit - len(mark)
    if keep < 2:
        return "", limit, 0
    mark = words.clipped.format(count=length - keep)
    keep = limit - len(mark)
    head = (keep + 1) // 2
    return mark, head, keep - head


def as_text(value: Any) -> str:
    """Return a tool's output as a model reads it: a text as it is, anything else as compact JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def clip_value(value: Any, limit: int | None, words: Words = ENGLISH) -> str:
    """Return a tool's output as a text of at most `limit` characters: a text is clipped; anything else stays JSON, its
    texts clipped and its lists and objects shortened until it fits, each with a mark that says how much is missing."""
    text = as_text(value)
    if not limit or len(text) <= limit or isinstance(value, str):
        return clip(text, limit, words)
    size = limit // 2
    while size > 0:
        shortened = as_text(_shorten(value, max(size, SHORTEST_LEAF), 1 + size // ITEM_SIZE, words))
        if len(shortened) <= limit:
            return shortened
        size //= 2
    return clip(text, limit, words)


def _shorten(value: JsonValue, length: int, items: int, words: Words) -> Any:
    match value:
        case str():
            return clip(value, length, words)
        case dict():
            kept = {key: _shorten(value[key], length, items, words) for key in list(value)[:items]}
            left = {LEFT_OUT: words.keys_left_out.format(count=len(value) - items)} if len(value) > items else {}
            return {**kept, **left}
        case list():
            shown = [_shorten(each, length, items, words) for each in value[:items]]
            return [*shown, words.items_left_out.format(count=len(value) - items)] if len(value) > items else shown
        case _:
            return value


def clip_args(args: dict[str, Any], limit: int | None, words: Words = ENGLISH) -> dict[str, Any]:
    """Arguments as they are when short, else with their texts clipped, else clipped as a whole."""
    text = as_text(args)
    if not limit or len(text) <= limit:
        return args
    every_item = len(text)
    clipped: dict[str, Any] = _shorten(args, max(16, limit // 4), every_item, words)
    return clipped if len(as_text(clipped)) <= limit else {"clipped": clip(text, limit, words)}
