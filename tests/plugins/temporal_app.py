"""A program's own workflows and their worker: python temporal_app.py ADDRESS FOLDER."""

import asyncio
import os
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from agent_core.decisions import Approve
from agent_core.models import ScriptedModel
from engine_shim.plugins.temporal import AgentRequest, make_agent_activity
from utools import tool

QUEUE = "own"


@workflow.defn
class Desk:
    """Asks an agent, and lets a person decide by a signal."""

    def __init__(self) -> None:
        self._by, self._seen = "", list[Any]()

    @workflow.signal
    def approve(self, by: str) -> None:
        self._by = by

    @workflow.query
    def waiting(self) -> list[Any]:
        return self._seen

    @workflow.run
    async def run(self, agent: str) -> dict[str, Any]:
        request = AgentRequest("Go.")
        output = await self._ask(agent, request)
        while output["status"] == "waiting":
            self._seen = output["waiting"]
            await workflow.wait_condition(lambda: bool(self._by))
            output = await self._ask(agent, request.decided(output, {0: Approve()}, by=self._by))
        return output

    async def _ask(self, agent: str, request: AgentRequest) -> dict[str, Any]:
        output: dict[str, Any] = await workflow.execute_activity(
            agent,
            replace(request),
            start_to_close_timeout=timedelta(seconds=8),
            heartbeat_timeout=timedelta(seconds=2),
        )
        return output


def call(name: str, q: str) -> str:
    return f'{{"type": "action", "tool": "{name}", "args": {{"q": "{q}"}}}}'


def activities(folder: Path) -> list[Any]:
    """The agents of this worker, by name, with tools that count."""

    def note(name: str) -> int:
        with (folder / name).open("a") as file:
            file.write(".")
        return (folder / name).stat().st_size

    @tool(effect="read")
    async def look(q: str) -> str:
        """Looks; dies where it is told to, the first time; waits where it is told to."""
        if note(f"look-{q}") == 1 and q == "deadly":
            os.kill(os.getpid(), 9)
        if q == "slow":
            await asyncio.sleep(1)
        if q == "endless":
            await asyncio.Event().wait()
        return "seen"

    @tool(effect="write")
    def ship(q: str) -> str:
        """Ships."""
        note(f"ship-{q}")
        return "shipped"

    final = '{"type": "final", "answer": "done"}'
    scripts = {
        "deadly": [call("look", "first"), call("look", "deadly"), final],
        "waits": [call("ship", "17"), final],
        "slow": [*[call("look", "slow")] * 9, final],
        "limited": [call("look", "first")] * 30,
        "endless": [call("look", "endless"), final],
        "broken": [final],
    }
    allowed = [{"tool": "look"}, {"tool": "ship", "approval": "always"}]
    config = {"model": "scripted", "max_steps": 20, "max_tool_calls": 20, "allowed_tools": allowed}
    configs = {"broken": {**config, "allowed_tools": ["lok"]}}
    return [
        make_agent_activity(
            name,
            configs.get(name, config),
            tools=[look, ship],
            journal=folder / "runs.db",
            model=ScriptedModel(list(replies)),
        )
        for name, replies in scripts.items()
    ]


async def work(address: str, folder: str) -> None:
    client = await Client.connect(address)
    runner = UnsandboxedWorkflowRunner()
    await Worker(
        client, task_queue=QUEUE, workflows=[Desk], activities=activities(Path(folder)), workflow_runner=runner
    ).run()


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
