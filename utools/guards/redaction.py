"""Redactor: takes secrets out of text and JSON values, in the forms in which they travel. Pure."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

SHORTEST = 6
HEX = re.compile("%[0-9A-F]{2}")


class Redactor:
    """Replaces each occurrence of a secret's value by `[redacted:NAME]`, the longest first.

    Found are the value itself, its base64 (standard and urlsafe, padded or not), URL-encoded and
    JSON-escaped forms. Values shorter than 6 characters are left alone: they would take half of every text
    with them.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._names = sorted(name for name, value in secrets.items() if len(value) >= SHORTEST)
        self._forms = {form: name for name in reversed(self._names) for form in _forms(secrets[name])}
        longest_first = sorted(self._forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        by_length = sorted(self._names, key=lambda name: -len(secrets[name]))
        spelled = [f"(?P<{_group(index)}>{_spelled(secrets[name])})" for index, name in enumerate(by_length)]
        self._groups = {_group(index): name for index, name in enumerate(by_length)}
        self._escaped = re.compile("|".join(spelled)) if spelled else None

    def __repr__(self) -> str:
        return f"Redactor({', '.join(self._names)})"

    @property
    def longest(self) -> int:
        """The characters of the longest form that is replaced; 0 without secrets."""
        return max(map(len, self._forms), default=0)

    @property
    def rules(self) -> list[dict[str, str]]:
        """What is replaced, for the journal: names only."""
        return [{"secret": name, "replacement": f"[redacted:{name}]"} for name in self._names]

    def text(self, text: str) -> str:
        """`text` without secrets."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: f"[redacted:{self._forms[found[0]]}]", text)

    def json_text(self, text: str) -> str:
        """A JSON text without secrets, those too whose characters are written as escapes; else left as it is."""
        clean = self.text(text)
        if self._escaped is None or "\\" not in clean:
            return clean
        return self._escaped.sub(lambda found: f"[redacted:{self._groups[str(found.lastgroup)]}]", clean)

    def value(self, value: Any) -> Any:
        """A JSON value without secrets, in keys and values; the same object if there are no secrets."""
        if self._pattern is None:
            return value
        match value:
            case str():
                return self.text(value)
            case list() | tuple():
                return [self.value(each) for each in value]
            case dict():
                return {self.value(key): self.value(each) for key, each in value.items()}
        return value


def _group(index: int) -> str:
    return f"s{index}"


def _spelled(secret: str) -> str:
    """A pattern for a secret in a JSON text, each of its characters raw or escaped in any way that JSON allows."""
    return "".join(f"(?:{'|'.join(_spellings(char))})" for char in secret)


def _spellings(char: str) -> Iterator[str]:
    units = char.encode("utf-16-be", "surrogatepass")
    codes = [units[i : i + 2].hex() for i in range(0, len(units), 2)]
    yield "".join(rf"\\u(?i:{code})" for code in codes)
    short = {'"': '"', "\\": "\\", "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}.get(char)
    if short:
        yield re.escape(f"\\{short}")
    if char not in '"\\':
        yield re.escape(char)


def _forms(secret: str) -> Iterator[str]:
    raw = secret.encode("utf-8", "surrogatepass")
    yield secret
    for encoded in (base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()):
        yield encoded
        yield encoded.rstrip("=")
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield quoted
        yield HEX.sub(lambda found: found[0].lower(), quoted)
    for ascii_only in (True, False):
        yield json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
