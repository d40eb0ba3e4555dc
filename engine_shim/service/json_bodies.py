"""read_json(): JSON bodies as RFC 8259 has them: UTF-8, each key once, and no number that is none. Pure."""

import json
from typing import Any, NoReturn

from utools.json_text import refuse_doubled_keys


def read_json(body: bytes) -> Any:
    """Return the value of a body. ValueError for what is no JSON, and for an object with the same key twice."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is no UTF-8: byte {error.start} is 0x{body[error.start]:02x}") from None
    try:
        return json.loads(text, object_pairs_hook=refuse_doubled_keys, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"is no JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except ValueError as error:
        if str(error).startswith("Exceeds the limit"):  # of digits, with advice for who writes Python
            raise ValueError("has a number of too many digits; write it as a text") from None
        raise


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"is no JSON: {name} is no number of it; write null, or a text")
