"""Places: a bound over all event loops and threads, and who waits is served in order."""

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from utools.limiter import Limiter


async def settled() -> None:
    """Let everything run that can; a place needs a few rounds to be heard of."""
    for _ in range(10):
        await asyncio.sleep(0)


class Guest:
    """A task that takes a place and keeps it until it is told to go."""

    def __init__(self, places: Limiter) -> None:
        self.seated, self.told_to_go = False, asyncio.Event()
        self.task = asyncio.create_task(self._stay(places))

    async def _stay(self, places: Limiter) -> None:
        async with places.slot():
            self.seated = True
            await self.told_to_go.wait()

    async def goes(self) -> None:
        self.told_to_go.set()
        await self.task


async def guests(places: Limiter, count: int) -> list[Guest]:
    made = [Guest(places) for _ in range(count)]
    await settled()
    return made


def seated(guests: list[Guest]) -> list[bool]:
    return [guest.seated for guest in guests]


async def all_free(places: Limiter) -> None:
    """Every place can be taken, and not one more."""
    last = await guests(places, places.count + 1)
    assert seated(last) == [True] * places.count + [False]
    for guest in last:
        await guest.goes()


async def test_who_waits_is_served_in_order() -> None:
    places = Limiter(2)
    line = await guests(places, 6)
    for gone, guest in enumerate(line):
        assert seated(line) == [n < gone + 2 for n in range(6)]
        await guest.goes()
        await settled()
    await all_free(places)


async def test_a_newcomer_does_not_pass_who_waits() -> None:
    places = Limiter(1)
    holder, waiter = await guests(places, 2)
    holder.told_to_go.set()
    newcomer = Guest(places)
    await settled()
    assert (waiter.seated, newcomer.seated) == (True, False)
    await waiter.goes()
    await newcomer.goes()


async def test_a_place_comes_back_when_its_work_fails() -> None:
    places = Limiter(1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            async with places.slot():
                raise ZeroDivisionError
    await all_free(places)


async def test_a_cancelled_holder_gives_its_place_to_the_next() -> None:
    places = Limiter(1)
    holder, waiter = await guests(places, 2)
    holder.task.cancel()
    await settled()
    assert holder.task.cancelled()
    assert waiter.seated
    await waiter.goes()
    await all_free(places)


async def test_a_cancelled_waiter_leaves_the_line_and_the_order_stays() -> None:
    places = Limiter(1)
    holder, *waiters = await guests(places, 5)
    waiters[1].task.cancel()
    await settled()
    await holder.goes()
    for waiter in (waiters[0], waiters[2], waiters[3]):
        await settled()
        assert waiter.seated
        await waiter.goes()
    assert not waiters[1].seated
    await all_free(places)


@pytest.mark.parametrize("rounds", range(4))
async def test_a_place_that_meets_a_cancellation_goes_to_the_next(rounds: int) -> None:
    places = Limiter(1)
    holder, cancelled, waiter = await guests(places, 3)
    holder.told_to_go.set()
    for _ in range(rounds):
        await asyncio.sleep(0)
    cancelled.task.cancel()
    await settled()
    assert cancelled.task.cancelled()
    assert waiter.seated
    await waiter.goes()
    await all_free(places)


async def test_a_waiter_that_is_cancelled_before_the_place_is_given_back_does_not_get_it() -> None:
    places = Limiter(1)
    holder, cancelled, waiter = await guests(places, 3)
    cancelled.task.cancel()
    holder.told_to_go.set()
    await settled()
    assert (cancelled.seated, waiter.seated) == (False, True)
    await waiter.goes()
    await all_free(places)


def in_threads(count: int, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs `work` in an event loop of its own in each of so many threads, begun together."""
    together = threading.Barrier(count)

    def target(_: int) -> None:
        together.wait()
        asyncio.run(work())

    with ThreadPoolExecutor(count) as threads:
        list(threads.map(target, range(count)))


def test_the_bound_holds_over_many_threads_with_loops_of_their_own() -> None:
    places, lock, inside, most, done = Limiter(3), threading.Lock(), 0, 0, 0

    async def one(n: int) -> None:
        nonlocal inside, most, done
        async with places.slot():
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
    asyncio.run(all_free(places))


def test_cancellations_in_many_threads_lose_no_place() -> None:
    places = Limiter(2)

    async def one() -> None:
        async with places.slot():
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
    asyncio.run(all_free(places))


def test_a_place_goes_from_one_loop_to_another() -> None:
    places, waits, seats = Limiter(1), threading.Event(), threading.Event()

    async def waiter() -> None:
        asyncio.get_running_loop().call_soon(waits.set)
        async with places.slot():
            seats.set()

    async def holder() -> None:
        async with places.slot():
            thread.start()
            await asyncio.to_thread(waits.wait)
            assert not seats.is_set()

    thread = threading.Thread(target=asyncio.run, args=(waiter(),))
    asyncio.run(holder())
    thread.join()
    assert seats.is_set()


class LeftLoop:
    """A loop that is closed over a task, without a word to it."""

    def __init__(self, places: Limiter) -> None:
        self.loop = asyncio.new_event_loop()
        self.task = self.loop.create_task(self._stay(places))
        self.task._log_destroy_pending = False  # type: ignore[attr-defined]

    async def _stay(self, places: Limiter) -> None:
        async with places.slot():
            await asyncio.get_running_loop().create_future()

    def turn(self) -> None:
        """Runs what is ready, in another thread, which is gone afterwards."""
        thread = threading.Thread(target=lambda: self.loop.run_until_complete(settled()))
        thread.start()
        thread.join()

    def close(self) -> None:
        self.loop.close()


def test_a_waiter_whose_loop_is_closed_is_passed_over() -> None:
    places = Limiter(1)
    left = LeftLoop(places)

    async def rest() -> None:
        async with places.slot():
            left.turn()
            left.close()
            waiter = Guest(places)
            await settled()
            assert not waiter.seated
        await settled()
        assert waiter.seated
        await waiter.goes()
        await all_free(places)

    asyncio.run(rest())


@pytest.mark.parametrize("heard", [True, False], ids=["it had its place", "the place was on its way"])
def test_a_place_in_a_closed_loop_comes_back_when_what_is_left_of_it_is_collected(heard: bool) -> None:
    places = Limiter(1)

    async def rest() -> None:
        async with places.slot():
            left = LeftLoop(places)
            left.turn()
            waiter = Guest(places)
            await settled()
        if heard:
            left.turn()
        left.close()
        await settled()
        assert not waiter.seated
        del left
        gc.collect()
        await settled()
        assert waiter.seated
        await waiter.goes()
        await all_free(places)

    asyncio.run(rest())
