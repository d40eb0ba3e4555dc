"""Tests of workflows: cases in a file, run offline with mocks in place of what reaches outside; and of run stores."""

from typing import TYPE_CHECKING

from utools.lazy_menu import lazy_menu

if TYPE_CHECKING:
    from engine_shim.testing.contracts.run_store import check_run_store as check_run_store
    from engine_shim.testing.contracts.samples import ManualClock as ManualClock

HOMES = {
    "ManualClock": "engine_shim.testing.contracts.samples",
    "check_run_store": "engine_shim.testing.contracts.run_store",
}
"""The public names, each imported from its module when it is first used."""
__all__ = list(HOMES)
__getattr__, __dir__ = lazy_menu(__name__, HOMES)
