"""Timestamps (RFC 3161) by the library `rfc3161-client`: a third party's word on when a signature was there."""

import base64
import binascii
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agent_core.errors import DefinitionError
from agent_core.evidence.ed25519 import check_installed
from agent_core.evidence.variables import URL_VARIABLE

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

PATIENCE_S: Final = 10.0
"""How long an authority may take for its answer."""
MOST_BYTES: Final = 65_536
log = logging.getLogger("agent_core")


def request_timestamp(url: str, signature: bytes) -> str | None:
    """Return an authority's answer about a signature, in Base64; None where it gives none, which is logged."""
    check_installed(URL_VARIABLE)
    import httpx2
    from rfc3161_client import HashAlgorithm, TimestampRequestBuilder, decode_timestamp_response

    request = TimestampRequestBuilder().data(signature).hash_algorithm(HashAlgorithm.SHA256).build()
    headers = {"content-type": "application/timestamp-query", "accept": "application/timestamp-reply"}
    try:
        answer = httpx2.post(url, content=request.as_bytes(), headers=headers, timeout=PATIENCE_S)
        answer.raise_for_status()
        if len(answer.content) > MOST_BYTES:
            raise ValueError(f"its answer has {len(answer.content):,} bytes")
        found = decode_timestamp_response(answer.content)
        if found.status != 0:
            raise ValueError(f"it refused: {'; '.join(found.status_string) or found.status}")
        if found.tst_info.nonce != request.nonce:
            raise ValueError("its answer is one to another request")
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        log.warning("%s gave no timestamp: %s", url, error)
        return None
    return base64.b64encode(answer.content).decode()


@dataclass(frozen=True, slots=True)
class Authorities:
    """The certificates of authorities whose word on a time is taken."""

    roots: Sequence["Certificate"] = field(repr=False)

    @classmethod
    def read(cls, text: str, where: str) -> "Authorities":
        """Return the certificates of a file in PEM. DefinitionError for one without any."""
        from cryptography.x509 import load_pem_x509_certificates

        try:
            return cls(load_pem_x509_certificates(text.encode()))
        except ValueError:
            raise DefinitionError("holds no certificate in PEM", where=where) from None

    def find_time(self, timestamp: str, signature: bytes) -> str | None:
        """Return the time, as records write it, by which a signature was there; None where no authority that is trusted
        says so."""
        try:
            answer = base64.b64decode(timestamp, validate=True)
        except (binascii.Error, ValueError):
            return None
        return _find_time(tuple(self.roots), answer, signature)


@lru_cache(maxsize=256)
def _find_time(roots: tuple["Certificate", ...], answer: bytes, signature: bytes) -> str | None:
    from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response

    try:
        found = decode_timestamp_response(answer)
        VerifierBuilder(roots=list(roots)).build().verify_message(found, signature)
        return found.tst_info.gen_time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (VerificationError, ValueError):
        return None
