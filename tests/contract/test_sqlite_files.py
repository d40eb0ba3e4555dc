"""SQLite files with tables of ours: made, migrated when they are older, refused when they are newer."""

import os
import re
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from agent_core.errors import JournalError
from agent_core.journal.record import chain_row, genesis
from agent_core.journal.sqlite import SqliteJournal
from agent_core.journal.sqlite_layout import LAYOUT as JOURNAL
from engine_shim.store.entries import RunEntry
from engine_shim.store.open import default_address
from engine_shim.store.run_store import SqliteRunStore
from utools.context.store import Summary
from utools.context.store_sqlite import LAYOUT as CONVERSATIONS
from utools.context.store_sqlite import SqliteContextStore, default_path
from utools.databases.sqlite_file import Layout, LayoutError, SqliteFile, find_foreign, version_of
from utools.errors import ToolError

ONE = Layout("box", (("CREATE TABLE things (name TEXT)",),), frozenset({"things"}))
TWO = replace(ONE, steps=(*ONE.steps, ("ALTER TABLE things ADD size INTEGER", "UPDATE things SET size = 1")))
TORN = replace(ONE, steps=(*ONE.steps, ("ALTER TABLE things ADD size INTEGER", "UPDATE absent SET size = 1")))


LATER_THAN_3_32 = re.compile(
    r"ON CONFLICT DO UPDATE|\b(RETURNING|MATERIALIZED|DROP COLUMN|HAVING)\b|->>|\biif\(|unixepoch"
)
"""What SQLite learned in 3.35 and later: systems in use have 3.34 (RHEL 9) and 3.37 (Ubuntu 22.04)."""


def opened(path: Path, layout: Layout = ONE) -> closing[SqliteFile]:
    return closing(SqliteFile(path, layout, busy_seconds=30.0))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file of version 1 with one thing in it."""
    path = tmp_path / "box.db"
    with opened(path) as file, file.writing() as db:
        db.execute("INSERT INTO things VALUES ('cup')")
    return path


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return [str(db.execute("PRAGMA user_version").fetchone()), *db.iterdump()]


def versions(path: Path) -> dict[str, int]:
    """The version of each layout in a file."""
    with closing(sqlite3.connect(path)) as db:
        return dict(db.execute("SELECT name, version FROM layouts"))


def test_reading_makes_no_file(tmp_path: Path) -> None:
    with opened(tmp_path / "box.db") as file:
        assert file.select("things", "SELECT * FROM things") == []
    assert list(tmp_path.iterdir()) == []


def test_connection_that_nobody_closed_is_closed_with_its_file(old: Path) -> None:
    file = SqliteFile(old, ONE, busy_seconds=30.0)
    with file.writing() as db:
        pass
    del file
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        db.execute("SELECT 1")


def test_new_file_is_the_owners_alone_and_says_what_it_is(old: Path) -> None:
    assert stat.S_IMODE(old.stat().st_mode) == 0o600
    assert versions(old) == {"box": 1}


WATCHED = """
import asyncio, os, stat, sys
from pathlib import Path
from utools.context.store_sqlite import SqliteContextStore

def watch(event, args):
    if event == "sqlite3.connect/handle":  # SQLite has opened the file, and nothing of ours has run since
        for file in Path(sys.argv[1]).iterdir():
            print(oct(stat.S_IMODE(file.stat().st_mode)))

os.umask(0)
sys.addaudithook(watch)
store = SqliteContextStore(Path(sys.argv[1], "context.db"))
asyncio.run(store.append("s", "1", [{"role": "user", "content": "x"}]))
"""


def test_new_file_is_never_anybody_elses(tmp_path: Path) -> None:
    """A process may die, or another one read, just after SQLite has made the file."""
    done = subprocess.run([sys.executable, "-c", WATCHED, tmp_path], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"0o600"}


def test_what_sqlite_puts_beside_the_file_is_the_owners_alone(tmp_path: Path) -> None:
    with opened(tmp_path / "box.db") as file, file.writing() as db:
        db.execute("INSERT INTO things VALUES ('cup')")
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
    assert modes == dict.fromkeys(("box.db", "box.db-wal", "box.db-shm"), 0o600)


def test_file_that_its_owner_shares_stays_shared(old: Path) -> None:
    old.chmod(0o660)
    with opened(old) as file, file.writing() as db:
        db.execute("INSERT INTO things VALUES ('pot')")
    assert stat.S_IMODE(old.stat().st_mode) == 0o660


@pytest.mark.parametrize("reads", [True, False])
def test_older_file_is_migrated_by_its_first_use(old: Path, reads: bool) -> None:
    with opened(old, TWO) as file:
        if not reads:
            with file.writing() as db:
                db.execute("INSERT INTO things VALUES ('pot', 2)")
        expected = [("cup", 1)] if reads else [("cup", 1), ("pot", 2)]
        assert file.select("things", "SELECT name, size FROM things") == expected
    assert versions(old) == {"box": 2}


USES: dict[str, Callable[[SqliteFile], object]] = {
    "read": lambda file: file.select("things", "SELECT * FROM things"),
    "write": lambda file: file.writing().__enter__(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_newer_file_is_refused_and_left_as_it_is(old: Path, use: Callable[[SqliteFile], object]) -> None:
    with opened(old, TWO) as file:
        file.select("things", "SELECT * FROM things")
    before = dump(old)
    with opened(old, ONE) as file, pytest.raises(LayoutError, match="has layout 2, this agent_core knows 1: use a new"):
        use(file)
    assert dump(old) == before


OTHERS = {
    "the id of another program": ["PRAGMA application_id = 7", "CREATE TABLE songs (name TEXT)"],
    "the version of another program": ["PRAGMA user_version = 7", "CREATE TABLE songs (name TEXT)"],
    "tables of another program": ["CREATE TABLE songs (name TEXT)"],
}


@pytest.mark.parametrize("statements", OTHERS.values(), ids=OTHERS)
def test_file_of_another_program_may_hold_our_tables_as_well(tmp_path: Path, statements: list[str]) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as db, db:
        for statement in [*statements, "INSERT INTO songs VALUES ('la')"]:
            db.execute(statement)
    before = dump(path)
    with opened(path) as file:
        assert file.select("things", "SELECT * FROM things") == []
        with file.writing() as db:
            db.execute("INSERT INTO things VALUES ('cup')")
        assert file.select("things", "SELECT * FROM things") == [("cup",)]
    assert set(before) <= set(dump(path))


def test_the_version_of_another_program_is_none_of_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as db, db:
        for statement in OTHERS["the version of another program"]:
            db.execute(statement)
    before = dump(path)
    with (
        closing(SqliteJournal(path)) as journal,
        pytest.raises(JournalError, match=r"other.db is another program's: it has the table songs; name another"),
    ):
        journal.runs()
    assert dump(path) == before


@pytest.mark.parametrize("before", ["PRAGMA user_version", "FROM sqlite_master"])
def test_a_journal_that_another_process_lays_out_meanwhile_is_no_other_program(old: Path, before: str) -> None:
    def lay_out(statement: str) -> None:
        if before in statement and JOURNAL.name not in versions(old):
            with closing(SqliteJournal(old)) as journal:
                journal.append("r", [chain_row("agent", 0, genesis("r", "agent"), {"kind": "run_started"})])

    with closing(sqlite3.connect(old)) as db:
        db.set_trace_callback(lay_out)
        assert version_of(db, old, JOURNAL) == versions(old)[JOURNAL.name]


@pytest.mark.parametrize("name", ["songs", "rows"])
def test_a_look_at_a_file_leaves_nothing_beside_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"CREATE TABLE {name} (name TEXT)")
    assert find_foreign(path) == {name} - {"rows"}
    assert list(tmp_path.iterdir()) == [path]
    os.mkfifo(tmp_path / "pipe")
    assert find_foreign(tmp_path / "pipe") == set()


def test_torn_migration_is_rolled_back(old: Path) -> None:
    before = dump(old)
    for _ in range(2):
        with opened(old, TORN) as file, pytest.raises(sqlite3.OperationalError, match="no such table: absent"):
            file.select("things", "SELECT * FROM things")
        assert dump(old) == before
    with opened(old, TWO) as file:
        assert file.select("things", "SELECT * FROM things") == [("cup", 1)]


def test_older_file_that_nobody_can_write_is_read_as_it_is(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("utools.databases.sqlite_file.is_writable", lambda path: False)
    before = dump(old)
    with opened(old, TWO) as file:
        assert file.select("things", "SELECT * FROM things") == [("cup",)]
    assert dump(old) == before


MIGRATE = """
import sys
from pathlib import Path
from dataclasses import replace
from utools.databases.sqlite_file import Layout, SqliteFile
steps = (("CREATE TABLE things (name TEXT)",), ("ALTER TABLE things ADD size INTEGER", "UPDATE things SET size = 1"))
file = SqliteFile(Path(sys.argv[1]), Layout("box", steps, frozenset({"things"})), busy_seconds=30.0)
sys.stdin.readline()
with file.writing() as db:
    db.execute("INSERT INTO things VALUES (?, 3)", (sys.argv[2],))
"""


@pytest.mark.parametrize("exists", [True, False], ids=["older", "new"])
def test_processes_that_migrate_a_file_at_once_do_so_once(tmp_path: Path, old: Path, exists: bool) -> None:
    path = old if exists else tmp_path / "new.db"
    names = [f"p{n}" for n in range(4)]
    command = [sys.executable, "-c", MIGRATE, str(path)]
    processes = [subprocess.Popen([*command, name], stdin=subprocess.PIPE, stderr=subprocess.PIPE) for name in names]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    assert [process.communicate(timeout=60)[1] for process in processes] == [b""] * 4
    with opened(path, TWO) as file:
        rows = file.select("things", "SELECT * FROM things ORDER BY name")
    assert rows == [*([("cup", 1)] if exists else []), *((name, 3) for name in names)]


# ── the files of before ──────────────────────────────────────────────────────────────────────────

OLD_RUNS = """CREATE TABLE workflow_runs (run TEXT PRIMARY KEY, workflow TEXT NOT NULL, version TEXT NOT NULL,
    status TEXT NOT NULL, started_at TEXT NOT NULL, base TEXT NOT NULL)"""
OLD_TURNS = """CREATE TABLE turns (place INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, turn TEXT NOT NULL,
    messages TEXT NOT NULL, UNIQUE (session, turn))"""


def test_journal_of_before_opens_and_does_not_change(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    row = chain_row("flow", 0, genesis("r", "flow"), {"kind": "run_started"})
    with closing(sqlite3.connect(path)) as db, db:
        for statement in JOURNAL.steps[0]:
            db.execute(statement)
        db.execute("INSERT INTO rows (run, strand, n, hash, data) VALUES ('r', 'flow', 0, ?, ?)", (row.hash, row.data))
        db.execute("PRAGMA user_version = 1")
    before = dump(path)
    with closing(SqliteJournal(path)) as journal:
        assert journal.load("r") == {"flow": [row]}
    assert dump(path) == before


def test_run_store_of_before_opens_with_all_that_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(OLD_RUNS)
        db.execute("INSERT INTO workflow_runs VALUES ('r', 'w', '1', 'pending', '2026-01-01', '.')")
    with closing(SqliteRunStore(path)) as store:
        assert store.entries() == [RunEntry("r", "w", "1", "pending", "2026-01-01", ".")]
        assert store.journal.runs() == []
        assert store.leases.acquire("r", "elsewhere:1:t") is None


async def test_conversations_of_before_open_with_all_that_is_in_them(tmp_path: Path) -> None:
    path = tmp_path / "context.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE sessions (session TEXT PRIMARY KEY, expires REAL)")
        db.execute(OLD_TURNS)
        db.execute("INSERT INTO turns (session, turn, messages) VALUES ('s', 't', '[]')")
    store = SqliteContextStore(path)
    assert await store.turns("s") == [[]]
    assert await store.append("s", "t2", []) is True
    assert await store.turns("s") == [[], []]
    await store.keep_summary("s", Summary(1, "one"))
    assert await store.summary("s") == Summary(1, "one")


async def test_runs_and_conversations_may_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "all.db"
    for _ in range(2):
        with closing(SqliteRunStore(path)) as store:
            store.save(RunEntry("r", "w", "1", "pending", "2026-01-01", "."))
            store.journal.append("r", [chain_row("flow", 0, genesis("r", "flow"), {"kind": "run_started"})])
            assert (len(store.entries()), store.journal.runs()) == (1, ["r"])
        conversations = SqliteContextStore(path)
        await conversations.append("s", "t", [])
        assert await conversations.turns("s") == [[]]
    assert versions(path) == {JOURNAL.name: JOURNAL.version, CONVERSATIONS.name: CONVERSATIONS.version}


async def test_newer_conversations_are_refused_beside_runs_that_are_known(tmp_path: Path) -> None:
    path = tmp_path / "all.db"
    await SqliteContextStore(path).append("s", "t", [])
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE layouts SET version = version + 1")
    with pytest.raises(ToolError, match="use a newer version"):
        await SqliteContextStore(path).turns("s")
    with closing(SqliteRunStore(path)) as store:
        store.save(RunEntry("r", "w", "1", "pending", "2026-01-01", "."))
        assert len(store.entries()) == 1


def test_run_store_may_be_in_the_file_of_another_program(tmp_path: Path) -> None:
    path = tmp_path / "songs.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA application_id = 4242")
        db.execute("CREATE TABLE songs (name TEXT)")
    with closing(SqliteRunStore(path)) as store:
        assert (store.entries(), store.journal.runs()) == ([], [])
        store.save(RunEntry("r", "w", "1", "pending", "2026-01-01", "."))
        assert len(store.entries()) == 1


# ── where they are ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.skipif(sys.platform != "linux", reason="where Linux keeps data")
@pytest.mark.parametrize(
    ("place", "name", "variable"),
    [(default_address, "runs.db", "AGENT_CORE_STORE"), (default_path, "context.db", "AGENT_CORE_CONTEXT_DB")],
    ids=["runs", "conversations"],
)
def test_files_are_in_the_users_data_directory_unless_the_environment_names_them(
    place: Callable[[], Path], name: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for known in ("XDG_DATA_HOME", variable):
        monkeypatch.delenv(known, raising=False)
    assert place() == Path.home() / ".local" / "share" / "agent-core" / name
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert place() == tmp_path / "agent-core" / name
    monkeypatch.setenv(variable, "here.db")
    assert place() == Path("here.db")


def test_statements_are_those_of_the_sqlite_that_systems_have() -> None:
    sources = [path for each in ("agent_core", "engine_shim", "utools") for path in Path(each).rglob("*.py")]
    statements = [path for path in sources if "postgres" not in path.name]
    assert len(statements) > 500
    assert [path for path in statements if LATER_THAN_3_32.search(path.read_text())] == []
