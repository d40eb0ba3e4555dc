"""find_cosigned(): whether somebody has cosigned a checkpoint, as a stranger checks it."""

from typing import Final

from agent_core.evidence.ed25519 import LENGTH, is_signed
from agent_core.evidence.notes import COSIGNATURE_KIND, Note, tag_of
from agent_core.evidence.public_keys import PublicKey

TIME_BYTES: Final = 8


def find_cosigned(note: Note, name: str, key: PublicKey) -> int | None:
    """Return when the key of this name signed a checkpoint that it had seen, in seconds since 1970; None if it did
    not, or one of its lines is wrong."""
    tag, times = tag_of(name, key.raw, COSIGNATURE_KIND), list[int]()
    for line in note.lines:
        if (line.name, line.tag) != (name, tag):
            continue
        seconds, code = int.from_bytes(line.signature[:TIME_BYTES], "big"), line.signature[TIME_BYTES:]
        message = f"cosignature/v1\ntime {seconds}\n{note.text}".encode()
        if len(code) != LENGTH or not is_signed(key.raw, code, message):
            return None
        times.append(seconds)
    return max(times, default=None)
