"""What work may do to its task, to its cancellation and with its time: only its own call hears of it."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from itertools import repeat

import pytest

from agent_core import MemoryJournal, run_agent, verify
from agent_core.models import ScriptedModel
from agent_core.run import deadline
from agent_core.run.deadline import CancelledItself, TooLate, run_within
from support.by_hand import final
from utools import tool

Behaviour = Callable[[], Awaitable[object]]
FIRST = {"type": "action", "tool": "look", "args": {}}
SECOND = {"type": "action", "tool": "wait", "args": {}}


@pytest.fixture
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "GRACE_S", 0)


def own_task() -> "asyncio.Task[object]":
    task = asyncio.current_task()
    assert task is not None
    return task


async def let_pass(times: int = 20) -> None:
    for _ in repeat(None, times):
        await asyncio.sleep(0)


async def ignore_cancellation(released: asyncio.Event) -> None:
    while not released.is_set():
        try:
            await released.wait()
        except asyncio.CancelledError:
            continue


# ── within a run ─────────────────────────────────────────────────────────────────────────────────


async def cancel_own_task() -> None:
    own_task().cancel()
    await asyncio.sleep(0)


async def cancel_own_task_and_end() -> None:
    own_task().cancel()


async def wait_and_cancel_own_task() -> None:
    await asyncio.sleep(0)
    own_task().cancel()


async def be_cancelled_by_a_timer() -> None:
    asyncio.get_running_loop().call_soon(own_task().cancel)
    await asyncio.Event().wait()


async def be_cancelled_after_the_end() -> None:
    loop, task = asyncio.get_running_loop(), own_task()
    loop.call_soon(lambda: loop.call_soon(lambda: loop.call_later(0, task.cancel)))


async def keep_a_cancellation() -> None:
    own_task().cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    "behave",
    [
        cancel_own_task,
        cancel_own_task_and_end,
        wait_and_cancel_own_task,
        be_cancelled_by_a_timer,
        be_cancelled_after_the_end,
        keep_a_cancellation,
    ],
)
async def test_a_tool_that_cancels_its_task_does_not_cancel_its_run(behave: Behaviour) -> None:
    @tool(effect="read", code="look")
    async def look() -> str:
        """Looks."""
        await behave()
        return "seen"

    counts: list[int] = []

    @tool(effect="read", code="wait")
    async def wait() -> str:
        """Waits."""
        counts.append(own_task().cancelling())
        await let_pass()
        return "waited"

    journal = MemoryJournal()
    output = await run_agent(
        {"model": "scripted", "max_steps": 5, "allowed_tools": ["look", "wait"], "prompt": "Go.", "max_repairs": 3},
        registry=[look, wait],
        model=ScriptedModel([FIRST, SECOND, final("done")]),
        journal=journal,
    )
    assert (output.finish_reason, output.final_answer, counts) == ("final", "done", [0])
    assert verify(journal).ok
    assert own_task().cancelling() == 0


# ── time ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_task_that_work_awaits_and_that_ignores_its_cancellation_is_not_waited_for(no_grace: None) -> None:
    released = asyncio.Event()
    child = asyncio.create_task(ignore_cancellation(released))

    async def work() -> None:
        await child

    with pytest.raises(TooLate):
        await run_within(work(), 0)
    assert not child.done()
    released.set()
    await child


async def test_work_whose_child_ends_quietly_when_cancelled_does_not_go_on(no_grace: None) -> None:
    async def end_quietly() -> None:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.Event().wait()

    released, went_on = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await asyncio.create_task(end_quietly())
        went_on.set()
        await released.wait()

    with pytest.raises(TooLate):
        await run_within(work(), 0.01)
    released.set()


async def test_what_a_child_raises_when_cancelled_is_not_raised_in_place_of_too_late() -> None:
    async def convert() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("converted") from None

    async def work() -> None:
        await asyncio.create_task(convert())

    with pytest.raises(TooLate):
        await run_within(work(), 0.01)
    assert own_task().cancelling() == 0


async def test_work_that_takes_its_cancellation_back_is_abandoned(no_grace: None) -> None:
    released, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                own_task().uncancel()
        ended.set()

    with pytest.raises(TooLate):
        await run_within(work(), 0.01)
    assert not ended.is_set()
    released.set()
    await ended.wait()


async def test_a_timeout_and_a_group_in_abandoned_work_cancel_nothing_but_that(no_grace: None) -> None:
    released, heard = asyncio.Event(), asyncio.Event()

    async def fail() -> None:
        await released.wait()
        raise ValueError("late")

    async def work() -> None:
        async with asyncio.timeout(None) as timeout, asyncio.TaskGroup() as group:
            group.create_task(fail())
            with pytest.raises(asyncio.CancelledError):
                await asyncio.Event().wait()
            await released.wait()
            timeout.reschedule(0)
            with pytest.raises(asyncio.CancelledError):
                await asyncio.Event().wait()
            heard.set()

    with pytest.raises(TooLate):
        await run_within(work(), 0.01)
    released.set()
    await heard.wait()
    await let_pass()
    assert own_task().cancelling() == 0


@pytest.mark.parametrize("seconds", [0.01, None])
async def test_work_that_is_late_or_whose_caller_is_cancelled_closes_what_it_opened_first(
    seconds: float | None,
) -> None:
    heard: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await let_pass()
            heard.append("closed")

    async def call() -> None:
        try:
            await run_within(work(), seconds)
        except TooLate:
            heard.append("late")
        except asyncio.CancelledError:
            heard.append("cancelled")

    task = asyncio.create_task(call())
    await let_pass(3)
    if seconds is None:
        task.cancel()
    await task
    assert heard == ["closed", "late" if seconds else "cancelled"]


async def test_a_second_cancellation_of_the_caller_abandons_work_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "GRACE_S", None)  # without end
    released = asyncio.Event()
    task = asyncio.create_task(run_within(ignore_cancellation(released), None))
    for _ in range(2):
        await let_pass(3)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    released.set()


async def test_work_that_cancels_itself_and_work_that_ends_in_its_last_moment() -> None:
    async def give() -> str:
        return "given"

    with pytest.raises(CancelledItself):
        await run_within(cancel_own_task_and_end(), None)
    assert await run_within(give(), 60) == "given"


async def test_work_that_waits_for_nothing_gives_others_their_turn() -> None:
    async def answer() -> str:
        return "at once"

    heard: list[bool] = []
    asyncio.get_running_loop().call_soon(heard.append, True)
    assert (await run_within(answer(), 1.0), heard) == ("at once", [True])


@pytest.mark.parametrize("turns", range(1, 6))
async def test_work_that_never_began_is_closed_however_often_its_caller_is_cancelled(turns: int) -> None:
    """A loop over events is left, and `asyncio.run` cancels what then is still under way."""
    loop, work, others = asyncio.get_running_loop(), let_pass(), asyncio.all_tasks()
    loop.set_task_factory(lambda loop, coro, **options: asyncio.Task(coro, loop=loop, **options))  # none begins at once
    caller = asyncio.create_task(run_within(work, None))
    loop.call_soon(lambda: [task.cancel() for task in asyncio.all_tasks() - others])
    await let_pass(turns)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await let_pass()
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED
