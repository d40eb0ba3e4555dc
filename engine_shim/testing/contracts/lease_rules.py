"""What the leases of every run store must do: who drives which run, and the signals to them."""

from collections.abc import Callable
from typing import Final

from agent_core.testing.contracts.rules import rules_for_cases, rules_of
from engine_shim.store.driver_identity import new_driver, read_process
from engine_shim.store.leases import KEPT, RENEW_AFTER, TTL, Signal
from engine_shim.store.run_store import RunStore
from engine_shim.testing.contracts.samples import OTHER, ManualClock, ended_driver, entry

AGES: Final = {f"{age:g} s": age for age in (0.0, RENEW_AFTER - 0.1, RENEW_AFTER, TTL - 0.1, TTL)}


def _renamed(name: str, part: int, to: str) -> str:
    parts = name.split(":")
    return ":".join([*parts[:part], to, *parts[part + 1 :]])


ELSEWHERE: Final[dict[str, Callable[[str], str]]] = {
    "in another PID namespace of a machine and a host name that are the same": lambda name: _renamed(name, 3, "1"),
    "on another machine with the same host name": lambda name: _renamed(name, 4, f"{0:08}-0000-0000-0000-{0:012}"),
    "on another host": lambda name: _renamed(name, 0, "elsewhere").replace(name.split(":")[4], f"{1:036}"),
    "of an older release on this host": lambda name: ":".join([*name.split(":")[:2], "aabbccdd"]),
    "of a name that nobody can read": lambda name: name.replace(":", "/"),
}
SIGNALS: Final[list[tuple[Signal, Signal]]] = [
    ("message", "message"),
    ("pause", "pause"),
    ("message", "pause"),
    ("cancel", "cancel"),
    ("pause", "cancel"),
    ("message", "cancel"),
]


def a_rival_is_refused_and_told_who_has_the_run(store: RunStore, clock: ManualClock) -> None:
    driver = new_driver()
    assert store.leases.holder("r1") is None
    assert store.leases.acquire("r1", driver) is None
    assert store.leases.acquire("r1", driver) is None
    assert store.leases.acquire("r1", OTHER) == driver
    assert store.leases.acquire("r2", OTHER) is None
    assert (store.leases.holder("r1"), store.leases.holder("r2")) == (driver, OTHER)


def those_of_many_runs_are_told_that_living_drivers_hold(store: RunStore, clock: ManualClock) -> None:
    driver = new_driver()
    for run, holder in (("r1", driver), ("r2", OTHER), ("r3", driver)):
        store.leases.acquire(run, holder)
    store.leases.release("r3", driver)
    assert store.leases.held(["r1", "r2", "r3", "missing"]) == {"r1", "r2"}
    assert store.leases.held([]) == set()
    clock.now += TTL + 1
    assert store.leases.held(["r1", "r2"]) == set()


def two_drivers_of_one_process_are_rivals_too(store: RunStore, clock: ManualClock) -> None:
    first, second = new_driver(), new_driver()
    assert store.leases.acquire("r1", first) is None
    assert store.leases.acquire("r1", second) == first


def only_its_own_lease_is_released(store: RunStore, clock: ManualClock) -> None:
    driver = new_driver()
    store.leases.acquire("r1", driver)
    store.leases.release("r1", OTHER)
    assert store.leases.acquire("r1", OTHER) == driver
    store.leases.release("r1", driver)
    assert store.leases.holder("r1") is None
    assert store.leases.acquire("r1", OTHER) is None
    store.leases.release("r1", driver)
    assert store.leases.holder("r1") == OTHER


def a_lease_that_is_not_renewed_goes_over_after_a_while(store: RunStore, clock: ManualClock) -> None:
    driver = new_driver()
    store.leases.acquire("r1", driver)
    clock.now += TTL - 0.1
    assert store.leases.acquire("r1", OTHER) == driver
    clock.now += 0.1
    assert store.leases.holder("r1") is None
    assert store.leases.signal("r1", "cancel") is False
    assert store.leases.acquire("r1", OTHER) is None
    assert store.leases.holder("r1") == OTHER


def renewing_keeps_a_lease_for_as_long_as_it_is_done(store: RunStore, clock: ManualClock) -> None:
    driver = new_driver()
    for run in ("kept", "left"):
        store.leases.acquire(run, driver)
    for _ in range(200):
        clock.now += 0.25
        assert store.leases.renew(driver, ["kept"]) == {}
        assert store.leases.acquire("kept", OTHER) == driver
    assert store.leases.acquire("left", OTHER) is None


def a_renewed_lease_is_kept_for_a_while_at_least_however_old_it_was(
    store: RunStore, age: float, clock: ManualClock
) -> None:
    driver = new_driver()
    store.leases.acquire("r1", driver)
    clock.now += age
    assert store.leases.renew(driver, ["r1"]) == {}
    clock.now += KEPT - 0.1
    assert store.leases.acquire("r1", OTHER) == driver


def leases_taken_at_different_times_are_all_renewed(store: RunStore, clock: ManualClock) -> None:
    driver = new_driver()
    runs: list[str] = []
    for n in range(80):
        runs.append(f"r{n}")
        store.leases.acquire(runs[-1], driver)
        clock.now += 0.75
        assert store.leases.renew(driver, runs) == {}
    assert [store.leases.holder(run) for run in runs] == [driver] * 80


def a_late_driver_keeps_its_lease_when_nobody_took_it(store: RunStore, clock: ManualClock) -> None:
    driver = new_driver()
    store.leases.acquire("r1", driver)
    clock.now += 100 * TTL
    assert store.leases.renew(driver, ["r1"]) == {}
    assert store.leases.acquire("r1", OTHER) == driver


def a_driver_whose_lease_went_over_is_told_that_it_lost(store: RunStore, clock: ManualClock) -> None:
    driver = new_driver()
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


def a_lease_from_before_the_clock_went_back_goes_over(store: RunStore, clock: ManualClock) -> None:
    driver = new_driver()
    store.leases.acquire("r1", driver)
    clock.now -= 0.5
    assert store.leases.holder("r1") is None
    assert store.leases.acquire("r1", OTHER) is None


def a_driver_that_renews_after_the_clock_went_back_keeps_its_lease(store: RunStore, clock: ManualClock) -> None:
    driver = new_driver()
    store.leases.acquire("r1", driver)
    clock.now -= 3600
    assert store.leases.renew(driver, ["r1"]) == {}
    assert store.leases.acquire("r1", OTHER) == driver


def the_lease_of_a_process_that_ended_goes_over_at_once(store: RunStore, clock: ManualClock) -> None:
    driver = new_driver()
    ended = ended_driver()
    assert store.leases.acquire("r1", ended) is None
    assert store.leases.acquire("r2", ended) is None
    assert store.leases.holder("r1") is None
    assert store.leases.held(["r1", "r2"]) == set()
    assert store.leases.signal("r1", "cancel") is False
    assert store.leases.acquire("r1", driver) is None
    assert store.leases.held(["r1", "r2"]) == {"r1"}


def the_lease_of_a_process_whose_id_another_one_has_by_now_goes_over_at_once(
    store: RunStore, clock: ManualClock
) -> None:
    driver = new_driver()
    own = read_process(driver)
    assert own is not None
    before = driver.replace(f":{own.start}:", f":{int(own.start) - 1}:")
    assert store.leases.acquire("r1", before) is None
    assert store.leases.holder("r1") is None
    assert store.leases.acquire("r1", driver) is None


def a_process_that_cannot_be_seen_from_here_keeps_its_lease_for_its_time(
    store: RunStore, elsewhere: Callable[[str], str], clock: ManualClock
) -> None:
    driver = new_driver()
    holder = elsewhere(ended_driver())
    store.save(entry("r1"))
    store.save_submission("r1", "ada")
    assert store.leases.acquire("r1", holder) is None
    assert store.leases.acquire("r1", driver) == holder
    assert (store.leases.holder("r1"), store.leases.held(["r1"]), store.list_orphaned("")) == (holder, {"r1"}, [])
    clock.now += TTL
    assert (store.leases.holder("r1"), store.leases.held(["r1"]), store.list_orphaned("")) == (None, set(), ["r1"])
    assert store.leases.acquire("r1", driver) is None


def a_signal_reaches_the_driver_of_its_run_alone(store: RunStore, clock: ManualClock) -> None:
    driver = new_driver()
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


def a_signal_to_a_run_that_nobody_drives_leaves_nothing(store: RunStore, clock: ManualClock) -> None:
    driver = new_driver()
    assert store.leases.signal("r1", "cancel") is False
    store.leases.acquire("r1", driver)
    assert store.leases.renew(driver, ["r1"]) == {}


def neither_a_message_nor_a_pause_takes_back_what_is_stronger(store: RunStore, clock: ManualClock) -> None:
    driver = new_driver()
    store.leases.acquire("r1", driver)
    for sent, expected in SIGNALS:
        assert store.leases.signal("r1", sent) is True
        assert store.leases.renew(driver, ["r1"]) == {"r1": expected}


def a_signal_outlives_renewals_and_acquiring_again(store: RunStore, clock: ManualClock) -> None:
    driver = new_driver()
    store.leases.acquire("r1", driver)
    store.leases.signal("r1", "cancel")
    clock.now += TTL - 1
    assert store.leases.renew(driver, ["r1"]) == {"r1": "cancel"}
    clock.now += TTL - 1
    store.leases.acquire("r1", driver)
    assert store.leases.renew(driver, ["r1"]) == {"r1": "cancel"}


def a_released_run_is_acquired_without_its_old_signal(store: RunStore, clock: ManualClock) -> None:
    driver = new_driver()
    store.leases.acquire("r1", driver)
    store.leases.signal("r1", "cancel")
    store.leases.release("r1", driver)
    store.leases.acquire("r1", driver)
    assert store.leases.renew(driver, ["r1"]) == {}


def a_run_that_is_taken_over_comes_without_its_old_signal(store: RunStore, clock: ManualClock) -> None:
    driver = new_driver()
    store.leases.acquire("r1", driver)
    store.leases.signal("r1", "pause")
    clock.now += TTL
    store.leases.acquire("r1", OTHER)
    assert store.leases.renew(OTHER, ["r1"]) == {}


LEASE_RULES: Final = rules_of(
    a_rival_is_refused_and_told_who_has_the_run,
    those_of_many_runs_are_told_that_living_drivers_hold,
    two_drivers_of_one_process_are_rivals_too,
    only_its_own_lease_is_released,
    a_lease_that_is_not_renewed_goes_over_after_a_while,
    renewing_keeps_a_lease_for_as_long_as_it_is_done,
    rules_for_cases(a_renewed_lease_is_kept_for_a_while_at_least_however_old_it_was, AGES),
    leases_taken_at_different_times_are_all_renewed,
    a_late_driver_keeps_its_lease_when_nobody_took_it,
    a_driver_whose_lease_went_over_is_told_that_it_lost,
    a_lease_from_before_the_clock_went_back_goes_over,
    a_driver_that_renews_after_the_clock_went_back_keeps_its_lease,
    the_lease_of_a_process_that_ended_goes_over_at_once,
    the_lease_of_a_process_whose_id_another_one_has_by_now_goes_over_at_once,
    rules_for_cases(a_process_that_cannot_be_seen_from_here_keeps_its_lease_for_its_time, ELSEWHERE),
    a_signal_reaches_the_driver_of_its_run_alone,
    a_signal_to_a_run_that_nobody_drives_leaves_nothing,
    neither_a_message_nor_a_pause_takes_back_what_is_stronger,
    a_signal_outlives_renewals_and_acquiring_again,
    a_released_run_is_acquired_without_its_old_signal,
    a_run_that_is_taken_over_comes_without_its_old_signal,
)
"""What the leases of every run store must do."""
