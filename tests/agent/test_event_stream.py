"""stream_agent: the events of a run as an async iterator, whose end is the end of the run."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import pytest

from agent_core import DefinitionError, MemoryJournal, stream_agent
from agent_core.journal.chain import is_finished
from agent_core.models import ScriptedModel
from agent_core.run.agent_drive import ROOT
from support.by_hand import Q, action, final
from utools import Tool, ToolContext

CONFIG = {"model": "scripted", "max_steps": 5, "allowed_tools": ["look"], "prompt": "Go."}
Stream = AsyncGenerator[Any, None]


def stream(look: Callable[..., Any] = lambda args, context: "seen", journal: MemoryJournal | None = None) -> Stream:
    tool = Tool("look", "Looks.", Q, look, effect="read")
    model = ScriptedModel([action(), final()])
    return stream_agent(CONFIG, registry=[tool], model=model, journal=journal, run_id="r")


async def hang(args: Any, context: ToolContext) -> None:
    await asyncio.Event().wait()


async def test_events_come_in_order_and_the_output_last() -> None:
    before = asyncio.all_tasks()
    events = [event async for event in stream()]
    kinds = [event["event"] for event in events]
    assert [kind for kind in kinds if kind != "answer_delta"] == [
        *("step_started", "action", "observation", "step_started", "finished", "result")
    ]
    assert events[-1]["result"].final_answer == "done"
    assert asyncio.all_tasks() <= before


async def test_a_consumer_that_is_slow_holds_nothing_up() -> None:
    journal, events = MemoryJournal(), list[Any]()
    async for event in stream(journal=journal):
        while not is_finished(journal.load("r"), ROOT):
            await asyncio.sleep(0)  # the run comes to its end while its first event is being looked at
        events.append(event)
    assert events[-1]["event"] == "result"


async def test_what_a_run_raises_the_iteration_raises() -> None:
    before = asyncio.all_tasks()
    with pytest.raises(DefinitionError, match="config/max_steps"):
        async for _ in stream_agent({**CONFIG, "max_steps": "many"}, registry=[], model=ScriptedModel([])):
            pass
    assert asyncio.all_tasks() <= before


async def until_it_acts(events: Stream) -> None:
    async for event in events:
        if event["event"] == "action":
            return


async def test_closing_cancels_the_run_and_waits_for_its_end() -> None:
    before = asyncio.all_tasks()
    journal = MemoryJournal()
    async with aclosing(stream(hang, journal)) as events:
        await until_it_acts(events)
    assert journal.load("r")[ROOT][-1].record()["finish_reason"] == "cancelled"
    assert asyncio.all_tasks() <= before


async def test_a_break_cancels_the_run() -> None:
    before = asyncio.all_tasks()
    journal = MemoryJournal()
    async for event in stream(hang, journal):
        if event["event"] == "action":
            break
    while asyncio.all_tasks() - before:
        await asyncio.sleep(0)
    assert journal.load("r")[ROOT][-1].record()["finish_reason"] == "cancelled"


async def test_a_cancelled_consumer_cancels_the_run() -> None:
    before = asyncio.all_tasks()
    journal, acts = MemoryJournal(), asyncio.Event()

    async def consume() -> None:
        async for event in stream(hang, journal):
            if event["event"] == "action":
                acts.set()

    task = asyncio.create_task(consume())
    await acts.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert journal.load("r")[ROOT][-1].record()["finish_reason"] == "cancelled"
    assert asyncio.all_tasks() <= before


async def test_a_consumer_that_is_cancelled_at_each_turn_still_waits_for_the_end() -> None:
    """As a scope of anyio does it."""
    journal, acts = MemoryJournal(), asyncio.Event()

    async def consume() -> None:
        async with aclosing(stream(hang, journal)) as events:
            await until_it_acts(events)
            acts.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(consume())
    await acts.wait()
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)
    assert task.cancelled()
    assert journal.load("r")[ROOT][-1].record()["finish_reason"] == "cancelled"


async def test_who_is_cancelled_while_closing_is_told_so_once_the_run_has_ended() -> None:
    journal = MemoryJournal()
    events = stream(hang, journal)
    await until_it_acts(events)
    closing = asyncio.create_task(events.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert journal.load("r")[ROOT][-1].record()["finish_reason"] == "cancelled"


async def test_words_from_a_tools_own_thread_are_events() -> None:
    def look(args: Any, context: ToolContext) -> str:
        thread = threading.Thread(target=context.progress, args=("half of it", 0.5))
        thread.start()
        thread.join()
        return "seen"

    events = [event async for event in stream(look)]
    assert [event["text"] for event in events if event["event"] == "tool_progress"] == ["half of it"]


async def test_nothing_begins_before_the_iteration() -> None:
    journal = MemoryJournal()
    events = stream(journal=journal)
    await asyncio.sleep(0)
    assert journal.load("r") == {}
    await events.aclose()
    assert journal.load("r") == {}
