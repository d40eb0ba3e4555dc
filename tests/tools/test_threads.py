"""Daemon threads: a fixed number of slots, which abandoned work keeps."""

import asyncio
import contextvars
import gc
import subprocess
import sys
import threading
import weakref
from functools import cache

import pytest

from utools.threads import TOOLS_AT_ONCE, DaemonThreads, _ThreadsOfProcess

VARIABLE = contextvars.ContextVar("VARIABLE", default="unset")


async def test_result_and_error_come_back() -> None:
    threads = DaemonThreads(1)
    assert await threads.run(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await threads.run(divmod, 7, 0)
    assert await threads.run(threading.current_thread) is not threading.current_thread()


async def test_thread_that_has_ended_a_call_makes_the_next_one() -> None:
    threads = DaemonThreads()
    assert len({await threads.run(threading.get_ident) for _ in range(20)}) == 1


async def test_thread_keeps_nothing_of_a_call_that_has_ended() -> None:
    class Given:
        """What a call is given."""

    given, threads = Given(), DaemonThreads()
    seen = weakref.ref(given)
    await threads.run(lambda _: None, given)
    del given
    gc.collect()
    assert seen() is None


def test_fork_has_threads_of_its_own() -> None:
    program = """
import asyncio, os, sys
from utools.threads import DaemonThreads
threads = DaemonThreads()
assert asyncio.run(threads.run(lambda: 1)) == 1
child = os.fork()
if not child:
    os._exit(0 if asyncio.run(asyncio.wait_for(threads.run(lambda: 2), 20)) == 2 else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


def test_fork_has_the_slots_that_its_parent_had_taken() -> None:
    program = """
import asyncio, os, sys, threading
from utools.threads import DaemonThreads
threads, started, ended = DaemonThreads(1, of_tools=True), threading.Event(), threading.Event()
async def fork_while_one_is_stuck():
    asyncio.ensure_future(threads.run(lambda: (started.set(), ended.wait())))
    while not started.is_set():
        await asyncio.sleep(0)
    return os.fork()
child = asyncio.run(fork_while_one_is_stuck())
if not child:
    os._exit(0 if asyncio.run(asyncio.wait_for(threads.run(lambda: 2), 20)) == 2 else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


async def test_context_variables_are_seen() -> None:
    VARIABLE.set("set")
    assert await DaemonThreads().run(VARIABLE.get) == "set"


def stop() -> None:
    raise StopIteration("end")


def leave() -> None:
    sys.exit(3)


@pytest.mark.parametrize(("function", "text"), [(stop, "StopIteration: end"), (leave, "SystemExit")])
async def test_exception_that_a_loop_cannot_carry_is_translated(function: object, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        await DaemonThreads().run(function)  # type: ignore[arg-type]


async def test_abandoned_work_keeps_its_slot_until_it_ends() -> None:
    threads = DaemonThreads(1)
    started, ended = threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        ended.wait()

    abandoned = asyncio.create_task(threads.run(work))
    await asyncio.to_thread(started.wait)
    abandoned.cancel()
    with pytest.raises(asyncio.CancelledError):
        await abandoned
    queued = asyncio.create_task(threads.run(lambda: "ran"))
    done, _ = await asyncio.wait([queued], timeout=0.05)
    assert not done
    ended.set()
    assert await queued == "ran"


async def test_waiting_for_a_slot_is_within_the_callers_deadline() -> None:
    threads = DaemonThreads(1)
    ended = threading.Event()
    holder = asyncio.create_task(threads.run(ended.wait))
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(threads.run(lambda: None), timeout=0.02)
    ended.set()
    await holder
    assert await threads.run(lambda: "the slot is free again") == "the slot is free again"


async def test_slot_that_is_granted_to_a_cancelled_caller_goes_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("utools.threads.IDLE_S", 0.05)
    threads = DaemonThreads(1)
    workers: list[threading.Thread] = []
    started, ended = threading.Event(), threading.Event()

    def work() -> None:
        workers.append(threading.current_thread())
        started.set()
        ended.wait()

    holder = asyncio.create_task(threads.run(work))
    await asyncio.to_thread(started.wait)
    queued = asyncio.create_task(threads.run(lambda: "never"))
    await asyncio.sleep(0)
    ended.set()
    workers[0].join()  # the loop stands still, so the grant is on its way when the caller is cancelled
    queued.cancel()
    with pytest.raises(asyncio.CancelledError):
        await queued
    await holder
    assert await asyncio.wait_for(threads.run(lambda: "next"), 5) == "next"


async def test_more_work_than_slots_is_all_done_under_the_limit() -> None:
    threads = DaemonThreads(3)
    lock = threading.Lock()
    running: list[int] = [0, 0]

    def work(number: int) -> int:
        with lock:
            running[0] += 1
            running[1] = max(running)
        threading.Event().wait(0.001)
        with lock:
            running[0] -= 1
        return number

    assert await asyncio.gather(*(threads.run(work, number) for number in range(40))) == list(range(40))
    assert running[0] == 0
    assert running[1] <= 3


def test_slots_are_shared_by_event_loops() -> None:
    threads = DaemonThreads(2)
    answers: list[int] = []

    def drive(number: int) -> None:
        answers.append(asyncio.run(threads.run(lambda: number)))

    drivers = [threading.Thread(target=drive, args=(number,)) for number in range(20)]
    for each in drivers:
        each.start()
    for each in drivers:
        each.join()
    assert sorted(answers) == list(range(20))


def test_abandoned_work_never_blocks_the_exit_of_the_process() -> None:
    script = """
import asyncio, threading
from utools.threads import DaemonThreads
async def main():
    try:
        await asyncio.wait_for(DaemonThreads().run(threading.Event().wait), 0.05)
    except TimeoutError:
        print("left")
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "left\n"


# ── the tools of a process ───────────────────────────────────────────────────────────────────────

CALLS = """
import asyncio, threading
from agent_core import run_agent
from agent_core.models import ScriptedModel
from utools import tool

@tool(effect="read")
def look(q: str) -> str:
    return q

async def run(_=0):
    replies = ['{"type":"action","tool":"look","args":{"q":"a"}}', '{"type":"final","answer":"ok"}']
    config = {"model": "scripted", "max_steps": 2, "prompt": "x", "allowed_tools": ["look"]}
    output = await run_agent(config, registry=[look], model=ScriptedModel(replies))
    assert output.finish_reason == "final", output.error

async def main():
    for _ in range(400):
        await run()
    print(threading.active_count())
    await asyncio.gather(*map(run, range(400)))
    print(threading.active_count())

asyncio.run(main())
"""


@pytest.mark.exhaustive
def test_calls_with_lists_of_tools_share_the_threads_of_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", CALLS], capture_output=True, text=True, timeout=120, check=True)
    one_by_one, at_once = map(int, done.stdout.split())
    assert one_by_one <= 3  # the main thread, the tool's, and one that is about to take its next call
    assert at_once <= 1 + TOOLS_AT_ONCE


@pytest.fixture
def two_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools of this process run two at a time."""
    monkeypatch.setattr("utools.threads._threads_of_process", cache(_ThreadsOfProcess))
    monkeypatch.setattr("utools.threads.TOOLS_AT_ONCE", 2)


@pytest.mark.usefixtures("two_at_once")
async def test_tools_of_all_registries_are_counted_together(caplog: pytest.LogCaptureFixture) -> None:
    ended = threading.Event()
    stuck = [asyncio.create_task(DaemonThreads(of_tools=True).run(ended.wait)) for _ in range(2)]
    await asyncio.sleep(0)
    third = asyncio.create_task(DaemonThreads(of_tools=True).run(lambda: "ran"))
    assert not (await asyncio.wait([third], timeout=0.05))[0]
    assert "a call of a sync tool waits: 2 of them run in this process" in caplog.text
    assert await DaemonThreads().run(lambda: "no tool") == "no tool"
    ended.set()
    assert await third == "ran"
    await asyncio.gather(*stuck)


@pytest.mark.usefixtures("two_at_once")
async def test_tools_that_wait_for_tools_of_their_own_do_not_wait_for_each_other() -> None:
    meet = threading.Barrier(2)

    def nested() -> str:
        meet.wait()  # both slots are taken now
        return asyncio.run(asyncio.wait_for(DaemonThreads(of_tools=True).run(lambda: "inner"), 20))

    threads = DaemonThreads(of_tools=True)
    assert await asyncio.gather(threads.run(nested), threads.run(nested)) == ["inner", "inner"]
