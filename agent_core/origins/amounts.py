"""Numbers and account numbers in a text, each read whole with its separators. Pure."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation

from agent_core.origins.dates import find_spans
from utools.lazy_pattern import lazy_compile

Found = Iterator[tuple[int, object]]

_GAP = "[ \u00a0\u202f]"
_GROUPED = rf"\d{{1,3}}(?:(?:,\d{{3}})+|(?:['’]\d{{3}})+|(?:{_GAP}\d{{3}})+)(?:\.\d+)?(?![.,'’]?\d)"
_POINTS = r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}(?![.,]?\d)"
_PLAIN = r"\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?"
_FIGURE = lazy_compile(r"\d")
"""The beginning of a number: found in a tenth of the time that a search for a number takes."""
_NUMBER = lazy_compile(rf"(?P<points>{_POINTS})|(?P<grouped>{_GROUPED})|(?P<plain>{_PLAIN})")
_CHINESE = {"十": 10, "百": 10**2, "千": 10**3, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_ENGLISH = {"dozen": 12, "hundred": 10**2, "thousand": 10**3, "lakh": 10**5, "million": 10**6, "crore": 10**7}
_UNITS = {**_CHINESE, **_ENGLISH, "billion": 10**9, "trillion": 10**12}
_UNIT = lazy_compile(
    rf"(?:{_GAP}|-)?(千(?![克米瓦卡赫])|[十百万萬亿億]|(?:{'|'.join(filter(str.isascii, _UNITS))})(?![^\W_]))",
    re.IGNORECASE,
)
COUNTED = lazy_compile(rf"\d(?:[eE][+-]?\d|{_UNIT.pattern})", re.IGNORECASE)
"""A number with an exponent or a unit: its figures need not be those of its value."""
_CHINESE_FIGURES = "零〇一二两三四五六七八九半多几"
_SIGN = lazy_compile(r"(?:^|[\s(\[:=,，：（$€£¥])([-−–+])[$€£¥]?\Z")
_URLS = lazy_compile(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*://\S+")
_ACCOUNT = "[A-Za-z]{2}[0-9]{2}(?:[ \u00a0-]?[A-Za-z0-9]){11,30}"
_IBAN = lazy_compile(rf"(?<![A-Za-z0-9]){_ACCOUNT}(?![A-Za-z0-9])")
LONGEST_NUMBER, LONGEST_COUNT = 64, 12
"""Characters of a number that is read, and of one before a unit."""
_JOINING = "_@+-/\\&#~:%.,'’"


def find_numbers(text: str) -> Found:
    """Return every number that stands alone: no part of a date, a time, a telephone number or a URL."""
    spans = [span for span in find_spans(text) if not _is_grouped(text[slice(*span)])]
    plain = _blank_out(text, [*spans, *(found.span() for found in _URLS.finditer(text))])
    end = 0
    while (figure := _FIGURE.search(plain, end)) and (found := _NUMBER.match(plain, start := figure.start())):
        number, end = _amount_at(plain, found)
        sign = _SIGN.search(text, max(0, start - 3), start)
        begin = sign.start(1) if sign else start
        if number is not None and not _is_joined(text, begin, -1) and not _is_joined(text, end, 1):
            yield begin, number.copy_negate() if sign and sign[1] != "+" else number  # of any size


def _amount_at(text: str, found: re.Match[str]) -> tuple[Decimal | None, int]:
    """Return a number with the units that follow it, as in 3万5千 or 5 million; None if it may be read in two ways."""
    total, last = Decimal(0), 0
    while True:
        number, end, factor = _decimal(found), found.end(), 1
        while unit := _UNIT.match(text, end):
            factor, end = factor * _UNITS[unit[1].lower()], unit.end()
        if factor > 1 and ("e" in found[0].lower() or len(found[0]) > LONGEST_COUNT or factor > 10**15):
            return None, end
        following = _NUMBER.match(text, end) if factor > 1 else None
        if number is None or (last and not 1 < factor < last) or (factor > 1 and _is_chinese(text, end)):
            return None, end
        total, last = total + number * factor if factor > 1 else number, factor
        if following is None:
            return total, end
        found = following


def _is_chinese(text: str, at: int) -> bool:
    return text[at : at + 1] in tuple(_CHINESE_FIGURES)


def _is_grouped(text: str) -> bool:
    """Return whether figures in groups of three are one number, rather than one of a telephone."""
    return text[0] in "123456789" and re.fullmatch(_GROUPED, text) is not None


def _blank_out(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return the text with these parts replaced by letters, so that nothing beside them becomes whole."""
    chars = list(text)
    for start, end in spans:
        chars[start:end] = "x" * (end - start)
    return "".join(chars)


def read_number(value: object) -> Decimal | None:
    """Return a JSON number."""
    kind = type(value)
    return Decimal(str(value)) if kind is int or kind is float else None


def _decimal(found: re.Match[str]) -> Decimal | None:
    text = found[0]
    if len(text) > LONGEST_NUMBER:
        return None
    if found["points"]:
        text = text.replace(".", "").replace(",", ".")
    elif found["grouped"]:
        text = re.sub("[,'’ \u00a0\u202f]", "", text)
    else:
        text = text.replace(",", ".")
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def _is_joined(text: str, at: int, step: int) -> bool:
    """Return whether a letter or a digit continues here, at once or behind a joining character."""
    near = at - 1 if step < 0 else at
    char = text[near : near + 1] if near >= 0 else ""
    if char and char in _JOINING:
        beyond = text[near + step : near + step + 1] if near + step >= 0 else ""
        if char == "%" or (char in ",'’:" and not beyond.isdigit()):
            return False
        return beyond.isalnum() and beyond.isascii()
    return char.isalnum() and (char.isascii() or unicodedata.category(char) != "Lo")


# ── accounts ─────────────────────────────────────────────────────────────────────────────────────


def find_ibans(text: str) -> Found:
    """Return every IBAN whose check digits are right, without blanks."""
    for found in _IBAN.finditer(text):
        parts = re.split("[ \u00a0-]", found[0])
        for count in range(len(parts), 0, -1):
            iban = read_iban("".join(parts[:count]))
            if iban is not None:
                yield found.start(), iban
                break


def read_iban(text: str) -> str | None:
    """Return an IBAN in capitals without blanks; None when the check digits are wrong."""
    if not re.fullmatch(_ACCOUNT, text):
        return None
    iban = re.sub("[ \u00a0-]", "", text).upper()
    digits = "".join(str(int(char, 36)) for char in iban[4:] + iban[:4])
    return iban if int(digits) % 97 == 1 else None
