"""What kind of value an argument is, by its schema or its looks: how it is read out of a text, and compared. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, Literal

from agent_core.origins.addresses import find_emails, find_hosts, read_email, read_host, read_url
from agent_core.origins.amounts import find_ibans, find_numbers, read_iban, read_number
from agent_core.origins.dates import Date, find_dates, find_times, read_date, read_moment, read_time
from agent_core.origins.whole import compose, lower
from utools.lazy_pattern import lazy_compile

Kind = Literal["text", "exact", "boolean", "number", "email", "uri", "hostname", "iban", "date", "time"]

READERS: Final[Mapping[Kind, Callable[[str], Iterator[tuple[int, object]]]]] = {
    "number": find_numbers,
    "email": find_emails,
    "hostname": find_hosts,
    "iban": find_ibans,
    "date": find_dates,
    "time": find_times,
}
"""How the values of a kind are read out of a text: where each begins, and its canonical form. Of URLs, only those are
read that are looked for (`Urls`)."""

FORMATS: Final[Mapping[str, Kind]] = {
    "email": "email", "idn-email": "email",
    "uri": "uri", "url": "uri", "iri": "uri", "uri-reference": "uri", "iri-reference": "uri",
    "hostname": "hostname", "idn-hostname": "hostname",
    "date": "date", "date-time": "date", "time": "time", "iban": "iban",
    "path": "exact", "file-path": "exact", "directory-path": "exact", "id": "exact", "uuid": "exact",
}  # fmt: skip
"""The kind of each `format` of JSON Schema that says how a text compares."""
SHORTEST_IBAN = 15

_IDENTIFIER = lazy_compile(r"(?:^|[_-])(?:id|ids|uuid|key|token|code|ref|hash)$|[a-z](?:Id|Ids|ID|Key|Token|Code|Ref)$")
_WORDS = lazy_compile(r"[^\W\d_]+(?:\s+\S+)*|.*\s.*", re.DOTALL)
_FILE = lazy_compile(r"[~.]{0,2}[/\\].*|[A-Za-z]:[/\\].*|.*[^\s.]\.[A-Za-z0-9]{1,5}", re.DOTALL)
"""A path, or a text that ends as the name of a file does: it may have blanks, and its capitals count."""
_HAS_SCHEME = lazy_compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_STOPS = ".,;:!?。，；：、！？"
_BARE = lazy_compile(rf"^[\s,;:。，；：、]|\s\Z|^\S*[.,;:。，；：、]\Z|(?:^|\s)(?=\S*[\d./\\@]\w)\S*[{_STOPS}]\Z")
_HERE = lazy_compile(r"^\./(?!/)")
_WORD = lazy_compile(r"\S+")
_LITERAL = lazy_compile(r"\d|[/\\@_#~%=&+]|\w[.:]\w")
"""What is no word but a name, where capitals count."""
_BETWEEN_ADDRESSES = lazy_compile(" *[,;] *")


@dataclass(frozen=True, slots=True)
class Probe:
    """A value that is looked for: its canonical form, or for a text the text itself."""

    kind: Kind
    wanted: object
    hint: str | None = None
    """What a text must hold, in small letters, for the value to be in it; None when nothing can be said."""
    figures: str | None = None
    """The figures that a text must hold in this order; None when it is no number."""
    is_bare: bool = False
    """Whether it has, at an end, what a sentence has there, too: only quotes tell that it belongs to it."""

    def forms(self) -> tuple[object, ...]:
        """Return the canonical forms that prove it: a date is that day of any year, too."""
        if isinstance(self.wanted, Date):
            return self.wanted, self.wanted._replace(year=None)
        return (self.wanted,)


def probes_of(value: Any, form: str | None, name: str) -> tuple[Probe, ...]:
    """Return what has to be found for a leaf of an argument: one value, or each of several addresses, or a date and a
    time.

    `form` is the `format` that the tool's schema gives it, `name` the argument's own.
    """
    if isinstance(value, bool):
        return (Probe("boolean", value),)
    if not isinstance(value, str):
        return _probes_of_number(value)
    return _probes_of_text(value, FORMATS.get(form or ""), name)


@lru_cache(1024, typed=True)
def _probes_of_number(value: object) -> tuple[Probe, ...]:
    number = read_number(value)
    return (Probe("number", number, figures=_figures(number) if number is not None else None),)


@lru_cache(1024)
def _probes_of_text(value: str, kind: Kind | None, name: str) -> tuple[Probe, ...]:
    found = _probes_of_kind(value, kind) if kind else _probes_by_looks(value)
    return found or (_text_probe(value, exact=kind is not None or _IDENTIFIER.search(name) is not None),)


def _probes_of_kind(value: str, kind: Kind) -> tuple[Probe, ...]:
    """Return the probes of a text whose kind is known; none where it cannot be read as one."""
    match kind:
        case "email":
            return _addresses(value)
        case "uri":
            return _url(value)
        case "hostname":
            host = read_host(value)
            is_found = host is not None and next(find_hosts(compose(value)), None) == (0, host)
            return (Probe("hostname", host, _find_host_text(host)),) if host and is_found else ()
        case "iban":
            return _iban(value)
        case "date" | "time":
            return _moment(value)
        case _:
            return ()


def _probes_by_looks(value: str) -> tuple[Probe, ...]:
    if "@" in value:
        return _addresses(value)
    if _HAS_SCHEME.match(value):
        return _url(value)
    if value[:1].isdigit():
        return _moment(value)
    return _iban(value) if len(value) >= SHORTEST_IBAN and value[2:4].isdigit() else ()


def _addresses(value: str) -> tuple[Probe, ...]:
    read = [read_email(compose(part)) for part in _BETWEEN_ADDRESSES.split(value)]
    return tuple(Probe("email", each, each[0]) for each in read if each) if all(read) else ()


def _url(value: str) -> tuple[Probe, ...]:
    url = read_url(value)
    return () if url is None else (Probe("uri", url, _find_host_text(url[2])),)


def _iban(value: str) -> tuple[Probe, ...]:
    iban = read_iban(value)
    return () if iban is None else (Probe("iban", iban, iban[:4].lower()),)


def _moment(value: str) -> tuple[Probe, ...]:
    moment = read_moment(value)
    date, time = moment if moment is not None else (read_date(value), read_time(value))
    probes = (Probe("date", date, figures=str(date.day)),) if date is not None else ()
    return (*probes, Probe("time", time)) if time is not None else probes


def _find_host_text(host: str) -> str | None:
    """Return what a text must hold of a host: its name, unless that may be written in other letters."""
    return None if "xn--" in host else host


def _figures(number: Decimal) -> str:
    """Return the figures of a number without the zeros that may be written or not."""
    return "".join(map(str, number.as_tuple().digits)).strip("0") or "0"


def _text_probe(value: str, *, exact: bool) -> Probe:
    """Words are compared without regard to capitals, anything else to the letter."""
    needle = compose(value)
    is_bare = _BARE.search(needle) is not None or (exact and needle[-1:] in _STOPS)
    if exact or _FILE.fullmatch(needle) or not _WORDS.fullmatch(needle):
        wanted = _HERE.sub("", needle)
        return Probe("exact", wanted, lower(wanted), is_bare=is_bare)
    return Probe("text", needle, lower(needle), is_bare=is_bare)


def is_spelled(words: str, found: str) -> bool:
    """Return whether words that differ in capitals are the same: a path, a name with signs or digits is so to the
    letter."""
    return words == found or all(
        word[0] == found[word.start() : word.end()] for word in _WORD.finditer(words) if _LITERAL.search(word[0])
    )
