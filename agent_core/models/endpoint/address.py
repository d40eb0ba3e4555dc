"""An endpoint's base URL and key, checked before they are used; and a key kept out of messages. Pure."""

from collections.abc import MutableMapping
from urllib.parse import urlsplit

from agent_core.errors import DefinitionError

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
    if not host.isascii() and not _is_name(host):
        raise DefinitionError("no host can have this name", where="base_url", value=base_url)
    shown = f"[{host}]" if ":" in host else host  # an address of IPv6
    return f"{shown}:{port}" if port else shown


def _is_name(host: str) -> bool:
    """Return whether it can be the name of a host in another script."""
    import idna  # for these hosts alone

    try:
        idna.encode(host, uts46=True)
    except (idna.IDNAError, UnicodeError):
        return False
    return True


def check_key(key: str) -> str:
    if key.isascii() and key.isprintable():
        return key
    raise DefinitionError("must be printable ASCII, as it is sent in a header", where="api_key")


KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key")
"""Headers in which the APIs have their key."""


def take_key(headers: MutableMapping[str, str]) -> str | None:
    """Return the key in the headers of a request, and take it out of them."""
    for name in KEY_HEADERS:
        if value := headers.pop(name, None):
            return value.removeprefix("Bearer ")
    return None


def mask(secret: str, text: str) -> str:
    """Return the text without a secret in any of its encodings, and without the beginning of one at its end."""
    from utools.secrets.finds import mark_of  # of errors alone
    from utools.secrets.redaction import Redactor

    text = Redactor({"key": secret}).redact_truncated_text(text).replace(mark_of("key"), "***")
    for size in range(len(secret), MIN_TAIL - 1, -1):
        if text.endswith(secret[:size]):
            return text[:-size] + "***"
    return text
