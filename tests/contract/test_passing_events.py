"""What passes in acts, beside the runs of a store: who follows, what is written, what is deleted."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from engine_shim.store.copy import copy_runs
from engine_shim.store.entries import RunEntry
from engine_shim.store.open import open_store
from engine_shim.store.passing_events import (
    FOLLOWED_S,
    FORGOTTEN_S,
    Passing,
    PassingEvents,
    Piece,
    passing_events_of,
)
from engine_shim.store.run_store import DatabaseRunStore, SqliteRunStore
from engine_shim.store.run_store_memory import MemoryRunStore

ODD = "a\0b \ud83d half, “quoted” \n 12"
POSTGRES = pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))
NOON = 43_200.0


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", POSTGRES])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[DatabaseRunStore]:
    if request.param == "sqlite":
        with closing(SqliteRunStore(tmp_path / "runs.db", clock=clock)) as made:
            yield made
        return
    new_database = request.getfixturevalue("new_database")
    from engine_shim.store.run_store_postgres import PostgresRunStore

    with closing(PostgresRunStore(new_database(), clock=clock)) as made:
        yield made


@pytest.fixture
def events(store: DatabaseRunStore) -> PassingEvents:
    found = passing_events_of(store)
    assert found is not None
    return found


def passing(text: str, n: int = 1, strand: str = "flow/a") -> Passing:
    return Passing(strand, n, [Piece("answer", text, 0)])


def test_store_of_one_process_has_none() -> None:
    assert passing_events_of(MemoryRunStore()) is None


def test_run_is_followed_for_a_while_after_its_follower_said_so(events: PassingEvents, clock: Clock) -> None:
    assert events.find_followed(["r1"]) == set()
    events.follow(["r1", "r2"])
    clock.now += FOLLOWED_S / 2
    events.follow(["r1"])
    clock.now += FOLLOWED_S / 2 + 1
    assert events.find_followed(["r1", "r2", "r3"]) == {"r1"}
    clock.now += FOLLOWED_S
    assert events.find_followed(["r1", "r2"]) == set()


def test_who_follows_by_a_clock_that_was_ahead_counts_no_longer(events: PassingEvents, clock: Clock) -> None:
    events.follow(["r1"])
    clock.now -= 3600
    assert events.find_followed(["r1"]) == set()


def test_events_are_read_in_order_behind_a_position(events: PassingEvents) -> None:
    assert (events.read("r1", 0), events.list_news(["r1"], 0)) == ([], {})
    first, second = passing("one"), passing("two", strand="flow/b")
    events.write([("r1", first), ("r2", passing("other"))])
    events.write([("r1", second)])
    found = events.read("r1", 0)
    assert [each for _, each in found] == [first, second]
    assert events.list_news(["r1", "r3"], 0) == {"r1": found[1][0]}
    assert events.list_news(["r1"], found[1][0]) == {}
    assert events.read("r1", found[0][0]) == [found[1]]


def test_every_piece_is_read_as_it_was_written(events: PassingEvents) -> None:
    pieces = [Piece("thought", ODD), Piece("answer", ODD, 3), Piece("discarded"), Piece("whole", "", 9)]
    each = Passing("flow/a", 4, [*pieces, Piece("progress", ODD, 0.25), Piece("progress", "")])
    events.write([("r1", each)])
    assert [found for _, found in events.read("r1", 0)] == [each]


def test_events_of_an_answered_act_are_deleted_and_positions_go_on(events: PassingEvents) -> None:
    events.write([("r1", passing("one")), ("r1", passing("two", 3))])
    ((_, _), (last, kept)) = events.read("r1", 0)
    events.write([], [("r1", "flow/a", 1)])
    assert events.read("r1", 0) == [(last, kept)]
    events.write([], [("r1", "flow/a", 3)])
    events.write([("r1", passing("three"))])
    ((position, _),) = events.read("r1", 0)
    assert position > last, "else who has read up to there would miss it"


def test_what_a_dead_driver_left_is_swept_away(events: PassingEvents, clock: Clock) -> None:
    events.write([("r1", passing("old"))])
    clock.now += FORGOTTEN_S + 1
    events.write([("r1", passing("new"))])
    events.sweep()
    assert [each.pieces[0].text for _, each in events.read("r1", 0)] == ["new"]


def test_forgotten_run_leaves_neither_events_nor_followers(store: DatabaseRunStore, events: PassingEvents) -> None:
    for run in ("r1", "r2"):
        store.save(RunEntry(run, "flow", "1", "running", "2025-01-01", "/base"))
        events.write([(run, passing("one"))])
    events.follow(["r1", "r2"])
    assert store.forget("r1")
    assert (events.read("r1", 0), len(events.read("r2", 0))) == ([], 1)
    assert events.find_followed(["r1", "r2"]) == {"r2"}


def test_copy_of_a_store_has_no_events(store: DatabaseRunStore, events: PassingEvents, tmp_path: Path) -> None:
    events.write([("r1", passing("one"))])
    events.follow(["r1"])
    with closing(open_store(tmp_path / "copy.db")) as target:
        copy_runs(store, target)
        copied = passing_events_of(target)
        assert copied is not None
        assert (copied.read("r1", 0), copied.find_followed(["r1"])) == ([], set())


def test_store_of_an_older_release_gets_the_tables(store: DatabaseRunStore, events: PassingEvents) -> None:
    """Those of SQLite come with whatever is missing; PostgreSQL takes the steps that are left."""
    if isinstance(store, SqliteRunStore):
        from agent_core.journal.sqlite import SqliteJournal

        with closing(SqliteJournal(store.path)) as journal:
            assert journal.runs() == []
    else:
        lay_out_as_before(store)
    assert events.find_followed(["r1"]) == set()
    events.follow(["r1"])
    assert events.find_followed(["r1"]) == {"r1"}


def lay_out_as_before(store: DatabaseRunStore) -> None:
    from engine_shim.store.database_postgres import LAYOUT, LAYOUTS, PostgresDatabase
    from utools.databases.postgres_database import PostgresDatabase as Server

    assert isinstance(store.database, PostgresDatabase)
    before = [each._replace(steps=each.steps[:-1]) if each is LAYOUT else each for each in LAYOUTS]
    server = Server(store.database.shared._url, before, patience=5)
    with closing(server):
        assert server.find_versions() == {}
        assert server.select("SELECT count(*) FROM rows") == [(0,)]
        assert server.find_versions()["runs"] == len(LAYOUT.steps) - 1
