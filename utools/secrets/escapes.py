"""Escapes: how JSON, JavaScript, URLs and HTML spell single characters; read for what they spell. Pure."""

import re
from bisect import bisect_right
from functools import lru_cache
from html import unescape
from typing import NamedTuple
from urllib.parse import unquote

ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[\"'\\/bfnrt])"
    r"|%(?:[0-7][0-9A-Fa-f]|[c-fC-F][0-9A-Fa-f](?:%[89abAB][0-9A-Fa-f]){1,3})"
    r"|&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|amp|lt|gt|quot|apos);"
)
SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
LONGEST = 12
"""Characters that spell one, as `\\ud83d\\udd11` does."""


def has_escapes(text: str) -> bool:
    """Whether a text may spell a character otherwise than by itself."""
    return "\\" in text or "%" in text or "&" in text


def plain(text: str) -> str:
    """The text with each escape read once; what it spells may be an escape again."""
    return ESCAPE.sub(lambda found: _char(found[0]), text)


@lru_cache(maxsize=4096)
def _char(escape: str) -> str:
    """The one character; the escape as it stands where it spells none, or several."""
    match escape[:2]:
        case r"\u" | r"\x":
            codes = [int(code, 16) for code in re.findall(r"[ux]([0-9A-Fa-f]+)", escape)]
            return chr(codes[0] if len(codes) == 1 else 0x10000 + (codes[0] - 0xD800) * 0x400 + codes[1] - 0xDC00)
    if escape[0] == "\\":
        return SHORT.get(escape[1], escape[1])
    char = unquote(escape) if escape[0] == "%" else unescape(escape)
    return char if len(char) == 1 else escape


class Places:
    """Where in a text that is which stands in what `plain` made of it."""

    def __init__(self, text: str) -> None:
        self._read: list[_Read] = []
        self._starts: list[int] = []
        shorter = 0
        for found in ESCAPE.finditer(text):
            if len(_char(found[0])) == 1:
                self._starts.append(found.start() - shorter)
                self._read.append(_Read(*found.span()))
                shorter += len(found[0]) - 1

    def of(self, start: int, end: int) -> tuple[int, int]:
        """The span in the text of a span in what was made of it, which is not empty."""
        return self._of(start)[0], self._of(end - 1)[1]

    def _of(self, at: int) -> tuple[int, int]:
        index = bisect_right(self._starts, at) - 1
        if index < 0:
            return at, at + 1
        read, past = self._read[index], at - self._starts[index]
        return read if past == 0 else (read.end + past - 1, read.end + past)


class _Read(NamedTuple):
    start: int
    end: int
