"""Checkpoints of a log, as C2SP's `tlog-checkpoint` has them, and what others sign who have seen one. Pure.

A checkpoint is a signed note of three lines: the log's name, how many leaves it has, and its root. A cosignature
(`tlog-cosignature`) is over the line `cosignature/v1`, a line `time SECONDS`, and these three; its first eight bytes
are the time.
"""

import base64
from dataclasses import dataclass

from agent_core.evidence.merkle import MOST
from agent_core.evidence.notes import COSIGNATURE_KIND, Line, Note, NoteError, check_name, read_base64, tag_of
from agent_core.evidence.public_keys import PublicKeys, Signer


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How a log was once: its name, the number of its leaves, and the root over them."""

    origin: str
    size: int
    root: bytes

    @classmethod
    def read(cls, text: str) -> "Checkpoint":
        """Return the checkpoint of a note's text. NoteError for one that is none."""
        lines = text.split("\n")
        if len(lines) < 4 or lines[-1] or not all(lines[:-1]):
            raise NoteError("it is no checkpoint: a name, a size and a root, each in a line")
        origin, size, root = lines[:3]
        if not (size.isascii() and size.isdigit() and str(int(size[:20])) == size and int(size) <= MOST):
            raise NoteError(f"this is no size of a log: {size[:40]!r}")
        digest = read_base64(root)
        if digest is None or len(digest) != 32:
            raise NoteError(f"this is no root of a log: {root[:80]!r}")
        if len(lines) > 4:
            raise NoteError(f"it has a line that is not known here: {lines[3][:80]!r}")
        return cls(check_name(origin), int(size), digest)

    def write(self) -> str:
        """Return the text of the note."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"

    def sign(self, signer: Signer) -> Note:
        """Return the checkpoint as its log publishes it; the log's key has the log's name."""
        return Note(self.write()).signed(self.origin, signer)


def find_log_fault(note: Note, keys: PublicKeys) -> str | None:
    """Return why none of the keys proves that a note is a checkpoint of its log; None when one does."""
    origin = Checkpoint.read(note.text).origin
    refused = "it is signed with no key that is given"
    for key in keys.keys.values():
        if note.is_signed_by(origin, key):
            why = key.refuse_time(None)
            if why is None:
                return None
            refused = why
        elif any(line.tag == tag_of(line.name, key.raw) for line in note.lines):
            refused = f"the signature of the key {key.kid} does not fit it: it was changed after it was signed"
    return refused


def cosign(note: Note, name: str, signer: Signer, seconds: int) -> Note:
    """Return a checkpoint with one more signature, of somebody who has seen it at that time (seconds since 1970)."""
    code = signer.make(f"cosignature/v1\ntime {seconds}\n{note.text}".encode())
    tag = tag_of(check_name(name), signer.public, COSIGNATURE_KIND)
    return Note(note.text, [*note.lines, Line(name, tag, seconds.to_bytes(8, "big") + code)])
