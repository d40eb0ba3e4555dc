"""A process that drives a run whose model is at the URL given, tells its status, and stays until its input ends."""

import sys
from pathlib import Path

from engine_shim import Engine, SqliteRunStore, load_workflow
from utools import ToolRegistry


def main(url: str, store: str, run: str) -> None:
    config = {"model": "openai:m", "base_url": url, "max_steps": 2, "allowed_tools": [], "prompt": "Go.", "timeout": 0}
    config["single_call_timeout"] = 0
    workflow = load_workflow({"id": "w", "nodes": [{"tool": "agent_core", "config": config}]})
    engine = Engine(ToolRegistry(), store=SqliteRunStore(Path(store)))
    print(engine.run_sync(workflow, run_id=run).status, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
