"""One attempt in a thread beside the one that an engine interrupts."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve, DecisionError, SqliteJournal
from agent_core.models import ScriptedModel
from agent_core.node import NodeContext, find_run
from engine_shim.plugins.attempt import deadline_within, execute_beside
from engine_shim.plugins.decided import encode_decisions, place_decisions
from support.optional import needs
from utools import tool

STEPS = [
    '{"type": "action", "tool": "look", "args": {}}',
    '{"type": "action", "tool": "look", "args": {}}',
    '{"type": "final", "answer": "done"}',
]
CONFIG: dict[str, Any] = {"model": "scripted", "max_steps": 5, "allowed_tools": ["look"], "prompt": "Go."}


class Interrupted(BaseException):
    """What an engine raises in the thread of a task."""


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    def interrupt(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    yield
    signal.signal(signal.SIGUSR1, before)


class Attempt:
    """An attempt whose tool interrupts the thread of the task at its first call, and answers once the run has heard."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.calls = folder, 0

    def context(self, *, interrupts: bool = True) -> NodeContext:
        @tool(effect="read")
        def look() -> str:
            """Looks."""
            self.calls += 1
            if self.calls == 1 and interrupts:
                os.kill(os.getpid(), signal.SIGUSR1)
            while self.calls == 1 and made.stop.wanted is None:
                threading.Event().wait(0.01)
            return "seen"

        made = NodeContext(run_id="r", journal=self.folder / "runs.db", tools=[look], model=ScriptedModel(STEPS))
        return made


def test_interrupted_attempt_lets_go_and_the_next_goes_on(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    with pytest.raises(Interrupted):
        execute_beside(CONFIG, attempt.context(), lambda: False)
    assert attempt.calls == 1
    output = execute_beside(CONFIG, attempt.context(), lambda: False)
    assert (output.status, attempt.calls) == ("completed", 2)


def test_interrupted_attempt_of_a_cancelled_task_cancels_the_run(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    with pytest.raises(Interrupted):
        execute_beside(CONFIG, attempt.context(), lambda: True)
    assert execute_beside(CONFIG, attempt.context(), lambda: False).status == "cancelled"


def test_cancelled_task_is_seen_without_an_interrupt(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    output = execute_beside(CONFIG, attempt.context(interrupts=False), lambda: attempt.calls == 1, look_every=0.01)
    assert output.status == "cancelled"


def test_attempt_ends_before_its_limit_by_a_quarter_of_it_at_most() -> None:
    short, long = deadline_within(8), deadline_within(3600)
    assert short is not None
    assert long is not None
    assert 3560 < (long - short).total_seconds() < 3570
    assert deadline_within(None) is None


def test_attempt_interrupted_again_while_its_engine_is_asked_lets_go(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    context = attempt.context()

    def ask() -> bool:
        raise Interrupted("again")

    with pytest.raises(Interrupted, match="again"):
        execute_beside(CONFIG, context, ask)
    assert (context.stop.wanted, attempt.calls) == ("pause", 1)


def test_decisions_of_a_person_are_placed_and_one_too_many_is_not_lost() -> None:
    waiting, approved = [{"strand": "agent", "n": 3}, {"strand": "agent", "n": 5}], {"decision": "approve"}
    assert place_decisions([approved, {**approved, "n": 9}], waiting) == [
        {"strand": "agent", "n": 3, **approved},
        {"strand": "agent", "n": 9, **approved},
    ]
    assert len(place_decisions([approved], waiting)) == 1
    with pytest.raises(DecisionError, match="there are 3 decisions, and 2 calls that wait"):
        place_decisions([approved] * 3, waiting)


@pytest.mark.parametrize("place", [2, -1, "0"])
def test_decision_for_a_place_where_no_call_waits_is_refused(place: Any) -> None:
    waiting = [{"strand": "agent", "n": 3}, {"strand": "agent", "n": 5}]
    with pytest.raises(DecisionError, match=f"no call waits at place {place!r}: 2 wait"):
        encode_decisions({"waiting": waiting}, {place: Approve()})


@needs("celery")
def test_celery_task_that_is_called_directly_begins_a_run_each_time(tmp_path: Path) -> None:
    from celery import Celery

    from engine_shim.plugins.celery import make_agent_task

    more: dict[str, Any] = {"tools": [], "journal": tmp_path / "runs.db", "model": ScriptedModel([STEPS[-1]] * 2)}
    task = make_agent_task(Celery("desk", broker="memory://"), "refunds", {**CONFIG, "allowed_tools": []}, **more)
    assert task("One.")["run_id"] != task("Another.")["run_id"]


@needs("celery")
@pytest.mark.parametrize(("limit", "own"), [("task_time_limit", None), ("task_soft_time_limit", 500)])
def test_limit_of_a_celery_app_is_that_of_its_tasks(limit: str, own: float | None, tmp_path: Path) -> None:
    """In older versions of Celery tasks do not have it themselves: they were killed there, and failed."""
    from celery import Celery

    from engine_shim.plugins.celery import make_agent_task
    from engine_shim.plugins.celery.task import _deadline_of

    app = Celery("desk", broker="memory://")
    setattr(app.conf, limit, 100)
    task = make_agent_task(app, "refunds", CONFIG, tools=[], journal=tmp_path / "runs.db")
    task.time_limit, task.soft_time_limit = own, None
    deadline = _deadline_of(task)
    assert deadline is not None
    assert 60 < (deadline - datetime.now(UTC)).total_seconds() <= 75


@needs("temporalio")
async def test_activity_that_is_cancelled_again_still_cancels_its_run(tmp_path: Path) -> None:
    """As by a worker that shuts down meanwhile: the run stayed as it was, driven by nobody."""
    from temporalio.testing import ActivityEnvironment

    from engine_shim.plugins.temporal import AgentRequest, make_agent_activity

    begun = asyncio.Event()

    @tool(effect="read")
    async def look() -> str:
        """Looks."""
        begun.set()
        await asyncio.sleep(60)
        return "seen"

    config = {key: value for key, value in CONFIG.items() if key != "prompt"}
    journal = tmp_path / "runs.db"
    activity = make_agent_activity("desk", config, tools=[look], journal=journal, model=ScriptedModel(STEPS))
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, start_to_close_timeout=None)
    attempt = asyncio.ensure_future(environment.run(activity, AgentRequest("Go.")))
    await begun.wait()
    environment.cancel()
    for _ in range(2):
        await asyncio.sleep(0)
        attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    [run] = SqliteJournal(journal).runs()
    found = await find_run(run, journal=journal)
    assert found is not None
    assert found.ended == "cancelled"
