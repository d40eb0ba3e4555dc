"""The seam between a run and the store of its records."""

from collections.abc import Sequence
from typing import Final, Protocol

from agent_core.encryption.record_cipher import Encrypt
from agent_core.errors import JournalError
from agent_core.journal.identity import StoreIdentity
from agent_core.journal.record import Row, Tape
from utools.threads import Threads

HAS_KEY: Final = "SELECT 1 FROM store_keys LIMIT 1"
"""Finds whether a store is encrypted, in the table that such a store has."""


class Ciphers(Protocol):
    """What encrypts the records of a store, and reads them again."""

    @property
    def is_plain(self) -> bool:
        """Whether it is known that nothing is encrypted here."""
        ...

    def find_encrypter(self, run: str) -> Encrypt | None:
        """Return what encrypts the records of a run, whose key is made if it has none; None where the store is not
        encrypted. JournalError for a run that was erased, or without the operator's key."""
        ...

    def find_salt(self, run: str) -> bytes | None:
        """Return the secret by which single records of a run are shown to others; None where the store is not
        encrypted."""
        ...

    def check_rows(self, rows: Sequence[Row]) -> None:
        """JournalError for rows that would be written in the clear, though the store is encrypted."""
        ...

    def open_rows(self, run: str, rows: Sequence[Row]) -> list[Row]:
        """Return rows with their records, as far as they can be read here."""
        ...


def ciphers_of(journal: "Journal") -> Ciphers | None:
    """Return what encrypts the records of a journal; None for one that is known to be plain, as one of somebody else's
    is."""
    ciphers: Ciphers | None = getattr(journal, "_ciphers", None)
    return None if ciphers is None or ciphers.is_plain else ciphers


def find_encrypter(journal: "Journal", run: str) -> Encrypt | None:
    """Return what encrypts the records of a run; None in a journal that is not encrypted."""
    ciphers = ciphers_of(journal)
    return None if ciphers is None else ciphers.find_encrypter(run)


def find_salt(journal: "Journal", run: str) -> bytes | None:
    """Return the secret by which single records of an encrypted run are shown; None for any other."""
    ciphers = ciphers_of(journal)
    return None if ciphers is None else ciphers.find_salt(run)


def refuse_plain(name: str, has_key: Sequence[object]) -> None:
    """JournalError for a journal that was opened by its place alone, where the store there is encrypted."""
    if has_key:
        hint = "write into it through its store: `open_store(…).journal`, or Engine(store=…)"
        raise JournalError(f"{name} is encrypted, and these records would not be; {hint}")


class Journal(Protocol):
    """An append-only store of rows, from which only whole runs go. Any number of threads and processes may share one.

    A row is never changed and never parsed: what comes back is byte for byte what went in.
    """

    @property
    def threads(self) -> Threads | None:
        """What an event loop has its methods called in, where they wait for a network; None where it calls them."""
        ...

    @property
    def identity(self) -> StoreIdentity | None:
        """Which store the rows are in, read anew; None where they are in none."""
        ...

    def load(self, run: str) -> Tape:
        """Return all rows of a run by strand; empty when the run is unknown. A torn tail is left out."""
        ...

    def append(self, run: str, rows: Sequence[Row]) -> bool:
        """Append all rows or none, in order, each only at the end of its strand, and chained to it.

        A row that is there already with the same bytes counts as appended. Returns whether the last row is new: of
        two drivers that write the same `asked`, one gets True, and it alone may act. Raises `Lost` when another row
        is in a row's position, a row would leave a gap or break the chain, or it closes a strand that has grown, and
        `JournalError` when it cannot be written.
        """
        ...

    def runs(self) -> list[str]:
        """Return the ids of the runs, oldest first."""
        ...

    def delete(self, run: str) -> bool:
        """Drop all rows of a run, in one go, and leave every other run alone. False when there is no such run.

        A driver that is still at work on the run would begin it anew: delete what has ended. Raises `JournalError`
        when it cannot be written.
        """
        ...

    def close(self) -> None:
        """Let go of files and connections; closing twice is fine."""
        ...


class TailedJournal(Journal, Protocol):
    """A journal that can be followed."""

    def tail(self, run: str, after: int = 0) -> list[tuple[int, Row]]:
        """Return the rows of a run that were appended after a position, in the order of appending, each with its
        position."""
        ...
