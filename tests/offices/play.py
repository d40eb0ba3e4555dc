"""Plays calls in an office: a scripted model makes them, the real gate judges them, a person answers what is asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agent_core.decisions import Approve, Deny
from agent_core.journal.memory import MemoryJournal
from agent_core.models import ScriptedModel
from agent_core.run.agent_output import AgentOutput
from agent_core.run.node import run_agent
from offices.world import Call, World

UNLIMITED = {"max_steps": 0, "max_tool_calls": 0, "max_repairs": 1000, "timeout": None, "trace_max_bytes": None}


@dataclass(frozen=True, slots=True)
class Played:
    """A run that has ended: what a person was asked, and what was refused."""

    asked: Sequence[Call]
    refused: Sequence[str]


async def play(
    world: World, prompt: str, calls: Sequence[Call], approves: Callable[[Call], bool], *, gate: bool
) -> Played:
    """Make the calls in this world, whatever comes back. Without the gate, every tool is allowed with any argument."""
    steps: list[dict[str, Any]] = [{"type": "action", "tool": code, "args": args} for code, args in calls]
    config = {
        **UNLIMITED,
        "model": "scripted",
        "prompt": prompt,
        "system_prompt": world.office.about,
        "allowed_tools": world.office.policy() if gate else [verb.code for verb in world.office.verbs],
    }
    model = ScriptedModel([*steps, {"type": "final", "answer": "Done."}])
    journal, tools = MemoryJournal(), world.tools()
    asked: list[Call] = []
    decisions: dict[tuple[str, int], Approve | Deny] | None = None
    while True:
        output = await run_agent(config, registry=tools, model=model, journal=journal, run_id="r", decisions=decisions)
        if output.finish_reason != "awaiting_approval":
            break
        decisions = {}
        for entry in output.waiting:
            call = (entry["tool"], entry["args"])
            asked.append(call)
            decisions[entry["strand"], entry["n"]] = Approve() if approves(call) else Deny("No.")
    assert output.finish_reason == "final", output.error or output.finish_reason
    return Played(asked, _refusals(output))


def _refusals(output: AgentOutput) -> list[str]:
    """What the gate said of each call that was neither made nor asked for."""
    return [str(step["error"]) for step in output.trace if step["error"]]
