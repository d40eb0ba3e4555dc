"""A process that drives a run whose model is at the URL given, tells its status, and stays until its input ends."""

import asyncio
import sys
from pathlib import Path

from engine_shim import Engine, SqliteRunStore, load_workflow
from utools import ToolRegistry


async def main(url: str, store: str, run: str) -> None:
    """The event loop stays, too: its end would close what the run has left open."""
    config = {"model": "openai:m", "base_url": url, "max_steps": 2, "allowed_tools": [], "prompt": "Go.", "timeout": 0}
    config["single_call_timeout"] = 0
    workflow = load_workflow({"id": "w", "nodes": [{"tool": "agent_core", "config": config}]})
    engine = Engine(ToolRegistry(), store=SqliteRunStore(Path(store)))
    print((await engine.run(workflow, run_id=run)).status, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await engine.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
