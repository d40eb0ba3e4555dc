"""How a program uses the library, each with the type that a checker infers."""

from typing import Any, assert_type

from pydantic import BaseModel

from agent_core import AgentOutput, run_agent, run_agent_sync, stream_agent
from agent_core.outputs import RunUsage


class Verdict(BaseModel):
    guilty: bool


CONFIG = {"model": "scripted", "max_steps": 5, "allowed_tools": [], "prompt": "Go."}


async def main():
    out = await run_agent(CONFIG, registry=[], answer_schema=Verdict)
    assert_type(out, AgentOutput[Verdict])
    assert_type(out.final_answer, Verdict | None)
    assert_type(out.answer, Verdict)
    assert_type(run_agent_sync(CONFIG, registry=[]).final_answer, str | None)
    assert_type(run_agent_sync(CONFIG, registry=[], answer_schema={"type": "object"}).final_answer, Any | None)
    async for e in stream_agent(CONFIG, registry=[], answer_schema=Verdict):
        if e["event"] == "result":
            assert_type(e["result"].answer, Verdict)
        elif e["event"] == "answer_delta":
            assert_type(e["text"], str)
        elif e["event"] == "finished" and "status" not in e:
            assert_type(e["usage"], RunUsage)
