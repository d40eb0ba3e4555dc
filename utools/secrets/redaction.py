"""Redactor: takes secrets out of text and JSON values, in the encodings in which they travel. Pure."""

import json
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

import orjson

from utools.secrets.encodings import any_of, encodings_of, number_of
from utools.secrets.escapes import LONGEST, has_escapes, offsets, unescape_once
from utools.secrets.key_formats import is_hinted, mask_keys, unsettled_key
from utools.secrets.pieces import SHORTEST, Pieces, beginning_of, end_of

CUT_MARK = re.compile(r"\ufffd{0,3}(?:…|\n\[cut: [^\]\n]{1,60}\])?\Z")
"""What a tool writes where it has cut a text, with half a character before it."""
ESCAPED_WITHIN_JSON = ("\\\\", "\\u", "%", "&")
"""What the JSON of a value holds if its texts hold escapes."""
BEFORE_TAIL = re.compile(r"the command ended with exit code -?\d{1,10}: ")
"""What a tool writes before the tail of a command's output."""


class _Found(NamedTuple):
    start: int
    end: int
    name: str


class Redactor:
    """Replaces each occurrence of a secret by `[redacted:NAME]`, the longest first.

    It finds the value itself, its base64 (standard and urlsafe, padded or not, also within that of a longer text), its
    hex, the number that it is, its JSON and URL forms, and each of these with single characters escaped once more.
    Values shorter than 6 characters are left alone: they would take half of every text with them. Keys of the
    `formats`, names of `key_formats`, are masked too, as `[redacted:FORMAT]`.
    """

    def __init__(self, secrets: Mapping[str, str], *, formats: Collection[str] = ()) -> None:
        self._formats = sorted(formats)
        self._names = sorted(name for name, value in secrets.items() if len(value) >= SHORTEST)
        self._forms = {form: name for name in reversed(self._names) for form in encodings_of(secrets[name])}
        numbers = ((number_of(secrets[name]), name) for name in self._names)
        self._numbers = {number: name for number, name in numbers if number is not None}
        self._longest = max(map(len, self._forms), default=1)

    def __repr__(self) -> str:
        return f"Redactor({', '.join(self._names)})"

    @property
    def is_idle(self) -> bool:
        """Whether nothing is ever replaced."""
        return not self._forms and not self._formats

    def unsettled_length(self, text: str) -> int:
        """How many characters at the end of a text that goes on may be the beginning of what is replaced."""
        key = unsettled_key(text) if self._formats else 0
        return max(key, self._longest - 1 + _extra_length(text[-LONGEST * self._longest :]))

    @property
    def rules(self) -> list[dict[str, Any]]:
        """What is replaced, for the journal: names only."""
        formats = [{"formats": self._formats, "replacement": "[redacted:FORMAT]"}] if self._formats else []
        return [*({"secret": name, "replacement": f"[redacted:{name}]"} for name in self._names), *formats]

    def text(self, text: str) -> str:
        """`text` without secrets."""
        if self._forms:
            text = _mark_finds(text, self._find(text))
        return mask_keys(text, self._formats) if self._formats else text

    def cut_text(self, text: str) -> str:
        """The same for a text that a tool may have cut at its size limit: without pieces of secrets at both ends."""
        text = self.text(text)
        mark = CUT_MARK.search(text)
        end = mark.start() if mark else len(text)
        if piece := self._beginnings.at_end(text[:end]):
            text = f"{text[: piece[0]]}[redacted:{self._forms[piece[1]]}]{text[end:]}"
        before = BEFORE_TAIL.match(text)
        start = before.end() if before else 0
        head = text[start : start + self._longest][::-1]
        if piece := self._ends.at_end(head):
            rest = text[start + len(head) - piece[0] :]
            text = f"{text[:start]}[redacted:{self._forms[piece[1][::-1]]}]{rest}"
        return text

    def json_text(self, text: str) -> str:
        """A JSON text without secrets: still JSON, with as many keys. Any other text as `text` does it."""
        clean = self.text(text)
        if clean == text or _read(clean) is not None:
            return clean
        value = _read(text)
        return clean if value is None else json.dumps(self.value(value[0]), ensure_ascii=False, separators=(",", ":"))

    def value(self, value: Any) -> Any:
        """A JSON value without secrets, in keys and values; the same object if it had none."""
        if self.is_idle or not self._may_hold_secrets(value, self._forms_in_json):
            return value
        return self._clean_value(value, self.text)

    def cut_value(self, value: Any) -> Any:
        """The same for a value whose texts a tool may have cut at its size limit."""
        if self.is_idle or not self._may_hold_secrets(value, self._pieces_in_json):
            return value
        return self._clean_value(value, self.cut_text)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(any_of(self._forms))

    @cached_property
    def _forms_in_json(self) -> re.Pattern[str]:
        """Finds each form in a text, or in the JSON of it."""
        return re.compile(any_of(_with_json(self._forms)))

    @cached_property
    def _pieces_in_json(self) -> re.Pattern[str]:
        """Finds the beginning and the end of each form in a text, or in the JSON of it."""
        return re.compile(any_of(_with_json({*map(beginning_of, self._forms), *map(end_of, self._forms)})))

    @cached_property
    def _beginnings(self) -> Pieces:
        return Pieces({form: beginning_of(form) for form in self._forms})

    @cached_property
    def _ends(self) -> Pieces:
        return Pieces({form[::-1]: end_of(form)[::-1] for form in self._forms})

    def _find(self, text: str) -> list[_Found]:
        """Where secrets are in a text, or in the text with its escapes read."""
        found = [_Found(*each.span(), self._forms[each[0]]) for each in self._pattern.finditer(text)]
        if has_escapes(text) and (plain := unescape_once(text)) != text and self._pattern.search(plain):
            at = offsets(text)
            hidden = self._pattern.finditer(plain)
            found += [_Found(at[each.start()], at[each.end()], self._forms[each[0]]) for each in hidden]
        return found

    def _may_hold_secrets(self, value: Any, pattern: re.Pattern[str]) -> bool:
        """Whether a look at all of the value at once finds something: far cheaper than a look at each of its texts."""
        try:
            text = orjson.dumps(value).decode()
        except (TypeError, ValueError):  # not JSON
            return True
        if self._formats and is_hinted(text):
            return True
        return bool(self._forms) and any(pattern.search(each) for each in _readings(text))

    def _clean_value(self, value: Any, clean: Callable[[str], str]) -> Any:
        match value:
            case str():
                cleaned = clean(value)
                return value if cleaned == value else cleaned
            case int() | float() if value in self._numbers and not isinstance(value, bool):
                return f"[redacted:{self._numbers[value]}]"
            case list() | tuple():
                items = [self._clean_value(each, clean) for each in value]
                return value if all(map(operator.is_, items, value)) else items
            case dict():
                keys = _distinct([self._clean_value(key, clean) for key in value], value)
                pairs = dict(zip(keys, (self._clean_value(each, clean) for each in value.values()), strict=True))
                same = all(map(operator.is_, pairs.values(), value.values())) and pairs.keys() == value.keys()
                return value if same else pairs
        return value


def _readings(json_text: str) -> Iterator[str]:
    """A JSON text, and with its escapes read: those of the JSON itself, then those of the texts in it."""
    yield json_text
    if any(sign in json_text for sign in ESCAPED_WITHIN_JSON):
        plain = unescape_once(json_text)
        yield plain
        yield unescape_once(plain)


def _extra_length(tail: str) -> int:
    """How many more characters a secret at the end of a text may take because some of them are escaped."""
    if not has_escapes(tail):
        return 0
    return len(tail) - len(unescape_once(tail)) + (LONGEST if has_escapes(tail[-LONGEST:]) else 0)


def _mark_finds(text: str, found: list[_Found]) -> str:
    """The text with marks instead of what was found; finds that overlap get one mark, named after the longest."""
    if not found:
        return text
    parts, at = list[str](), 0
    for each in _join_finds(sorted(found, key=lambda each: (each.start, -each.end))):
        parts += (text[at : each.start], f"[redacted:{each.name}]")
        at = each.end
    return "".join([*parts, text[at:]])


def _join_finds(found: Iterable[_Found]) -> Iterator[_Found]:
    """Finds in the order of the text, those that overlap as one."""
    last, length = None, 0
    for each in found:
        if last is None or each.start >= last.end:
            if last is not None:
                yield last
            last, length = each, each.end - each.start
            continue
        longer = each.end - each.start > length
        last = _Found(last.start, max(last.end, each.end), each.name if longer else last.name)
        length = max(length, each.end - each.start)
    if last is not None:
        yield last


def _distinct(clean: Sequence[Any], keys: Iterable[Any]) -> Iterator[Any]:
    """The cleaned keys of an object; keys that became equal are numbered from 2, unchanged keys stay as they are."""
    pairs = list(zip(clean, keys, strict=True))
    taken = {key for name, key in pairs if name is key}
    numbers: dict[str, Iterator[int]] = {}
    for name, key in pairs:
        new = name
        while name is not key and new in taken:
            new = f"{name} {next(numbers.setdefault(name, count(2)))}"
        taken.add(new)
        yield new


def _read(text: str) -> tuple[Any] | None:
    """The value of a JSON text, in a tuple; None if it is not JSON, or an object has a key twice."""
    try:
        return (json.loads(text, object_pairs_hook=_object),)
    except (ValueError, RecursionError):
        return None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a key twice")
    return found


def _with_json(forms: Iterable[str]) -> Iterator[str]:
    """Each form, and its JSON."""
    for form in forms:
        yield from (form, json.dumps(form, ensure_ascii=False)[1:-1])
