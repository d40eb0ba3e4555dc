"""Ed25519 signatures by the library `cryptography` (extra `evidence`), and the ids of keys. Pure."""

import base64
import binascii
from hashlib import sha256
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from agent_core.errors import DefinitionError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

INSTALL: Final = "install agent-core[evidence]"
PREFIX: Final = "ed25519:"
LENGTH: Final = 64
"""Bytes of a signature."""
_SPKI: Final = bytes.fromhex("302a300506032b6570032100")
"""What stands before the 32 bytes of a key in a SubjectPublicKeyInfo (RFC 8410), which a PEM of a public key holds."""
_BEGIN, _END = "-----BEGIN PUBLIC KEY-----\n", "\n-----END PUBLIC KEY-----\n"


def is_installed() -> bool:
    """Return whether signatures can be made and checked here."""
    return find_spec("cryptography") is not None


def check_installed(where: str) -> None:
    """DefinitionError where they cannot."""
    if not is_installed():
        raise DefinitionError(f"signatures by public key need the extra evidence: {INSTALL}", where=where)


def key_id(public: bytes) -> str:
    """Return the id of a public key: `ed25519:` and the first 16 hexadecimal digits of its SHA-256."""
    return f"{PREFIX}{sha256(public).hexdigest()[:16]}"


def is_signed(public: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether the key of these 32 bytes has made the signature of a message."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def make_key() -> str:
    """Return a new private key, in PEM (PKCS 8)."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def read_private(pem: str, where: str) -> "Ed25519PrivateKey":
    """Return the private key of a PEM. DefinitionError for another text, another kind of key, and one with a
    password."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # whose messages may quote the text
        raise DefinitionError(f"is no private key in PEM without a password; {MAKE}", where=where) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise DefinitionError(f"is a key of another kind than Ed25519; {MAKE}", where=where)
    return key


MAKE: Final = "`agent-core key new` makes one"


def public_pem(public: bytes) -> str:
    """Return the PEM of a public key."""
    return f"{_BEGIN}{base64.b64encode(_SPKI + public).decode()}{_END}"


def read_public(body: str) -> bytes | None:
    """Return the 32 bytes of the key that the lines between BEGIN and END of a PEM hold; None for another kind."""
    try:
        der = base64.b64decode("".join(body.split()), validate=True)
    except binascii.Error:
        return None
    return der[len(_SPKI) :] if der.startswith(_SPKI) and len(der) == len(_SPKI) + 32 else None


def encode_signature(signature: bytes) -> str:
    """Return a signature as records hold it: Base64."""
    return base64.b64encode(signature).decode()


def decode_signature(text: str) -> bytes | None:
    """Return the 64 bytes of a signature in a record; None for a text that is none."""
    try:
        signature = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return signature if len(signature) == LENGTH and encode_signature(signature) == text else None
