"""A process that executes a graph: `python -m support.crash.graph FILE [ID]` begins, or goes on with, an execution.

It prints the id at once, a line for each call of a tool, which waits for ever where there is no ID, and at last the
result. What the model is asked is in a file beside the store, which no kill takes back.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from agent_core.models import ScriptedModel
from engine_shim import AgentBuilder, AgentState, Engine, SqliteRunStore
from utools import Tool

CALL = {"type": "action", "tool": "look", "args": {}}


async def main(file: Path, run_id: str | None) -> None:
    def reply(messages: Any) -> Any:
        text = str(messages)
        node = "a" if "You are a." in text else "b"
        with file.with_suffix(".asked").open("a") as asked:
            asked.write(f"{node}\n")
        if node == "b" and "seen" not in text:
            return CALL
        return {"type": "final", "answer": f"{node.upper()}."}

    async def look(args: Any, context: Any) -> str:
        print("looking", flush=True)
        if run_id is None:
            await asyncio.Event().wait()
        return "seen"

    tools = [Tool("look", "Looks.", {"type": "object"}, look, effect="read")]
    engine = Engine(tools, store=SqliteRunStore(file), model=ScriptedModel(reply))
    builder = AgentBuilder("g").set_timeout(0).set_entry_point("a").add_edge("a", "b")
    for key in "ab":
        builder.add_llm_node(key, "", "m", ["look"], f"You are {key}.", single_call_timeout=0)
    graph = builder.build(engine)
    begun = graph.resume(run_id) if run_id else graph.execute("a", AgentState([], [{"role": "user", "content": "Go."}]))
    print(begun.id, flush=True)
    result = await begun
    said = [message["content"] for message in result.final_state.context if message["role"] == "assistant"]
    print(json.dumps({"status": result.status, "said": said, "path": [node.key for node in result.execution_path]}))
    await engine.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None))
