"""An app that is started again, as by a test client for each test: it serves as before, in whichever event loop."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from engine_shim.api import create_app
from engine_shim.host.config import read_host_config
from engine_shim.service.service import Service
from engine_shim.service.worker_pool import WorkerPool
from support.served_host import write_host


@pytest.fixture
def app(tmp_path: Path) -> Any:
    service = Service.of_host(read_host_config(write_host(tmp_path)), tmp_path / "runs.db", is_open=True)
    return create_app(service)


def test_each_start_begins_runs_and_shows_their_events(app: Any, tmp_path: Path) -> None:
    (tmp_path / "now").touch()
    for _ in range(2):
        with TestClient(app, base_url="http://localhost") as client:
            assert client.get("/health").json()["status"] == "ok"
            done = client.post("/workflows/wait/runs", json={"external": {"until": "now"}}).json()
            assert (done["status"], done["outputs"]["after"]) == ("completed", "now")
            events = client.get(f"/runs/{done['run_id']}/events").text
            assert events.count("event: finished") == 1


def test_a_pool_of_workers_has_a_line_in_each_event_loop() -> None:
    pool = WorkerPool(1)

    async def use() -> list[int]:
        return await asyncio.gather(*(pool.run(int, text) for text in "123"))

    assert [asyncio.run(use()) for _ in range(2)] == [[1, 2, 3]] * 2


async def test_a_loop_whose_tasks_begin_at_once_begins_runs(tmp_path: Path) -> None:
    asyncio.get_running_loop().set_task_factory(getattr(asyncio, "eager_task_factory", None))  # since Python 3.12
    service = Service.of_host(read_host_config(write_host(tmp_path)), tmp_path / "runs.db", is_open=True)
    async with service.running():
        tenant = service.tenants[None]
        run, _ = await tenant.runs.submit(tenant.workflows.get("count"), {"sum": "1 + 1"}, by="ada")
        assert (await tenant.runs.wait_settled(run)).status == "completed"
