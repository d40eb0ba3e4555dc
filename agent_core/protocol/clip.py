"""Shortening texts: head and tail stay, and a mark between them gives the length of the cut. Pure."""

from typing import Any

import orjson

from agent_core.words.catalogue import ENGLISH, Words


def clip(text: str, limit: int | None, words: Words = ENGLISH) -> str:
    """`text` in at most `limit` characters; None or 0 means no limit."""
    if not limit or len(text) <= limit:
        return text
    mark, head, tail = _divide(len(text), limit, words)
    return f"{text[:head]}{mark}{text[len(text) - tail :]}" if mark else text[:limit]


def find_cut(length: int, limit: int, words: Words = ENGLISH) -> tuple[int, int]:
    """Where `clip` cuts a text of this length, which is longer than `limit`: the first character left out, how many."""
    _, head, tail = _divide(length, limit, words)
    return head, length - head - tail


def _divide(length: int, limit: int, words: Words) -> tuple[str, int, int]:
    """The mark, and the lengths of head and tail; no mark where there is no room for one."""
    mark = words.clipped.format(count=length - limit)
    keep = limit - len(mark)
    if keep < 2:
        return "", limit, 0
    mark = words.clipped.format(count=length - keep)
    keep = limit - len(mark)
    head = (keep + 1) // 2
    return mark, head, keep - head


def as_text(value: Any) -> str:
    """A tool's output as a model reads it: a text as it is, anything else as compact JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def clip_args(args: dict[str, Any], limit: int | None, words: Words = ENGLISH) -> dict[str, Any]:
    """Arguments as they are when short, else with their texts clipped, else clipped as a whole."""
    text = as_text(args)
    if not limit or len(text) <= limit:
        return args
    clipped: dict[str, Any] = _clip_leaves(args, max(16, limit // 4), words)
    return clipped if len(as_text(clipped)) <= limit else {"clipped": clip(text, limit, words)}


def _clip_leaves(value: Any, limit: int, words: Words) -> Any:
    match value:
        case str():
            return clip(value, limit, words)
        case dict():
            return {key: _clip_leaves(item, limit, words) for key, item in value.items()}
        case list():
            return [_clip_leaves(item, limit, words) for item in value]
        case _:
            return value
