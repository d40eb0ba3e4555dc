"""Patterns as JavaScript reads them (ECMA-262), which JSON Schema means, as patterns that Python reads. Pure.

What both read alike is left as it is. The rest is written so that both read it, where that is possible. A translation
may let more texts through than its original, never fewer: the schema's author judges the value again.
"""

import re
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from utools.lazy_pattern import lazy_compile

IDENTITY: Final = frozenset("CEFGHIJKLMNOPQRTUVXYZceghijklmopqyz")
"""Letters that mean themselves after a backslash in JavaScript, and nothing or something else in Python. A and Z are
left to Python: who writes them is used to its anchors."""
LETTERS: Final = lazy_compile(
    r"L|L[ulmot]|LC|Letter|Alphabetic|Alpha|(Upper|Lower|Titlecase|Modifier|Other)(case)?_?Letter"
)
DIGITS: Final = lazy_compile(r"Nd|Decimal_Number|digit")
NUMBERS: Final = lazy_compile(r"N[lo]?|Number|Letter_Number|Other_Number")
PROPERTY: Final = lazy_compile(r"([pP])\{(?:(?:General_Category|gc)=)?([A-Za-z_]+)\}")
HAN: Final = lazy_compile(r"(?:Script|sc|Script_Extensions|scx)=Han\b|Unified_Ideograph")
HAN_RANGES: Final = (
    r"\u2e80-\u2fdf\u3005-\u3007\u3021-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
)
CODE_POINT: Final = lazy_compile(
    r"u\{([0-9A-Fa-f]{1,6})\}|u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
)
NAMED: Final = lazy_compile(r"\(\?P?<([A-Za-z_$][\w$]*)>")
BACK: Final = lazy_compile(r"k<([A-Za-z_$][\w$]*)>")


class _UntranslatableError(ValueError):
    """Python has no such pattern."""


@lru_cache(1024)
def translate_pattern(pattern: str) -> str | None:
    """Return the pattern for Python's `re`; None where Python cannot read it."""
    try:
        translated = _Scanner(pattern).translate()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(translated)
    except (_UntranslatableError, re.error, OverflowError, RecursionError, Warning):
        return None
    return translated


class _Scanner:
    """Reads a pattern from left to right. Of a class it knows whether it is negated, and what came before a dash."""

    def __init__(self, pattern: str) -> None:
        self._pattern, self._at = pattern, 0
        self._names = _number_groups(pattern)

    def translate(self) -> str:
        return "".join(self._pieces())

    def _pieces(self) -> Iterator[str]:
        while self._at < len(self._pattern):
            char = self._pattern[self._at]
            if char == "\\":
                yield self._escape()
            elif char == "[":
                yield self._class()
            elif found := NAMED.match(self._pattern, self._at):
                self._at = found.end()
                yield "("
            else:
                self._at += 1
                yield char

    def _escape(self) -> str:
        """Return what a backslash outside of a class stands for."""
        if (special := self._special()) is not None:
            return f"[{special}]" if special == HAN_RANGES else special
        if found := self._take(PROPERTY):
            return self._property(found)
        if found := self._take(BACK):
            if found[1] not in self._names:
                raise _UntranslatableError
            return f"(?:\\{self._names[found[1]]})"
        return self._plain_escape({"D": "[^0-9]", "W": "[^a-zA-Z0-9_]"})

    def _property(self, found: re.Match[str]) -> str:
        is_negated, name = found[1] == "P", found[2]
        if DIGITS.fullmatch(name):
            return r"\D" if is_negated else r"\d"
        if LETTERS.fullmatch(name) and not is_negated:
            return r"[^\W\d_]"
        if NUMBERS.fullmatch(name) and not is_negated:
            return r"[^\W_]"
        raise _UntranslatableError

    def _class(self) -> str:
        """Return a class, up to its end."""
        self._at += 1
        is_negated = self._pattern.startswith("^", self._at)
        self._at += is_negated
        pieces, before = list[str](), ""
        while not self._pattern.startswith("]", self._at):
            if self._at >= len(self._pattern):
                raise _UntranslatableError
            piece = self._class_piece(is_negated)
            if piece == "-" and ((before[1:] in {*"dDwWsS"} and len(before) == 2) or self._is_class_escape_next()):
                piece = r"\-" if before and not self._pattern.startswith("]", self._at) else piece
            pieces.append(piece)
            before = piece
        self._at += 1
        if not pieces:
            return r"[\s\S]" if is_negated else r"(?!)"
        return f"[{'^' if is_negated else ''}{''.join(pieces)}]"

    def _class_piece(self, is_negated: bool) -> str:
        char = self._pattern[self._at]
        if char != "\\":
            self._at += 1
            doubled = char in "&|~" and self._pattern.startswith(char, self._at)  # a set operation, in Python one day
            return f"\\{char}" if char == "[" or doubled else char
        if (special := self._special()) is not None:
            return special
        if found := self._take(PROPERTY):
            if DIGITS.fullmatch(found[2]):
                return r"\D" if found[1] == "P" else r"\d"
            is_word = LETTERS.fullmatch(found[2]) or NUMBERS.fullmatch(found[2])
            if is_word and found[1] == "p" and not is_negated:
                return r"\w"
            raise _UntranslatableError
        return self._plain_escape({"d": "0-9", "w": "a-zA-Z0-9_"} if is_negated else {})

    def _is_class_escape_next(self) -> bool:
        return self._pattern[self._at : self._at + 2] in {rf"\{each}" for each in "dDwWsS"}

    def _special(self) -> str | None:
        """Return a code point, a control character, or the ideographs; None for any other escape."""
        if found := self._take(CODE_POINT):
            if found[1]:
                return re.escape(_char(int(found[1], 16)))
            high, low = int(found[2], 16), int(found[3], 16)
            return _char(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
        if found := self._take(re.compile(r"c([A-Za-z])")):
            return f"\\x{ord(found[1]) % 32:02x}"
        if found := self._take(re.compile(rf"p\{{(?:{HAN.pattern})\}}")):
            return HAN_RANGES
        return None

    def _plain_escape(self, instead: dict[str, str]) -> str:
        """Return a backslash and a character, both as they are unless Python reads them otherwise."""
        letter = self._pattern[self._at + 1 : self._at + 2]
        if not letter or letter in "pP":
            raise _UntranslatableError
        self._at += 2
        return instead.get(letter, letter if letter in IDENTITY else f"\\{letter}")

    def _take(self, form: re.Pattern[str]) -> re.Match[str] | None:
        """Return what follows the backslash, if it has this form."""
        found = form.match(self._pattern, self._at + 1)
        if found:
            self._at = found.end()
        return found


def _char(number: int) -> str:
    if number > 0x10FFFF:
        raise _UntranslatableError
    return chr(number)


def _number_groups(pattern: str) -> dict[str, int]:
    """Return the number of each named group: groups are counted by their opening brackets."""
    bare = re.sub(r"\\.|\[(?:\\.|[^\]\\])*\]", lambda found: " " * len(found[0]), pattern, flags=re.DOTALL)
    groups = re.finditer(r"\((?!\?)|\(\?P?<([A-Za-z_$][\w$]*)>", bare)
    return {found[1]: number for number, found in enumerate(groups, 1) if found[1]}
