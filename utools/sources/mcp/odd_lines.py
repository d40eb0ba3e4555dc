"""The answer in a line that is no message as it stands: a log text before or after it, a batch, an id as a number with
a point, an error that is a bare text. And halves of characters, which JavaScript leaves where it cuts a text. Pure."""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, Final

from utools.lazy_pattern import lazy_compile

INTERNAL_ERROR: Final = -32603
MOST_TRIES: Final = 100
"""Places of a line at which a message is looked for."""
ESCAPES: Final = lazy_compile(
    rb"(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)


def mend_surrogates(message: bytes) -> bytes:
    """Return the bytes of a JSON text with `\\ufffd` for each half of a character, which no text may hold."""
    if rb"\ud" not in message and rb"\uD" not in message:
        return message
    return ESCAPES.sub(_mend_escape, message)


def find_answer(line: bytes | bytearray, asked: Collection[Any]) -> dict[str, Any] | None:
    """Return the answer to one of our requests in a line, as the protocol has it."""
    for each in _find_objects(line.decode("utf-8", "replace")):
        number = each.get("id")
        number = int(number) if isinstance(number, float) and number.is_integer() else number
        if number in asked and "method" not in each and ("result" in each or "error" in each):
            outcome = {"error": _read_error(each["error"])} if each.get("error") else {"result": each.get("result")}
            return {"jsonrpc": "2.0", "id": number, **outcome}
    return None


def _mend_escape(found: "re.Match[bytes]") -> bytes:
    return rb"\ufffd" if found["half"] else found[0]


def _find_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the whole objects of a line that may be messages."""
    decoder, at = json.JSONDecoder(), text.find("{")
    for _ in range(MOST_TRIES):
        if at < 0:
            return
        try:
            found, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
        else:
            if isinstance(found, dict) and isinstance(found.get("id"), int | float | str):
                yield found
        at = text.find("{", at)


def _read_error(error: Any) -> dict[str, Any]:
    fields = error if isinstance(error, dict) else {"message": error}
    code, message, data = fields.get("code"), fields.get("message"), fields.get("data")
    more = {} if data is None else {"data": data}
    if type(code) is not int:
        more = more if code is None else {"data": [code, data] if more else code}
        code = INTERNAL_ERROR
    text = message if isinstance(message, str) else "" if message is None else json.dumps(message, ensure_ascii=False)
    return {"code": code, "message": text, **more}
