"""An authority of a test's own, and the certificates that it signs, as files in PEM."""

import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

Key = ec.EllipticCurvePrivateKey
_SIGNS = x509.KeyUsage(
    digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
    key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
)  # fmt: skip


@dataclass(frozen=True)
class Issued:
    """A certificate and its key."""

    cert: Path
    key: Path


@dataclass(frozen=True)
class Authority:
    """Signs certificates for 127.0.0.1; `ca` is the file by which they are trusted."""

    folder: Path
    name: str = "ours"
    _key: Key = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def __post_init__(self) -> None:
        self.ca.write_bytes(self._sign(self.name, self._key, is_authority=True))

    @property
    def ca(self) -> Path:
        return self.folder / f"{self.name}-ca.pem"

    def issue(self, name: str, *, password: str | None = None) -> Issued:
        """Write a certificate with its key, encrypted where there is a password."""
        key = ec.generate_private_key(ec.SECP256R1())
        issued = Issued(self.folder / f"{name}.pem", self.folder / f"{name}-key.pem")
        issued.cert.write_bytes(self._sign(name, key))
        hidden: KeySerializationEncryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        issued.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden))
        return issued

    def serve(self, *, clients: "Authority | None" = None) -> ssl.SSLContext:
        """Return the context of a server with a certificate of ours, which wants one signed by `clients`."""
        issued, context = self.issue("server"), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(issued.cert, issued.key)
        if clients is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients.ca)
        return context

    def _sign(self, name: str, key: Key, *, is_authority: bool = False) -> bytes:
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(_call(name))
            .issuer_name(_call(self.name))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if is_authority:  # without it Python 3.13 and later trust nothing that it signs
            made = made.add_extension(_SIGNS, critical=True)
        else:
            hosts = [x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("model.test")]
            made = made.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        return made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)


def _call(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
