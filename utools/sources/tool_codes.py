"""The codes of tools whose names come from elsewhere, in whatever script: one code for each name. Pure."""

import re
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from utools.lazy_pattern import lazy_compile

NOT_IN_CODES: Final = lazy_compile(r"[^A-Za-z0-9_.:\-]")
LONGEST: Final = 128
"""Characters of a code."""


def assign_codes(prefix: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return the code of each name: `prefix` and its plain form, where it has that for itself, else its encoded form.

    `names` are plain forms by name, made of the characters of a code; empty for a name that has none. A name that is a
    code as it stands keeps it. One whose code another one has after all is left out.
    """
    plain = {name: f"{prefix}{form}"[:LONGEST] if form else encode_name(prefix, name) for name, form in names.items()}
    uses = Counter(plain.values())
    exact = {name for name, code in plain.items() if code == f"{prefix}{name}"}
    codes, taken = dict[str, str](), {plain[name] for name in exact}
    for name, code in plain.items():
        if name not in exact:
            code = code if uses[code] == 1 else encode_name(prefix, name)
            if code in taken:
                continue
            taken.add(code)
        codes[name] = code
    return codes


def plain_form(name: str) -> str:
    """Return an ASCII name in the characters of a code; empty for a name in another script."""
    return NOT_IN_CODES.sub("_", name) if name.isascii() else ""


def encode_name(prefix: str, name: str) -> str:
    """Return a code that is no other name's: each other character is `:` and its code point, in four digits, or `::`
    and six.

    A code that is too long is cut, and ends with a digest of the name.
    """
    encoded = f"{prefix}{re.sub(r'[^A-Za-z0-9_.-]', _encode_char, name)}"
    if len(encoded) <= LONGEST:
        return encoded
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{encoded[: LONGEST - 9]}-{digest}"


def _encode_char(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f":{number:04x}" if number < 0x10000 else f"::{number:06x}"
