"""TextCipher: what encrypts the texts that tools keep, where the host's store is encrypted."""

from typing import Protocol


class TextCipher(Protocol):
    """Encrypts texts under keys that can be destroyed one by one. Threads may share it."""

    def encrypt_text(self, subject: str, label: str, text: str) -> str:
        """Return a text as it may be stored, under the key of a subject; the same text again is the same."""
        ...

    def decrypt_text(self, subject: str, label: str, text: str) -> str | None:
        """Return the text again; None where its key was destroyed."""
        ...
