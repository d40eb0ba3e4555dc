"""The cipher of records: each has a key of its own, so that two drivers write the same bytes for it. Pure.

The key of a record is derived from that of its run by HKDF-Expand with SHA-256 (RFC 5869). Under it the record is
encrypted by AES-256-GCM-SIV (RFC 8452) with a nonce of zeros: no two records have one key, and the same record again
is the same bytes. What is stored is `MARK` and the ciphertext with its code.
"""

import hmac
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from agent_core.errors import DefinitionError, JournalError

MARK: Final = b"\x01"
"""The first byte of what is encrypted; a record begins with a brace."""
KEY_BYTES: Final = 32
INSTALL: Final = "install agent-core[evidence]"
_NONCE: Final = bytes(12)
_LABEL: Final = b"agent-core/record/1"
Encrypt = Callable[[str, int, bytes], bytes]
"""(strand, number, record) -> what is stored of it."""


def check_installed(where: str) -> None:
    """DefinitionError where the library is missing that encrypts."""
    try:
        _cipher()
    except ImportError:
        raise DefinitionError(f"encryption needs the extra evidence: {INSTALL}", where=where) from None


def encrypter(run_key: bytes) -> Encrypt:
    """Return what encrypts the records of the run that has this key."""
    return lambda path, n, data: encrypt(run_key, label_of(path, n), data)


def label_of(path: str, n: int) -> bytes:
    """Return what tells a record from the others of its run."""
    return b"%b\0%d" % (path.encode(), n)


def derive_key(key: bytes, label: bytes) -> bytes:
    """Return the key of what has this label: the first block of HKDF-Expand."""
    return hmac.digest(key, label + b"\x01", "sha256")


def encrypt(key: bytes, label: bytes, data: bytes) -> bytes:
    """Return what is stored of some bytes."""
    return encrypt_by(derive_key(key, label), data)


def decrypt(key: bytes, label: bytes, stored: bytes) -> bytes:
    """Return the bytes again. JournalError where they were not encrypted under this key and label."""
    return decrypt_by(derive_key(key, label), stored)


def encrypt_by(own_key: bytes, data: bytes) -> bytes:
    """Return what is stored of some bytes that have a key of their own."""
    ciphertext: bytes = _cipher()(own_key).encrypt(_NONCE, data, _LABEL)
    return MARK + ciphertext


def decrypt_by(own_key: bytes, stored: bytes) -> bytes:
    """Return the bytes that were encrypted by a key of their own. JournalError where it is not that key."""
    from cryptography.exceptions import InvalidTag

    try:
        data: bytes = _cipher()(own_key).decrypt(_NONCE, stored[len(MARK) :], _LABEL)
    except (InvalidTag, ValueError):
        raise JournalError("what is stored was not encrypted by the key that is given") from None
    return data


@cache
def _cipher() -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

    return AESGCMSIV
