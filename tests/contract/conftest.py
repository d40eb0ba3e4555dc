"""What the contract tests share: a real PostgreSQL, started once, with a database of its own for each test."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from support.postgres_server import Postgres, real_postgres

if TYPE_CHECKING:
    from agent_core.journal.postgres import PostgresJournal

NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    pytest.importorskip("psycopg_pool", reason="needs psycopg with its pool (extra `postgres`)")
    with real_postgres() as server:
        yield server


@pytest.fixture
def new_database(postgres: Postgres) -> Callable[[], str]:
    """Makes one more empty database, and gives its URL."""
    import psycopg

    def make() -> str:
        name = f"test_{next(NUMBERS)}"
        with psycopg.connect(postgres.url(), autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}")
        return postgres.url(name)

    return make


@pytest.fixture
def postgres_journal(new_database: Callable[[], str]) -> "Iterator[PostgresJournal]":
    from agent_core.journal.postgres import PostgresJournal

    with closing(PostgresJournal(new_database())) as made:
        yield made
