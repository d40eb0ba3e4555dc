"""Runs that another process pauses or cancels: a pause loses and repeats nothing, a cancellation is the end."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_core.audit.replay import replay
from agent_core.audit.verify import verify
from engine_shim import Engine, SqliteRunStore
from engine_shim.runs.loops import LOOPS
from support.loopback import serving, silence
from support.programs import command, environment, json_lines
from utools import ToolRegistry

pytestmark = pytest.mark.exhaustive

PATIENCE_S = 60.0


FEW, MANY = 2, 5
SEEDS = [(1, FEW), *(pytest.param(seed, MANY, marks=pytest.mark.exhaustive) for seed in (1, 2))]


def rounds(how: str, seed: int, count: int) -> list[dict[str, Any]]:
    """What came of each round, its processes all at an end."""
    found = json_lines("crash.steered", how, str(seed), str(count))
    for each in found:
        assert each["wrong"] == [], each
        assert [came["exit"] for came in each["came"]] == [0] * len(each["came"]), each
    return found


@pytest.mark.parametrize(("seed", "count"), SEEDS)
def test_run_paused_at_any_moment_and_gone_on_with_elsewhere_ends_as_if_undisturbed(seed: int, count: int) -> None:
    found = rounds("paused", seed, count)
    assert count == FEW or any(each["came"][0]["status"] == "paused" for each in found)


@pytest.mark.parametrize(("seed", "count"), SEEDS)
def test_run_cancelled_at_any_moment_is_cut_off_there_and_acts_no_more(seed: int, count: int) -> None:
    found = rounds("cancelled", seed, count)
    assert count == FEW or any(each["came"][0]["status"] == "cancelled" for each in found)


@pytest.mark.parametrize(
    ("workflow", "step"),
    [
        ("nested agent", 12),
        *(pytest.param(name, 3, marks=pytest.mark.exhaustive) for name in ("parallel", "nested agent")),
    ],
)
def test_run_whose_driver_was_killed_is_cancelled_even_when_the_canceller_is_killed_too(
    workflow: str, step: int
) -> None:
    found = json_lines("crash.orphans", workflow, str(step))
    for each in found:
        assert each["status"] == each["again"] in ("cancelled", "completed"), each
        assert (each["acted"], each["verified"], each["replayed"], each["driver"]) == (0, True, True, None), each
    cancelled = [each for each in found if each["status"] == "cancelled"]
    assert len(cancelled) >= len(found) - 2, "only a run that was over as its driver died may have been completed"
    assert step > 3 or {each["in_doubt"] for each in cancelled} == {True, False}


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def driving(url: str, store: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Another process that drives the run `r` against the model at `url`."""
    words = command("crash.hanging", url, str(store), "r")
    pipe = subprocess.PIPE
    driver = await asyncio.create_subprocess_exec(*words, env=environment(), stdin=pipe, stdout=pipe)
    try:
        yield driver
    finally:
        if driver.returncode is None:
            driver.kill()
            await driver.wait()


@pytest.mark.exhaustive
async def test_cancel_from_another_process_closes_the_connection_to_a_model_that_never_answers(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    async with serving(silence) as server, driving(server.url, store) as driver:
        await until(lambda: len(server.requests) == 1)
        engine = Engine(ToolRegistry(), store=SqliteRunStore(store))
        assert await engine.cancel("r") == "cancelled"
        await until(lambda: server.left == 1)
        assert driver.returncode is None, "the connection was closed by the end of the process"
        out, _ = await asyncio.wait_for(driver.communicate(b""), PATIENCE_S)
        assert (out, driver.returncode, len(server.requests)) == (b"cancelled\n", 0, 1)
        result = await engine.resume("r")
        assert (result.status, len(server.requests)) == ("cancelled", 1)
    assert verify(store, run_id="r", **result.journal).ok
    assert replay(store, run_id="r", loops=LOOPS).identical
    await engine.close()
