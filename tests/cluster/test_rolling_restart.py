"""Two hosts are restarted one after the other under load, as the operator's page says: no run is lost or made twice."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import httpx2
import pytest

pytest.importorskip("psycopg_pool", reason="needs psycopg with its pool (extra `postgres`)")

from support.cluster import STEPS, Cluster, Host, assert_proven, cluster, counting_model
from support.optional import needs
from support.postgres_server import Postgres

pytestmark = [pytest.mark.exhaustive, pytest.mark.xdist_group("postgres"), needs("fastapi")]
CALLERS = 4
Balancer = list[Host]
"""The hosts that a load balancer sends callers to."""


def submit(balancer: Balancer, name: str) -> str:
    """Submit a run at whichever host takes it, with a key, as a caller does whose connection may break."""
    while True:
        for host in list(balancer):
            try:
                answer = httpx2.post(
                    f"{host.url}/workflows/errand/runs?wait=false",
                    json={"external": {"name": name, "steps": STEPS}},
                    headers={"Idempotency-Key": name},
                    timeout=30,
                )
            except httpx2.TransportError:
                continue
            if answer.status_code in (200, 202):
                return str(answer.json()["run_id"])
            assert answer.status_code == 503, answer.text


def call(balancer: Balancer, caller: int, is_over: Event) -> dict[str, str]:
    """Submit runs until the restarts are over; their ids by name."""
    runs: dict[str, str] = {}
    while not is_over.wait(0.5):
        name = f"rolled-{caller}-{len(runs)}"
        runs[name] = submit(balancer, name)
    return runs


@pytest.fixture
def hosts(postgres: Postgres, tmp_path: Path) -> Iterator[Cluster]:
    with counting_model() as model:
        keys: dict[str, Any] = {"model": model, "base_urls": {model.url: "OPENAI_API_KEY"}}
        with cluster(tmp_path / "hosts", postgres.make_database(), **keys) as made:
            yield made


def test_hosts_that_restart_one_after_the_other_lose_no_run_and_make_no_call_twice(hosts: Cluster) -> None:
    balancer, is_over = [hosts.serve(), hosts.serve()], Event()
    with ThreadPoolExecutor(CALLERS) as pool:
        calling: list[Future[dict[str, str]]] = [pool.submit(call, balancer, n, is_over) for n in range(CALLERS)]
        try:
            for place, old in enumerate(list(balancer)):
                hosts.await_call("ship", "rolled-0")
                assert old.end() == 0, old.log.read_text()
                balancer[place] = hosts.serve()
        finally:
            is_over.set()
        runs = {name: run for each in calling for name, run in each.result().items()}
    assert len(runs) >= 2 * CALLERS
    for run in runs.values():
        assert balancer[0].await_status(run, "completed", "waiting", "failed")["status"] == "completed"
    assert_proven(balancer[1], next(iter(runs.values())))
    wanted = {f"{name}-{step}" for name in runs for step in STEPS}
    for tool in ("look", "ship"):
        assert Counter(name for name, _ in hosts.begun(tool)) == dict.fromkeys(wanted, 1), tool
