"""An app of Celery for the tests: `celery -A celery_app worker`, with the folder and the broker of its environment."""

import os
import time
from pathlib import Path

from celery import Celery

from agent_core.models import ScriptedModel
from engine_shim.plugins.celery import make_agent_task
from utools import tool

LIMIT_S = 8
"""The limit of a task that looks once a second."""
FOLDER, URL = Path(os.environ["AGENT_FOLDER"]), os.environ["AGENT_BROKER"]
app = Celery("agents", broker=URL, backend=URL)
app.conf.update(worker_prefetch_multiplier=1, broker_connection_retry_on_startup=True, worker_hijack_root_logger=False)


def note(name: str) -> int:
    """Count what was done; gives how often, this time included."""
    with (FOLDER / name).open("a") as file:
        file.write(".")
    return (FOLDER / name).stat().st_size


@tool(effect="read")
def look(q: str) -> str:
    """Looks something up; dies where it is told to, the first time."""
    if note(f"look-{q}") == 1 and q == "deadly":
        os.kill(os.getpid(), 9)
    if q == "slow":
        time.sleep(1)
    return "seen"


@tool(effect="write")
def ship(q: str) -> str:
    """Ships."""
    note(f"ship-{q}")
    return "shipped"


def call(name: str, q: str) -> str:
    return f'{{"type": "action", "tool": "{name}", "args": {{"q": "{q}"}}}}'


FINAL = '{"type": "final", "answer": "done"}'
ALLOWED = [{"tool": "look"}, {"tool": "ship", "approval": "always"}]
CONFIG = {"model": "scripted", "max_steps": 20, "max_tool_calls": 20, "allowed_tools": ALLOWED}


def agent(name: str, replies: list[str], **more: object) -> object:
    options = {"time_limit": LIMIT_S} if name == "slow" else {}
    return make_agent_task(
        app,
        name,
        {**CONFIG, **more},
        tools=[look, ship],
        journal=FOLDER / "runs.db",
        model=ScriptedModel(replies),
        **options,
    )


deadly = agent("deadly", [call("look", "first"), call("look", "deadly"), FINAL])
waits = agent("waits", [call("ship", "17"), FINAL])
slow = agent("slow", [*[call("look", "slow")] * (LIMIT_S + 1), FINAL])
limited = agent("limited", [call("look", "first"), FINAL], max_steps=1)
