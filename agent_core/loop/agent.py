"""agent(): the loop of an agent's run, by its mode. Pure."""

from typing import Final

from agent_core.effects import Loop
from agent_core.loop.plan import plan
from agent_core.loop.react import react
from agent_core.outputs import Json


def agent(started: Json) -> Loop:
    """Run an agent, from its `run_started` record to its outcome."""
    return plan(started) if started["config"].get("mode") == "plan" else react(started)


AGENT_LOOPS: Final = {"agent": agent}
"""The loop of a run without workflows, by its name in records."""
