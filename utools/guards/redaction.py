"""Redactor: takes secrets out of text and JSON values, in the forms in which they travel. Pure."""

import base64
import json
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any
from urllib.parse import quote, quote_plus

import orjson

from utools.guards.key_formats import NAMES, is_hinted, masked, unsettled

SHORTEST = 6
HEX = re.compile("%[0-9A-F]{2}")


class Redactor:
    """Replaces each occurrence of a secret's value by `[redacted:NAME]`, the longest first.

    Found are the value itself, its base64 (standard and urlsafe, padded or not), URL-encoded and
    JSON-escaped forms. Values shorter than 6 characters are left alone: they would take half of every text
    with them. With `formats`, what looks like a key of a well-known kind is masked too, `[redacted:FORMAT]`.
    """

    def __init__(self, secrets: Mapping[str, str], *, formats: bool = False) -> None:
        self._formats = formats
        self._names = sorted(name for name, value in secrets.items() if len(value) >= SHORTEST)
        self._forms = {form: name for name in reversed(self._names) for form in _forms(secrets[name])}
        longest_first = sorted(self._forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        dumped = sorted({json.dumps(form, ensure_ascii=False)[1:-1] for form in self._forms})
        self._dumped = re.compile("|".join(map(re.escape, dumped))) if dumped else None
        by_length = sorted(self._names, key=lambda name: -len(secrets[name]))
        spelled = [f"(?P<{_group(index)}>{_spelled(secrets[name])})" for index, name in enumerate(by_length)]
        self._groups = {_group(index): name for index, name in enumerate(by_length)}
        self._escaped = re.compile("|".join(spelled)) if spelled else None

    def __repr__(self) -> str:
        return f"Redactor({', '.join(self._names)})"

    @property
    def is_idle(self) -> bool:
        """Whether nothing is ever replaced."""
        return self._pattern is None and not self._formats

    def unsettled(self, text: str) -> int:
        """How many characters at the end of a text that goes on may be the beginning of what is replaced."""
        begun = unsettled(text) if self._formats else 0
        return max(begun, max(map(len, self._forms), default=1) - 1)

    @property
    def rules(self) -> list[dict[str, Any]]:
        """What is replaced, for the journal: names only."""
        formats = [{"formats": NAMES, "replacement": "[redacted:FORMAT]"}] if self._formats else []
        return [*({"secret": name, "replacement": f"[redacted:{name}]"} for name in self._names), *formats]

    def text(self, text: str) -> str:
        """`text` without secrets."""
        if self._pattern is not None:
            text = self._pattern.sub(lambda found: f"[redacted:{self._forms[found[0]]}]", text)
        return masked(text) if self._formats else text

    def json_text(self, text: str) -> str:
        """A JSON text without secrets, those too whose characters are written as escapes; else left as it is."""
        clean = self.text(text)
        if self._escaped is None or "\\" not in clean:
            return clean
        clean = self._escaped.sub(lambda found: f"[redacted:{self._groups[str(found.lastgroup)]}]", clean)
        return self._decoded(clean) if "\\u" in clean else clean

    def _decoded(self, text: str) -> str:
        """A JSON text whose escapes spell another form of a secret, such as its base64; else the text as it is."""
        try:
            value = json.loads(text, object_pairs_hook=_without_doubles)
        except (ValueError, RecursionError):
            return text
        clean = self.value(value)
        return text if clean is value else json.dumps(clean, ensure_ascii=False, separators=(",", ":"))

    def value(self, value: Any) -> Any:
        """A JSON value without secrets, in keys and values; the same object where there were none."""
        return value if self.is_idle or self._is_clean(value) else self._cleaned(value)

    def _is_clean(self, value: Any) -> bool:
        """Whether a look at all of the value at once finds nothing: far cheaper than one at each of its texts."""
        try:
            text = orjson.dumps(value).decode()
        except (TypeError, ValueError):  # not JSON
            return False
        found = self._dumped is not None and self._dumped.search(text) is not None
        return not found and not (self._formats and is_hinted(text))

    def _cleaned(self, value: Any) -> Any:
        match value:
            case str():
                clean = self.text(value)
                return value if clean == value else clean
            case list() | tuple():
                items = [self._cleaned(each) for each in value]
                return value if all(map(operator.is_, items, value)) else items
            case dict():
                clean_keys = [self._cleaned(key) for key in value]
                pairs = dict(zip(_distinct(clean_keys, value), map(self._cleaned, value.values()), strict=True))
                same = all(map(operator.is_, pairs.values(), value.values())) and pairs.keys() == value.keys()
                return value if same else pairs
        return value


def _distinct(clean: Sequence[Any], keys: Iterable[Any]) -> Iterator[Any]:
    """The cleaned keys of an object: those that became the same are numbered, from 2; the others keep their names."""
    pairs = list(zip(clean, keys, strict=True))
    taken = {key for name, key in pairs if name is key}
    numbers: dict[str, Iterator[int]] = {}
    for name, key in pairs:
        told = name
        while name is not key and told in taken:
            told = f"{name} {next(numbers.setdefault(name, count(2)))}"
        taken.add(told)
        yield told


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


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
