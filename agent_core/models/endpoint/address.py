"""An endpoint's base URL and key, checked before they are used; and a key kept out of messages. Pure."""

import re
from collections.abc import MutableMapping
from urllib.parse import urlsplit

from agent_core.errors import DefinitionError
from utools.builtin.http_request import FRAMING_HEADERS, NAME

MIN_TAIL = 4
"""Characters of a secret at a text's end that may be its beginning."""


def read_host(base_url: str) -> str:
    """host:port of a base URL, for messages; DefinitionError unless it is http(s)://host[:port][/path]."""
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise DefinitionError(f"not a URL: {error}", where="base_url") from None
    if "@" in parts.netloc:
        raise DefinitionError("a URL must not carry a password; give the key as api_key", where="base_url")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise DefinitionError("must be http(s)://host[:port][/path]", where="base_url", value=base_url)
    return f"{host}:{port}" if port else host


def check_key(key: str) -> str:
    if key.isascii() and key.isprintable():
        return key
    raise DefinitionError("must be printable ASCII, as it is sent in a header", where="api_key")


def check_header(name: str, value: str, where: str) -> str:
    """Return the value of a header; DefinitionError, without the value, for one that cannot be set."""
    place = f"{where}/{name}"
    if not re.fullmatch(NAME, name):
        raise DefinitionError("is no name of a header", where=place)
    if name.lower() in FRAMING_HEADERS or name.lower().startswith("proxy-"):
        raise DefinitionError("is a header of the connection, which is not yours to set", where=place)
    if not (value.isascii() and value.isprintable()):
        raise DefinitionError("must be printable ASCII, as it is sent in a header", where=place)
    return value


KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key")
"""Headers in which the APIs have their key."""


def take_key(headers: MutableMapping[str, str]) -> str | None:
    """Return the key in the headers of a request, and take it out of them."""
    for name in KEY_HEADERS:
        if value := headers.pop(name, None):
            return value.removeprefix("Bearer ")
    return None


def mask(secret: str, text: str) -> str:
    """Return the text without a secret, and without the beginning of one at its end."""
    text = text.replace(secret, "***")
    for size in range(len(secret), MIN_TAIL - 1, -1):
        if text.endswith(secret[:size]):
            return text[:-size] + "***"
    return text
