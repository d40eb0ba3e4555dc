"""Definitions of Dagster for the tests, and what runs them: python dagster_app.py SCENE…; prints what came of each."""

import json
import os
import signal
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from dagster import (
    AssetSelection,
    DagsterInstance,
    DefaultSensorStatus,
    Definitions,
    ExecuteInProcessResult,
    JobDefinition,
    JobExecutionResult,
    ReexecutionOptions,
    RetryPolicy,
    RunsFilter,
    StaticPartitionsDefinition,
    asset,
    define_asset_job,
    execute_job,
    in_process_executor,
    job,
    materialize,
    multiprocess_executor,
    op,
    reconstructable,
)

from agent_core import SqliteJournal
from agent_core.errors import JournalAway
from agent_core.models import ScriptedModel
from engine_shim.plugins.dagster import AgentResource, make_agent_asset, make_agent_op, make_agent_sensor
from utools import tool

FOLDER = Path(os.environ["AGENT_FOLDER"])
LONG = {"timeout": 600, "single_call_timeout": 600}
"""Of a busy machine."""
PRELOADED = {"preload_modules": ["dagster", "agent_core.models", "engine_shim.plugins.dagster"]}
AGENTS = {"agents": AgentResource(journal=str(FOLDER / "runs.db"))}


def count(name: str) -> int:
    file = FOLDER / name
    return file.stat().st_size if file.exists() else 0


def note(name: str) -> int:
    """Count what was done; gives how often, this time included."""
    with (FOLDER / name).open("a") as file:
        file.write(".")
    return count(name)


@tool(effect="read")
def look(q: str) -> str:
    """Looks; dies where it is told to, the first time; waits where it is told to."""
    if note(f"look-{q}") == 1 and q.startswith("deadly"):
        os.kill(os.getpid(), 9)
    if q == "endless":
        threading.Event().wait()
    return "seen"


@tool(effect="write")
def ship(q: str) -> str:
    """Ships; dies before it has answered, where it is told to."""
    note(f"ship-{q}")
    if q == "deadly":
        os.kill(os.getpid(), 9)
    return "shipped"


def call(name: str, q: str) -> str:
    return f'{{"type": "action", "tool": "{name}", "args": {{"q": "{q}"}}}}'


FINAL = '{"type": "final", "answer": "done"}'


def config(*, asks: bool = False, **more: Any) -> dict[str, Any]:
    allowed = [{"tool": "look"}, {"tool": "ship", "approval": "always" if asks else "never"}]
    return {"model": "scripted", "max_steps": 20, "max_tool_calls": 20, "allowed_tools": allowed, **LONG, **more}


def agent(name: str, *replies: str, **more: Any) -> Any:
    return make_agent_op(
        name,
        config(**more),
        tools=[look, ship],
        model=ScriptedModel([*replies, FINAL]),
        retry_policy=RetryPolicy(max_retries=2),
    )


@op
def prompt() -> str:
    return "Go."


deadly = agent("deadly", call("look", "first"), call("look", "deadly"))
lost = agent("lost", call("ship", "deadly"))
limited = agent("limited", call("look", "one"), call("look", "deadly-two"), call("look", "three"), max_steps=3)
broken = agent("broken", allowed_tools=["lok"])
flaky = agent("flaky", call("look", "flaky"))
endless = agent("endless", call("look", "endless"))


class FlakyJournal(SqliteJournal):
    """A journal whose database goes away once, in the middle of a run."""

    def append(self, run: str, rows: Any) -> bool:
        if note("appends") == 4:
            raise JournalAway("the database went away")
        return super().append(run, rows)


class FlakyResource(AgentResource):
    """A store with such a journal."""

    def open_journal(self) -> Any:
        return closing(FlakyJournal(FOLDER / "flaky.db"))


@job(executor_def=multiprocess_executor.configured({"start_method": {"forkserver": PRELOADED}}), resource_defs=AGENTS)
def deaths() -> None:
    asked = prompt()
    for each in (deadly, lost, limited):
        each(asked)


@job(executor_def=in_process_executor, resource_defs={"agents": FlakyResource(journal="")})
def failing() -> None:
    asked = prompt()
    broken(asked)
    flaky(asked)


@job(executor_def=in_process_executor, resource_defs=AGENTS)
def cancelled() -> None:
    endless(prompt())


@asset
def order() -> str:
    note("made-order")
    return "17"


refund = make_agent_asset(
    "refund",
    config(asks=True),
    prompt=lambda order: f"Ship {order}.",
    tools=[look, ship],
    model=ScriptedModel([call("ship", "17"), FINAL]),
)


@asset
def report(refund: dict[str, Any]) -> None:
    (FOLDER / "report").write_text(json.dumps(refund))


@asset
def goods() -> str:
    return "lamps"


seasonal = make_agent_asset(
    "seasonal",
    config(),
    prompt=lambda context, goods: f"Look at the {goods} of {context.partition_key}.",
    tools=[look, ship],
    model=ScriptedModel([FINAL]),
    partitions_def=StaticPartitionsDefinition(["spring", "autumn"]),
)


refunds = define_asset_job("refunds", AssetSelection.all(), executor_def=in_process_executor)
sensor = make_agent_sensor(
    "decided", jobs=[refunds], minimum_interval_seconds=1, default_status=DefaultSensorStatus.RUNNING
)
defs = Definitions(assets=[order, refund, report], jobs=[refunds], sensors=[sensor], resources=AGENTS)


def assets_job() -> JobDefinition:
    return defs.resolve_job_def("refunds")


def run(instance: DagsterInstance, what: Any, **options: Any) -> JobExecutionResult:
    return execute_job(reconstructable(what), instance, **options)


def go_on(instance: DagsterInstance, what: Any) -> JobExecutionResult:
    """Re-execute the last run of a job from its failure."""
    (last,) = instance.get_runs(RunsFilter(job_name=what.name), limit=1)
    return run(instance, what, reexecution_options=ReexecutionOptions.from_failure(last.run_id, instance))


def terminate(instance: DagsterInstance) -> None:
    """Terminate the run in this process once its tool is at work, as a request to do so does."""
    while not count("look-endless"):
        time.sleep(0.05)
    (running,) = instance.get_runs(RunsFilter(job_name="cancelled"))
    instance.report_run_canceling(running)
    os.kill(os.getpid(), signal.SIGTERM)


def play(scene: str, instance: DagsterInstance) -> Any:
    match scene:
        case "cancelled":
            threading.Thread(target=terminate, args=[instance]).start()
            return run(instance, cancelled)
        case "decided":
            return go_on(instance, deaths)
        case "seasonal":
            return materialize([goods, seasonal], instance=instance, resources=AGENTS, partition_key="autumn")
        case "refunds":
            return run(instance, assets_job)
        case _:
            return run(instance, globals()[scene])


def tell(result: JobExecutionResult | ExecuteInProcessResult) -> Any:
    """What came of a run, as JSON: its status, the events of each step, and what proves its agents' runs."""
    steps: dict[str, list[str]] = {}
    proofs = {}
    for event in result.all_events:
        if event.is_step_event and event.step_key:
            steps.setdefault(event.step_key, []).append(event.event_type_value)
        if event.is_successful_output and "agent_run_id" in event.step_output_data.metadata:
            proofs[event.step_key] = {key: each.value for key, each in event.step_output_data.metadata.items()}
    return {"status": result.dagster_run.status.value, "steps": steps, "proofs": proofs}


if __name__ == "__main__":
    with DagsterInstance.get() as opened:
        outcomes = {scene: tell(play(scene, opened)) for scene in sys.argv[1:]}
    print(json.dumps(outcomes), flush=True)
