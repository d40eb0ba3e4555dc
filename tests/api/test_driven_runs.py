"""DrivenRuns by hand: what a server knows of the runs that it has driven, and what it leaves when it ends."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from agent_core.errors import Abandoned
from engine_shim.service.driven_runs import DrivenRuns
from engine_shim.service.shares import Share


def driven() -> DrivenRuns:
    """Runs of an engine that does nothing by itself."""
    nothing: Any = SimpleNamespace(_keep_results=lambda keep: None, release=lambda: None, _abandon=lambda: None)
    feeds: Any = SimpleNamespace(close=lambda: None)
    return DrivenRuns(nothing, feeds, Share("runs", 10), None)


async def launch(runs: DrivenRuns, end: Callable[[], Any]) -> "asyncio.Task[Any]":
    """Drive a new run that ends so; its task."""

    async def drive(on_taken: Callable[[], None]) -> Any:
        on_taken()
        await asyncio.sleep(0)
        return await end()

    await runs.launch("r", drive, is_followed=False, by="me", is_new=True)
    return runs._open["r"]


async def test_run_has_begun_here_until_it_is_driven_no_more() -> None:
    async def end() -> Any:
        return SimpleNamespace(run_id="r", status="waiting")

    runs = driven()
    task = await launch(runs, end)
    assert runs.has_begun("r")
    await asyncio.wait([task])
    await asyncio.sleep(0)
    assert (runs.has_begun("r"), "r" in runs) == (False, False)  # the store alone knows whether it is still there


async def test_run_that_another_process_took_over_is_noted() -> None:
    async def end() -> Any:
        raise Abandoned("r")

    runs = driven()
    await asyncio.wait([await launch(runs, end)])
    await asyncio.sleep(0)
    assert (runs.taken_over, runs.backoff.is_due("r")) == ({"r"}, True)


@pytest.mark.parametrize("grace", [0.0, 0.01])
async def test_process_that_ends_waits_for_what_it_cancels(grace: float) -> None:
    left: list[str] = []

    async def end() -> Any:
        try:
            await asyncio.sleep(600)
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            left.append("the lease")

    runs = driven()
    await launch(runs, end)
    await runs.close(grace)
    assert left == ["the lease"]
