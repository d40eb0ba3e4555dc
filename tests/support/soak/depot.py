"""The files of a soak's host: tools that note each act outside of the product, and the workflows that use them."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from support.served_host import write_host

TOOLS = '''
import asyncio
import os
import time
from pathlib import Path

from utools import ToolContext, tool

HERE = Path(__file__).parent


async def act(*words):
    book = os.open(HERE / "book", os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
    now = time.clock_gettime(time.CLOCK_REALTIME)  # which no process of the soak sets
    os.write(book, f"{' '.join(words)} {os.getpid()} {now}\\n".encode())
    os.close(book)
    await asyncio.sleep(0.3)


@tool(effect="read")
async def look(name: str, context: ToolContext) -> str:
    """Look a name up."""
    await act("look", context.idempotency_key, name)
    return name


@tool(effect="write")
async def ship(name: str, context: ToolContext) -> str:
    """Ship a name."""
    await act("ship", context.idempotency_key, name)
    return name


TOOLS = [look, ship]
'''
PARTS = ("0", "1")
NAME = "{{external.name}}"
INPUTS = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "parts": {"type": "array"}},
    "required": ["name"],
}


class Act(NamedTuple):
    """A call that began: of which tool, under which idempotency key, for which name, in which process, and when."""

    tool: str
    key: str
    name: str
    pid: int
    at: float


def read_book(folder: Path) -> list[Act]:
    """All calls that have begun."""
    book = folder / "book"
    lines = [line.split() for line in book.read_text().splitlines()] if book.exists() else []
    return [Act(tool, key, name, int(pid), float(at)) for tool, key, name, pid, at in lines]


def parcel(model: str) -> dict[str, Any]:
    """A workflow whose agent reads and writes, which waits for a moment, then reads and writes itself."""
    agent = {"model": "openai:m", "base_url": model, "max_steps": 5}
    ask = {**agent, "allowed_tools": ["look", "ship"], "prompt": f"{NAME} ask"}
    end = {**agent, "allowed_tools": [], "prompt": f"{NAME} end"}

    def each(tool: str) -> dict[str, Any]:
        config = {"name": f"{NAME}-{{{{item}}}}"}
        return {"id": tool, "tool": tool, "foreach": "{{external.parts}}", "max_parallel": 2, "config": config}

    nodes = [
        {"id": "ask", "tool": "agent_core", "config": ask},
        {"id": "pause", "tool": "wait", "config": {"seconds": 1}},
        each("look"),
        each("ship"),
        {"id": "end", "tool": "agent_core", "config": end},
    ]
    return make_workflow("parcel", *nodes)


def order() -> dict[str, Any]:
    """A workflow whose write a person approves."""
    return make_workflow("order", {"id": "ship", "tool": "ship", "config": {"name": NAME}, "approval": "always"})


def call() -> dict[str, Any]:
    """A workflow that waits for a signal, and then writes."""
    awaited = {"id": "called", "tool": "wait", "config": {"signal": "go", "seconds": 3600}}
    return make_workflow("call", awaited, {"id": "ship", "tool": "ship", "config": {"name": NAME}})


def tick() -> dict[str, Any]:
    """A workflow that a trigger begins."""
    return make_workflow("tick", {"id": "look", "tool": "look", "config": {"name": NAME}})


def make_workflow(name: str, *nodes: dict[str, Any]) -> dict[str, Any]:
    """One node after the other."""
    edges = [{"from": one["id"], "to": other["id"]} for one, other in pairwise(nodes)]
    return {"id": name, "inputs": INPUTS, "nodes": list(nodes), "edges": edges}


def write_depot(folder: Path, *, model: str, hook: str, **keys: Any) -> None:
    """Write the host's files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "depot.py").write_text(TOOLS)
    hooks = [{"url": hook, "secret_env": "SOAK_SECRET"}]
    more = {"tools": ["shop.py:TOOLS", "depot.py:TOOLS"], "base_urls": {model: "OPENAI_API_KEY"}, "webhooks": hooks}
    write_host(folder, **more, **keys)
    for definition in (parcel(model), order(), call(), tick()):
        (folder / "workflows" / f"{definition['id']}.json").write_text(json.dumps(definition))
    (folder / "triggers").mkdir()
    trigger = {"workflow": "tick", "cron": "* * * * *", "inputs": {"name": "tick"}}
    (folder / "triggers" / "minute.yaml").write_text(json.dumps(trigger))
