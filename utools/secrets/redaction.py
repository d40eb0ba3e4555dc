"""Redactor: takes secrets out of text and JSON values, in the forms in which they travel. Pure."""

import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

import orjson

from utools.secrets.encodings import SHORTEST, Pieces, any_of, begins_of, ends_of, forms_of, number_of
from utools.secrets.escapes import LONGEST, Places, has_escapes, plain
from utools.secrets.key_formats import NAMES, is_hinted, masked, unsettled

TIMES = 3
"""How often a text is read for what its escapes spell: a JSON text may stand in a JSON text."""
DEEPER = ("\\\\", "\\u", "%", "&")
"""What the JSON of a value holds if its texts hold escapes."""
CUT = re.compile(r"\ufffd{0,3}(?:…|\n\[cut: [^\]\n]{1,60}\])?\Z")
"""What a tool writes where it has cut a text short, half a character before it."""
FAILED = re.compile(r"the command ended with exit code -?\d{1,10}: ")
"""What stands before the last words of a command."""


class _Found(NamedTuple):
    start: int
    end: int
    name: str


class Redactor:
    """Replaces each occurrence of a secret's value by `[redacted:NAME]`, the longest first.

    Found are the value itself, its base64 (standard and urlsafe, padded or not, within that of a longer text too), its
    hex, a number that it is, and whatever JSON, URLs and HTML make of its characters, up to three times over. Values
    shorter than 6 characters are left alone: they would take half of every text with them. With `formats`, what looks
    like a key of a well-known kind is masked too, `[redacted:FORMAT]`.
    """

    def __init__(self, secrets: Mapping[str, str], *, formats: bool = False) -> None:
        self._formats = formats
        self._names = sorted(name for name, value in secrets.items() if len(value) >= SHORTEST)
        self._forms = {form: name for name in reversed(self._names) for form in forms_of(secrets[name])}
        numbers = ((number_of(secrets[name]), name) for name in self._names)
        self._numbers = {number: name for number, name in numbers if number is not None}
        self._longest = max(map(len, self._forms), default=1)

    def __repr__(self) -> str:
        return f"Redactor({', '.join(self._names)})"

    @property
    def is_idle(self) -> bool:
        """Whether nothing is ever replaced."""
        return not self._forms and not self._formats

    def unsettled(self, text: str) -> int:
        """How many characters at the end of a text that goes on may be the beginning of what is replaced."""
        begun = unsettled(text) if self._formats else 0
        return max(begun, self._longest - 1 + _spelled(text[-LONGEST * self._longest :]))

    @property
    def rules(self) -> list[dict[str, Any]]:
        """What is replaced, for the journal: names only."""
        formats = [{"formats": NAMES, "replacement": "[redacted:FORMAT]"}] if self._formats else []
        return [*({"secret": name, "replacement": f"[redacted:{name}]"} for name in self._names), *formats]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(any_of(self._forms))

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        """Finds each form in a text, or in the JSON of it."""
        return re.compile(any_of(_dumped(self._forms)))

    @cached_property
    def _cut(self) -> re.Pattern[str]:
        """Finds by what each form begins and ends, in a text or in the JSON of it."""
        return re.compile(any_of(_dumped({*map(begins_of, self._forms), *map(ends_of, self._forms)})))

    @cached_property
    def _begun(self) -> Pieces:
        return Pieces({form: begins_of(form) for form in self._forms})

    @cached_property
    def _ended(self) -> Pieces:
        return Pieces({form[::-1]: ends_of(form)[::-1] for form in self._forms})

    def text(self, text: str) -> str:
        """`text` without secrets."""
        if self._forms:
            text = _marked(text, self._found(text, TIMES))
        return masked(text) if self._formats else text

    def cut_text(self, text: str) -> str:
        """The same for a text that may have been cut out of a longer one: without what a cut left of a secret."""
        text = self.text(text)
        end = CUT.search(text)
        last = end.start() if end else len(text)
        if begun := self._begun.at_end(text[:last]):
            text = f"{text[: begun[0]]}[redacted:{self._forms[begun[1]]}]{text[last:]}"
        failed = FAILED.match(text)
        first = failed.end() if failed else 0
        head = text[first : first + self._longest][::-1]
        if ended := self._ended.at_end(head):
            text = f"{text[:first]}[redacted:{self._forms[ended[1][::-1]]}]{text[first + len(head) - ended[0] :]}"
        return text

    def json_text(self, text: str) -> str:
        """A JSON text without secrets; still JSON, with as many keys, where it was. Any other text as `text` has it."""
        clean = self.text(text)
        if clean == text or _read(clean) is not None:
            return clean
        value = _read(text)
        return clean if value is None else json.dumps(self.value(value[0]), ensure_ascii=False, separators=(",", ":"))

    def value(self, value: Any) -> Any:
        """A JSON value without secrets, in keys and values; the same object where there were none."""
        if self.is_idle or self._is_clean(value, cut=False):
            return value
        return self._cleaned(value, self.text)

    def cut_value(self, value: Any) -> Any:
        """The same for a value whose texts may have been cut out of longer ones."""
        if self.is_idle or self._is_clean(value, cut=True):
            return value
        return self._cleaned(value, self.cut_text)

    def _found(self, text: str, times: int) -> list[_Found]:
        """Where a secret stands in a text, or in what the text's escapes spell."""
        found = [_Found(*each.span(), self._forms[each[0]]) for each in self._pattern.finditer(text)]
        if times and has_escapes(text) and (read := plain(text)) != text and (more := self._found(read, times - 1)):
            places = Places(text)
            found += [_Found(*places.of(each.start, each.end), each.name) for each in more]
        return found

    def _is_clean(self, value: Any, *, cut: bool) -> bool:
        """Whether a look at all of the value at once finds nothing: far cheaper than one at each of its texts."""
        try:
            text = orjson.dumps(value).decode()
        except (TypeError, ValueError):  # not JSON
            return False
        return not (self._forms and self._is_in(text, cut=cut)) and not (self._formats and is_hinted(text))

    def _is_in(self, text: str, *, cut: bool) -> bool:
        pattern = self._cut if cut else self._whole
        if pattern.search(text):
            return True
        for _ in range(TIMES + 1 if any(sign in text for sign in DEEPER) else 0):  # the value's own JSON is one more
            before, text = text, plain(text)
            if text == before:
                return False
            if pattern.search(text):
                return True
        return False

    def _cleaned(self, value: Any, clean: Callable[[str], str]) -> Any:
        match value:
            case str():
                told = clean(value)
                return value if told == value else told
            case int() | float() if value in self._numbers and not isinstance(value, bool):
                return f"[redacted:{self._numbers[value]}]"
            case list() | tuple():
                items = [self._cleaned(each, clean) for each in value]
                return value if all(map(operator.is_, items, value)) else items
            case dict():
                keys = _distinct([self._cleaned(key, clean) for key in value], value)
                pairs = dict(zip(keys, (self._cleaned(each, clean) for each in value.values()), strict=True))
                same = all(map(operator.is_, pairs.values(), value.values())) and pairs.keys() == value.keys()
                return value if same else pairs
        return value


def _spelled(tail: str) -> int:
    """How many more characters a secret at the end of a text may take, because some of them are escaped there."""
    if not has_escapes(tail):
        return 0
    read = tail
    for _ in range(TIMES):
        read = plain(read)
    return len(tail) - len(read) + (LONGEST if has_escapes(tail[-LONGEST:]) else 0)


def _marked(text: str, found: list[_Found]) -> str:
    """The text with a mark in the place of what was found; what overlaps has one, by the name of the longest."""
    if not found:
        return text
    parts, at = list[str](), 0
    for each in _joined(sorted(found, key=lambda each: (each.start, -each.end))):
        parts += (text[at : each.start], f"[redacted:{each.name}]")
        at = each.end
    return "".join([*parts, text[at:]])


def _joined(found: Iterable[_Found]) -> Iterator[_Found]:
    """Those that overlap as one; `found` is in the order of the text."""
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


def _read(text: str) -> tuple[Any] | None:
    """What a JSON text holds; None where it is none, or a key stands twice in it."""
    try:
        return (json.loads(text, object_pairs_hook=_without_doubles),)
    except (ValueError, RecursionError):
        return None


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _dumped(forms: Iterable[str]) -> Iterator[str]:
    """Each form, and the JSON of it."""
    for form in forms:
        yield from (form, json.dumps(form, ensure_ascii=False)[1:-1])
