"""Runs that only the journal of a store holds are found, however far a look has gone before."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_core.errors import JournalError
from agent_core.journal.record import chain_row, genesis
from agent_core.journal.sqlite import SqliteJournal
from engine_shim.store import journal_runs
from engine_shim.store.conversations import list_newest_turns
from engine_shim.store.database import Database
from engine_shim.store.entries import RunEntry, RunFilter
from engine_shim.store.journal_runs import SLACK, JournalRuns, list_runs
from engine_shim.store.run_store import DatabaseRunStore, SqliteRunStore
from engine_shim.store.search import RunQuery, RunSearch

POSTGRES = pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))
Open = Callable[[], DatabaseRunStore]


@pytest.fixture(params=["sqlite", POSTGRES])
def open_again(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens one store, again and again."""
    if request.param == "sqlite":
        yield lambda: SqliteRunStore(tmp_path / "runs.db")
        return
    url = request.getfixturevalue("new_database")()
    from engine_shim.store.run_store_postgres import PostgresRunStore

    yield lambda: PostgresRunStore(url)


@pytest.fixture
def store(open_again: Open) -> Iterator[DatabaseRunStore]:
    with closing(open_again()) as made:
        yield made


def begin(store: DatabaseRunStore, run: str, rows: int = 1) -> None:
    """Give an agent's own run its rows."""
    written, previous = [], genesis(run, "agent")
    for n in range(rows):
        body = {"kind": "run_started", "loop": "agent", "at": "2026-01-01T00:00:00Z"} if n == 0 else {"kind": "asked"}
        written.append(chain_row("agent", n, previous, body))
        previous = written[-1].hash
    store.journal.append(run, written)


def enter(store: DatabaseRunStore, run: str) -> None:
    store.save(RunEntry(run, "flow", "1", "running", "2026-01-02T00:00:00Z", "/base"))


def found_by(store: DatabaseRunStore, *, notes: bool = True) -> list[str]:
    with store.database.open_reader() as reader:
        return sorted(each.entry.run for each in JournalRuns(store, notes=notes).find(reader))


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Each look through all of a journal."""
    seen: list[None] = []
    look_through = JournalRuns._look_through

    def look(self: JournalRuns, database: Database) -> set[str]:
        seen.append(None)
        return look_through(self, database)

    monkeypatch.setattr(JournalRuns, "_look_through", look)
    return seen


def test_later_readers_go_on_from_what_was_noted(store: DatabaseRunStore, open_again: Open, looks: list[None]) -> None:
    begin(store, "own-1")
    enter(store, "listed")
    assert found_by(store) == ["own-1"]
    begin(store, "own-2")
    with closing(open_again()) as other:
        assert found_by(other, notes=False) == ["own-1", "own-2"]
    assert len(looks) == 1


def test_run_far_behind_the_note_is_found(store: DatabaseRunStore, looks: list[None]) -> None:
    begin(store, "own-1", rows=3)
    assert found_by(store) == ["own-1"]
    begin(store, "many", rows=3 * SLACK)
    begin(store, "own-2")
    begin(store, "after", rows=2 * SLACK)
    assert found_by(store) == ["after", "many", "own-1", "own-2"]
    assert len(looks) == 1


def test_note_follows_where_many_rows_came(store: DatabaseRunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_runs, "NOTED_AFTER", 5)
    begin(store, "own-1")
    found_by(store)
    (first,) = store.database.rows("journal_mark", "SELECT seq FROM journal_mark")
    begin(store, "own-2", rows=4)
    found_by(store)
    assert store.database.rows("journal_mark", "SELECT seq FROM journal_mark") == [first]
    begin(store, "own-3", rows=2)
    found_by(store)
    ((second,),) = store.database.rows("journal_mark", "SELECT seq FROM journal_mark")
    assert second == first[0] + 6
    assert [run for (run,) in store.database.rows("journal_runs", "SELECT run FROM journal_runs ORDER BY run")] == [
        "own-1",
        "own-2",
        "own-3",
    ]


def test_run_that_is_entered_or_deleted_later_is_none_of_them(store: DatabaseRunStore) -> None:
    for run in ("own-1", "own-2", "own-3"):
        begin(store, run)
    assert found_by(store) == ["own-1", "own-2", "own-3"]
    enter(store, "own-1")
    store.journal.delete("own-2")
    assert found_by(store) == ["own-3"]


def test_all_is_looked_through_where_the_noted_row_is_gone(store: DatabaseRunStore, looks: list[None]) -> None:
    begin(store, "own-1")
    begin(store, "own-2")
    assert found_by(store) == ["own-1", "own-2"]
    store.journal.delete("own-2")
    begin(store, "own-3")  # in SQLite it has the number of the row that is gone
    assert found_by(store) == ["own-1", "own-3"]
    assert len(looks) == 2


@pytest.mark.parametrize("is_same_process", [True, False])
def test_all_is_looked_through_once_a_day(
    store: DatabaseRunStore, looks: list[None], monkeypatch: pytest.MonkeyPatch, is_same_process: bool
) -> None:
    """However often it was noted in between how far the looks at what is newer went."""
    now = 1_800_000_000.0
    monkeypatch.setattr(journal_runs.time, "time", lambda: now)
    monkeypatch.setattr(journal_runs, "NOTED_AFTER", 1)
    reader = JournalRuns(store, notes=True)
    for hour in range(26):
        begin(store, f"own-{hour:02}")
        with store.database.open_reader() as database:
            found = (reader if is_same_process else JournalRuns(store, notes=True)).find(database)
        assert len(found) == hour + 1
        assert len(looks) == (1 if hour < 24 else 2), hour
        now += 3600


def test_list_has_them_in_their_place_and_with_their_status(store: DatabaseRunStore) -> None:
    enter(store, "listed")
    begin(store, "own")
    row = chain_row("agent", 0, genesis("odd", "agent"), {"kind": "run_started"})
    store.journal.append("odd", [row])
    assert [(each.run, each.status) for each in list_runs(store)] == [
        ("listed", "running"),
        ("own", "unfinished"),
        ("odd", "unreadable"),
    ]
    assert [each.run for each in list_runs(store, RunFilter(limit=2))] == ["listed", "own"]
    assert [each.run for each in list_runs(store, RunFilter(statuses=("unfinished",)))] == ["own"]
    assert [each.run for each in RunSearch(store).find(RunQuery(RunFilter(limit=2))).entries] == ["listed", "own"]


def test_journal_that_is_no_store_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "own.db"
    with closing(SqliteJournal(path)) as journal:
        body = {"kind": "run_started", "loop": "agent", "at": "2026-01-01T00:00:00Z"}
        journal.append("own", [chain_row("agent", 0, genesis("own", "agent"), body)])
    with closing(SqliteRunStore(path)) as store:
        assert [each.run for each in list_runs(store)] == ["own"]


def test_command_that_lists_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with closing(SqliteRunStore(path)) as store:
        begin(store, "own")
    before = path.read_bytes()
    with closing(SqliteRunStore(path)) as store:
        assert [each.run for each in list_runs(store)] == ["own"]
    assert path.read_bytes() == before


def test_store_that_takes_no_note_is_read(store: DatabaseRunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(store, "own")

    def refuse(subject: str | None = None) -> Any:
        raise JournalError("this file is read-only")

    monkeypatch.setattr(store.database, "writing", refuse)
    assert found_by(store) == ["own"]


def test_newest_turns_are_the_same_from_the_newest_runs_as_from_all(
    store: DatabaseRunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        at = f"2026-01-01T00:00:{number:02}Z"
        store.save(
            RunEntry(f"r{number}", "clerk", "1", "completed", at, "", agent="clerk", conversation=f"c{number % 4}")
        )
    recent = list_newest_turns(store.database, 3)
    assert [each.conversation for each in recent] == ["c3", "c2", "c1"]
    assert list_newest_turns(store.database, 9) == [*recent, ("c0", "clerk", "2026-01-01T00:00:08Z")]
