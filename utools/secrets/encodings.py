"""The forms in which a secret travels, as texts that can be looked for; and patterns that find any of many texts. Pure.

What spells single characters of a text otherwise, such as `%3c` and `\\u003c`, is undone in `spelled`, not listed here.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus

SHORTEST = 6
PIECE = 8
"""Characters of a cut secret by which it is told."""
URL = re.compile(
    r"([A-Za-z][A-Za-z0-9+.\-]{0,30}(?::|%3A)(?:/|%2F){2}(?:(?:(?!%40|%2F)[^/@\s])*(?:/|%2F))?)(?:.*((?:@|%40).*))?",
    re.DOTALL,
)
"""What is no secret of a URL: its scheme, its host; be it as it is written or as a part of another URL."""
NUMBER = re.compile(r"[1-9]\d*(?:\.\d+)?", re.ASCII)


def forms_of(secret: str) -> Iterator[str]:
    """The secret itself, its base64 (alone, or within that of a longer text), its hex, URL- and JSON-escaped forms."""
    raw = secret.encode("utf-8", "surrogatepass")
    yield secret
    yield from (raw.hex(), raw.hex().upper())
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(raw).decode()
        yield from (_within(encode(bytes(before) + raw).decode(), before, len(raw)) for before in range(3))
        yield encode(raw).decode().rstrip("=")
    yield from (quote(raw, safe=""), quote(raw), quote_plus(raw), secret.replace(" ", "+"))
    yield from (json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))


def _within(encoded: str, before: int, length: int) -> str:
    """The characters of a base64 that tell of the secret alone, not of its neighbours."""
    return encoded[-(-before * 8 // 6) : (before + length) * 8 // 6]


def number_of(secret: str) -> int | float | None:
    """The number that a secret is when it is written without quotes."""
    if len(secret) > 20 or not NUMBER.fullmatch(secret):
        return None
    return float(secret) if "." in secret else int(secret)


def begins_of(form: str) -> str:
    """By what of its beginning a form that was cut is told; the public part of a URL does not count."""
    url = URL.match(form)
    return form[: _least(form) + (url.end(1) if url else 0)]


def ends_of(form: str) -> str:
    """By what of its end a form that was cut is told."""
    url = URL.match(form)
    return form[-(_least(form) + (len(url[2]) if url and url[2] else 0)) :]


def _least(form: str) -> int:
    return max(SHORTEST, min(PIECE, len(form) * 2 // 3))


def any_of(texts: Iterable[str]) -> str:
    """A pattern that finds each of the texts, the longest first; by their first characters, so that most places in a
    text cost one look."""
    begun: dict[str, list[str]] = {}
    for text in sorted(set(texts), key=lambda text: (-len(text), text)):
        begun.setdefault(text[0], []).append(re.escape(text[1:]))
    return "|".join(f"{re.escape(first)}(?:{'|'.join(rests)})" for first, rests in begun.items())


class Pieces:
    """Finds the beginning of a form at the end of a text, where a cut went through it."""

    def __init__(self, forms: Mapping[str, str]) -> None:
        """Each form, and by what of its beginning it is told."""
        self._forms: dict[str, list[tuple[str, int]]] = {}
        for form in sorted(forms, key=lambda form: (-len(form), form)):
            self._forms.setdefault(form[:SHORTEST], []).append((form, len(forms[form])))
        self._longest = max((len(form) for each in self._forms.values() for form, _ in each), default=0)
        self._begun = re.compile(f"(?=({any_of(self._forms)}))") if self._forms else None

    def at_end(self, text: str) -> tuple[int, str] | None:
        """Where the piece begins, and of which form it is; None where the text ends with none."""
        if self._begun is None:
            return None
        for begun in self._begun.finditer(text, max(0, len(text) - self._longest)):
            piece = text[begun.start() :]
            for form, least in self._forms[begun[1]]:
                if least <= len(piece) and form.startswith(piece) and not _is_word(piece, form):
                    return begun.start(), form
        return None


def _is_word(piece: str, form: str) -> bool:
    """Whether it may as well be an ordinary word: `password` tells little of `my-password`."""
    plain = piece.isascii() and piece.isalpha() and (piece[1:].islower() or piece[:-1].islower())
    return plain and 4 * len(piece) < 3 * len(form)
