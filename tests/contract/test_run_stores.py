"""What every run store must do, over every backend: entries, forgetting, and who drives which run."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import IO

import pytest

from agent_core.errors import JournalError
from agent_core.journal.record import chain_row, genesis
from agent_core.journal.sqlite import SqliteJournal
from engine_shim.store.driver_identity import new_driver, read_process
from engine_shim.store.entries import RunEntry, RunFilter
from engine_shim.store.leases import KEPT, RENEW_AFTER, TTL, Signal
from engine_shim.store.run_store import RunStore, SqliteRunStore
from engine_shim.store.run_store_memory import MemoryRunStore

ROOT = Path(__file__).parents[2]
NOON = 43_200.0
OTHER = "elsewhere:1:aa"


class Clock:
    """Wall-clock time as the tests have it; `meanwhile` happens once, when the time is read."""

    def __init__(self) -> None:
        self.now = NOON
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


def entry(run: str, started_at: str = "2025-01-01", status: str = "running") -> RunEntry:
    return RunEntry(run, "flow", "1", status, started_at, "/base")


def ended_driver() -> str:
    """The name of a driver whose process was here and has ended."""
    code = "from engine_shim.store.driver_identity import new_driver; print(new_driver())"
    return subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True).strip()


def journaled(store: RunStore, run: str) -> None:
    store.journal.append(run, [chain_row("flow", 0, genesis(run, "flow"), {"kind": "run_started"})])


# ── entries ──────────────────────────────────────────────────────────────────────────────────────


def test_entries_come_newest_first_and_one_for_each_run(store: RunStore) -> None:
    assert (store.entries(), store.entry("r1")) == ([], None)
    for made in (entry("r1", "2025-01-02"), entry("r3", "2025-01-01"), entry("r2", "2025-01-02")):
        store.save(made)
    store.save(entry("r1", "2025-01-02", "completed"))
    assert [(one.run, one.status) for one in store.entries()] == [
        ("r2", "running"), ("r1", "completed"), ("r3", "running")
    ]  # fmt: skip
    assert store.entry("r3") == entry("r3", "2025-01-01")


FILTERS = {
    "none": (RunFilter(), ["r4", "r3", "r2", "r1"]),
    "limit": (RunFilter(limit=2), ["r4", "r3"]),
    "statuses": (RunFilter(statuses=("failed", "waiting")), ["r3", "r2"]),
    "workflow": (RunFilter(workflow="other"), ["r4"]),
    "since": (RunFilter(since=datetime(2025, 1, 2, tzinfo=UTC)), ["r4", "r3", "r2"]),
    "another zone": (RunFilter(since=datetime(2025, 1, 2, 2, tzinfo=timezone(timedelta(hours=1)))), ["r4", "r3"]),
    "several": (RunFilter(("failed", "running"), "flow", datetime(2025, 1, 1, tzinfo=UTC), 1), ["r2"]),
}


@pytest.mark.parametrize(("chosen", "expected"), FILTERS.values(), ids=FILTERS)
def test_entries_are_chosen_by(store: RunStore, chosen: RunFilter, expected: list[str]) -> None:
    store.save(entry("r1", "2025-01-01T23:59:59.999Z"))
    store.save(entry("r2", "2025-01-02T00:00:00.000Z", "failed"))
    store.save(entry("r3", "2025-01-02T01:00:00.000Z", "waiting"))
    store.save(RunEntry("r4", "other", "1", "completed", "2025-01-03T00:00:00.000Z", "/base"))
    assert [one.run for one in store.entries(chosen)] == expected


def test_a_look_at_runs_finds_the_status_of_each_and_its_last_row(store: RunStore) -> None:
    for run in ("r1", "r2", "r3"):
        store.save(entry(run, status="pending" if run == "r2" else "running"))
    journaled(store, "r1")
    journaled(store, "r3")
    found = store.poll_status(["r1", "r2", "missing"])
    assert {run: status for run, (status, _) in found.items()} == {"r1": "running", "r2": "pending"}
    assert (found["r1"][1], found["r2"][1]) == (store.tail("r1")[-1][0], 0)
    assert store.poll_status([]) == {}


def test_status_that_comes_late_leaves_a_run_that_has_ended(store: RunStore) -> None:
    running = replace(entry("r"), records=3)
    store.save(running)
    store.save(replace(running, status="cancelled", records=5))
    store.save(replace(running, status="waiting"))  # by a driver that had read the status before
    store.save(replace(running, status="cancelled", records=6))
    found = store.entry("r")
    assert found is not None
    assert (found.status, found.records) == ("cancelled", 6)


def test_runs_of_a_host_are_counted_by_status(store: RunStore) -> None:
    for number, (status, host) in enumerate([("running", "ours"), ("running", ""), ("paused", "ours")] * 2):
        store.save(replace(entry(f"r{number}", status=status), host=host))
    store.save(replace(entry("others", status="running"), host="theirs"))
    store.save(replace(entry("ended", status="completed"), host="ours"))
    assert store.count_statuses("ours", ("running", "paused", "waiting")) == {"running": 4, "paused": 2}


def test_news_names_runs_with_rows_behind_a_position(store: RunStore) -> None:
    assert store.list_news(0) == {}
    for run in ("r1", "r2"):
        journaled(store, run)
    found = store.list_news(0)
    if isinstance(store, MemoryRunStore):
        assert found == {}, "all who write are in this process"
        return
    assert found == {run: store.tail(run)[-1][0] for run in ("r1", "r2")}
    assert store.list_news(found["r1"]) == {"r2": found["r2"]}
    assert store.list_news(found["r2"]) == {}


def test_due_runs_are_those_of_the_host_that_were_handed_in_and_wait(store: RunStore) -> None:
    about = {
        "late": ("waiting", "ours", "2025-01-01T00:00:02.000Z"),
        "early": ("waiting", "", "2025-01-01T00:00:01.000Z"),
        "later": ("waiting", "ours", "2025-01-01T00:00:09.000Z"),
        "others": ("waiting", "theirs", "2025-01-01T00:00:01.000Z"),
        "paused": ("paused", "ours", "2025-01-01T00:00:01.000Z"),
        "signal": ("waiting", "ours", None),
    }
    for run, (status, host, due) in about.items():
        store.save(replace(entry(run, status=status), host=host, submitter="ann"))
        store.save_due(run, due)
    store.save(entry("by hand", status="waiting"))
    store.save_due("by hand", "2025-01-01T00:00:01.000Z")
    assert store.list_due("ours", "2025-01-01T00:00:02.000Z") == ["early", "late"]
    assert (store.due("late"), store.due("signal"), store.due("missing")) == (about["late"][2], None, None)
    store.save_due("early", None)
    assert store.list_due("ours", "2025-01-01T00:00:02.000Z") == ["late"]
    store.forget("late")
    assert store.list_due("ours", "2025-01-01T00:00:02.000Z") == []


def test_runs_that_nobody_drives_are_those_of_the_host_that_were_handed_in_and_go_on(
    store: RunStore, clock: Clock, driver: str
) -> None:
    about = {
        "held": ("running", "ours"),
        "left": ("running", "ours"),
        "queued": ("pending", ""),
        "others": ("running", "theirs"),
        "ended": ("completed", "ours"),
        "local": ("running", "ours"),
    }
    for number, (run, (status, host)) in enumerate(about.items()):
        store.save(RunEntry(run, "flow", "1", status, f"2025-01-0{9 - number}", "/base", 0, host))
        if run != "local":
            store.save_submission(run, "ada")
    for run, holder in (("held", driver), ("left", ended_driver()), ("queued", "another-machine:1:token")):
        assert store.leases.acquire(run, holder) is None
    assert store.list_orphaned("ours") == ["left"]
    clock.now += TTL + 1
    assert store.list_orphaned("ours") == ["queued", "left", "held"]
    assert store.list_orphaned("theirs") == ["others", "queued"]


def test_a_time_that_nobody_can_read_hides_no_entry(store: RunStore) -> None:
    store.save(entry("r1", "once"))
    assert store.entries(RunFilter(since=datetime(2025, 1, 1, tzinfo=UTC))) == [entry("r1", "once")]


def test_runs_are_found_by_a_beginning_of_their_id_whether_listed_or_only_journaled(store: RunStore) -> None:
    assert store.find("", limit=5) == []
    for run in ("ab", "b", "%"):
        store.save(entry(run))
    for run in ("a", "ab", "abc"):
        journaled(store, run)
    assert [store.find("a", limit=5), store.find("a", limit=2)] == [["a", "ab", "abc"], ["a", "ab"]]
    assert [store.find("%", limit=5), store.find("c", limit=5)] == [["%"], []]


def test_first_parent_of_a_runs_spans_stays_until_the_run_is_forgotten(store: RunStore) -> None:
    journaled(store, "r1")
    assert store.trace("r1") is None
    for parent in ("first", "second"):
        store.save_trace("r1", parent)
    assert (store.trace("r1"), store.trace("r2")) == ("first", None)
    store.forget("r1")
    assert store.trace("r1") is None


@pytest.mark.parametrize("rows", [True, False], ids=["journal", "no journal"])
@pytest.mark.parametrize("listed", [True, False], ids=["entry", "no entry"])
def test_a_forgotten_run_leaves_nothing_and_the_others_stay(store: RunStore, rows: bool, listed: bool) -> None:
    for run in ("r1", "r2"):
        if rows or run == "r2":
            journaled(store, run)
        if listed or run == "r2":
            store.save(entry(run))
    assert store.forget("r1") is (rows or listed)
    assert (store.journal.runs(), store.entries()) == (["r2"], [entry("r2")])
    assert store.forget("r1") is False


def test_a_store_that_was_closed_opens_again_at_its_next_use(store: RunStore, driver: str) -> None:
    store.save(entry("r1"))
    store.leases.acquire("r1", driver)
    store.close()
    assert store.entry("r1") == entry("r1")
    assert store.leases.holder("r1") == driver
    store.close()
    store.close()


def test_threads_share_a_store(store: RunStore, driver: str) -> None:
    def use(n: int) -> str | None:
        store.save(entry(f"r{n}"))
        return store.leases.acquire("r", f"elsewhere:{n}:t")

    with ThreadPoolExecutor(8) as threads:
        told = list(threads.map(use, range(40)))
    assert len(store.entries()) == 40
    assert told.count(None) == 1
    assert {name for name in told if name} == {f"elsewhere:{told.index(None)}:t"} == {store.leases.holder("r")}


# ── leases ───────────────────────────────────────────────────────────────────────────────────────


def test_a_rival_is_refused_and_told_who_has_the_run(store: RunStore, driver: str) -> None:
    assert store.leases.holder("r1") is None
    assert store.leases.acquire("r1", driver) is None
    assert store.leases.acquire("r1", driver) is None
    assert store.leases.acquire("r1", OTHER) == driver
    assert store.leases.acquire("r2", OTHER) is None
    assert (store.leases.holder("r1"), store.leases.holder("r2")) == (driver, OTHER)


def test_those_of_many_runs_are_told_that_living_drivers_hold(store: RunStore, driver: str, clock: Clock) -> None:
    for run, holder in (("r1", driver), ("r2", OTHER), ("r3", driver)):
        store.leases.acquire(run, holder)
    store.leases.release("r3", driver)
    assert store.leases.held(["r1", "r2", "r3", "missing"]) == {"r1", "r2"}
    assert store.leases.held([]) == set()
    clock.now += TTL + 1
    assert store.leases.held(["r1", "r2"]) == set()


def test_two_drivers_of_one_process_are_rivals_too(store: RunStore) -> None:
    first, second = new_driver(), new_driver()
    assert store.leases.acquire("r1", first) is None
    assert store.leases.acquire("r1", second) == first


def test_only_its_own_lease_is_released(store: RunStore, driver: str) -> None:
    store.leases.acquire("r1", driver)
    store.leases.release("r1", OTHER)
    assert store.leases.acquire("r1", OTHER) == driver
    store.leases.release("r1", driver)
    assert store.leases.holder("r1") is None
    assert store.leases.acquire("r1", OTHER) is None
    store.leases.release("r1", driver)
    assert store.leases.holder("r1") == OTHER


def test_a_lease_that_is_not_renewed_goes_over_after_a_while(store: RunStore, clock: Clock, driver: str) -> None:
    store.leases.acquire("r1", driver)
    clock.now += TTL - 0.1
    assert store.leases.acquire("r1", OTHER) == driver
    clock.now += 0.1
    assert store.leases.holder("r1") is None
    assert store.leases.signal("r1", "cancel") is False
    assert store.leases.acquire("r1", OTHER) is None
    assert store.leases.holder("r1") == OTHER


def test_renewing_keeps_a_lease_for_as_long_as_it_is_done(store: RunStore, clock: Clock, driver: str) -> None:
    for run in ("kept", "left"):
        store.leases.acquire(run, driver)
    for _ in range(200):
        clock.now += 0.25
        assert store.leases.renew(driver, ["kept"]) == {}
        assert store.leases.acquire("kept", OTHER) == driver
    assert store.leases.acquire("left", OTHER) is None


@pytest.mark.parametrize("age", [0.0, RENEW_AFTER - 0.1, RENEW_AFTER, TTL - 0.1, TTL])
def test_a_renewed_lease_is_kept_for_a_while_at_least_however_old_it_was(
    store: RunStore, clock: Clock, driver: str, age: float
) -> None:
    store.leases.acquire("r1", driver)
    clock.now += age
    assert store.leases.renew(driver, ["r1"]) == {}
    clock.now += KEPT - 0.1
    assert store.leases.acquire("r1", OTHER) == driver


def test_leases_taken_at_different_times_are_all_renewed(store: RunStore, clock: Clock, driver: str) -> None:
    runs: list[str] = []
    for n in range(80):
        runs.append(f"r{n}")
        store.leases.acquire(runs[-1], driver)
        clock.now += 0.75
        assert store.leases.renew(driver, runs) == {}
    assert [store.leases.holder(run) for run in runs] == [driver] * 80


def test_a_late_driver_keeps_its_lease_when_nobody_took_it(store: RunStore, clock: Clock, driver: str) -> None:
    store.leases.acquire("r1", driver)
    clock.now += 100 * TTL
    assert store.leases.renew(driver, ["r1"]) == {}
    assert store.leases.acquire("r1", OTHER) == driver


def test_a_driver_whose_lease_went_over_is_told_that_it_lost(store: RunStore, clock: Clock, driver: str) -> None:
    for run in ("r1", "r2", "r3"):
        store.leases.acquire(run, driver)
    clock.now += TTL
    store.leases.acquire("r1", OTHER)
    store.leases.acquire("r2", OTHER)
    store.leases.release("r2", OTHER)
    assert store.leases.renew(driver, ["r1", "r2", "r3", "never leased"]) == {
        "r1": "lost", "r2": "lost", "never leased": "lost"
    }  # fmt: skip
    assert [store.leases.holder(run) for run in ("r1", "r2", "r3")] == [OTHER, None, driver]
    store.leases.release("r1", driver)
    assert store.leases.holder("r1") == OTHER


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


def test_a_lease_from_before_the_clock_went_back_goes_over(store: RunStore, clock: Clock, driver: str) -> None:
    store.leases.acquire("r1", driver)
    clock.now -= 0.5
    assert store.leases.holder("r1") is None
    assert store.leases.acquire("r1", OTHER) is None


def test_a_driver_that_renews_after_the_clock_went_back_keeps_its_lease(
    store: RunStore, clock: Clock, driver: str
) -> None:
    store.leases.acquire("r1", driver)
    clock.now -= 3600
    assert store.leases.renew(driver, ["r1"]) == {}
    assert store.leases.acquire("r1", OTHER) == driver


def test_the_lease_of_a_process_that_ended_goes_over_at_once(store: RunStore, driver: str) -> None:
    ended = ended_driver()
    assert store.leases.acquire("r1", ended) is None
    assert store.leases.acquire("r2", ended) is None
    assert store.leases.holder("r1") is None
    assert store.leases.held(["r1", "r2"]) == set()
    assert store.leases.signal("r1", "cancel") is False
    assert store.leases.acquire("r1", driver) is None
    assert store.leases.held(["r1", "r2"]) == {"r1"}


def test_the_lease_of_a_process_whose_id_another_one_has_by_now_goes_over_at_once(store: RunStore, driver: str) -> None:
    own = read_process(driver)
    assert own is not None
    before = driver.replace(f":{own.start}:", f":{int(own.start) - 1}:")
    assert store.leases.acquire("r1", before) is None
    assert store.leases.holder("r1") is None
    assert store.leases.acquire("r1", driver) is None


ELSEWHERE: dict[str, Callable[[str], str]] = {
    "in another PID namespace of a machine and a host name that are the same": lambda name: _renamed(name, 3, "1"),
    "on another machine with the same host name": lambda name: _renamed(name, 4, f"{0:08}-0000-0000-0000-{0:012}"),
    "on another host": lambda name: _renamed(name, 0, "elsewhere").replace(name.split(":")[4], f"{1:036}"),
    "of an older release on this host": lambda name: ":".join([*name.split(":")[:2], "aabbccdd"]),
    "of a name that nobody can read": lambda name: name.replace(":", "/"),
}


def _renamed(name: str, part: int, to: str) -> str:
    parts = name.split(":")
    return ":".join([*parts[:part], to, *parts[part + 1 :]])


@pytest.mark.parametrize("elsewhere", ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_process_that_cannot_be_seen_from_here_keeps_its_lease_for_its_time(
    store: RunStore, clock: Clock, driver: str, elsewhere: Callable[[str], str]
) -> None:
    holder = elsewhere(ended_driver())
    store.save(entry("r1"))
    store.save_submission("r1", "ada")
    assert store.leases.acquire("r1", holder) is None
    assert store.leases.acquire("r1", driver) == holder
    assert (store.leases.holder("r1"), store.leases.held(["r1"]), store.list_orphaned("")) == (holder, {"r1"}, [])
    clock.now += TTL
    assert (store.leases.holder("r1"), store.leases.held(["r1"]), store.list_orphaned("")) == (None, set(), ["r1"])
    assert store.leases.acquire("r1", driver) is None


# ── signals ───────────────────────────────────────────────────────────────────────────────────────


def test_a_signal_reaches_the_driver_of_its_run_alone(store: RunStore, driver: str) -> None:
    for run in ("r1", "r2", "r3"):
        store.leases.acquire(run, driver)
    store.leases.acquire("r4", OTHER)
    assert store.leases.signal("r1", "pause") is True
    assert store.leases.signal("r2", "cancel") is True
    assert store.leases.renew(OTHER, ["r4"]) == {}
    assert store.leases.renew(OTHER, ["r1", "r4"]) == {"r1": "lost"}
    for _ in range(2):
        assert store.leases.renew(driver, ["r1", "r2", "r3"]) == {"r1": "pause", "r2": "cancel"}
    assert store.leases.renew(driver, ["r3", "r2"]) == {"r2": "cancel"}
    assert store.leases.renew(driver, []) == {}


def test_a_signal_to_a_run_that_nobody_drives_leaves_nothing(store: RunStore, driver: str) -> None:
    assert store.leases.signal("r1", "cancel") is False
    store.leases.acquire("r1", driver)
    assert store.leases.renew(driver, ["r1"]) == {}


SIGNALS: list[tuple[Signal, Signal]] = [
    ("message", "message"),
    ("pause", "pause"),
    ("message", "pause"),
    ("cancel", "cancel"),
    ("pause", "cancel"),
    ("message", "cancel"),
]


def test_neither_a_message_nor_a_pause_takes_back_what_is_stronger(store: RunStore, driver: str) -> None:
    store.leases.acquire("r1", driver)
    for sent, expected in SIGNALS:
        assert store.leases.signal("r1", sent) is True
        assert store.leases.renew(driver, ["r1"]) == {"r1": expected}


def test_a_signal_outlives_renewals_and_acquiring_again(store: RunStore, clock: Clock, driver: str) -> None:
    store.leases.acquire("r1", driver)
    store.leases.signal("r1", "cancel")
    clock.now += TTL - 1
    assert store.leases.renew(driver, ["r1"]) == {"r1": "cancel"}
    clock.now += TTL - 1
    store.leases.acquire("r1", driver)
    assert store.leases.renew(driver, ["r1"]) == {"r1": "cancel"}


def test_a_released_run_is_acquired_without_its_old_signal(store: RunStore, driver: str) -> None:
    store.leases.acquire("r1", driver)
    store.leases.signal("r1", "cancel")
    store.leases.release("r1", driver)
    store.leases.acquire("r1", driver)
    assert store.leases.renew(driver, ["r1"]) == {}


def test_a_run_that_is_taken_over_comes_without_its_old_signal(store: RunStore, clock: Clock, driver: str) -> None:
    store.leases.acquire("r1", driver)
    store.leases.signal("r1", "pause")
    clock.now += TTL
    store.leases.acquire("r1", OTHER)
    assert store.leases.renew(OTHER, ["r1"]) == {}


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
            with pytest.raises(JournalError, match=r"runs\.db cannot be used as a run store: .*locked; choose another"):
                store.leases.acquire("r2", driver)
            assert store.leases.holder("r1") == driver, "readers need not wait"
            other.rollback()
        assert store.leases.acquire("r2", driver) is None


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
