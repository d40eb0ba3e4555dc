"""Secrets that a line end cuts: `sesame-\\nopen` is `sesame-open`, as a wrapped text has it. Pure."""

import re
from collections.abc import Iterator

from utools.lazy_pattern import lazy_compile

SHORTEST = 12
"""Characters below which what stands on two lines is no secret: numbers in a column would become one."""
_LINE_END = lazy_compile(r"[ \t]*[\r\n][ \t\r\n]*")


def squeeze(text: str) -> str:
    """Return the text without blanks and line ends, in which every secret is found that the text holds, cut or
    whole."""
    for space in (" ", "\n", "\r", "\t"):
        if space in text:
            text = text.replace(space, "")
    return text


def squeeze_json(json_text: str) -> str:
    """Return the same for the JSON of a value, in which no backslash is escaped."""
    for space in (" ", "\\n", "\\r", "\\t"):
        if space in json_text:
            json_text = json_text.replace(space, "")
    return json_text


def places_of(text: str) -> list[int]:
    """For each character of `squeeze(text)` where it stands in the text."""
    return [at for at, char in enumerate(text) if char not in " \t\r\n"]


def find_cut(text: str, squeezed_forms: re.Pattern[str]) -> Iterator[tuple[int, int, str]]:
    """Start, end and squeezed form of each secret that has a line end in it."""
    if "\n" not in text and "\r" not in text:
        return
    places = places_of(text)
    for found in squeezed_forms.finditer(squeeze(text)):
        start, end = places[found.start()], places[found.end() - 1] + 1
        if len(found[0]) >= SHORTEST and _LINE_END.search(text, start, end):
            yield start, end, found[0]


def is_whole(part: str) -> bool:
    """Return whether the part has no blanks but those beside a line end."""
    return not re.search(r"[ \t]", _LINE_END.sub("", part))
