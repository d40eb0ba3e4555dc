"""LinkGrant: what a decision link allows, and how its token is signed and read. Pure."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest, digest
from typing import Any, Final

CONTEXT: Final = b"agent-core decision link 1\n"
"""Precedes what is signed, so that no other signature by the same secret is that of a link."""
LONGEST: Final = 4096
_KEYS: Final = {"run": "r", "strand": "s", "n": "n", "expires": "e", "by": "b", "tenant": "t", "person": "p"}


@dataclass(frozen=True, slots=True)
class LinkGrant:
    """The right to decide about the call that waits at record `n` of a strand, until `expires` (seconds since 1970).

    `by` made the link, for `person`, whose name is empty if it was not said.
    """

    run: str
    strand: str
    n: int
    expires: int
    by: str
    tenant: str | None = None
    person: str = ""


def write_token(grant: LinkGrant, key: bytes) -> str:
    """Return the token of a grant. It has the form of a JWT's beginning, which is masked in records and logs as one."""
    values: dict[str, Any] = {short: getattr(grant, name) for name, short in _KEYS.items()}
    payload = _encode(json.dumps(values, separators=(",", ":")).encode())
    return f"{payload}.{_sign(payload, key)}"


def read_token(text: str, keys: Iterable[bytes]) -> LinkGrant | None:
    """Return the grant of a token that was signed with one of the keys; None for every other text, in a time that does
    not tell how it differs."""
    if len(text) > LONGEST or not text.isascii():
        return None
    payload, _, signature = text.partition(".")
    matches = [compare_digest(signature, _sign(payload, key)) for key in keys]
    if not any(matches):
        return None
    try:
        values = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return LinkGrant(**{name: values[short] for name, short in _KEYS.items()})
    except (NotBase64, ValueError, LookupError, TypeError):  # signed by another version
        return None


def name_token(text: str) -> str:
    """Return the id of a token, which records and logs may show."""
    return sha256(text.encode()).hexdigest()[:12]


def _sign(payload: str, key: bytes) -> str:
    return _encode(digest(key, CONTEXT + payload.encode(), "sha256"))


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
