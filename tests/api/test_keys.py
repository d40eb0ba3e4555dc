"""Idempotency keys when several requests and servers come at once, and when a beginning could not be written."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from engine_shim.service.run_service import key_to_id
from engine_shim.store.entries import RunEntry
from support.served_host import Served, served

ROUNDS = 5


def _messages(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


BODIES: dict[str, tuple[str, Any]] = {
    "workflow": ("/workflows/count/runs", lambda text: {"external": {"sum": text}}),
    "tool": ("/tools/order/execute", lambda text: {"args": {"article": text, "pieces": 1}}),
    "chat": ("/agent/chat", lambda text: {"message": text, "agent": "clerk"}),
    "agent completion": (
        "/v1/chat/completions",
        lambda text: {"model": "agent/clerk", "messages": _messages(text)},
    ),
    "workflow completion": (
        "/v1/chat/completions",
        lambda text: {"model": "workflow/count", "messages": _messages(text)},
    ),
}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Served]]:
    """Two servers of one store."""
    folder = tmp_path_factory.mktemp("host")
    with served(folder) as first, served(folder) as second:
        for host in (first, second):  # what an app builds at its first request holds warnings back for all threads
            for path, _ in BODIES.values():
                assert host.client.post(path, json={"none": 1}).status_code == 422
        yield first, second


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.sampled
def test_of_two_inputs_that_come_at_once_under_one_key_one_is_taken(hosts: tuple[Served, Served], kind: str) -> None:
    path, body = BODIES[kind]

    async def send(key: str) -> list[tuple[str, int, str]]:
        async with httpx2.AsyncClient(timeout=30) as client:

            async def post(host: Served, text: str) -> tuple[str, int, str]:
                headers = {"Idempotency-Key": key}
                answer = await client.post(host.url + path, json=body(text), headers=headers)
                return text, answer.status_code, answer.text

            return await asyncio.gather(*(post(host, text) for host in hosts for text in ("1 + 1", "2 + 2")))

    for number in range(ROUNDS):
        answers = asyncio.run(send(f"{kind} {number}"))
        taken = {text for text, status, _ in answers if status == 200}
        assert len(taken) == 1, answers
        assert sorted(status for _, status, _ in answers) == [200, 200, 422, 422], answers
        assert all("came before with other inputs" in text for _, status, text in answers if status == 422)
    if kind == "tool":
        assert len((hosts[0].folder / "orders.txt").read_text().splitlines()) == ROUNDS  # each was made once


def _leave_unbegun(host: Served, key: str) -> str:
    """What a server leaves in the store that dies, or finds the disk full, before it has written how a run begins."""
    run = key_to_id("count", key)
    host.store.save_submission(run, "local")
    host.store.save(RunEntry(run, "count", "1", "pending", "2026-01-01T00:00:00Z", "."))
    return run


def test_run_whose_beginning_could_not_be_written_is_begun_by_the_next_attempt(hosts: tuple[Served, Served]) -> None:
    run = _leave_unbegun(hosts[0], "again")
    body, headers = {"external": {"sum": "1 + 1"}}, {"Idempotency-Key": "again"}
    found = hosts[0].client.post("/workflows/count/runs", json=body, headers=headers).json()
    assert (found["run_id"], found["status"]) == (run, "completed")


@pytest.mark.exhaustive
def test_run_whose_beginning_could_not_be_written_is_forgotten(tmp_path: Path) -> None:
    with served(tmp_path) as host:
        host.submit("count", sum="1 + 1")
        run = _leave_unbegun(host, "lost")
    with served(tmp_path) as host:
        deadline = time.monotonic() + 20
        while host.client.get(f"/runs/{run}").status_code != 404:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert run not in {each["run_id"] for each in host.client.get("/runs").json()["runs"]}
