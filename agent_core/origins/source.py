"""A text or a JSON value that the values of a call may come from, and where in it they stand. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple, cast

import orjson

from agent_core.inherited import OriginKind
from agent_core.origins.addresses import Url
from agent_core.origins.amounts import read_number
from agent_core.origins.dates import find_spans
from agent_core.origins.kinds import READERS, Probe, is_spelled
from agent_core.origins.lines import Lines
from agent_core.origins.urls import UpTo, Urls
from agent_core.origins.whole import compose, find_whole, is_quoted, lower
from agent_core.outputs import Json
from agent_core.rules import CURRENT
from utools.lazy_pattern import lazy_compile
from utools.schema.pointer import escape

BETWEEN = "\n\0\n"
"""What parts the texts of a value from each other: no value reaches across it."""
OPENED = "\0"
"""What follows, in a pointer, a text that is JSON and was looked into: the author of the text chose the names below."""
OPENINGS = ("{", "[")
"""What a text begins with that may be JSON."""
AS_JSON_WRITES = 4
"""The version of the comparison from which on a number's text is what a model reads of it."""
_NO_FIGURES = lazy_compile(r"\D+")
_NOT_PLAIN = lazy_compile(rb'\\|\de[+-]?\d|0\.0000|"[\[{]')
"""An escape, a number with an exponent, in JSON or as a text, a text that may be JSON: what is in such JSON is not to
the letter in it."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote a text. `label` is how a person reads it; `trusted` that the author vouches for it."""

    kind: OriginKind
    label: str
    tool: str | None = None
    trusted: bool = False


class Source:
    """A text, or the JSON value that a tool gave, with its origin. It is read when something is looked for in it, by
    this version of the rules of comparison."""

    def __init__(self, origin: Origin, value: Any, at: str = "", *, comparison: int = CURRENT["comparison"]) -> None:
        self.origin = origin
        self.value = value
        self.at = at
        self._comparison = comparison
        self._rough: str | None = None

    def find(self, probe: Probe, up_to: UpTo | None = None) -> Iterator[str]:
        """Yield the pointers of the places where a value stands whole; the empty text in a text."""
        if probe.kind == "boolean":
            yield from (at for at, value in self._parts.leaves if value is probe.wanted)
            return
        if probe.kind == "number":
            yield from self._numbers.get(probe.wanted, ())
        last = -1
        for start in self._starts(probe, up_to):
            index = bisect_right(self._parts.offsets, start) - 1
            if index != last:
                yield self._parts.places[index]
            last = index

    def _starts(self, probe: Probe, up_to: UpTo | None) -> Iterator[int]:
        if probe.kind == "uri":
            yield from self._urls.find(cast(Url, probe.wanted), up_to, probe.hint)
            return
        if probe.kind in READERS:
            yield from self._lines.find(probe)
            return
        needle = str(probe.wanted)
        if BETWEEN in needle:
            return
        is_words = probe.kind == "text"
        searched, folded = (lower(needle), self.folded) if is_words else (needle, None)
        after = -1
        for start in find_whole(searched, self._parts.text, folded):
            end = start + len(needle)
            if start < after:
                continue
            after = self._cut_until(start, end)
            if after == start and self._is_value(probe, start, end):
                yield start
                after = self._end_of_text(start)

    @cached_property
    def _numbers(self) -> dict[object, list[str]]:
        """Where each number stands that is one in JSON."""
        found: dict[object, list[str]] = {}
        for at, value in self._parts.leaves:
            if (number := read_number(value)) is not None:
                found.setdefault(number, []).append(at)
        return found

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self._parts.text, self._parts.folded)

    @cached_property
    def _urls(self) -> Urls:
        return Urls(self._parts.text, self._parts.folded)

    def _is_value(self, probe: Probe, start: int, end: int) -> bool:
        """Return whether what stands whole here is the text that is looked for."""
        if probe.kind == "text" and not is_spelled(str(probe.wanted), self._parts.text[start:end]):
            return False
        return not probe.is_bare or is_quoted(self._parts.text, start, end) or self._is_text(start, end)

    def _end_of_text(self, at: int) -> int:
        following = bisect_right(self._parts.offsets, at)
        return self._parts.offsets[following] if following < len(self._parts.offsets) else len(self._parts.text)

    def _is_text(self, start: int, end: int) -> bool:
        """Return whether a part is one whole text."""
        return (not start or self._parts.text.endswith(BETWEEN, 0, start)) and (
            end == len(self._parts.text) or self._parts.text.startswith(BETWEEN, end)
        )

    def _cut_until(self, start: int, end: int) -> int:
        """Return the end of the date, time or telephone number of which this part of the text is less; else its
        start."""
        if not any(map(str.isdigit, self._parts.text[start:end])):
            return start
        begins, ends = self._spans
        spans = (bisect_left(begins, at) - 1 for at in (end, start))
        return next(
            (ends[span] for span, at in zip(spans, (end, start), strict=True) if span >= 0 and at < ends[span]), start
        )

    @property
    def folded(self) -> str:
        """All texts in small letters."""
        return self._parts.folded

    @property
    def rough(self) -> str:
        """The texts in small letters with other signs between them: what is not in here, is not in `folded` either.

        Most values are told to be in no text by this alone, and no text is read for it.
        """
        if self._rough is None:
            plain = _plain_json(self.value)
            self._rough = self.folded if plain is None else plain
        return self._rough

    @cached_property
    def figures(self) -> str:
        """All figures of the texts, one after the other."""
        figures = _NO_FIGURES.sub("", self._parts.text if (plain := _plain_json(self.value)) is None else plain)
        return figures if figures.isascii() else "".join(str(int(figure)) for figure in figures)

    @cached_property
    def _parts(self) -> "_Texts":
        return _read_texts(self.value, self.at, as_json=self._comparison >= AS_JSON_WRITES)

    @cached_property
    def _spans(self) -> tuple[list[int], list[int]]:
        """Where what has parts begins and ends, in order; what overlaps is one."""
        begins: list[int] = []
        ends: list[int] = []
        for begin, end in sorted(find_spans(self._parts.text)):
            if ends and begin < ends[-1]:
                ends[-1] = max(ends[-1], end)
            else:
                begins.append(begin)
                ends.append(end)
        return begins, ends


class _Texts(NamedTuple):
    """What a value holds: its leaves, the pointer and the beginning of each text, all texts as one, and that in small
    letters."""

    leaves: list[tuple[str, Any]]
    places: list[str]
    offsets: list[int]
    text: str
    folded: str


def _plain_json(value: Any) -> str | None:
    """Return the JSON of a value in small letters if all its texts are in it to the letter, in their order; else
    None."""
    if type(value) is str and value[:1] not in OPENINGS:
        return value.lower() if value.isascii() else None
    try:
        text = orjson.dumps(value)
    except TypeError:
        return None
    is_plain = text.isascii() and _NOT_PLAIN.search(text) is None
    return text.decode().lower() if is_plain else None


def _read_texts(value: Any, at: str, *, as_json: bool) -> _Texts:
    """Return the texts of a value, numbers `as_json` as a model reads them: 0.00001 where Python writes 1e-05."""
    if type(value) is int or type(value) is float:
        text = orjson.dumps(value).decode() if as_json else str(value)
        return _Texts([(at, value)], [at], [0], text, text.lower())
    leaves = leaves_of(value, at)
    places = [pointer for pointer, leaf in leaves if leaf is not True and leaf is not False]
    texts = [
        orjson.dumps(leaf).decode() if as_json and type(leaf) is float else str(leaf)
        for _, leaf in leaves
        if leaf is not True and leaf is not False
    ]
    whole = BETWEEN.join(texts)
    if not whole.isascii():
        texts = [compose(text) for text in texts]
        whole = BETWEEN.join(texts)
    starts = [*accumulate([len(text) + len(BETWEEN) for text in texts], initial=0)][:-1]
    return _Texts(leaves, places, starts, whole, lower(whole))


def leaves_of(value: Any, pointer: str = "") -> list[tuple[str, Any]]:
    """Return every text, number, flag and key of a JSON value, with its pointer; a text that is JSON is looked into
    first.

    The pointer has OPENED after such a text, whose own texts are not looked into.
    """
    found: list[tuple[str, Any]] = []
    waiting: list[Iterator[tuple[str, Any, bool]]] = [iter([(pointer, value, True)])]
    while waiting:
        for at, each, may_open in waiting[-1]:
            if type(each) is str and (not may_open or each[:1] not in OPENINGS):
                found.append((at, each))
                continue
            if isinstance(each, dict):
                waiting.append(_members(found, at, each, may_open))
                break
            if isinstance(each, list):
                waiting.append(iter([(f"{at}/{index}", item, may_open) for index, item in enumerate(each)]))
                break
            if may_open and isinstance(each, str) and (inner := _as_json(each)) is not None:
                waiting.append(iter([(f"{at}{OPENED}", inner, False), (at, each, False)]))
                break
            if each is not None:
                found.append((at, each))
        else:
            waiting.pop()
    return found


def _members(found: list[tuple[str, Any]], at: str, value: Json, may_open: bool) -> Iterator[tuple[str, Any, bool]]:
    """Yield the members of an object; the name of each is found before it."""
    for key, item in value.items():
        below = f"{at}/{escape(key)}"
        found.append((below, key))
        yield below, item, may_open


def _as_json(text: str) -> Json | list[Any] | None:
    if text[:1] not in OPENINGS:
        return None
    try:
        value = orjson.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict | list) else None
