"""Tests of workflows: cases in a file, run offline with mocks in place of what reaches outside; and of run stores."""

from typing import TYPE_CHECKING

from utools.lazy_menu import lazy_menu

if TYPE_CHECKING:
    from engine_shim.testing.contracts.run_store import check_run_store as check_run_store
    from engine_shim.testing.contracts.samples import ManualClock as ManualClock

HOMES = {
    "engine_shim.testing.contracts.run_store": "check_run_store",
    "engine_shim.testing.contracts.samples": "ManualClock",
}
"""The public names by their modules; each is imported when it is first used."""
__all__ = sorted(" ".join(HOMES.values()).split())
if not TYPE_CHECKING:  # a checker would take any name
    __getattr__, __dir__ = lazy_menu(__name__, HOMES)
