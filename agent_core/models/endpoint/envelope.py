"""An endpoint's JSON, with its characters mended: halves of a pair are joined, what is no character is U+FFFD. Pure.

The text of a reply lies in an envelope that the endpoint's server writes. A character that it cut in two, or a byte
that is not UTF-8, is no fault of the model's, and loses no reply. What the model itself wrote, as an escape in JSON of
its own, is text in the envelope, and stays as it is.
"""

import json
from contextlib import suppress
from typing import Any

import orjson

from utools.lazy_pattern import lazy_compile

SMALLEST, LARGEST = -(2**63), 2**64 - 1
"""The integers that a journal holds."""
MAX_INTEGER_CHARACTERS = 20
_MAY_BE_LONG = lazy_compile(rb"\d{19}")
_SURROGATE = lazy_compile("[\ud800-\udfff]")
_OPEN_END = lazy_compile("(?:[\ud800-\udbff]|(?<![\ud800-\udbff])[\udc80-\udcff]+)$")
"""Half of a pair, or bytes that a later piece may complete; behind a first half stands its other half, and no byte."""


def decode(body: bytes) -> Any:
    """Return the value of a JSON text. ValueError for what is not JSON.

    Characters that are not whole stay for `mend`. A longer integer than a journal holds becomes a text, so that it
    keeps its digits: orjson alone would round it.
    """
    found, value = _decode_whole(body)
    return value if found else _decode_leniently(body)


def decode_mended(body: bytes) -> Any:
    """Return the value of a JSON text with its characters mended. ValueError for what is not JSON."""
    found, value = _decode_whole(body)
    return value if found else mend(_decode_leniently(body))


def _decode_whole(body: bytes) -> tuple[bool, Any]:
    """Return whether all characters of a JSON text are whole, as orjson wants them, and its value."""
    if not _MAY_BE_LONG.search(body):
        with suppress(orjson.JSONDecodeError):
            return True, orjson.loads(body)
    return False, None


def _decode_leniently(body: bytes) -> Any:
    try:
        return _LENIENT.decode(body.decode("utf-8", "surrogateescape"))
    except RecursionError:
        raise ValueError("nested too deep") from None


def mend(value: Any) -> Any:
    """Return the value with the texts in it mended. ValueError for one that nests too deep."""
    try:
        return _mend(value)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _mend(value: Any) -> Any:
    match value:
        case str():
            return mend_text(value)
        case dict():
            return {mend_text(key): _mend(each) for key, each in value.items()}
        case list():
            return [_mend(each) for each in value]
        case _:
            return value


def mend_text(text: str) -> str:
    """Return the text with halves of pairs joined, bytes that were cut apart too; what is left of them is U+FFFD."""
    if not _SURROGATE.search(text):
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    halved = _SURROGATE.sub(lambda half: half[0] if "\udc80" <= half[0] <= "\udcff" else "\ufffd", joined)
    return halved.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def split_open_end(text: str) -> tuple[str, str]:
    """Return a piece of a text as far as its characters are whole, mended, and the end that a later piece may
    complete."""
    end = _OPEN_END.search(text)
    return (mend_text(text[: end.start()]), end[0]) if end else (mend_text(text), "")


def _read_integer(digits: str) -> int | str:
    is_held = len(digits) <= MAX_INTEGER_CHARACTERS and SMALLEST <= int(digits) <= LARGEST
    return int(digits) if is_held else digits


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_LENIENT = json.JSONDecoder(parse_int=_read_integer, parse_constant=_refuse_constant)
