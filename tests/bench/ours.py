"""Our whole node in a loop: prompt, parse, judge, tool, journal, trace."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from task import PROMPT, echo_tool

from agent_core import run_agent
from agent_core.journal.store import Journal
from agent_core.models.endpoint.connections import Transport
from agent_core.models.openai.client import OpenAICompatible
from utools import ToolRegistry, tool


@asynccontextmanager
async def ours(
    port: int, transport: Transport, *, together: int = 0, protocol: str = "json"
) -> AsyncIterator[Callable[[int, Journal], Awaitable[str]]]:
    """Runs of ours; with `together`, none gets its last reply before so many wait for theirs."""
    models: dict[int, OpenAICompatible] = {}
    registry = ToolRegistry([tool(effect="read", code="echo")(echo_tool)])
    url, held = f"http://127.0.0.1:{port}/v1", f"-{together}" if together else ""

    async def run(calls: int, journal: Journal) -> str:
        config = {
            "model": "stub",
            "max_steps": calls,
            "max_tool_calls": 0,
            "allowed_tools": ["echo"],
            "prompt": PROMPT,
            "protocol": protocol,
            "timeout": 600,
            "single_call_timeout": 600,
        }
        if calls not in models:
            models[calls] = OpenAICompatible(f"stub-{calls}{held}", base_url=url, api_key="x", transport=transport)
        output = await run_agent(config, registry=registry, model=models[calls], journal=journal)
        assert output.usage["tool_calls"] == calls - 1
        return str(output.final_answer)

    yield run
    for model in models.values():
        await model.close()
