"""Flows of Prefect for the tests, and what serves them: python prefect_app.py, with the folder of its environment."""

import os
import threading
from pathlib import Path
from typing import Any

from prefect import flow, serve

from agent_core import SqliteJournal
from agent_core.errors import JournalAway
from agent_core.models import ScriptedModel
from engine_shim.plugins.prefect import AgentRunFailed, AgentStore, ask_agent, make_agent_task
from utools import DefinitionError, tool

FOLDER = Path(os.environ["AGENT_FOLDER"])
NEVER = {"retry_delay_seconds": 3600}
"""Of what must not be tried again: a retry would wait longer than a test."""
LONG = {"timeout": 600, "single_call_timeout": 600}
"""Of a busy machine."""


def note(name: str) -> int:
    """Count what was done; gives how often, this time included."""
    with (FOLDER / name).open("a") as file:
        file.write(".")
    return (FOLDER / name).stat().st_size


@tool(effect="read")
def look(q: str) -> str:
    """Looks; dies where it is told to, the first time; waits where it is told to."""
    if note(f"look-{q}") == 1 and q.startswith("deadly"):
        os.kill(os.getpid(), 9)
    if q.startswith("endless"):
        threading.Event().wait()
    return "seen"


@tool(effect="write")
def ship(q: str) -> str:
    """Ships; dies before it has answered, where it is told to."""
    note(f"ship-{q}")
    if q == "deadly":
        os.kill(os.getpid(), 9)
    return "shipped"


class Flaky(SqliteJournal):
    """A journal whose database goes away once, in the middle of a run."""

    def append(self, run: str, rows: Any) -> bool:
        if note("appends") == 4:
            raise JournalAway("the database went away")
        return super().append(run, rows)


def call(name: str, q: str) -> str:
    return f'{{"type": "action", "tool": "{name}", "args": {{"q": "{q}"}}}}'


def agent(name: str, *replies: str, asks: bool = False, journal: Any = None, **more: Any) -> Any:
    options = {key: more.pop(key) for key in NEVER if key in more}
    allowed = [{"tool": "look"}, {"tool": "ship", "approval": "always" if asks else "never"}]
    config = {"model": "scripted", "max_steps": 20, "max_tool_calls": 20, "allowed_tools": allowed, **LONG, **more}
    return make_agent_task(
        name,
        config,
        tools=[look, ship],
        journal=journal or "agent-store/runs",
        model=ScriptedModel([*replies, '{"type": "final", "answer": "done"}']),
        **options,
    )


deadly = agent("deadly", call("look", "first"), call("look", "deadly"))
lost = agent("lost", call("ship", "deadly"))
waits = agent("waits", call("ship", "17"), call("ship", "18"), asks=True)
flaky = agent("flaky", call("look", "flaky"), journal=Flaky(FOLDER / "flaky.db"), retry_delay_seconds=0)
limited = agent("limited", call("look", "one"), call("look", "deadly-two"), call("look", "three"), max_steps=3, **NEVER)
broken = agent("broken", allowed_tools=["lok"], **NEVER)
awaited = agent("awaited", call("ship", "19"), asks=True)
endless = agent("endless", call("look", "endless"))
aside = agent("aside", call("look", "endless-aside"))


@flow
def desk(name: str) -> dict[str, Any]:
    """Ask one agent."""
    return ask_agent(globals()[name], "Go.")


@flow
async def evening(name: str) -> dict[str, Any]:
    """Ask one agent in a flow that is async."""
    output: dict[str, Any] = await ask_agent(globals()[name], "Go.")
    return output


@flow
def failures() -> list[str]:
    """Ask agents whose runs no retry mends."""
    seen = []
    for each in (limited, broken):
        try:
            each("Go.")
        except (AgentRunFailed, DefinitionError) as error:
            seen.append(str(error))
    (FOLDER / "failures").write_text("\n".join(seen))
    return seen


@flow
def beside() -> None:
    """Ask two agents at once, in threads of the runner of tasks."""
    asked = [each.submit("Go.") for each in (aside, flaky)]
    for each in asked:
        each.wait()


if __name__ == "__main__":
    AgentStore(address=str(FOLDER / "runs.db")).save("runs", overwrite=True)
    serve(*[each.to_deployment("test") for each in (desk, evening, failures, beside)])
