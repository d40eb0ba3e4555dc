"""Signed notes, as C2SP's `signed-note` has them: a text, and below it who signed it. Pure.

    agent-core/5f3a0c1d
    42
    zpbj…=

    — agent-core/5f3a0c1d Az3grl…=

A line of a signature has the name of the key, and in Base64 four bytes that tell its keys apart and the signature. The
four are the first of the SHA-256 over the name, a line feed, a byte for the kind of the signature and the public key.
"""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, NamedTuple

from agent_core.evidence.ed25519 import LENGTH, is_signed
from agent_core.evidence.public_keys import PublicKey, Signer
from utools.lazy_pattern import lazy_compile

NOTE_KIND: Final = 1
"""An Ed25519 signature of the text."""
COSIGNATURE_KIND: Final = 4
"""An Ed25519 signature of a checkpoint and a time, by somebody who has seen it."""
_LINE: Final = lazy_compile(r"— (\S+) ([A-Za-z0-9+/=]+)")
_NAME: Final = lazy_compile(r"[^\s+\x00-\x1f]{1,255}")
MOST_SIGNATURES: Final = 100


class NoteError(ValueError):
    """A text that is no signed note, and why."""


class Line(NamedTuple):
    """One signature of a note: the name of its key, what tells the key from others of that name, and the bytes."""

    name: str
    tag: bytes
    signature: bytes

    def write(self) -> str:
        """Return the line."""
        return f"— {self.name} {base64.b64encode(self.tag + self.signature).decode()}\n"


def check_name(name: str) -> str:
    """Return the name of a key or a log. NoteError for one that no note can have."""
    if not _NAME.fullmatch(name):
        raise NoteError(f"{name!r} is no name of a key: no spaces, no plus sign, and at most 255 characters")
    return name


def tag_of(name: str, public: bytes, kind: int = NOTE_KIND) -> bytes:
    """Return the four bytes that tell a key from others of its name."""
    return sha256(name.encode() + b"\n" + bytes([kind]) + public).digest()[:4]


def verifier_key(name: str, public: bytes, kind: int = NOTE_KIND) -> str:
    """Return a public key as other programs take it: `NAME+TAG+BASE64`."""
    return f"{name}+{tag_of(name, public, kind).hex()}+{base64.b64encode(bytes([kind]) + public).decode()}"


@dataclass(frozen=True, slots=True)
class Note:
    """A text that ends in a line feed, and its signatures."""

    text: str
    lines: Sequence[Line] = ()

    @classmethod
    def read(cls, data: str) -> "Note":
        """Return the note of a text. NoteError for one that is none."""
        text, blank, below = data.rpartition("\n\n")
        lines = below.split("\n")
        if not blank or lines.pop() or not lines:
            raise NoteError("it is no signed note: a text, an empty line, and a line for each signature")
        if len(lines) > MOST_SIGNATURES:
            raise NoteError(f"it has {len(lines)} signatures, and at most {MOST_SIGNATURES} are read")
        return cls(f"{text}\n", [_read_line(line) for line in lines])

    def write(self) -> str:
        """Return the note as it is kept and sent."""
        return f"{self.text}\n{''.join(line.write() for line in self.lines)}"

    def signed(self, name: str, signer: Signer) -> "Note":
        """Return the note with a signature of its text."""
        line = Line(check_name(name), tag_of(name, signer.public), signer.make(self.text.encode()))
        return Note(self.text, [*self.lines, line])

    def is_signed_by(self, name: str, key: PublicKey) -> bool:
        """Return whether the key of this name has signed the text."""
        tag = tag_of(name, key.raw)
        own = [line for line in self.lines if (line.name, line.tag) == (name, tag)]
        return bool(own) and all(
            len(line.signature) == LENGTH and is_signed(key.raw, line.signature, self.text.encode()) for line in own
        )


def _read_line(line: str) -> Line:
    found = _LINE.fullmatch(line)
    if found is None:
        raise NoteError(f"this is no line of a signature: {line[:80]!r}")
    code = read_base64(found[2])
    if code is None or len(code) <= 4:
        raise NoteError(f"this is no signature in Base64: {found[2][:80]!r}")
    return Line(check_name(found[1]), code[:4], code[4:])


def read_base64(text: str) -> bytes | None:
    """Return the bytes of a text in Base64, in its one form; None for another text."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if base64.b64encode(data).decode() == text else None
