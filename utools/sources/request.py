"""A request that a tool makes, and the encoding of values for each of its parts. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from utools.errors import ToolError

DOTS = frozenset({".", ".."})
"""Path segments that lead to another path."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None = None


def encode_segment(value: str) -> str:
    """Return a value as a part of one path segment; ToolError for one that would lead elsewhere."""
    if not value or DOTS & set(re.split(r"[/\\]", value)):
        raise ToolError(
            "{value!r} cannot be part of a URL's path: it is empty, or leads to another one", value=value[:80]
        )
    return quote(value, safe="")


def encode_query(value: str) -> str:
    """Return a value as a part of a query."""
    return quote(value, safe="")


def encode_pairs(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a query, or a form, of names and values."""
    return "&".join(f"{encode_query(name)}={encode_query(value)}" for name, value in pairs)


def encode_header(name: str, value: str) -> str:
    """Return a value as that of a header; ToolError for one that could be read as more."""
    if not value.isprintable() or not value.isascii():
        raise ToolError("the header {name} must be printable ASCII, got {value!r}", name=name, value=value[:80])
    return value


def check_path(path: str) -> None:
    """ToolError where values have joined to a segment that leads elsewhere."""
    for segment in path.split("/"):
        if segment.lower().replace("%2e", ".") in DOTS:
            raise ToolError("{path!r} leads to another path than the tool's own", path=path)
