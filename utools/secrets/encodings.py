"""The encodings in which a secret travels, as texts to look for; and patterns that find any of many texts. Pure.

Escapes of single characters, such as `%3c` and `\\u003c`, are read in `escapes`, not listed here.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from html import escape
from urllib.parse import quote, quote_plus

from utools.lazy_pattern import lazy_compile
from utools.secrets.escapes import has_escapes, unescape_once

NUMBER = lazy_compile(r"[1-9]\d*(?:\.\d+)?", re.ASCII)


def encodings_of(secret: str) -> Iterator[str]:
    """Yield each form in which a text may hold the secret.

    They are the secret itself, its bytes as characters (as Python and a shell write them), its base64 (alone, or within
    that of a longer text), its hex, and its forms in URLs and JSON. A secret that holds what looks like an escape is
    also read without it, and as in HTML.
    """
    raw = secret.encode("utf-8", "surrogatepass")
    yield from (secret, raw.decode("latin-1"))
    if has_escapes(secret):
        yield from map(unescape_once, (secret, escape(secret), escape(secret, quote=False)))
    yield from (raw.hex(), raw.hex().upper())
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(raw).decode()
        yield from (_own_part(encode(bytes(before) + raw).decode(), before, len(raw)) for before in range(3))
        yield encode(raw).decode().rstrip("=")
    yield from (quote(raw, safe=""), quote(raw), quote_plus(raw), secret.replace(" ", "+"))
    yield from (json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))


def _own_part(encoded: str, before: int, length: int) -> str:
    """Return the characters of a base64 that depend on the secret alone, not on its neighbours."""
    return encoded[-(-before * 8 // 6) : (before + length) * 8 // 6]


def number_of(secret: str) -> int | float | None:
    """Return the number that a secret is when it is written without quotes."""
    if len(secret) > 20 or not NUMBER.fullmatch(secret):
        return None
    return float(secret) if "." in secret else int(secret)


def any_of(texts: Iterable[str]) -> str:
    """Return a pattern that finds each of the texts, the longest first.

    It is grouped by first characters, so that most positions in a text cost one look.
    """
    rests_of: dict[str, list[str]] = {}
    for text in sorted(set(texts), key=lambda text: (-len(text), text)):
        rests_of.setdefault(text[0], []).append(re.escape(text[1:]))
    return "|".join(f"{re.escape(first)}(?:{'|'.join(rests)})" for first, rests in rests_of.items())
