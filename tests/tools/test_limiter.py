"""Limiter: a bound over all event loops and threads, and waiters are served in order."""

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from utools.limiter import Limiter


async def settle() -> None:
    """Let everything run that can; a waiter needs a few turns of the loop to learn that it has a slot."""
    for _ in range(10):
        await asyncio.sleep(0)


class Caller:
    """A task that takes a slot and holds it until it is released."""

    def __init__(self, limiter: Limiter) -> None:
        self.has_slot, self._released = False, asyncio.Event()
        self.task = asyncio.create_task(self._hold(limiter))

    async def _hold(self, limiter: Limiter) -> None:
        async with limiter.slot():
            self.has_slot = True
            await self._released.wait()

    def release(self) -> None:
        self._released.set()

    async def end(self) -> None:
        self.release()
        await self.task


async def callers(limiter: Limiter, count: int) -> list[Caller]:
    made = [Caller(limiter) for _ in range(count)]
    await settle()
    return made


async def check_all_free(limiter: Limiter) -> None:
    """Every slot can be taken, and not one more."""
    made = await callers(limiter, limiter.count + 1)
    assert [each.has_slot for each in made] == [True] * limiter.count + [False]
    for each in made:
        await each.end()


async def test_waiters_are_served_in_order_and_a_newcomer_passes_none() -> None:
    limiter = Limiter(2)
    line = await callers(limiter, 6)
    for ended, each in enumerate(line):
        assert [other.has_slot for other in line] == [n < ended + 2 for n in range(6)]
        each.release()
        newcomer = Caller(limiter)
        await settle()
        assert newcomer.has_slot == (ended >= 4)
        newcomer.task.cancel()
        await settle()
    await check_all_free(limiter)


async def test_a_slot_comes_back_when_its_work_fails() -> None:
    limiter = Limiter(1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            async with limiter.slot():
                raise ZeroDivisionError
    await check_all_free(limiter)


async def test_a_cancelled_waiter_leaves_the_line_and_the_order_stays() -> None:
    limiter = Limiter(1)
    holder, *waiters = await callers(limiter, 5)
    waiters[1].task.cancel()
    await settle()
    holder.task.cancel()
    for waiter in (waiters[0], waiters[2], waiters[3]):
        await settle()
        assert waiter.has_slot
        await waiter.end()
    assert not waiters[1].has_slot
    await check_all_free(limiter)


@pytest.mark.parametrize("rounds", range(-1, 4))
async def test_a_slot_that_meets_a_cancellation_goes_to_the_next(rounds: int) -> None:
    limiter = Limiter(1)
    holder, cancelled, waiter = await callers(limiter, 3)
    if rounds < 0:  # the cancellation comes first
        cancelled.task.cancel()
    holder.release()
    for _ in range(rounds):
        await asyncio.sleep(0)
    cancelled.task.cancel()
    await settle()
    assert cancelled.task.cancelled()
    assert waiter.has_slot
    await waiter.end()
    await check_all_free(limiter)


def in_threads(count: int, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs `work` in an event loop of its own in each of `count` threads, all started together."""
    together = threading.Barrier(count)

    def target(_: int) -> None:
        together.wait()
        asyncio.run(work())

    with ThreadPoolExecutor(count) as threads:
        list(threads.map(target, range(count)))


def test_the_bound_holds_over_many_threads_with_loops_of_their_own() -> None:
    limiter, lock, inside, most, done = Limiter(3), threading.Lock(), 0, 0, 0

    async def one(n: int) -> None:
        nonlocal inside, most, done
        async with limiter.slot():
            with lock:
                inside += 1
                most = max(most, inside)
            for _ in range(n % 3):
                await asyncio.sleep(0)
            with lock:
                inside -= 1
                done += 1

    async def work() -> None:
        await asyncio.gather(*(one(n) for n in range(100)))

    in_threads(8, work)
    assert (done, inside) == (800, 0)
    assert 1 < most <= 3
    asyncio.run(check_all_free(limiter))


def test_cancellations_in_many_threads_lose_no_slot() -> None:
    limiter = Limiter(2)

    async def one() -> None:
        async with limiter.slot():
            await asyncio.sleep(0)

    async def work() -> None:
        for n in range(60):
            tasks = [asyncio.create_task(one()) for _ in range(6)]
            for _ in range(n % 5):
                await asyncio.sleep(0)
            for task in tasks[n % 2 :: 2]:
                task.cancel()
            await asyncio.wait(tasks)

    in_threads(6, work)
    asyncio.run(check_all_free(limiter))


class ClosedLoop:
    """A loop that is closed over a task that takes a slot, without cancelling it."""

    def __init__(self, limiter: Limiter) -> None:
        self.loop = asyncio.new_event_loop()
        self.task = self.loop.create_task(self._hold(limiter))
        self.task._log_destroy_pending = False  # type: ignore[attr-defined]

    async def _hold(self, limiter: Limiter) -> None:
        async with limiter.slot():
            await asyncio.get_running_loop().create_future()

    def run(self) -> None:
        """Runs what is ready, in another thread, which then ends."""
        thread = threading.Thread(target=lambda: self.loop.run_until_complete(settle()))
        thread.start()
        thread.join()


async def test_a_waiter_whose_loop_is_closed_is_passed_over() -> None:
    limiter = Limiter(1)
    closed = ClosedLoop(limiter)
    async with limiter.slot():
        closed.run()
        closed.loop.close()
        waiter = Caller(limiter)
        await settle()
        assert not waiter.has_slot
    await settle()
    assert waiter.has_slot
    await waiter.end()
    await check_all_free(limiter)


@pytest.mark.exhaustive
@pytest.mark.parametrize("learnt", [True, False], ids=["it had its slot", "the slot was on its way"])
async def test_a_slot_in_a_closed_loop_comes_back_when_the_remains_are_collected(learnt: bool) -> None:
    limiter = Limiter(1)
    async with limiter.slot():
        closed = ClosedLoop(limiter)
        closed.run()
        waiter = Caller(limiter)
        await settle()
    if learnt:
        closed.run()
    closed.loop.close()
    await settle()
    assert not waiter.has_slot
    del closed
    gc.collect()
    await settle()
    assert waiter.has_slot
    await waiter.end()
    await check_all_free(limiter)


def test_lines_take_turns() -> None:
    """With a thousand of one line before it, the only one of another is among the next, one of each line."""

    async def run() -> list[str]:
        limiter, order = Limiter(1), list[str]()

        async def work(line: str) -> None:
            async with limiter.line(line).slot():
                order.append(line)
                await asyncio.sleep(0)

        async with limiter.slot("first"):
            many = [asyncio.create_task(work("a")) for _ in range(1000)]
            await asyncio.sleep(0)
            few = [asyncio.create_task(work(line)) for line in ("b", "c", "b")]
            await asyncio.sleep(0)
        await asyncio.gather(*many, *few)
        return order

    order = asyncio.run(run())
    assert len(order) == 1003
    assert sorted(order[:3]) == ["a", "b", "c"]
    assert sorted(order[3:5]) == ["a", "b"]


def test_waiter_that_is_cancelled_leaves_its_line() -> None:
    async def run() -> None:
        limiter = Limiter(1)
        async with limiter.slot("a"):
            waiting = [asyncio.create_task(limiter.acquire(line)) for line in ("a", "b", "b")]
            await asyncio.sleep(0)
            assert [limiter.line(name).waiting for name in ("a", "b", "c")] == [1, 2, 0]
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        assert not limiter._lines
        assert not limiter._line_of
        async with limiter.slot("c"):
            pass

    asyncio.run(run())
