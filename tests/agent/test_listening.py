"""Listening: when the waits of a run are given up, and when they are not."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from agent_core.run.listening import SHORT_S, Listening, seconds_between

NOW, SOON, LATER = "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.010Z", "2026-01-01T01:00:00.000Z"


def played(test: Callable[[Listening], Awaitable[None]]) -> None:
    async def play() -> None:
        async with asyncio.timeout(10):
            await test(Listening())

    asyncio.run(play())


def test_single_wait_that_is_long_is_given_up_at_once() -> None:
    async def test(listening: Listening) -> None:
        await listening.wait(LATER, NOW)
        assert listening.is_over

    played(test)


def test_wait_without_a_time_is_given_up_at_once() -> None:
    async def test(listening: Listening) -> None:
        await listening.wait(None, NOW)
        assert listening.is_over

    played(test)


def test_short_wait_ends_by_its_time() -> None:
    async def test(listening: Listening) -> None:
        await listening.wait(SOON, NOW)
        assert not listening.is_over

    played(test)


def test_long_wait_goes_on_beside_a_short_one_and_beside_work() -> None:
    async def test(listening: Listening) -> None:
        listening.add(1)  # two branches in place of one
        long = asyncio.create_task(listening.wait(LATER, NOW))
        await asyncio.sleep(0)
        assert not listening.is_over, "another branch works"
        await listening.wait(SOON, NOW)
        assert not listening.is_over
        assert not long.done()
        listening.add(-1)
        await long
        assert listening.is_over

    played(test)


def test_news_let_each_wait_look() -> None:
    async def test(listening: Listening) -> None:
        listening.add(2)
        waits = [asyncio.create_task(listening.wait(None, NOW)) for _ in range(2)]
        await asyncio.sleep(0)
        listening.notify()
        await asyncio.gather(*waits)
        assert not listening.is_over

    played(test)


def test_listening_begins_again_once_something_else_goes_on() -> None:
    async def test(listening: Listening) -> None:
        await listening.wait(None, NOW)
        listening.add(0)  # its branch has ended, and let another one start
        assert not listening.is_over
        await listening.wait(SOON, NOW)
        assert not listening.is_over

    played(test)


def test_cancelled_wait_counts_as_work_again() -> None:
    async def test(listening: Listening) -> None:
        listening.add(1)
        wait = asyncio.create_task(listening.wait(None, NOW))
        await asyncio.sleep(0)
        wait.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wait
        listening.add(-1)
        assert not listening.is_over

    played(test)


def test_seconds_between_two_times() -> None:
    assert seconds_between(NOW, LATER) == 3600 > SHORT_S
    assert seconds_between("2026-01-01T01:00:00+01:00", NOW) == 0


@pytest.mark.parametrize("turns", range(4))
async def test_cancellation_that_comes_with_news_is_not_lost(turns: int) -> None:
    listening = Listening()
    listening.add(1)
    waiting = asyncio.create_task(listening.wait(LATER, NOW))
    await asyncio.sleep(0.01)
    listening.notify()
    for _ in range(turns):
        await asyncio.sleep(0)
    is_cancelled = waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled() == is_cancelled
