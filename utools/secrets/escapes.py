"""Escapes: how JSON, JavaScript, shells, Markdown, URLs and HTML write single characters, and what they stand for.
Pure."""

import re
from functools import lru_cache
from html import unescape
from urllib.parse import unquote

from utools.lazy_pattern import lazy_compile

ESCAPE = lazy_compile(
    r"\\(?:u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}"
    r"|[0-3][0-7]{2}|(?!&#?\w{2,7};)[ -/:-@\[-`{-~bfnrt])"  # a backslash before `&lt;` is one in HTML
    r"|%(?:[0-7][0-9A-Fa-f]|[c-fC-F][0-9A-Fa-f](?:%[89abAB][0-9A-Fa-f]){1,3})"
    r"|&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|amp|lt|gt|quot|apos);"
)
SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
LONGEST = 12
"""Characters of the longest escape, such as `\\ud83d\\udd11`."""


def has_escapes(text: str) -> bool:
    """Return whether a text may hold escapes."""
    return "\\" in text or "%" in text or "&" in text


def unescape_once(text: str) -> str:
    """Return the text with each escape read once; the result may hold escapes again."""
    return ESCAPE.sub(lambda found: _character(found[0]), text)


def find_place(text: str, place: int) -> int:
    """Return where the character at this place of `unescape_once(text)` starts in the text."""
    more = 0
    for found in ESCAPE.finditer(text):
        if found.start() >= place + more:
            break
        more += len(found[0]) - len(_character(found[0]))
    return place + more


@lru_cache(maxsize=4096)
def _character(token: str) -> str:
    """Return the character that an escape stands for; the token itself if it stands for none, or for several."""
    match token[:2]:
        case r"\u" | r"\x":
            codes = [int(code, 16) for code in re.findall(r"[ux]([0-9A-Fa-f]+)", token)]
            return chr(codes[0] if len(codes) == 1 else 0x10000 + (codes[0] - 0xD800) * 0x400 + codes[1] - 0xDC00)
        case _:
            pass
    if len(token) == 1:
        return token
    if token[0] == "\\":
        return chr(int(token[1:], 8)) if len(token) > 2 else SHORT.get(token[1], token[1])
    character = unquote(token) if token[0] == "%" else unescape(token)
    return character if len(character) == 1 else token
