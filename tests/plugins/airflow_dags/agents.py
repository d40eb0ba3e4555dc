"""DAGs for the tests: agents with tools that count what they do, in the folder AGENT_FOLDER."""

import os
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, task

from agent_core.models import ScriptedModel
from engine_shim.plugins.airflow import AgentCoreOperator
from utools import tool

FOLDER = Path(os.environ["AGENT_FOLDER"])
START = datetime(2026, 1, 1, tzinfo=UTC)
FINAL = '{"type": "final", "answer": "done"}'
ALLOWED = [{"tool": "look"}, {"tool": "ship", "approval": "always"}]
CONFIG: dict[str, Any] = {"model": "scripted", "max_steps": 30, "max_tool_calls": 30, "allowed_tools": ALLOWED}


def note(name: str) -> int:
    """Count what was done; gives how often, this time included."""
    with (FOLDER / name).open("a") as file:
        file.write(".")
    return (FOLDER / name).stat().st_size


@tool(effect="read")
def look(q: str) -> str:
    """Looks something up; does what it is told to, the first time."""
    times = note(f"look-{q}")
    if q == "deadly" and times == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if q == "long" and times == 1:
        time.sleep(60)
    if q == "slow":
        time.sleep(1)
    return "seen"


@tool(effect="write")
def ship(q: str) -> str:
    """Ships; dies where it is told to, the first time."""
    if note(f"ship-{q}") == 1 and q == "doubt":
        os.kill(os.getpid(), signal.SIGKILL)
    return "shipped"


def call(name: str, q: str) -> str:
    return f'{{"type": "action", "tool": "{name}", "args": {{"q": "{q}"}}}}'


def agent(name: str, replies: list[str], *, prompt: str = "Go.", **options: Any) -> AgentCoreOperator:
    config = {**CONFIG, **options.pop("config", {})}
    return AgentCoreOperator(
        task_id="agent",
        prompt=prompt,
        config=config,
        tools=[look, ship],
        model=ScriptedModel(replies),
        retries=5,
        retry_delay=timedelta(seconds=0),
        poll_interval=0.5,
        **options,
    )


def dag(name: str, **options: Any) -> DAG:
    return DAG(name, schedule=None, start_date=START, is_paused_upon_creation=False, **options)


with dag("plain"):

    @task
    def tell(answer: str, usage: dict[str, Any]) -> str:
        return f"{answer} after {usage['requests']} requests"

    asked = agent("plain", [call("look", "plain"), FINAL])
    tell(asked.output["final_answer"], asked.output["usage"])

with dag("deadly"):
    agent("deadly", [call("look", "first"), call("look", "deadly"), FINAL])

with dag("doubtful"):
    agent("doubtful", [call("ship", "doubt"), FINAL], config={"allowed_tools": ["ship"]})

with dag("asking"):
    agent("asking", [call("ship", "17"), FINAL])

with dag("watching"):
    agent("watching", [call("ship", "18"), FINAL], decide_in="store")

with dag("asking_twice"):
    agent("asking_twice", [call("ship", "1"), call("ship", "2"), FINAL])

with dag("limited"):
    agent("limited", [call("look", "limited"), FINAL], config={"max_steps": 1})

with dag("long"):
    agent("long", [call("look", "long"), FINAL])

with dag("let_go"):
    agent("let_go", [call("look", "slow")] * 8 + [FINAL])

with dag("mapped"):
    AgentCoreOperator.partial(
        task_id="agent",
        config=CONFIG,
        tools=[look, ship],
        model=ScriptedModel([call("look", "mapped"), FINAL]),
    ).expand(prompt=["Ann", "Bob"])

with dag("decorated"):

    @task.agent_core(config=CONFIG, tools=[look, ship], model=ScriptedModel([call("look", "decorated"), FINAL]))
    def ask(name: str) -> str:
        return f"Greet {name}."

    ask("Ann")

with DAG("daily", schedule="@daily", start_date=START, is_paused_upon_creation=False, catchup=False):
    agent("daily", [call("look", "daily"), FINAL], prompt="What of {{ ds }}?")
