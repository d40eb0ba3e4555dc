"""A journal that waits for a network: what an event loop has done in threads, and what comes of a cancellation."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from agent_core import MemoryJournal, replay, run_agent, verify
from agent_core.journal.record import Row, Tape
from agent_core.models import ScriptedModel
from agent_core.run.blocking import finish_blocking, run_blocking
from agent_core.run.sync import run_sync
from support.by_hand import action, final
from utools import tool
from utools.threads import DaemonThreads

CONFIG: dict[str, Any] = {"prompt": "Look.", "allowed_tools": ["look"], "max_steps": 5, "model": "scripted"}


@tool(effect="read", code="look")
def look(q: str) -> str:
    """Looks something up."""
    return f"{q} was found"


class Remote(MemoryJournal):
    """A journal whose steps wait; `meet` is called before each row that is appended."""

    def __init__(self, meet: Callable[[Row], None] = lambda row: None) -> None:
        super().__init__()
        self.threads, self._meet = DaemonThreads(4), meet  # type: ignore[misc,assignment]
        self.in_loop: list[str] = []
        self.under_way, self.together = 0, 0

    def load(self, run: str) -> Tape:
        self._note("load")
        return super().load(run)

    def append(self, run: str, rows: Sequence[Row]) -> bool:
        self._note("append")
        self.under_way += 1
        self.together = max(self.together, self.under_way)
        for row in rows:
            self._meet(row)
        is_new = super().append(run, rows)
        self.under_way -= 1
        return is_new

    def _note(self, step: str) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        self.in_loop.append(step)


def model() -> ScriptedModel:
    return ScriptedModel([action("look", q="a"), action("look", q="b"), final("Both were found.")])


async def test_run_makes_no_step_on_its_journal_in_the_event_loop() -> None:
    journal = Remote()
    output = await run_agent(CONFIG, registry=[look], model=model(), journal=journal, run_id="r")
    assert output.final_answer == "Both were found."
    assert (journal.in_loop, journal.together) == ([], 1)
    assert verify(journal, run_id="r").ok
    assert replay(journal, run_id="r").identical


async def test_records_are_those_of_a_journal_in_memory() -> None:
    remote, local = Remote(), MemoryJournal()
    for journal in (remote, local):
        await run_agent(CONFIG, registry=[look], model=model(), journal=journal, run_id="r")
    kinds = [
        {path: [row.record()["kind"] for row in rows] for path, rows in j.load("r").items()} for j in (remote, local)
    ]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("kind", [b"run_started", b"asked", b"answered", b"run_finished"])
async def test_run_that_is_cancelled_while_a_record_is_under_way_ends_cancelled_or_as_it_had_ended(kind: bytes) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def meet(row: Row) -> None:
        if kind in row.data[:40] and not reached.is_set():
            reached.set()
            assert go_on.wait(20)

    journal = Remote(meet)
    running = asyncio.create_task(run_agent(CONFIG, registry=[look], model=model(), journal=journal, run_id="r"))
    await asyncio.to_thread(reached.wait)
    running.cancel()
    await asyncio.sleep(0)
    assert not running.done(), "it waits for the record"
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    last = journal.load("r")["agent"][-1].record()
    assert last["kind"] == "run_finished"
    assert last["finish_reason"] == ("final" if kind == b"run_finished" else "cancelled")
    assert verify(journal, run_id="r").ok


async def test_step_goes_on_without_a_caller_and_is_seen_through_for_one_who_says_so() -> None:
    journal, begun, go_on = Remote(), threading.Event(), threading.Event()

    def step() -> str:
        begun.set()
        assert go_on.wait(20)
        return "done"

    left = asyncio.create_task(run_blocking(journal, step))
    await asyncio.to_thread(begun.wait)
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    begun.clear()
    kept = asyncio.create_task(finish_blocking(journal, step))
    await asyncio.to_thread(begun.wait)
    kept.cancel("enough")
    await asyncio.sleep(0)
    go_on.set()
    result, cancellation = await kept
    assert (result, str(cancellation)) == ("done", "enough")
    assert await run_blocking(MemoryJournal(), step) == "done"


@tool(code="pay")
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def test_answer_of_a_write_is_kept_when_the_program_is_interrupted_as_it_is_recorded() -> None:
    loops: list[asyncio.AbstractEventLoop] = []
    interrupted = threading.Event()

    def interrupt() -> None:
        interrupted.set()
        raise KeyboardInterrupt

    def meet(row: Row) -> None:
        record = row.record()
        if record["kind"] == "answered" and record["reply"] == "did" and not interrupted.is_set():
            loops[0].call_soon_threadsafe(interrupt)
            assert interrupted.wait(20)
            time.sleep(0.05)  # the loop ends meanwhile

    journal = Remote(meet)
    config = {**CONFIG, "allowed_tools": [{"tool": "pay", "approval": "never"}]}
    answers = ScriptedModel([action("pay", amount=5), final("It is paid.")])

    async def pay_once() -> Any:
        loops.append(asyncio.get_running_loop())
        return await run_agent(config, registry=[pay], model=answers, journal=journal, run_id="r")

    with pytest.raises(KeyboardInterrupt):
        run_sync(pay_once)
    kinds = [row.record()["kind"] for rows in journal.load("r").values() for row in rows]
    assert ("answered" in kinds, "waiting" in kinds) == (True, False), "what was paid is known, and not in doubt"
    assert verify(journal, run_id="r").ok
