"""Shortening texts: head and tail stay, and a mark between them gives the length of the cut. Pure."""

from typing import Any

import orjson


def clip(text: str, limit: int | None) -> str:
    """`text` in at most `limit` characters; None or 0 means no limit."""
    if not limit or len(text) <= limit:
        return text
    mark = f" …[{len(text) - limit} characters left out]… "
    keep = limit - len(mark)
    if keep < 2:
        return text[:limit]
    mark = f" …[{len(text) - keep} characters left out]… "
    keep = limit - len(mark)
    head = (keep + 1) // 2
    return f"{text[:head]}{mark}{text[len(text) - (keep - head) :]}"


def as_text(value: Any) -> str:
    """A tool's output as a model reads it: a text as it is, anything else as compact JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def clip_args(args: dict[str, Any], limit: int | None) -> dict[str, Any]:
    """Arguments for a trace: as they are when short, else with their texts clipped, else clipped as a whole."""
    text = as_text(args)
    if not limit or len(text) <= limit:
        return args
    clipped: dict[str, Any] = _clip_leaves(args, max(16, limit // 4))
    return clipped if len(as_text(clipped)) <= limit else {"clipped": clip(text, limit)}


def _clip_leaves(value: Any, limit: int) -> Any:
    match value:
        case str():
            return clip(value, limit)
        case dict():
            return {key: _clip_leaves(item, limit) for key, item in value.items()}
        case list():
            return [_clip_leaves(item, limit) for item in value]
        case _:
            return value
