"""Keeper: what a store keeps beside its journal, in the same transactions: all of it is there, or nothing."""

from collections.abc import Sequence
from typing import Protocol

from agent_core.journal.record import Row
from utools.databases.transaction import Transaction


class Keeper(Protocol):
    """Is told of what a journal writes, in the transaction that writes it."""

    def note_appended(self, db: Transaction, run: str, rows: Sequence[Row]) -> None:
        """These rows were appended to a run."""
        ...

    def note_deleted(self, db: Transaction, run: str) -> None:
        """The run is about to be dropped."""
        ...
