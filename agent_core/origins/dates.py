"""Dates and times in a text, in English, in Chinese and in figures. Pure."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from agent_core.origins.whole import CJK
from utools.lazy_pattern import lazy_compile

Found = Iterator[tuple[int, object]]

_NAMES = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTHS = {name[:length]: n for n, name in enumerate(_NAMES, 1) for length in (3, len(name))} | {"sept": 9}
_MONTH = rf"(?P<{{}}>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\.?"
_DAY = r"(?P<{}>\d{{1,2}})(?:st|nd|rd|th)?"
_YEAR = r"(?:,? (?P<{}>\d{{4}}))?"
_WORD = rf"(?!(?-i:{CJK}))\w"
"""A letter or figure that a date or a time may not touch: in Chinese, no blank parts it from the sentence."""
_START, _END = f"(?<!{_WORD})", f"(?!{_WORD})"


class _Pattern:
    """A pattern that is compiled for the first text with its hint: that takes long, and most texts have none.

    All that it matches holds the `hint`, or one of the `words`, which are in small letters.
    """

    def __init__(self, pattern: str, *, hint: str, words: Sequence[str] = ()) -> None:
        self._pattern, self._hint, self._words = pattern, lazy_compile(hint, re.IGNORECASE), words

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self._pattern, re.IGNORECASE)

    def may_match(self, text: str) -> bool:
        """Return whether the text has what all matches have."""
        if self._hint.search(text):
            return True
        small = text.casefold() if self._words else ""
        return any(word in small for word in self._words)


_DATE = _Pattern(
    rf"{_START}(?:(?<![.-])(?P<y1>\d{{4}})[-/.](?P<m1>\d{{1,2}})[-/.](?P<d1>\d{{1,2}})(?:(?=T\d)|(?!-\d){_END})"
    rf"|(?:{_MONTH.format('m2')} (?:the )?{_DAY.format('d2')}{_YEAR.format('y2')}"
    rf"|(?<![.,]){_DAY.format('d3')} (?:of )?{_MONTH.format('m3')}{_YEAR.format('y3')}"
    r"|(?<![.-])(?P<d5>\d{1,2})\.(?P<m5>\d{1,2})\.(?P<y5>\d{4})"
    rf"|(?<![./-])(?P<a6>\d{{1,2}})/(?P<b6>\d{{1,2}})/(?P<y6>\d{{4}})(?!/)){_END})"
    r"|(?:(?P<y4>\d{4}) ?年 ?|(?<![^今]年)(?<![^今]年 ))(?<!\d)(?P<m4>\d{1,2}) ?月 ?(?P<d4>\d{1,2}) ?[日号號]?(?!\d)",
    hint=r"\d[-/.]\d|月",
    words=[name[:3] for name in _NAMES],
)
_YEAR_BEFORE = lazy_compile(r"(?<!\d)(\d{4})[ ,-]{1,2}\Z")
_YEAR_AFTER = lazy_compile(r",? ?['’]\d\d(?!\d)|,? (?:of|in) \d{4}(?!\d)|[-/.]\d{4}(?!\d)| \(\d{4}\)")
_PART = r"(?:(?P<{}>凌晨|清晨|早晨|早上|上午|中午|下午|傍晚|晚上|夜里|早|晚) ?)?"
_TIME = _Pattern(
    rf"{_PART.format('q1')}(?<!{_WORD})(?<![:.,+])(?P<h1>\d{{1,2}}):(?P<i1>\d{{2}})(?::(?P<s1>\d{{2}})(?:\.0+)?)?"
    rf"(?: ?(?P<p1>[ap])\.?m\b\.?)?(?!{_WORD}|:\d)"
    rf"|(?<!{_WORD})(?<![:.,])(?P<h2>\d{{1,2}}) ?(?P<p2>[ap])\.?m\b"
    rf"|{_PART.format('q3')}(?<!\d)(?P<h3>\d{{1,2}}) ?[点點时時]"
    r"(?: ?(?P<i3>\d{1,2}) ?分?|(?P<half>半)|(?![一二三四五六七八九十过]))",
    hint=r"\d:\d|\d ?[ap]\.?m|\d ?[点點时時]",
)
_ISO_T = lazy_compile(r"T(?<=\dT)(\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)([+−-]\d\d:?\d\d)?")
_PHONE = _Pattern(rf"{_START}(?<!\.)\+?\d{{1,4}}(?:[ -]\d{{2,}}){{2,}}{_END}", hint=r"\d[ -]\d")
_GROUPS = _Pattern(rf"{_START}(?<![.,])\d{{1,3}}(?:[ \u00a0\u202f]\d{{3}})+{_END}", hint=r"\d[ \u00a0\u202f]\d")
NEAR = 24
_FIGURES = lazy_compile(rf"\d+(?:\D{{1,{NEAR}}}\d+)*")
_MOMENT = lazy_compile(r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2})?)")


class Date(NamedTuple):
    """A date; without a year it stands for that day of any year."""

    year: int | None
    month: int
    day: int


def find_dates(text: str) -> Found:
    """Return every date. 5/6/2026 may be one of two, so it is none."""
    plain = _without_zones(text)
    for found in _search(plain, _DATE):
        date = _date(found.groupdict())
        if date is not None and date.year is None:
            date = _set_year(date, plain, *found.span())
        if date is not None:
            yield found.start(), date


def find_times(text: str) -> Found:
    """Return every time of day as (hour, minute, second)."""
    for found in _search(_without_zones(text), _TIME):
        time = _time(found.groupdict())
        if time is not None:
            yield found.start(), time


def find_spans(text: str) -> list[tuple[int, int]]:
    """Return where dates, times and numbers in groups are, of which no figure stands alone."""
    return [found.span() for found in _search(_without_zones(text), _DATE, _TIME, _PHONE, _GROUPS)]


def _search(text: str, *patterns: _Pattern) -> Iterator[re.Match[str]]:
    """Yield the matches of patterns that have a figure, looked for near figures alone, which takes less time."""
    present = [pattern for pattern in patterns if pattern.may_match(text)]
    figures = [found.span() for found in _FIGURES.finditer(text)] if present else []
    for pattern in present:
        for start, end in figures:
            begin, end = max(0, start - NEAR), end + NEAR
            if pattern.may_match(text[begin:end]):
                yield from pattern.compiled.finditer(text, begin, end)


def _without_zones(text: str) -> str:
    """Return the text, as long as before, with a blank between a date and a time, and without the time's zone."""
    return _ISO_T.sub(lambda found: f" {found[1]}{'~' * len(found[2] or '')}", text)


def _set_year(date: Date, text: str, start: int, end: int) -> Date | None:
    """Return a date beside which a year stands: of that year; None where the year is abbreviated, or told otherwise."""
    before = _YEAR_BEFORE.search(text, max(0, start - 7), start)
    if before is not None:
        return date._replace(year=int(before[1]))
    return None if _YEAR_AFTER.match(text, end) else date


def read_date(text: str) -> Date | None:
    """Return a date as JSON Schema's format has it."""
    found = re.fullmatch(r"(\d{4})-(\d{2})-(\d{2})", text, re.ASCII)
    return Date(*map(int, found.groups())) if found else None


def read_time(text: str) -> tuple[int, int, int] | None:
    """Return a time of day without a zone."""
    found = re.fullmatch(r"(\d{2}):(\d{2})(?::(\d{2}))?", text, re.ASCII)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def read_moment(text: str) -> tuple[Date, tuple[int, int, int]] | None:
    """Return a date with a time of day, without a zone."""
    found = _MOMENT.fullmatch(text)
    date, time = (read_date(found[1]), read_time(found[2])) if found else (None, None)
    return None if date is None or time is None else (date, time)


def _date(parts: dict[str, str | None]) -> Date | None:
    if parts["y6"]:
        first, second = int(parts["a6"] or 0), int(parts["b6"] or 0)
        if first <= 12 and second <= 12 and first != second:
            return None
        month, day = (first, second) if second > 12 else (second, first)
        return _valid(int(parts["y6"]), month, day)
    for kind in "12345":
        month_text, day_text = parts[f"m{kind}"], parts[f"d{kind}"]
        if month_text and day_text:
            year = parts[f"y{kind}"]
            month = int(month_text) if month_text.isdigit() else _MONTHS[month_text.lower()]
            return _valid(int(year) if year else None, month, int(day_text))
    return None


def _valid(year: int | None, month: int, day: int) -> Date | None:
    return Date(year, month, day) if 1 <= month <= 12 and 1 <= day <= 31 else None


def _time(parts: dict[str, str | None]) -> tuple[int, int, int] | None:
    named = int(parts["h1"] or parts["h2"] or parts["h3"] or 0)
    minute = 30 if parts["half"] else int(parts["i1"] or parts["i3"] or 0)
    hour = _hour(named, (parts["p1"] or parts["p2"] or "").lower(), parts["q1"] or parts["q3"] or "")
    if hour is None or hour > 23 or minute > 59:
        return None
    return hour, minute, int(parts["s1"] or 0)


def _hour(hour: int, half_day: str, part: str) -> int | None:
    """Return the hour of the day; None where the part of the day does not tell which one it is."""
    if half_day:
        return hour % 12 + 12 * (half_day == "p") if 1 <= hour <= 12 else None
    if hour > 12 or not part:
        return hour
    match part:
        case "下午" | "傍晚":
            return hour % 12 + 12
        case "晚上" | "夜里" | "晚":
            return hour + 12 if 5 <= hour <= 11 else None
        case "中午":
            return hour % 12 + 12 if hour in (12, 1, 2) else hour if hour == 11 else None
        case _:
            return hour if hour < 12 else None
