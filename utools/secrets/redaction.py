"""Redactor: takes secrets out of text and JSON values, in the encodings in which they travel. Pure."""

import operator
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping
from functools import cached_property, partial
from itertools import compress
from typing import Any

from utools.lazy_pattern import lazy_compile
from utools.secrets.encodings import any_of, encodings_of, number_of
from utools.secrets.escapes import LONGEST, find_place, has_escapes, unescape_once
from utools.secrets.finds import Edit, Find, apply_edits, blank_finds, join_finds, mark_of
from utools.secrets.first_look import DEPTH, FirstLook
from utools.secrets.json_edits import edit_leaves, number_duplicates
from utools.secrets.json_values import Span, find_open, find_values
from utools.secrets.key_formats import ARMOUR_END, HINT, find_keys, unsettled_key
from utools.secrets.line_ends import find_cut, is_whole, places_of, squeeze
from utools.secrets.patterns import find_patterns
from utools.secrets.pieces import SHORTEST, Pieces, beginning_of, end_of

CUT_MARK = lazy_compile(r"\ufffd{0,3}(?:…|\n\[cut: [^\]\n]{1,60}\])?\Z")
"""What a tool writes where it has cut a text, with half a character before it."""
DEEP_ESCAPES = ("\\\\", "\\u", "\\/")
"""What a JSON text holds if its leaves, once read, may show what reading it once did not."""
BEFORE_TAIL = lazy_compile(r"the command ended with exit code -?\d{1,10}: ")
"""What a tool writes before the tail of a command's output."""


class Redactor:
    """Replaces each occurrence of a secret by `[redacted:NAME]`, the longest first.

    It finds the value itself, its base64 (standard and urlsafe, padded or not, also within that of a longer text), its
    hex, the number that it is, its JSON and URL forms, each of these with single characters escaped once more, and all
    of them across line ends. Values shorter than 6 characters are left alone: they would take half of every text with
    them. Keys of the `formats`, names of `key_formats`, are masked too, as `[redacted:FORMAT]`, and what fits the
    `patterns` of a host, as `[redacted:NAME]`.

    What can be parsed is masked leaf by leaf: JSON keeps its keys, its lists and every byte outside of a masked leaf.
    """

    def __init__(
        self, secrets: Mapping[str, str], *, formats: Collection[str] = (), patterns: Mapping[str, str] | None = None
    ) -> None:
        self._formats, self._patterns = sorted(formats), dict(patterns or {})
        self._names = sorted(name for name, value in secrets.items() if len(value) >= SHORTEST)
        forms = ((form, name) for name in reversed(self._names) for form in encodings_of(secrets[name]))
        self._forms = {form: name for form, name in forms if len(form) >= SHORTEST}
        self._squeezed = {short: name for form, name in self._forms.items() if (short := squeeze(form))}
        numbers = ((number_of(secrets[name]), name) for name in self._names)
        self._numbers = {number: name for number, name in numbers if number is not None}
        self._longest = max(map(len, self._forms), default=1)
        self.is_idle = not self._forms and not self._formats and not self._patterns
        """Whether nothing is ever replaced."""

    def __repr__(self) -> str:
        return f"Redactor({', '.join(self._names)})"

    @property
    def rules(self) -> list[dict[str, Any]]:
        """What is replaced, for the journal: names only."""
        formats = [{"formats": self._formats, "replacement": "[redacted:FORMAT]"}] if self._formats else []
        secrets = [{"secret": name, "replacement": mark_of(name)} for name in self._names]
        return [*secrets, *formats, *({"pattern": name, "replacement": mark_of(name)} for name in self._patterns)]

    def text(self, text: str) -> str:
        """`text` without secrets. JSON in it stays JSON."""
        return self._mask(text, DEPTH)

    def json_text(self, text: str) -> str:
        """Return the same for a text that may be as a whole a JSON value of any kind, as a reply may be a number."""
        return self._mask(text, DEPTH, whole=True)

    def settled(self, text: str, *, whole: bool = False) -> str:
        """Return the beginning of what `text` (or `json_text`: `whole`) gives that stays the same whatever follows."""
        if self.is_idle:
            return text
        end = min(self._known_until(text), len(text) - (unsettled_key(text) if self._formats else 0))
        if self._patterns:
            end = min(end, 1 + max(text.rfind("\n"), text.rfind("\r")))
        edits, values = self._edits(text, DEPTH, whole=whole)
        start = find_open(text, whole=whole)
        if start is not None and ((edits[-1:] and edits[-1].end > start) or self._may_hide(text[start:])):
            end = min(end, start)
        masked = [each for each in values if any(each.start <= edit.start < each.end for edit in edits)]
        bounds = [(each.start, each.end) for each in masked] + [(each.start, each.end) for each in edits]
        while crossed := [begin for begin, stop in bounds if begin < end < stop]:
            end = min(crossed)
        return apply_edits(text[:end], (each for each in edits if each.end <= end))

    def redact_truncated_text(self, text: str) -> str:
        """`text` for one that a tool may have cut at its size limit: without pieces of secrets at both ends."""
        text = self.text(text)
        mark = CUT_MARK.search(text)
        end = mark.start() if mark else len(text)
        if piece := self._beginnings.at_end(text[:end]):
            text = f"{text[: piece[0]]}{mark_of(self._forms[piece[1]])}{text[end:]}"
        before = BEFORE_TAIL.match(text)
        start = before.end() if before else 0
        head = text[start : start + self._longest][::-1]
        if piece := self._ends.at_end(head):
            rest = text[start + len(head) - piece[0] :]
            text = f"{text[:start]}{mark_of(self._forms[piece[1][::-1]])}{rest}"
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value without secrets, in keys and values; the same object if it had none."""
        if self.is_idle or not (self._patterns or self._first_look.may_hold_secrets(value)):
            return value
        return self._clean_value(value, self.text)

    def redact_truncated_value(self, value: Any) -> Any:
        """Return the same for a value whose texts a tool may have cut at its size limit."""
        if self.is_idle or not (self._patterns or self._first_look_at_pieces.may_hold_secrets(value)):
            return value
        return self._clean_value(value, self.redact_truncated_text)

    # ── what is looked for ────────────────────────────────────────────────────────────────────────

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(any_of(self._forms))

    @cached_property
    def _squeezed_pattern(self) -> re.Pattern[str]:
        """Finds each form in a text without blanks and line ends."""
        return re.compile(any_of(self._squeezed))

    @cached_property
    def _first_look(self) -> FirstLook:
        return FirstLook(self._squeezed, formats=bool(self._formats))

    @cached_property
    def _first_look_at_pieces(self) -> FirstLook:
        """Finds the beginning and the end of each form."""
        pieces = map(squeeze, {*map(beginning_of, self._forms), *map(end_of, self._forms)})
        return FirstLook(filter(None, pieces), formats=bool(self._formats))

    @cached_property
    def _beginnings(self) -> Pieces:
        return Pieces({form: beginning_of(form) for form in self._forms})

    @cached_property
    def _ends(self) -> Pieces:
        return Pieces({form[::-1]: end_of(form)[::-1] for form in self._forms})

    # ── texts ─────────────────────────────────────────────────────────────────────────────────────

    def _mask(self, text: str, depth: int, *, whole: bool = False) -> str:
        edits, _ = self._edits(text, depth, whole=whole)
        return apply_edits(text, edits) if edits else text

    def _edits(self, text: str, depth: int, *, whole: bool = False) -> tuple[list[Edit], list[Span]]:
        """Return what is to be replaced in a text, and the JSON in it whose leaves were masked."""
        found, hides = self._find(text), depth > 0 and self._may_hide(text)
        if not found and not hides:
            return [], []
        edits: list[Edit] = []
        values: list[Span] = []
        mask_leaf = partial(self._mask, depth=depth - 1)
        starts, ends, as_text = [each.start for each in found], [each.end for each in found], [True] * len(found)
        for value in find_values(text, whole=whole) if depth else ():
            first, last = bisect_right(ends, value.start), bisect_left(starts, value.end)
            if first == last and not hides:
                continue
            new = edit_leaves(text, value, found[first:last], self._numbers, mask_leaf, hides=hides)
            if new is not None:
                as_text[first:last] = [False] * (last - first)
                values.append(value)
                edits += new
        edits += [Edit(each.start, each.end, mark_of(each.name)) for each in compress(found, as_text)]
        return sorted(edits), values

    def _find(self, text: str) -> list[Find]:
        """Return where secrets are in a text that is taken as text."""
        found = self._find_known(text) if self._forms else []
        if self._formats and HINT.search(text):
            found += find_keys(blank_finds(text, found), self._formats)
        if self._patterns:
            found += join_finds(list(find_patterns(blank_finds(text, sorted(found)), self._patterns)))
        return sorted(found) if found else found

    def _find_known(self, text: str) -> list[Find]:
        """Return where known values are in a text, or in the text with its escapes read."""
        found = self._find_in_reading(text)
        if has_escapes(text) and (plain := unescape_once(text)) != text and (hidden := self._find_in_reading(plain)):
            found += [Find(find_place(text, each.start), find_place(text, each.end), each.name) for each in hidden]
        return join_finds(found) if found else found

    def _find_in_reading(self, text: str) -> list[Find]:
        if not self._squeezed_pattern.search(squeeze(text)):
            return []
        found = [Find(*each.span(), self._forms[each[0]]) for each in self._pattern.finditer(text)]
        for start, end, form in find_cut(text, self._squeezed_pattern):
            if form not in self._forms or is_whole(text[start:end]):
                found.append(Find(start, end, self._squeezed[form]))
        return found

    def _may_hide(self, text: str) -> bool:
        """Return whether JSON in a text may hold what the text, as it is written, does not show."""
        if self._formats and ARMOUR_END in text:  # a key whose beginning was cut off begins with its leaf
            return True
        if "\\" not in text or not (self._patterns or any(sign in text for sign in DEEP_ESCAPES)):
            return False
        if self._patterns:
            return True
        for _ in range(DEPTH):
            plain = unescape_once(text)
            if plain == text:
                return False
            text = plain
            if (self._formats and HINT.search(text)) or (self._forms and self._squeezed_pattern.search(squeeze(text))):
                return True
        return False

    def _known_until(self, text: str) -> int:
        """Return where at the end of a text that continues the beginning of a known value may be."""
        if not self._forms:
            return len(text)
        until, begin = _place_before(text, self._longest - 1), max(0, len(text) - 2 * LONGEST * self._longest)
        if has_escapes(tail := text[begin:]):
            more = LONGEST if has_escapes(tail[-LONGEST:]) else 0
            place = _place_before(unescape_once(tail), self._longest - 1 + more)
            until = min(until, begin + find_place(tail, place))
        return until

    # ── values ────────────────────────────────────────────────────────────────────────────────────

    def _clean_value(self, value: Any, clean: Callable[[str], str]) -> Any:
        match value:
            case str():
                cleaned = clean(value)
                return value if cleaned == value else cleaned
            case int() | float() if value in self._numbers and not isinstance(value, bool):
                return mark_of(self._numbers[value])
            case list() | tuple():
                items = [self._clean_value(each, clean) for each in value]
                return value if all(map(operator.is_, items, value)) else items
            case dict():
                keys = number_duplicates([self._clean_value(key, clean) for key in value], value)
                pairs = dict(zip(keys, (self._clean_value(each, clean) for each in value.values()), strict=True))
                same = all(map(operator.is_, pairs.values(), value.values())) and pairs.keys() == value.keys()
                return value if same else pairs
            case _:
                return value


def _place_before(text: str, characters: int) -> int:
    """Return where the last so many characters of a text begin, one or more, not counting blanks and line ends."""
    size = 2 * characters
    while True:
        begin = max(0, len(text) - size)
        places = places_of(text[begin:])
        if len(places) >= characters:
            return begin + places[-characters]
        if begin == 0:
            return 0
        size *= 4
