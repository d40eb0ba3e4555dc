"""A URL with placeholders, whose values are encoded for their places. Pure."""

from collections.abc import Mapping
from typing import Any

from utools.json_text import to_text
from utools.net.address import ORIGIN
from utools.sources.placeholder import ABSENT, fill_text, fill_value, find_names
from utools.sources.request import check_path, encode_pairs, encode_query, encode_segment

Args = Mapping[str, Any]


def fill_url(url: str, query: Mapping[str, Any], args: Args) -> str:
    """Return the URL with these arguments, and the query added; ToolError for a value that cannot be a part of it. Its
    origin is fixed."""
    found = ORIGIN.match(url)
    origin = found[0] if found else ""
    path, mark, written = url[len(origin) :].partition("?")
    path = fill_text(path, {**dict.fromkeys(find_names(path), ""), **args}, encode_segment)
    check_path(path)
    more = [part for part in (fill_text(written, args, encode_query), encode_pairs(list_pairs(query, args))) if part]
    return f"{origin}{path or '/'}{'?' if more else mark}{'&'.join(more)}"


def list_pairs(fields: Mapping[str, Any], args: Args) -> list[tuple[str, str]]:
    """Return the names and values of a query or a form: a list makes a pair of each, what was not given makes none."""
    pairs: list[tuple[str, str]] = []
    for name, template in fields.items():
        value = fill_value(template, args)
        several = value if isinstance(value, list) else [] if value is ABSENT or value is None else [value]
        pairs += [(name, to_text(each)) for each in several]
    return pairs
