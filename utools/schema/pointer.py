"""JSON pointers (RFC 6901): how a place in a document is written. Pure."""

from collections.abc import Iterable
from typing import Any


def pointer_of(path: Iterable[object]) -> str:
    """Return the pointer to what lies at a path of names and indexes; empty for the whole document."""
    return "".join(f"/{escape(part)}" for part in path)


def escape(part: object) -> str:
    """Return one step of a pointer."""
    step = str(part)
    return step.replace("~", "~0").replace("/", "~1") if "~" in step or "/" in step else step


def unescape(part: str) -> str:
    """Return the name that one step of a pointer stands for."""
    return part.replace("~1", "/").replace("~0", "~")


def value_at(value: Any, pointer: str) -> Any:
    """Return what lies at a pointer that leads somewhere."""
    for part in pointer.split("/")[1:]:
        value = value[int(part)] if isinstance(value, list) else value[unescape(part)]
    return value
