"""Pieces of secrets: what a cut through an encoded secret leaves at the end, or at the start, of a text. Pure."""

import re
from collections.abc import Mapping

from utools.lazy_pattern import lazy_compile
from utools.secrets.encodings import any_of

SHORTEST = 6
"""Characters below which no secret, and no piece of one, is looked for."""
LENGTH = 8
"""Characters of a piece that are enough to recognise it."""
URL = lazy_compile(
    r"([A-Za-z][A-Za-z0-9+.\-]{0,30}(?::|%3A)(?:/|%2F){2}(?:(?:(?!%40|%2F)[^/@\s])*(?:/|%2F))?)(?:.*((?:@|%40).*))?",
    re.DOTALL,
)
"""The public parts of a URL, its scheme and its host, as it is written or as a part of another URL."""


def beginning_of(form: str) -> str:
    """Return the beginning by which a cut form is recognised; the public part of a URL does not count."""
    url = URL.match(form)
    return form[: _length(form) + (url.end(1) if url else 0)]


def end_of(form: str) -> str:
    """Return the end by which a cut form is recognised."""
    url = URL.match(form)
    return form[-(_length(form) + (len(url[2]) if url and url[2] else 0)) :]


def _length(form: str) -> int:
    return max(SHORTEST, min(LENGTH, len(form) * 2 // 3))


class Pieces:
    """Finds the beginning of a form at the end of a text. For the end of a form at the start, reverse all of them."""

    def __init__(self, beginnings: Mapping[str, str]) -> None:
        """Each form, with the beginning by which it is recognised."""
        self._forms: dict[str, list[tuple[str, int]]] = {}
        for form in sorted(beginnings, key=lambda form: (-len(form), form)):
            self._forms.setdefault(form[:SHORTEST], []).append((form, len(beginnings[form])))
        self._longest = max(map(len, beginnings), default=0)
        self._start = re.compile(f"(?=({any_of(self._forms)}))") if self._forms else None

    def at_end(self, text: str) -> tuple[int, str] | None:
        """Return where the piece starts, and its form; None if the text ends with no piece."""
        if self._start is None:
            return None
        for found in self._start.finditer(text, max(0, len(text) - self._longest)):
            piece = text[found.start() :]
            for form, least in self._forms[found[1]]:
                if least <= len(piece) and form.startswith(piece) and not _is_word(piece, form):
                    return found.start(), form
        return None


def _is_word(piece: str, form: str) -> bool:
    """Return whether a piece may as well be an ordinary word: `password` tells little of `my-password`."""
    plain = piece.isascii() and piece.isalpha() and (piece[1:].islower() or piece[:-1].islower())
    return plain and 4 * len(piece) < 3 * len(form)
