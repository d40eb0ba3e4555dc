"""Runs of an agent whose connection to Redis is cut in the middle of a command, by a proxy that swallows the reply."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from agent_core import AgentOutput, Fail, MemoryJournal, Retry, Skip, replay, run_agent, verify
from agent_core.models import ScriptedModel
from agent_core.run.secrets import Secrets
from support.redis_server import RealServer
from utools import ToolRegistry
from utools.builtin.redis_context import redis_context

PREFIX = "notes"
WRITES: dict[str, dict[str, Any]] = {
    "append": {"op": "append", "key": "log", "value": "one"},
    "set": {"op": "set", "key": "log", "value": "one"},
    "delete": {"op": "delete", "key": "log"},
}


@dataclass
class Cutting:
    """A proxy before the server. While `cuts` are left, the answer to a tool's command is swallowed and the line cut.

    `heard` are those commands; the client's own, by which it connects, pass.
    """

    port: int
    server: int
    cuts: int = 0
    heard: list[bytes] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection("127.0.0.1", self.server)
        try:
            while command := await reader.read(2**16):
                ours.write(command)
                await ours.drain()
                answer = await theirs.read(2**16)  # the server has done it
                if PREFIX.encode() in command:
                    self.heard.append(command)
                    self.cuts -= 1
                    if self.cuts >= 0:
                        break
                writer.write(answer)
                await writer.drain()
        finally:
            for each in (writer, ours):
                each.close()
                with suppress(OSError):
                    await each.wait_closed()


@asynccontextmanager
async def cutting(server: RealServer) -> AsyncIterator[Cutting]:
    proxy = Cutting(0, server.port)
    listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = listening.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listening.close()  # Python 3.12 and later would wait for the connections that the client keeps


class Agent:
    """An agent that makes one call and answers, in one run that can be gone on with."""

    def __init__(self, proxy: Cutting, call: dict[str, Any]) -> None:
        self.journal, self.registry = MemoryJournal(), ToolRegistry([redis_context()])
        preset = {"prefix": PREFIX, "url_env": "NOTES_URL"}
        tools = [{"tool": "redis_context", "preset": preset}]
        self.config = {"model": "scripted", "max_steps": 5, "allowed_tools": tools, "prompt": "Go."}
        self.secrets = Secrets(["NOTES_URL"], env={"NOTES_URL": f"redis://127.0.0.1:{proxy.port}/0"})
        action = json.dumps({"type": "action", "tool": "redis_context", "args": call})
        self.model = ScriptedModel([action, '{"type":"final","answer":"done"}'])

    async def run(self, **decisions: Any) -> AgentOutput:
        return await run_agent(
            self.config,
            registry=self.registry,
            model=self.model,
            journal=self.journal,
            run_id="r",
            secrets=self.secrets,
            **decisions,
        )

    def waits(self) -> list[dict[str, Any]]:
        """What the journal says of waiting."""
        records = [row.record() for rows in self.journal.load("r").values() for row in rows]
        return [record for record in records if record["kind"] == "waiting"]


@pytest.mark.parametrize("call", WRITES.values(), ids=WRITES)
async def test_write_that_was_cut_off_is_in_doubt_and_is_not_repeated(
    redis_server: RealServer, call: dict[str, Any]
) -> None:
    async with cutting(redis_server) as proxy:
        agent, proxy.cuts = Agent(proxy, call), 1
        output = await agent.run()
        assert output.finish_reason == "in_doubt"
        (waiting,) = output.waiting
        assert (waiting["tool"], waiting["reason"]) == ("redis_context", "in_doubt")
        (recorded,) = agent.waits()
        assert recorded["reason"] == "in_doubt"
        assert "was cut off" in recorded["message"]
        for _ in range(2):  # nobody has decided anything
            output = await agent.run()
            assert output.finish_reason == "in_doubt"
        assert len(proxy.heard) == 1
        assert verify(agent.journal, run_id="r", head=output.journal["head"], count=output.journal["count"]).ok


DECISIONS = {"retry": (Retry(), "final", 2), "skip": (Skip(), "final", 1), "fail": (Fail(), "tool_error", 1)}


@pytest.mark.parametrize(("decision", "reason", "items"), DECISIONS.values(), ids=DECISIONS)
async def test_write_in_doubt_is_repeated_only_where_a_person_says_so(
    redis_server: RealServer, decision: Any, reason: str, items: int
) -> None:
    async with cutting(redis_server) as proxy:
        agent, proxy.cuts = Agent(proxy, WRITES["append"]), 1
        (waiting,) = (await agent.run()).waiting
        output = await agent.run(decisions={(waiting["strand"], waiting["n"]): decision})
        assert output.finish_reason == reason
        assert (await agent.run()).finish_reason == reason
    assert redis_server.client.lrange(f"{PREFIX}:log", 0, -1) == [b"one"] * items
    assert replay(agent.journal, run_id="r").identical


async def test_read_that_was_cut_off_is_made_again(redis_server: RealServer) -> None:
    redis_server.client.set(f"{PREFIX}:log", "kept")
    async with cutting(redis_server) as proxy:
        agent, proxy.cuts = Agent(proxy, {"op": "get", "key": "log"}), 1
        output = await agent.run()
        assert len(proxy.heard) == 2
    assert output.finish_reason == "final"
    assert json.loads(output.trace[0]["observation"])["value"] == "kept"
    assert agent.waits() == []


async def test_read_that_is_always_cut_off_is_an_error_and_no_doubt(redis_server: RealServer) -> None:
    async with cutting(redis_server) as proxy:
        agent, proxy.cuts = Agent(proxy, {"op": "list"}), 100
        output = await agent.run()
        assert len(proxy.heard) == 3
    assert output.finish_reason == "final"
    assert "broke off before its answer" in str(output.trace[0]["error"])
    assert "127.0.0.1" not in str(output.trace)
