"""What every run store must do about its runs: entries, what is noted beside them, forgetting."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from agent_core.statuses import ListedStatus
from agent_core.testing.contracts.rules import rules_for_cases, rules_of
from engine_shim.store.driver_identity import new_driver
from engine_shim.store.entries import RunEntry, RunFilter
from engine_shim.store.leases import TTL
from engine_shim.store.run_store import RunStore
from engine_shim.testing.contracts.samples import ManualClock, ended_driver, entry, journaled

FILTERS: Final = {
    "none": (RunFilter(), ["r4", "r3", "r2", "r1"]),
    "limit": (RunFilter(limit=2), ["r4", "r3"]),
    "statuses": (RunFilter(statuses=("failed", "waiting")), ["r3", "r2"]),
    "workflow": (RunFilter(workflow="other"), ["r4"]),
    "since": (RunFilter(since=datetime(2025, 1, 2, tzinfo=UTC)), ["r4", "r3", "r2"]),
    "another zone": (RunFilter(since=datetime(2025, 1, 2, 2, tzinfo=timezone(timedelta(hours=1)))), ["r4", "r3"]),
    "several": (RunFilter(("failed", "running"), "flow", datetime(2025, 1, 1, tzinfo=UTC), 1), ["r2"]),
}
LEFT_BEHIND: Final = {
    "journal and entry": (True, True),
    "a journal alone": (True, False),
    "an entry alone": (False, True),
    "neither": (False, False),
}


def entries_come_newest_first_and_one_for_each_run(store: RunStore, clock: ManualClock) -> None:
    assert (store.entries(), store.entry("r1")) == ([], None)
    for made in (entry("r1", "2025-01-02"), entry("r3", "2025-01-01"), entry("r2", "2025-01-02")):
        store.save(made)
    store.save(entry("r1", "2025-01-02", "completed"))
    assert [(one.run, one.status) for one in store.entries()] == [
        ("r2", "running"), ("r1", "completed"), ("r3", "running")
    ]  # fmt: skip
    assert store.entry("r3") == entry("r3", "2025-01-01")


def entries_are_chosen_by(store: RunStore, case: tuple[RunFilter, list[str]], clock: ManualClock) -> None:
    chosen, expected = case
    store.save(entry("r1", "2025-01-01T23:59:59.999Z"))
    store.save(entry("r2", "2025-01-02T00:00:00.000Z", "failed"))
    store.save(entry("r3", "2025-01-02T01:00:00.000Z", "waiting"))
    store.save(RunEntry("r4", "other", "1", "completed", "2025-01-03T00:00:00.000Z", "/base"))
    assert [one.run for one in store.entries(chosen)] == expected


def a_look_at_runs_finds_the_status_of_each_and_its_last_row(store: RunStore, clock: ManualClock) -> None:
    for run in ("r1", "r2", "r3"):
        store.save(entry(run, status="pending" if run == "r2" else "running"))
    journaled(store, "r1")
    journaled(store, "r3")
    found = store.poll_status(["r1", "r2", "missing"])
    assert {run: status for run, (status, _) in found.items()} == {"r1": "running", "r2": "pending"}
    assert (found["r1"][1], found["r2"][1]) == (store.tail("r1")[-1][0], 0)
    assert store.poll_status([]) == {}


def status_that_comes_late_leaves_a_run_that_has_ended(store: RunStore, clock: ManualClock) -> None:
    running = replace(entry("r"), records=3)
    store.save(running)
    store.save(replace(running, status="cancelled", records=5))
    store.save(replace(running, status="waiting"))  # by a driver that had read the status before
    late = store.entry("r")
    assert late is not None
    assert (late.status, late.records) == ("cancelled", 5)
    store.save(replace(running, status="cancelled", records=6))
    found = store.entry("r")
    assert found is not None
    assert (found.status, found.records) == ("cancelled", 6)


def runs_of_a_host_are_counted_by_status(store: RunStore, clock: ManualClock) -> None:
    about: list[tuple[ListedStatus, str]] = [("running", "ours"), ("running", ""), ("paused", "ours")]
    for number, (status, host) in enumerate(about * 2):
        store.save(replace(entry(f"r{number}", status=status), host=host))
    store.save(replace(entry("others", status="running"), host="theirs"))
    store.save(replace(entry("ended", status="completed"), host="ours"))
    assert store.count_statuses("ours", ("running", "paused", "waiting")) == {"running": 4, "paused": 2}


def news_names_runs_with_rows_behind_a_position(store: RunStore, clock: ManualClock) -> None:
    assert store.list_news(0) == {}
    for run in ("r1", "r2"):
        journaled(store, run)
    found = store.list_news(0)
    assert found == {run: store.tail(run)[-1][0] for run in ("r1", "r2")}
    assert store.list_news(found["r1"]) == {"r2": found["r2"]}
    assert store.list_news(found["r2"]) == {}


def due_runs_are_those_of_the_host_that_were_handed_in_and_wait(store: RunStore, clock: ManualClock) -> None:
    about: dict[str, tuple[ListedStatus, str, str | None]] = {
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


def runs_that_nobody_drives_are_those_of_the_host_that_were_handed_in_and_go_on(
    store: RunStore, clock: ManualClock
) -> None:
    driver = new_driver()
    about: dict[str, tuple[ListedStatus, str]] = {
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


def a_time_that_nobody_can_read_hides_no_entry(store: RunStore, clock: ManualClock) -> None:
    store.save(entry("r1", "once"))
    assert store.entries(RunFilter(since=datetime(2025, 1, 1, tzinfo=UTC))) == [entry("r1", "once")]


def runs_are_found_by_a_beginning_of_their_id_whether_listed_or_only_journaled(
    store: RunStore, clock: ManualClock
) -> None:
    assert store.find("", limit=5) == []
    for run in ("ab", "b", "%"):
        store.save(entry(run))
    for run in ("a", "ab", "abc"):
        journaled(store, run)
    assert [store.find("a", limit=5), store.find("a", limit=2)] == [["a", "ab", "abc"], ["a", "ab"]]
    assert [store.find("%", limit=5), store.find("c", limit=5)] == [["%"], []]


def first_parent_of_a_runs_spans_stays_until_the_run_is_forgotten(store: RunStore, clock: ManualClock) -> None:
    journaled(store, "r1")
    assert store.trace("r1") is None
    for parent in ("first", "second"):
        store.save_trace("r1", parent)
    assert (store.trace("r1"), store.trace("r2")) == ("first", None)
    store.forget("r1")
    assert store.trace("r1") is None


def a_forgotten_run_leaves_nothing_and_the_others_stay(
    store: RunStore, case: tuple[bool, bool], clock: ManualClock
) -> None:
    rows, listed = case
    for run in ("r1", "r2"):
        if rows or run == "r2":
            journaled(store, run)
        if listed or run == "r2":
            store.save(entry(run))
    assert store.forget("r1") is (rows or listed)
    assert (store.journal.runs(), store.entries()) == (["r2"], [entry("r2")])
    assert store.forget("r1") is False


def a_store_that_was_closed_opens_again_at_its_next_use(store: RunStore, clock: ManualClock) -> None:
    driver = new_driver()
    store.save(entry("r1"))
    store.leases.acquire("r1", driver)
    store.close()
    assert store.entry("r1") == entry("r1")
    assert store.leases.holder("r1") == driver
    store.close()
    store.close()


def threads_share_a_store(store: RunStore, clock: ManualClock) -> None:
    def use(n: int) -> str | None:
        store.save(entry(f"r{n}"))
        return store.leases.acquire("r", f"elsewhere:{n}:t")

    with ThreadPoolExecutor(8) as threads:
        told = list(threads.map(use, range(40)))
    assert len(store.entries()) == 40
    assert told.count(None) == 1
    assert {name for name in told if name} == {f"elsewhere:{told.index(None)}:t"} == {store.leases.holder("r")}


ENTRY_RULES: Final = rules_of(
    entries_come_newest_first_and_one_for_each_run,
    rules_for_cases(entries_are_chosen_by, FILTERS),
    a_look_at_runs_finds_the_status_of_each_and_its_last_row,
    status_that_comes_late_leaves_a_run_that_has_ended,
    runs_of_a_host_are_counted_by_status,
    due_runs_are_those_of_the_host_that_were_handed_in_and_wait,
    runs_that_nobody_drives_are_those_of_the_host_that_were_handed_in_and_go_on,
    a_time_that_nobody_can_read_hides_no_entry,
    runs_are_found_by_a_beginning_of_their_id_whether_listed_or_only_journaled,
    first_parent_of_a_runs_spans_stays_until_the_run_is_forgotten,
    rules_for_cases(a_forgotten_run_leaves_nothing_and_the_others_stay, LEFT_BEHIND),
    a_store_that_was_closed_opens_again_at_its_next_use,
    threads_share_a_store,
)
"""What every run store must do about its runs."""
RULES_OF_SHARED_STORES: Final = rules_of(news_names_runs_with_rows_behind_a_position)
"""What a store must do besides that other processes write to."""
