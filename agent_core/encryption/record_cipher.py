"""The cipher of records: AES-256-GCM-SIV (RFC 8452), so that two drivers write the same bytes for a record. Pure.

All records of a run have its key, and a nonce of zeros; strand and number are authenticated beside each. The cipher is
made for that: should two drivers write different records at one place, no more can be seen than that they differ. What
is stored is `MARK` and the ciphertext with its code.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from agent_core.errors import DefinitionError, JournalError

MARK: Final = b"\x01"
"""The first byte of what is encrypted; a record begins with a brace."""
KEY_BYTES: Final = 32
_NONCE: Final = bytes(12)
Encrypt = Callable[[str, int, bytes], bytes]
"""(strand, number, record) -> what is stored of it."""


def check_installed(where: str) -> None:
    """DefinitionError where the library is missing that encrypts."""
    from agent_core.evidence.ed25519 import INSTALL, is_installed

    if not is_installed():
        raise DefinitionError(f"encryption needs the extra evidence: {INSTALL}", where=where)


def encrypter(run_key: bytes) -> Encrypt:
    """Return what encrypts the records of the run that has this key."""
    encrypt = _cipher_of(run_key).encrypt

    def encrypt_record(path: str, n: int, data: bytes) -> bytes:
        ciphertext: bytes = encrypt(_NONCE, data, b"agent-core/record/1\0%b\0%d" % (path.encode(), n))
        return MARK + ciphertext

    return encrypt_record


def decrypt_record(run_key: bytes, path: str, n: int, stored: bytes) -> bytes:
    """Return a record again. JournalError where it was not encrypted under this key, at this place."""
    return _decrypt(run_key, b"agent-core/record/1\0%b\0%d" % (path.encode(), n), stored)


def encrypt(key: bytes, label: bytes, data: bytes) -> bytes:
    """Return what is stored of other bytes, which have a label."""
    ciphertext: bytes = _cipher_of(key).encrypt(_NONCE, data, b"agent-core/text/1\0" + label)
    return MARK + ciphertext


def decrypt(key: bytes, label: bytes, stored: bytes) -> bytes:
    """Return the bytes again. JournalError where they were not encrypted under this key and label."""
    return _decrypt(key, b"agent-core/text/1\0" + label, stored)


def derive_salt(run_key: bytes) -> bytes:
    """Return the secret by which single records of a run are shown to others; nothing but the key gives it."""
    import hmac

    return hmac.digest(run_key, b"agent-core/salt/1", "sha256")


def _decrypt(key: bytes, label: bytes, stored: bytes) -> bytes:
    from cryptography.exceptions import InvalidTag

    try:
        data: bytes = _cipher_of(key).decrypt(_NONCE, stored[len(MARK) :], label)
    except (InvalidTag, ValueError):
        raise JournalError("what is stored was not encrypted by the key that is given") from None
    return data


@lru_cache(maxsize=64)
def _cipher_of(key: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

    return AESGCMSIV(key)
