"""Hosts that share a store, as all of one user do by default: each serves its own runs."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from engine_shim import Engine
from support.served_host import Served, served


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Served, Served]]:
    """Two hosts on one store."""
    with ExitStack() as stack:
        folders = [tmp_path / name for name in ("a", "b")]
        first, second = (stack.enter_context(served(folder, store=tmp_path / "runs.db")) for folder in folders)
        yield first, second


@pytest.mark.sampled
@pytest.mark.parametrize("route", ["", "/events", "/journal", "/verify"])
def test_run_of_another_host_is_not_found(pair: tuple[Served, Served], route: str) -> None:
    first, second = pair
    run = first.submit("buy", article="H-1")["run_id"]
    assert second.client.get(f"/runs/{run}{route}").status_code == 404
    assert second.client.post(f"/runs/{run}/decide", json={"decision": "approve"}).status_code == 404
    assert first.client.get(f"/runs/{run}").json()["status"] == "waiting"


@pytest.mark.exhaustive
def test_list_and_metrics_have_the_runs_of_one_host(pair: tuple[Served, Served]) -> None:
    first, second = pair
    run = first.submit("buy", article="H-2")["run_id"]
    assert second.client.get("/runs").json() == {"runs": [], "next": None}
    assert [each["run_id"] for each in first.client.get("/runs").json()["runs"]] == [run]
    assert 'agent_core_waiting_runs{tenant=""} 1.0' in first.client.get("/metrics").text
    assert 'agent_core_waiting_runs{tenant=""} 0.0' in second.client.get("/metrics").text


def test_run_that_a_program_began_without_a_host_is_everybodys(tmp_path: Path) -> None:
    definition = {"id": "own", "nodes": [{"tool": "echo", "config": {"text": "x"}}]}
    with served(tmp_path) as host:
        result = Engine(store=tmp_path / "runs.db").run_sync(definition)
        assert host.client.get(f"/runs/{result.run_id}").json()["status"] == "completed"
        assert json.loads(host.client.get("/runs").text)["runs"][0]["run_id"] == result.run_id
