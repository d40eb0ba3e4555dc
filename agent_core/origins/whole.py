"""Whether a text stands whole in another: between Unicode's word boundaries, and no part of a longer value. Pure."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from utools.lazy_pattern import lazy_compile

CONNECTORS = frozenset("_.@+-/\\&#~%:=")
"""Characters that join what stands on both of their sides to one value: an address, a path, a name with a hyphen."""
CJK = "[\u2e80-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff]"
"""Scripts that are written without blanks: a word may begin or end between any two of their characters."""
_CJK = lazy_compile(CJK)
_LOOKALIKES = lazy_compile(
    "([\u0340\u0341\u0343\u0344\u0374\u037e\u0387\u1f71\u1f73\u1f75\u1f77\u1f79\u1f7b\u1f7d\u1fbb\u1fbe\u1fc9\u1fcb\u1fd3\u1fdb"
    "\u1fe3\u1feb\u1fee\u1fef\u1ff9\u1ffb\u1ffd\u2000\u2001\u2126\u212a\u212b\u2329\u232a"
    "\uf900-\ufaff\U0002f800-\U0002fa1f])"
)
"""Characters that NFC replaces by another one, such as the Kelvin sign by K: they stay what they are."""
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»", "「": "」", "『": "』", "《": "》"}
_SLASHES = frozenset("/\\")
_PATH = lazy_compile(r"[\w./\\~+-]*")
"""What a path goes on with, where no quotes stand around it."""
NEAR = 256
"""Characters of a path that are looked at on either side."""
_NO_LETTERS = lazy_compile(r":|(?<!\w)['’]")
"""What UAX 29 may take for a part of a word, and is none: a colon, and an apostrophe with no letter before it."""
_APART, _MAY_JOIN = r" \t\n\r\"()\[\]{}<>!?=/\\|+*&^%$#@~:`\-", ".,;'"
_PLAIN_EDGE = lazy_compile(
    rf"(?<=[A-Za-z0-9])(?=[{_APART}]|[{_MAY_JOIN}](?:[{_APART}{_MAY_JOIN}]|\Z))"
    rf"|(?:(?<=[{_APART}])|(?<=[{_APART}{_MAY_JOIN}][{_MAY_JOIN}])|(?<=\A[{_MAY_JOIN}]))(?=[A-Za-z0-9])"
)
"""Most edges: between a letter or figure, and what joins nothing to it."""
_POSSESSIVES = ("'s", "’s")
_KEY = lazy_compile(r"(?:^|(?<![^\s,;({\[|\"'`]))-{0,2}[A-Za-z_][A-Za-z0-9_-]*=\Z")
MOST_TRIED = 10_000
"""Places in one text where a value is looked at; a text that was made to hold more takes no longer."""
LONGEST_KEY = 40
"""Characters of the name in `name=value`, with which the value stands alone."""


def compose(text: str) -> str:
    """NFC, in which a letter and its accents are one, and nothing else becomes another character."""
    if text.isascii():
        return text
    parts = _LOOKALIKES.split(text)
    return "".join(part if index % 2 else unicodedata.normalize("NFC", part) for index, part in enumerate(parts))


LONGEST_PATH = 1024


class _Lower(dict[int, int]):
    """The small letter of a capital one, where each stands for the other and for nothing else."""

    def __missing__(self, code: int) -> int:
        capital = chr(code)
        small = capital.lower()
        self[code] = ord(small) if len(small) == 1 and small.upper() == capital else code
        return self[code]


_LOWER = _Lower()


def lower(text: str) -> str:
    """Return the text in small letters, as long as before: no sharp s, final sigma or ligature becomes another
    letter."""
    return text.lower() if text.isascii() else text.translate(_LOWER)


def find_whole(needle: str, text: str, folded: str | None) -> Iterator[int]:
    """Yield where `needle` stands in `text` whole, of the first MOST_TRIED places. Both are composed.

    `folded` is the text in small letters, in which the needle is looked for instead.
    """
    if not any(map(str.isalnum, needle)):
        return
    searched = text if folded is None else folded
    may_be_whole = _sides(_is_plain(needle[0]), _is_plain(needle[-1]), len(needle)).match
    start = -1
    for _ in range(MOST_TRIED):
        start = searched.find(needle, start + 1)
        if start < 0:
            return
        if may_be_whole(text, start) and is_whole(text, start, start + len(needle)):
            yield start


@lru_cache(256)
def _sides(is_plain_first: bool, is_plain_last: bool, length: int) -> re.Pattern[str]:
    """Return what is around a text of this length, unless it is surely a part of a longer one; quicker than
    `is_whole`."""
    before = r"(?<![A-Za-z0-9])(?<![A-Za-z0-9][_.@+/\\&#~%-])" if is_plain_first else ""
    after = r"(?![A-Za-z0-9])(?![_.@+/\\&#~%-][A-Za-z0-9])" if is_plain_last else ""
    return re.compile(rf"{before}(?s:.{{{length}}}){after}")


def _is_plain(char: str) -> bool:
    return char.isascii() and char.isalnum()


def is_whole(text: str, start: int, end: int) -> bool:
    """Return whether a part of a text is a value of its own."""
    if start == 0 and end == len(text):
        return True
    if _runs_on(text, start) or _runs_on(text, end):
        return False
    after = next((end + len(s) for s in _POSSESSIVES if text.startswith(s, end)), end)
    if not is_edge(text, start) or not (is_edge(text, end) or (after > end and is_edge(text, after))):
        return False
    return not (
        _is_joined_before(text, start)
        or _is_joined_after(text, end)
        or _is_path_part(text, start, end)
        or _is_quoted_part(text, start, end)
    )


def is_quoted(text: str, start: int, end: int) -> bool:
    """Return whether quotation marks say where a part of a text begins and ends."""
    closing = _QUOTES.get(text[start - 1]) if start else None
    return closing is not None and text.startswith(closing, end)


def _runs_on(text: str, at: int) -> bool:
    """Return whether a word surely continues here, which `is_edge` would take longer to see."""
    return 0 < at < len(text) and _is_cased(text[at - 1]) and _is_cased(text[at])


def _is_cased(char: str) -> bool:
    return char.isalnum() if char.isascii() else char.lower() != char.upper()


def is_edge(text: str, at: int) -> bool:
    """Return whether a word may begin or end here, by UAX 29. A colon ends a word."""
    if at in (0, len(text)) or _PLAIN_EDGE.match(text, at):
        return True
    near = _NO_LETTERS.sub(" ", text[max(0, at - 40) : at + 40])
    return _word_edge().match(near, min(at, 40)) is not None


@lru_cache(1)
def _word_edge() -> Any:
    import regex  # slow to load, and of use to runs alone

    return regex.compile(r"\b", regex.WORD)


def is_cjk(char: str) -> bool:
    """Return whether a character is of a script that is written without blanks."""
    return _CJK.match(char) is not None


def _is_joined_before(text: str, start: int) -> bool:
    begin, first = start, start
    while begin and text[begin - 1] in CONNECTORS:
        begin -= 1
    while text[first : first + 1] in CONNECTORS:
        first += 1
    outside, before, after = text[begin:start], text[begin - 1 : begin], text[first : first + 1]
    if outside == "=" and _KEY.search(text, max(0, start - LONGEST_KEY), start):
        return False
    if not outside and text[start] in "/\\" and before and is_cjk(before):
        return False
    return (not _is_letter(before) and _leads(outside, text[start])) or _joins(before, text[begin:first], after)


def _leads(run: str, first: str) -> bool:
    """Return whether connectors with nothing before them belong to what follows: those of a path, a hidden file, a
    plus."""
    if not run or run in (":", "=", "@", "./"):
        return False
    return first in CONNECTORS or "/" in run or "\\" in run or run == "." or (run[-1] == "+" and first.isdigit())


def _is_joined_after(text: str, end: int) -> bool:
    stop, last = end, end
    while text[stop : stop + 1] in CONNECTORS:
        stop += 1
    while last and text[last - 1] in CONNECTORS:
        last -= 1
    outside, after = text[end:stop], text[stop : stop + 1]
    if outside and (outside[0] in "+#" or outside.rstrip(".") == "~" or set(outside.rstrip(".")) == {"="}):
        return True
    if after and after in "*?[{$<%" and ("/" in text[last:stop] or "\\" in text[last:stop]):
        return after != "<" or not text.startswith("</", stop)
    return _joins(text[last - 1 : last], text[last:stop], after)


def _joins(before: str, run: str, after: str) -> bool:
    """Return whether connectors make one value of what is before and after them."""
    if not run or not (_is_letter(before) and _is_letter(after)):
        return False
    if set(run) == {"."} and len(run) > 1:
        return False
    if run == ":":
        return before.isdigit() and after.isdigit()
    return "@" in run or not (is_cjk(before) and is_cjk(after))


def is_extended(char: str) -> bool:
    """Return whether a character belongs to the one before it: an accent, a joiner, a mark of direction."""
    return bool(char) and not char.isascii() and unicodedata.category(char) in ("Mn", "Me", "Mc", "Cf")


def _is_path_part(text: str, start: int, end: int) -> bool:
    """Return whether a path goes on beside it. Between Chinese words, a slash may also part one choice from another."""
    value, is_rooted = text[start:end], text[start] in _SLASHES
    if not is_rooted and text[start - 1 : start] not in _SLASHES and text[end : end + 1] not in _SLASHES:
        return False
    left = _path_at_head(text[max(0, start - NEAR) : start][::-1])[::-1]
    right = _path_at_head(text[end : end + NEAR]).rstrip("./\\")
    if is_rooted:
        return _has_slash(left) or right[:1] in _SLASHES
    goes_on = left[-1:] in _SLASHES or right[:1] in _SLASHES
    return goes_on and (_has_slash(value) or left[:1] in _SLASHES or "." in left + value + right)


def _path_at_head(text: str) -> str:
    found = _PATH.match(text)
    return found[0] if found else ""


def _has_slash(text: str) -> bool:
    return "/" in text or "\\" in text


def _is_letter(char: str) -> bool:
    return bool(char) and unicodedata.category(char)[0] in "LNM"


def _is_quoted_part(text: str, start: int, end: int) -> bool:
    """Return whether it begins a quoted path that continues after it, and may have blanks."""
    closing = _QUOTES.get(text[start - 1]) if start else None
    if closing is None or text.startswith(closing, end):
        return False
    line, _, _ = text[end : end + LONGEST_PATH].partition("\n")
    rest, close, _ = line.partition(closing)
    return bool(close) and any(mark in text[start:end] or mark in rest for mark in "/\\")
