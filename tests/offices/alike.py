"""Values that look like another one: what an attacker hopes to be taken for it."""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

CYRILLIC = str.maketrans("aeopcx", "аеорсх")
SHIFT = {"0": "8", "1": "7", "3": "8", "5": "6", "6": "5", "7": "1", "8": "3", "9": "4", "2": "7", "4": "9"}


def look_alikes(value: Any) -> Iterator[Any]:
    """The look-alikes of an argument; of a list, each item in turn is replaced."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from ([*value[:index], like, *value[index + 1 :]] for like in look_alikes(item))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _numbers(value)
    elif isinstance(value, str):
        yield from _texts(value)


def _numbers(value: float) -> Iterator[float]:
    """A figure more, its figures in another order, the point elsewhere."""
    yield value * 10
    yield value * 100
    yield round(value + 1000, 2)


def _texts(value: str) -> Iterator[str]:
    if re.fullmatch(r"\d{4}-\d\d-\d\d.*", value):
        yield from _dates(value)
    elif value.startswith("https://"):
        yield from _urls(value)
    elif "@" in value:
        yield from _emails(value)
    elif re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{11,}", value):
        yield from _ibans(value)
    elif value.startswith("/"):
        yield from _paths(value)
    elif re.fullmatch(r"[a-z_.]+", value):
        yield from (value.translate(CYRILLIC), f"{value}_", f"{value}.ext", value[:-1], value.split(".")[0] + ".holm")


def _dates(value: str) -> Iterator[str]:
    """Day and month of the same figures, the next day, another year; another hour."""
    day, rest = date.fromisoformat(value[:10]), value[10:]
    yield f"{day + timedelta(days=1)}{rest}"
    yield f"{day.replace(year=2027)}{rest}"
    yield f"{day.replace(day=day.month)}{rest}"
    if rest:
        hour = (int(rest[1:3]) + 12) % 24
        yield f"{day}{rest[0]}{hour:02d}{rest[3:]}"


def _urls(value: str) -> Iterator[str]:
    host = value.split("/")[2]
    yield value.replace(host, f"{host}.evil.example")
    yield value.replace(host, host.translate(CYRILLIC))
    yield value.replace(host, f"evil.example/{host}")
    yield value.replace("https://", "https://evil.example@")
    yield f"{value}?to=evil.example"
    yield value.replace("https://", "http://")


def _emails(value: str) -> Iterator[str]:
    local, _, domain = value.partition("@")
    yield f"{local}@{domain}.evil.example"
    yield f"{local}@{domain.translate(CYRILLIC)}"
    yield f"{local.translate(CYRILLIC)}@{domain}"
    yield f"{local}@{domain.replace('.', '-', 1)}.example"
    yield f"{local[1:]}@{domain}"
    yield f"{local}@{domain.split('.', 1)[-1]}"
    yield f"{local}+eve@{domain}"
    yield f"{value}, eve@evil.example"
    yield f"eve@evil.example <{value}>"


def _ibans(value: str) -> Iterator[str]:
    """One figure is another one, with and without right check digits; a part of it."""
    changed = value[:-1] + SHIFT.get(value[-1], "1")
    yield changed
    yield with_check_digits(changed[:2], changed[4:])
    yield value[:-2]


def with_check_digits(country: str, account: str) -> str:
    """The IBAN of an account, by ISO 13616."""
    digits = "".join(str(int(char, 36)) for char in f"{account}{country}00")
    return f"{country}{98 - int(digits) % 97:02d}{account}"


def _paths(value: str) -> Iterator[str]:
    folder, _, name = value.rpartition("/")
    stem, _, ending = name.rpartition(".")
    yield value.upper()
    yield f"/{name}"
    yield folder or "/x"
    yield f"{value}.txt"
    yield f"{folder}/{stem}"
    yield f"{folder}/../private/{name}"
    yield f"{folder}/{stem.translate(CYRILLIC)}.{ending}"
