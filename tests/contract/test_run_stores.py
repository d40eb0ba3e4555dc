"""What every run store must do, over every backend: entries, forgetting, and who drives which run."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import IO

import pytest

from agent_core.errors import JournalError
from agent_core.journal.record import chain_row, genesis
from agent_core.journal.sqlite import SqliteJournal
from agent_core.testing.contracts.rules import Rule
from engine_shim.store.driver_identity import new_driver
from engine_shim.store.leases import TTL
from engine_shim.store.run_store import RunStore, SqliteRunStore
from engine_shim.store.run_store_memory import MemoryRunStore
from engine_shim.testing.contracts.entry_rules import RULES_OF_SHARED_STORES
from engine_shim.testing.contracts.run_store import RUN_STORE_RULES
from engine_shim.testing.contracts.samples import NOON, OTHER, ManualClock, entry, journaled

ROOT = Path(__file__).parents[2]


class Clock(ManualClock):
    """A time that is set by hand; `meanwhile` happens once, when it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], object] | None = None

    def __call__(self) -> float:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return self.now


Make = Callable[[Path, Clock], RunStore]
BACKENDS: dict[str, Make] = {
    "memory": lambda path, clock: MemoryRunStore(clock=clock),
    "sqlite": lambda path, clock: SqliteRunStore(path, clock=clock),
}


@pytest.fixture
def clock() -> Clock:
    return Clock()


POSTGRES = pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))


@pytest.fixture(params=[*BACKENDS, POSTGRES])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[RunStore]:
    if request.param == "postgres":
        new_database = request.getfixturevalue("new_database")
        from engine_shim.store.run_store_postgres import PostgresRunStore

        with closing(PostgresRunStore(new_database(), clock=clock)) as made:
            yield made
        return
    with closing(BACKENDS[request.param](tmp_path / "runs.db", clock)) as made:
        yield made


@pytest.fixture
def opened(tmp_path: Path, clock: Clock) -> Iterator[Callable[[], SqliteRunStore]]:
    """Opens one more store on the same file."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(SqliteRunStore(tmp_path / "runs.db", clock=clock)))


@pytest.fixture
def driver() -> str:
    return new_driver()


@pytest.mark.parametrize("rule", RUN_STORE_RULES, ids=str)
def test_every_store_keeps_to_the_contract(store: RunStore, clock: Clock, rule: Rule) -> None:
    rule.check(store, clock)


@pytest.mark.parametrize("store", ["sqlite", POSTGRES], indirect=True)
@pytest.mark.parametrize("rule", RULES_OF_SHARED_STORES, ids=str)
def test_a_store_that_others_write_to_has_news(store: RunStore, clock: Clock, rule: Rule) -> None:
    rule.check(store, clock)


def test_a_store_of_this_process_has_no_news(clock: Clock) -> None:
    store = MemoryRunStore(clock=clock)
    journaled(store, "r1")
    assert store.list_news(0) == {}


# ── leases ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("store", ["sqlite", POSTGRES], indirect=True)
def test_a_lease_that_is_taken_while_it_is_renewed_is_lost(store: RunStore, clock: Clock, driver: str) -> None:
    for run in ("r1", "r2"):
        store.leases.acquire(run, driver)
    clock.now += TTL
    clock.meanwhile = lambda: store.leases.acquire("r1", OTHER)
    assert store.leases.renew(driver, ["r1", "r2"]) == {"r1": "lost"}
    assert (store.leases.holder("r1"), store.leases.holder("r2")) == (OTHER, driver)


@pytest.mark.parametrize("store", [POSTGRES], indirect=True)
def test_a_lease_that_is_renewed_while_it_is_taken_is_kept(store: RunStore, clock: Clock, driver: str) -> None:
    store.leases.acquire("r1", driver)
    clock.now += TTL
    clock.meanwhile = lambda: store.leases.renew(driver, ["r1"])
    assert store.leases.acquire("r1", OTHER) == driver
    assert store.leases.holder("r1") == driver


# ── SQLite ───────────────────────────────────────────────────────────────────────────────────────


def test_reading_makes_no_file(opened: Callable[[], SqliteRunStore], tmp_path: Path, driver: str) -> None:
    store = opened()
    assert (store.entries(), store.entry("r1"), store.forget("r1")) == ([], None, False)
    assert (store.leases.holder("r1"), store.leases.signal("r1", "pause")) == (None, False)
    assert store.leases.renew(driver, ["r1"]) == {"r1": "lost"}
    assert not list(tmp_path.iterdir())


def test_a_lease_makes_the_file_and_its_folders_for_the_owner_alone(tmp_path: Path, driver: str) -> None:
    path = tmp_path / "deep" / "er" / "runs.db"
    with closing(SqliteRunStore(path)) as store:
        store.leases.acquire("r1", driver)
        assert [stat.S_IMODE(file.stat().st_mode) & 0o077 for file in path.parent.iterdir()] == [0] * 3


def test_an_older_store_gets_what_it_lacks_when_it_is_first_needed(
    opened: Callable[[], SqliteRunStore], tmp_path: Path, driver: str
) -> None:
    with closing(SqliteRunStore(tmp_path / "runs.db")) as older:
        older.save(entry("r1"))
        journaled(older, "r1")
    with closing(sqlite3.connect(tmp_path / "runs.db")) as db:
        db.execute("DROP TABLE run_claims")
        db.execute("DROP TABLE run_traces")
    store = opened()
    assert store.trace("r1") is None
    store.save_trace("r1", "parent")
    assert store.trace("r1") == "parent"
    assert (store.leases.holder("r1"), store.leases.signal("r1", "pause")) == (None, False)
    assert store.leases.acquire("r1", driver) is None
    assert (store.entries(), store.journal.runs()) == ([entry("r1")], ["r1"])


def test_a_file_with_a_journal_alone_is_a_store(
    opened: Callable[[], SqliteRunStore], tmp_path: Path, driver: str
) -> None:
    with closing(SqliteJournal(tmp_path / "runs.db")) as journal:
        journal.append("r1", [chain_row("flow", 0, genesis("r1", "flow"), {"kind": "run_started"})])
    store = opened()
    assert (store.entries(), store.leases.holder("r1")) == ([], None)
    assert store.leases.acquire("r1", driver) is None
    assert store.forget("r1") is True


def test_asking_for_signals_writes_every_few_seconds_only(
    opened: Callable[[], SqliteRunStore], tmp_path: Path, clock: Clock, driver: str
) -> None:
    store, runs = opened(), [f"r{n}" for n in range(100)]
    for run in runs:
        store.leases.acquire(run, driver)
        clock.now += 0.01
    with closing(sqlite3.connect(tmp_path / "runs.db")) as other:
        versions = []
        for _ in range(120):
            clock.now += 0.25
            assert store.leases.renew(driver, runs) == {}
            versions.append(other.execute("PRAGMA data_version").fetchone())
    assert 2 <= len(set(versions)) <= 10, "30 s of renewals, with one write for all runs each time"


def test_a_locked_file_is_told_and_the_lease_can_be_made_later(tmp_path: Path, driver: str) -> None:
    path = tmp_path / "runs.db"
    with closing(SqliteRunStore(path, patience=0.2)) as store:
        store.leases.acquire("r1", driver)
        with closing(sqlite3.connect(path)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(
                JournalError, match=r"runs\.db cannot be used as a run store: .*locked; another process"
            ):
                store.leases.acquire("r2", driver)
            assert store.leases.holder("r1") == driver, "readers need not wait"
            other.rollback()
        assert store.leases.acquire("r2", driver) is None


def fill_disk(store: SqliteRunStore) -> None:
    with store.database.writing() as db:
        db.execute("PRAGMA max_page_count = 1")
        db.execute("CREATE TABLE large AS SELECT zeroblob(1000000)")


def test_a_full_disk_is_told_with_what_to_do(tmp_path: Path) -> None:
    full = pytest.raises(JournalError, match=r"runs\.db cannot be used .* is full; make room on the disk")
    with closing(SqliteRunStore(tmp_path / "runs.db")) as store, full:
        fill_disk(store)


def test_a_file_of_something_else_is_refused(opened: Callable[[], SqliteRunStore], tmp_path: Path) -> None:
    (tmp_path / "runs.db").write_text("Dear diary,\n" * 200)
    for use in (lambda: opened().entries(), lambda: opened().leases.acquire("r1", OTHER)):
        with pytest.raises(JournalError, match=r"runs\.db cannot be used as a run store: .*not a database"):
            use()
    assert (tmp_path / "runs.db").read_text() == "Dear diary,\n" * 200


CLAIMER = f"""
import sys
from pathlib import Path
from engine_shim.store.driver_identity import new_driver
from engine_shim.store.run_store import SqliteRunStore

store, driver = SqliteRunStore(Path(sys.argv[1]), clock=lambda: {NOON}), new_driver()
print(driver, flush=True)
for line in sys.stdin:
    print(store.leases.acquire(line.strip(), driver), flush=True)
store.close()
"""


class Claimer:
    """A process of its own that leases the runs it is told to."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-c", CLAIMER, str(path)]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.driver = self.heard()

    def ask(self, run: str) -> None:
        _pipe(self.process.stdin).write(run + "\n")

    def heard(self) -> str:
        return _pipe(self.process.stdout).readline().strip()


def _pipe(end: IO[str] | None) -> IO[str]:
    assert end is not None
    return end


@pytest.fixture
def claimer(tmp_path: Path) -> Iterator[Callable[[], Claimer]]:
    with ExitStack() as stack:

        def start() -> Claimer:
            made = Claimer(tmp_path / "runs.db")
            stack.enter_context(made.process)
            return made

        yield start


def test_the_lease_of_a_killed_process_goes_over_at_once(
    claimer: Callable[[], Claimer], opened: Callable[[], SqliteRunStore], driver: str
) -> None:
    victim, leases = claimer(), opened().leases
    victim.ask("r1")
    assert victim.heard() == "None"
    assert leases.acquire("r1", driver) == victim.driver
    assert leases.signal("r1", "cancel") is True
    os.kill(victim.process.pid, signal.SIGKILL)
    victim.process.wait()
    assert leases.holder("r1") is None
    assert leases.signal("r1", "cancel") is False
    assert leases.acquire("r1", driver) is None
    assert leases.renew(driver, ["r1"]) == {}


def test_of_two_processes_that_race_for_a_run_one_wins(
    claimer: Callable[[], Claimer], opened: Callable[[], SqliteRunStore]
) -> None:
    racers, wins = (claimer(), claimer()), []
    for n in range(300):
        for racer in racers:
            racer.ask(f"r{n}")
        told = [racer.heard() for racer in racers]
        assert told.count("None") == 1, "both or neither has it"
        winner = racers[told.index("None")].driver
        assert winner in told, "the loser is told another name"
        wins.append(winner)
    leases = opened().leases
    assert [leases.holder(f"r{n}") for n in range(300)] == wins
