"""Leases that are taken and released in threads: however a driver ends meanwhile, none is held for nobody."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress

import pytest

from agent_core.errors import JournalAway
from agent_core.run.sync import run_sync
from engine_shim.errors import RunBusy
from engine_shim.runs.lease_keeper import LeaseKeeper
from engine_shim.store.leases import MemoryLeases, Notice
from utools.threads import DaemonThreads


class SlowLeases(MemoryLeases):
    """Leases of which each is taken once it is allowed."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = DaemonThreads(2)  # type: ignore[misc,assignment]
        self.begun, self.allowed = threading.Event(), threading.Event()

    def acquire(self, run: str, driver: str) -> str | None:
        self.begun.set()
        assert self.allowed.wait(20)
        return super().acquire(run, driver)


@pytest.fixture
def leases() -> SlowLeases:
    return SlowLeases()


def await_true(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


def allow_soon(leases: SlowLeases) -> None:
    """Let the lease be taken once the loop has begun to end."""
    threading.Timer(0.1, leases.allowed.set).start()


async def drive(keeper: LeaseKeeper) -> None:
    async with keeper.driving("r"):
        await asyncio.Event().wait()


def test_interrupt_while_a_lease_is_taken_leaves_it_free(leases: SlowLeases) -> None:
    keeper = LeaseKeeper(leases)

    def interrupt() -> None:
        allow_soon(leases)
        raise KeyboardInterrupt

    async def begin() -> None:
        driving = asyncio.create_task(drive(keeper))
        await asyncio.to_thread(leases.begun.wait)
        asyncio.get_running_loop().call_soon(interrupt)
        await driving

    with pytest.raises(KeyboardInterrupt):
        run_sync(begin)
    await_true(lambda: leases.holder("r") is None)
    assert asyncio.run(is_free(keeper))


def test_loop_that_ends_while_a_lease_is_taken_leaves_it_free(leases: SlowLeases) -> None:
    keeper = LeaseKeeper(leases)
    tasks = []

    async def begin() -> None:
        tasks.append(asyncio.create_task(drive(keeper)))
        await asyncio.to_thread(leases.begun.wait)
        allow_soon(leases)

    asyncio.run(begin())
    await_true(lambda: leases.holder("r") is None)
    assert asyncio.run(is_free(keeper))


async def test_driver_that_is_cancelled_while_another_one_has_the_lease_ends(leases: SlowLeases) -> None:
    keeper = LeaseKeeper(leases)
    assert MemoryLeases.acquire(leases, "r", "another-machine:1:token") is None

    async def try_on() -> None:
        while True:
            with suppress(RunBusy):
                await drive(keeper)

    trying = asyncio.create_task(try_on())
    await asyncio.to_thread(leases.begun.wait)
    trying.cancel()
    await asyncio.sleep(0)
    leases.allowed.set()
    done, _ = await asyncio.wait([trying], timeout=20)
    assert done
    assert trying.cancelled()


async def test_next_driver_in_the_loop_waits_for_the_release(leases: SlowLeases) -> None:
    leases.allowed.set()
    keeper, order = LeaseKeeper(leases), list[int]()

    async def drive_once(number: int) -> None:
        async with keeper.driving("r"):
            order.append(number)

    first = asyncio.create_task(drive_once(1))
    while not order:
        await asyncio.sleep(0.001)
    await asyncio.sleep(0)  # it is leaving by now
    await asyncio.gather(first, drive_once(2))
    assert order == [1, 2]


class FailingLeases(MemoryLeases):
    """Leases that fail to be renewed by one error after another, and then `have_held`."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self._errors, self.have_held = list(errors), threading.Event()

    def renew(self, driver: str, runs: Collection[str]) -> dict[str, Notice]:
        if self._errors:
            raise self._errors.pop(0)
        self.have_held.set()
        return super().renew(driver, runs)


@pytest.mark.exhaustive
async def test_keeper_renews_on_after_whatever_error_and_logs_it_once(caplog: pytest.LogCaptureFixture) -> None:
    errors = (KeyError("a bug"), KeyError("a bug"), JournalAway("no network"), JournalAway("no network"))
    leases = FailingLeases(*errors, KeyError("a bug"))
    async with LeaseKeeper(leases).driving("r") as stop:
        assert leases.signal("r", "pause")
        assert await asyncio.to_thread(leases.have_held.wait, 20)
        while stop.requested is None:
            await asyncio.sleep(0.001)
    told = [(record.getMessage().rpartition(": ")[2], bool(record.exc_info)) for record in caplog.records]
    assert told == [("'a bug'", True), ("no network", False), ("'a bug'", True)]


async def is_free(keeper: LeaseKeeper) -> bool:
    async with keeper.driving("r"):
        return True


class RefusingLeases(MemoryLeases):
    """Leases that cannot be renewed."""

    def renew(self, driver: str, runs: Collection[str]) -> dict[str, Notice]:
        raise JournalAway("the database does not answer")


async def test_renewals_that_fail_and_leases_that_are_lost_are_counted() -> None:
    refused, robbed = LeaseKeeper(RefusingLeases()), LeaseKeeper(leases := MemoryLeases())
    async with refused.driving("r"), robbed.driving("r"), robbed.driving("kept"):
        leases.release("r", robbed.driver)
        while not (refused.failures and robbed.lost):
            await asyncio.sleep(0.01)
        renewals = refused.failures
        while refused.failures == renewals:
            await asyncio.sleep(0.01)
    assert (refused.lost, robbed.lost, robbed.failures) == (0, 1, 0)


def test_a_forked_process_is_another_driver() -> None:
    program = """
import os
from engine_shim.errors import RunBusy
from engine_shim.runs.lease_keeper import LeaseKeeper
from engine_shim.store.leases import MemoryLeases
leases = MemoryLeases()
keeper = LeaseKeeper(leases)
leases.acquire("run", keeper.driver)
child = os.fork()
if not child:
    try:
        with keeper.holding("run"):
            os._exit(1)
    except RunBusy:
        os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0
