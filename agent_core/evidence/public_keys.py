"""PublicKeys: the keys that an auditor trusts, when each was valid, and which were revoked. Pure.

A file of them has a block for each key: the PEM of a public key, as other programs write it, and in front of it what is
to be known of the key:

    key: ed25519:9f86d081884c7d65
    valid from: 2026-11-22T13:15:00.120Z
    valid until: 2027-11-22T13:15:00.120Z
    revoked since: 2027-03-01T00:00:00.000Z
    reason: the disk was stolen
    -----BEGIN PUBLIC KEY-----
    …
    -----END PUBLIC KEY-----

Each of these lines may be missing. Times are UTC, to the millisecond, as records have them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from agent_core.errors import DefinitionError
from agent_core.evidence.ed25519 import decode_signature, encode_signature, is_signed, key_id, public_pem, read_public
from utools.lazy_pattern import lazy_compile

TIME: Final = lazy_compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_BLOCK: Final = lazy_compile(r"-----BEGIN ([^-]+)-----([^-]*)-----END \1-----")
_LINES: Final = {"valid from": "since", "valid until": "until", "revoked since": "revoked", "reason": "reason"}
_BLANK: Final = lazy_compile(r"\s*(#.*)?")


class Signature(NamedTuple):
    """A signature as records hold it: the id of its key, and the 64 bytes in Base64."""

    kid: str
    text: str


@dataclass(frozen=True, slots=True)
class PublicKey:
    """One key. Each time is None where the file does not say it."""

    raw: bytes = field(repr=False)
    since: str | None = None
    until: str | None = None
    revoked: str | None = None
    reason: str | None = None

    @property
    def kid(self) -> str:
        """The key's id."""
        return key_id(self.raw)

    def refuse_time(self, at: str | None, proven: str | None = None) -> str | None:
        """Return why something that says it was signed at a time does not count; None when it does.

        A revoked key proves nothing of the time before either, since whoever has it can write any time: only what was
        `proven` by others to be there before that counts.
        """
        if self.revoked is not None and (proven is None or proven >= self.revoked):
            return f"the key {self.kid} is revoked, since {self.revoked}{f': {self.reason}' if self.reason else ''}"
        if at is not None and self.since is not None and at < self.since:
            return f"the key {self.kid} was valid from {self.since} on, and this says that it was signed at {at}"
        if at is not None and self.until is not None and at > self.until:
            return f"the key {self.kid} was valid until {self.until}, and this says that it was signed at {at}"
        return None

    def write(self) -> str:
        """Return the key's block of a file."""
        told = [f"{name}: {value}\n" for name, part in _LINES.items() if (value := getattr(self, part)) is not None]
        return f"key: {self.kid}\n{''.join(told)}{public_pem(self.raw)}"


@dataclass(frozen=True, slots=True)
class PublicKeys:
    """The keys that are trusted, by their ids."""

    keys: Mapping[str, PublicKey] = field(default_factory=dict[str, PublicKey])

    @classmethod
    def of(cls, *keys: PublicKey) -> "PublicKeys":
        """Return these keys, the last one of each id."""
        return cls({key.kid: key for key in keys})

    @classmethod
    def read(cls, text: str, where: str) -> "PublicKeys":
        """Return the keys of a file. DefinitionError for a text without one, and at the first line that is wrong."""
        keys = cls.of(*_read_blocks(text, where))
        if not keys.keys:
            message = "holds no public key in PEM; `agent-core key new` writes one beside a private key"
            raise DefinitionError(message, where=where)
        return keys

    def write(self) -> str:
        """Return the text of a file of these keys."""
        return "\n".join(key.write() for key in self.keys.values())

    def refuse(self, signature: Signature, message: bytes, at: str | None, proven: str | None = None) -> str | None:
        """Return why a signature does not prove a message that says it was signed at a time, if it does say it; None
        when it proves it. `proven` is the time by which others say that it was there."""
        key = self.keys.get(signature.kid)
        if key is None:
            return f"it is signed with the key {signature.kid!r}, which is not given"
        code = decode_signature(signature.text)
        if code is None or not is_signed(key.raw, code, message):
            return f"its signature was not made with the key {signature.kid!r}"
        return key.refuse_time(at, proven)


def _read_blocks(text: str, where: str) -> Iterator[PublicKey]:
    end = 0
    for block in _BLOCK.finditer(text):
        told = dict(_read_lines(text[end : block.start()], where))
        end = block.end()
        raw = read_public(block[2]) if block[1] == "PUBLIC KEY" else None
        if raw is None:
            kind = "a private key" if "PRIVATE" in block[1] else "a key"
            message = f"holds {kind} that is no public key of Ed25519; take the file that ends in .pub"
            raise DefinitionError(message, where=where, value=block[1])
        named = told.pop("key", None)
        key = PublicKey(raw, **told)
        if named not in (None, key.kid):
            raise DefinitionError(f"names a key that is {key.kid} by its bytes", where=where, value=named)
        yield key
    rest = text[end:].strip()
    if end and rest:
        raise DefinitionError("has something after its last key", where=where, value=rest[:80])


def _read_lines(text: str, where: str) -> Iterator[tuple[str, str]]:
    """Yield what the lines in front of a PEM say."""
    for line in text.splitlines():
        if _BLANK.fullmatch(line):
            continue
        name, colon, value = (part.strip() for part in line.partition(":"))
        part = "key" if name == "key" else _LINES.get(name)
        if part is None or not colon or not value:
            known = ", ".join(f"`{each}: …`" for each in ("key", *_LINES))
            raise DefinitionError(f"has a line that is none of {known}", where=where, value=line.strip())
        if part not in ("key", "reason") and not TIME.fullmatch(value):
            form = "is no time as records have it, such as 2026-11-22T13:15:00.120Z"
            raise DefinitionError(f"`{name}` {form}", where=where, value=value)
        yield part, value


class Sign(Protocol):
    """Signs a message: 64 bytes."""

    def __call__(self, message: bytes, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Signer:
    """The key that signs: its public part, and what makes a signature."""

    public: bytes
    make: Sign = field(repr=False)

    @property
    def kid(self) -> str:
        """The key's id."""
        return key_id(self.public)

    def sign(self, message: bytes) -> Signature:
        """Return the signature of a message."""
        return Signature(self.kid, encode_signature(self.make(message)))


class Keyring(Protocol):
    """A key that signs, and the keys that are trusted, as they are at this moment."""

    @property
    def is_slow(self) -> bool:
        """Whether signing waits for another process, so that an event loop has it done in a thread."""
        ...

    def signer(self) -> Signer | None:
        """Return the key that signs; None where nothing is signed here."""
        ...

    def check(self) -> None:
        """DefinitionError for what cannot be used of all that it needs."""
        ...

    def public_keys(self) -> PublicKeys:
        """Return the keys that are trusted."""
        ...

    def stamp(self, signature: bytes) -> str | None:
        """Return an authority's timestamp of a signature, in Base64; None where none is asked, or none answers."""
        ...

    def find_time(self, timestamp: str, signature: bytes) -> str | None:
        """Return the time by which a signature was there, as a timestamp says; None where it does not prove it."""
        ...

    @property
    def judges_time(self) -> bool:
        """Whether there are authorities whose word on a time is taken."""
        ...
