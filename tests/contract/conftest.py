"""What the contract tests share: a journal in a real PostgreSQL."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from agent_core.journal.postgres import PostgresJournal


@pytest.fixture
def postgres_journal(new_database: Callable[[], str]) -> "Iterator[PostgresJournal]":
    from agent_core.journal.postgres import PostgresJournal

    with closing(PostgresJournal(new_database())) as made:
        yield made
