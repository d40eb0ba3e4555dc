"""Runs of one process share the clients of an endpoint: its connections, and what was learnt of it."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from agent_core import run_agent, run_agent_sync
from agent_core.models import create_model
from engine_shim import Engine, MemoryRunStore
from support.by_hand import final
from support.loopback import Loopback, chat, http, serving

REFUSED = http(400, {"error": {"message": "response_format is not supported", "param": "response_format"}})
LEARNING = (REFUSED, REFUSED, chat(final()))
"""An endpoint that takes no response format: two refusals, then answers."""


@pytest.fixture(autouse=True)
def own_key(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPENAI_API_KEY", "own-key")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    yield
    gc.collect()  # what was left open is reported in the test that left it


def config_of(server: Loopback) -> dict[str, Any]:
    return {"model": "openai:m", "base_url": server.url, "max_steps": 2, "allowed_tools": [], "prompt": "Go."}


def formats(server: Loopback) -> list[str]:
    """The response format that each request asked for."""
    return [request.json().get("response_format", {}).get("type", "text") for request in server.requests]


async def test_runs_of_one_loop_share_a_connection_and_what_was_learnt() -> None:
    async with serving(*LEARNING) as server:
        for _ in range(3):
            assert (await run_agent(config_of(server), registry=[])).final_answer == "done"
    assert formats(server) == ["json_schema", "json_object", "text", "text", "text"]
    assert server.connections == 1


async def test_what_was_learnt_outlives_an_event_loop_and_its_connections_do_not() -> None:
    async with serving(*LEARNING) as server:
        for _ in range(3):
            output = await asyncio.to_thread(run_agent_sync, config_of(server), registry=[])
            assert output.final_answer == "done"
    assert formats(server) == ["json_schema", "json_object", "text", "text", "text"]
    assert server.connections == 3


@pytest.mark.exhaustive
async def test_a_loop_that_ended_is_not_kept() -> None:
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def once(config: dict[str, Any]) -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await run_agent(config, registry=[])

    async with serving(chat(final())) as server:
        for _ in range(3):
            await asyncio.to_thread(asyncio.run, once(config_of(server)))
    gc.collect()
    assert [loop() is None for loop in loops[:2]] == [True, True]


async def test_another_key_is_another_client(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(*LEARNING) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for key in ("own-key", "next-key", "own-key"):
            monkeypatch.setenv("OPENAI_API_KEY", key)
            await run_agent({**config_of(server), "base_url": None}, registry=[])
    assert [request.headers["authorization"].removeprefix("Bearer ") for request in server.requests] == [
        *["own-key"] * 3,
        "next-key",
        "own-key",
    ]
    assert server.connections == 2


async def test_models_made_by_name_share_too() -> None:
    async with serving(*LEARNING) as server:
        for _ in range(2):
            model = create_model("openai:m", base_url=server.url, api_key="mine")
            await run_agent(config_of(server), registry=[], model=model)
    assert formats(server) == ["json_schema", "json_object", "text", "text"]
    assert server.connections == 1


@pytest.mark.exhaustive
async def test_who_closes_breaks_off_nobody_elses_question() -> None:
    entered, going_on = asyncio.Event(), asyncio.Event()

    async def slow(writer: asyncio.StreamWriter) -> None:
        entered.set()
        await going_on.wait()
        writer.write(chat(final()))
        await writer.drain()

    async with serving(slow) as server:
        flow = {"id": "f", "nodes": [{"tool": "agent_core", "config": config_of(server)}]}
        asking = asyncio.ensure_future(run_agent(config_of(server), registry=[]))
        await entered.wait()
        going_on.set()
        engine = Engine([], store=MemoryRunStore())
        assert (await engine.run(flow)).status == "completed"
        going_on.clear()
        entered.clear()
        other = asyncio.ensure_future(run_agent(config_of(server), registry=[]))
        await entered.wait()
        await engine.close()
        going_on.set()
        assert {(await each).final_answer for each in (asking, other)} == {"done"}
