"""A thousand workflow runs at once in one process."""

import asyncio
import gc
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from agent_core.models import ScriptedModel
from engine_shim import Engine, RunResult, SqliteRunStore, load_workflow
from support.by_hand import action, final
from utools import Tool, default_registry

ANY = {"type": "object", "additionalProperties": True}
AGENT = {
    "model": "m",
    "max_steps": 3,
    "allowed_tools": ["look"],
    "prompt": "Go.",
    "timeout": 900,
    "single_call_timeout": 900,
}
WORKFLOW = load_workflow({"id": "load", "nodes": [{"tool": "agent_core", "config": AGENT}]})


class Crowd:
    """Runs whose last reply is held back until so many wait for theirs."""

    def __init__(self, path: Path, wanted: int, *, max_running: int) -> None:
        self.wanted, self.waiting, self.most = wanted, 0, 0
        self.all_there, self.open = asyncio.Event(), asyncio.Event()
        registry = default_registry()
        registry.register(Tool("look", "Looks.", ANY, self._look, effect="read"))
        self.store = SqliteRunStore(path / "runs.db")
        self.engine = Engine(registry, store=self.store, model=ScriptedModel(self._said), max_running=max_running)

    async def _look(self, args: dict[str, Any], context: Any) -> str:
        return "nothing there"

    async def _said(self, messages: Any) -> str:
        if not any(message["role"] == "assistant" for message in messages):
            return action("look", at="it")
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        if self.waiting == self.wanted:
            self.all_there.set()
        await self.open.wait()
        self.waiting -= 1
        return final("done")

    def start(self, count: int) -> list["asyncio.Task[RunResult]"]:
        return [asyncio.create_task(self.engine.run(WORKFLOW, run_id=f"r{i}")) for i in range(count)]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("count", [150, pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_many_runs_in_flight_end_well_and_hold_no_descriptor_each(tmp_path: Path, count: int) -> None:
    async def play() -> None:
        gc.collect()  # what the tests before have left open, so that none of it closes meanwhile
        before = descriptors()
        crowd = Crowd(tmp_path, count, max_running=count)
        runs = crowd.start(count)
        await crowd.all_there.wait()
        during = descriptors()
        crowd.open.set()
        assert {result.status for result in await asyncio.gather(*runs)} == {"completed"}
        assert during <= descriptors() + 2
        assert during - before < 100
        await crowd.engine.close()

    asyncio.run(play())


def test_no_more_runs_are_driven_than_there_are_places(tmp_path: Path) -> None:
    async def play() -> None:
        crowd = Crowd(tmp_path, 20, max_running=20)
        runs = crowd.start(60)
        await crowd.all_there.wait()
        statuses = [entry.status for entry in crowd.store.entries()]
        assert (statuses.count("running"), statuses.count("pending")) == (20, 40)
        crowd.open.set()
        assert {result.status for result in await asyncio.gather(*runs)} == {"completed"}
        assert crowd.most == 20
        await crowd.engine.close()

    asyncio.run(play())


@pytest.mark.exhaustive
def test_a_run_in_flight_takes_tens_of_kilobytes(tmp_path: Path) -> None:
    async def play() -> None:
        warm = Crowd(tmp_path / "warm", 1, max_running=1)
        warm.open.set()
        await asyncio.gather(*warm.start(1))
        await warm.engine.close()
        crowd = Crowd(tmp_path, 30, max_running=30)
        gc.collect()
        tracemalloc.start()
        try:
            runs = crowd.start(30)
            await crowd.all_there.wait()
            gc.collect()
            kilobytes = tracemalloc.get_traced_memory()[0] / 1024 / len(runs)
        finally:
            tracemalloc.stop()
        crowd.open.set()
        await asyncio.gather(*runs)
        await crowd.engine.close()
        assert 1 < kilobytes < 100

    asyncio.run(play())
