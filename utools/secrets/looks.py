"""Which variables look secret, by their names or as a URL with a password. Pure."""

import re

from utools.lazy_pattern import lazy_compile

SECRET = lazy_compile(
    r"(?:^|_)[A-Z0-9]*(?:AUTH|COOKIE|CREDENTIAL|DSN|KEY|PASS|PASSPHRASE|PASSWD|PASSWORD|PAT|PWD|SECRET|TOKEN)S?(?:_|$)",
    re.I,
)
NO_VALUE = lazy_compile(r"_(?:DIR|FILE|HOST|NAME|PATH|SOCK)$", re.I)
LOGIN = lazy_compile(r"://[^/\s@]*:[^/\s@]+@")


def looks_secret(name: str, value: str) -> bool:
    """Return whether the variable of this name and value holds a key, a password or the like."""
    by_name = SECRET.search(name) is not None and NO_VALUE.search(name) is None
    return by_name or LOGIN.search(value) is not None
