"""check_run_store(): what every store of runs must do, whatever it keeps them in."""

from collections.abc import Callable
from contextlib import closing
from typing import Final

from agent_core.testing.contracts.rules import Verdicts
from engine_shim.store.run_store import RunStore
from engine_shim.testing.contracts.entry_rules import ENTRY_RULES, RULES_OF_SHARED_STORES
from engine_shim.testing.contracts.lease_rules import LEASE_RULES
from engine_shim.testing.contracts.samples import ManualClock

RUN_STORE_RULES: Final = (*ENTRY_RULES, *LEASE_RULES)
"""What every run store must do. Each takes a new store and the clock that it goes by."""


def check_run_store(make_store: Callable[[ManualClock], RunStore], *, is_shared: bool = True) -> None:
    """Try a run store of your own by every rule of the seam. AssertionError names all rules that are broken.

    `make_store(clock)` returns a new, empty one for each rule, which goes by `clock()`, in seconds, and is closed
    afterwards. One that is not shared, since all who write to it are in this process, has no news of others. The
    journal of the store is tried by `check_journal` of agent_core.testing.
    """
    verdicts = Verdicts("the run store")
    for rule in (*RUN_STORE_RULES, *RULES_OF_SHARED_STORES) if is_shared else RUN_STORE_RULES:
        clock = ManualClock()
        with verdicts.of(rule), closing(make_store(clock)) as store:
            rule.check(store, clock)
    verdicts.tell()
