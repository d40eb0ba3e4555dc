"""check_context_store(): what every store of conversations must do, whatever it keeps them in."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Final

from agent_core.testing.contracts.rules import Verdicts, rules_of
from utools.context.copy import copy_conversations
from utools.context.store import ContextStore, Summary
from utools.context.store_memory import MemoryContextStore
from utools.context.turns import Turn

Later = Callable[[float], None]
"""Lets so many seconds pass for the store."""


async def check_context_store(
    make_store: Callable[[], ContextStore], *, pass_time: Callable[[ContextStore, float], None] | None = None
) -> None:
    """Try a context store of your own by every rule of the seam. AssertionError names all rules that are broken.

    `make_store` returns a new, empty one for each rule. `pass_time(store, seconds)` moves the time that the store
    expires sessions by; without it nothing is said about sessions that expire.
    """
    verdicts = Verdicts("the context store")
    for rule in CONTEXT_RULES:
        with verdicts.of(rule):
            await rule.run(make_store())
    if pass_time is not None:
        for rule in RULES_OF_TIME:
            with verdicts.of(rule):
                store = make_store()
                await rule.run(store, partial(pass_time, store))
    verdicts.tell()


def turn(text: str) -> Turn:
    """Return a turn of two messages."""
    return [{"role": "user", "content": text}, {"role": "assistant", "content": f"re: {text}"}]


async def a_unknown_session_has_no_turns(store: ContextStore) -> None:
    assert await store.turns("s") == []
    assert await store.clear("s") is False


async def turns_come_back_in_order_and_by_session(store: ContextStore) -> None:
    for text in ("one", "two", "three"):
        assert await store.append("s", text, turn(text))
    await store.append("other", "one", turn("else"))
    assert await store.turns("s") == [turn("one"), turn("two"), turn("three")]
    assert await store.turns("other") == [turn("else")]


async def a_turn_is_stored_once(store: ContextStore) -> None:
    assert await store.append("s", "t", turn("first"))
    assert not await store.append("s", "t", turn("second"))
    assert await store.append("s", "t", turn("first")), "the very same one is stored"
    assert await store.turns("s") == [turn("first")]


async def any_text_comes_back_as_it_was(store: ContextStore) -> None:
    odd = turn("\u0000 '; DROP TABLE turns; -- \ud800 \u2028 中文 😀")
    await store.append("s';\"", "t\u0000", odd)
    assert await store.turns("s';\"") == [odd]


async def what_is_returned_or_given_is_the_callers_own(store: ContextStore) -> None:
    given = turn("x")
    await store.append("s", "t", given)
    given[0]["content"] = "changed"
    (await store.turns("s"))[0].clear()
    assert await store.turns("s") == [turn("x")]


async def a_cleared_session_is_gone_and_may_begin_anew(store: ContextStore) -> None:
    await store.append("s", "t", turn("old"))
    assert await store.clear("s") is True
    assert await store.turns("s") == []
    assert await store.append("s", "t", turn("new"))
    assert await store.turns("s") == [turn("new")]


async def the_last_turn_is_dropped_if_there_are_as_many_as_the_caller_knows(store: ContextStore) -> None:
    for text in ("one", "two", "three"):
        await store.append("s", text, turn(text))
    assert not await store.drop_last("s", 2)
    assert not await store.drop_last("s", 4)
    assert await store.drop_last("s", 3)
    assert not await store.drop_last("s", 3)
    assert await store.turns("s") == [turn("one"), turn("two")]
    for text in ("four", "three"):
        assert await store.append("s", text, turn(text))
    assert await store.turns("s") == [turn(each) for each in ("one", "two", "four", "three")]


async def a_session_whose_only_turn_is_dropped_is_gone(store: ContextStore) -> None:
    await store.append("s", "t", turn("one"), ttl=100)
    await store.keep_summary("s", Summary(1, "one"))
    assert await store.drop_last("s", 1)
    assert (await store.turns("s"), await store.sessions(), await store.summary("s")) == ([], [], None)
    assert not await store.drop_last("s", 0)


async def a_summary_goes_with_the_turn_that_it_stands_for_and_no_sooner(store: ContextStore) -> None:
    for text in ("one", "two"):
        await store.append("s", text, turn(text))
        await store.keep_summary("s", Summary(1, "one"))
    assert await store.append("s", "three", turn("three"))
    await store.drop_last("s", 3)
    assert await store.summary("s") == Summary(1, "one")
    await store.keep_summary("s", Summary(2, "both"))
    await store.drop_last("s", 2)
    assert await store.summary("s") is None
    for text in ("four", "five"):
        await store.append("s", text, turn(text))
    assert await store.turns("s") == [turn("one"), turn("four"), turn("five")]
    await store.keep_summary("s", Summary(1, "anew"))
    assert await store.summary("s") == Summary(1, "anew")


async def sessions_are_named_until_they_are_gone(store: ContextStore, later: Later) -> None:
    assert await store.sessions() == []
    for session in ("b", "a*", "ä\n", "gone", "cleared"):
        await store.append(session, "t1", turn("q"), ttl=10 if session == "gone" else None)
        await store.append(session, "t2", turn("q"))
    later(11)
    await store.clear("cleared")
    assert await store.sessions() == ["a*", "b", "ä\n"]


async def a_session_expires_as_a_whole(store: ContextStore, later: Later) -> None:
    await store.append("s", "1", turn("one"), ttl=10)
    later(9)
    await store.append("s", "2", turn("two"))
    assert len(await store.turns("s")) == 2
    later(1)
    assert await store.turns("s") == []
    assert await store.clear("s") is False


async def a_summary_that_stands_for_more_turns_stays(store: ContextStore) -> None:
    assert await store.summary("s") is None
    for number in range(3):
        await store.append("s", f"t{number}", turn(str(number)))
    odd = Summary(2, "\u0000 '; 12 \ud800 \u2028 中文 😀")
    for kept in (Summary(1, "one"), odd, Summary(1, "late"), Summary(2, "another")):
        await store.keep_summary("s", kept)
    assert await store.summary("s") == odd
    assert await store.summary("other") is None
    await store.append("s", "t3", turn("3"))
    assert await store.turns("s") == [turn(str(number)) for number in range(4)]


async def a_summary_of_more_turns_than_there_are_is_not_kept(store: ContextStore) -> None:
    for number in range(2):
        await store.append("s", f"t{number}", turn(str(number)))
    await store.keep_summary("s", Summary(3, "of a session that was cleared"))
    assert await store.summary("s") is None
    await store.keep_summary("s", Summary(1, "one"))
    await store.keep_summary("s", Summary(3, "of a turn that was dropped"))
    assert await store.summary("s") == Summary(1, "one")


async def a_summary_goes_with_its_session(store: ContextStore, later: Later) -> None:
    await store.keep_summary("s", Summary(1, "of nothing"))
    assert await store.summary("s") is None
    for end in ("cleared", "expired"):
        await store.append("s", "t", turn("x"), ttl=10)
        await store.keep_summary("s", Summary(1, "x"))
        assert await store.summary("s") == Summary(1, "x")
        if end == "cleared":
            await store.clear("s")
        else:
            later(10)
        assert await store.summary("s") is None
    await store.append("s", "t", turn("anew"))
    assert (await store.summary("s"), await store.turns("s")) == (None, [turn("anew")])


async def seconds_left_are_those_until_the_session_expires(store: ContextStore, later: Later) -> None:
    assert await store.seconds_left("s") is None
    await store.append("s", "1", turn("one"))
    assert await store.seconds_left("s") is None
    await store.append("s", "2", turn("two"), ttl=1000)
    later(400)
    left = await store.seconds_left("s")
    assert left is not None
    assert 500 < left <= 600
    later(601)
    assert await store.seconds_left("s") is None


async def a_copied_session_expires_when_it_would_have(store: ContextStore, later: Later) -> None:
    await store.append("s", "1", turn("one"), ttl=1000)
    await store.append("lasting", "1", turn("one"))
    later(400)
    copy = MemoryContextStore()
    assert (await copy_conversations(store, copy, ["s", "lasting"])).new == ["lasting", "s"]
    left = await copy.seconds_left("s")
    assert left is not None
    assert 500 < left <= 600
    assert await copy.seconds_left("lasting") is None


async def a_later_ttl_prolongs_the_session(store: ContextStore, later: Later) -> None:
    await store.append("s", "1", turn("one"), ttl=10)
    later(9)
    await store.append("s", "2", turn("two"), ttl=10)
    later(9)
    assert len(await store.turns("s")) == 2


async def a_expired_session_starts_afresh(store: ContextStore, later: Later) -> None:
    await store.append("s", "1", turn("one"), ttl=10)
    later(10)
    assert await store.append("s", "1", turn("again"))
    later(1000)
    assert await store.turns("s") == [turn("again")]


def writers_in_many_threads_lose_nothing_and_keep_their_order(store: ContextStore) -> None:
    async def write(writer: int) -> None:
        for number in range(10):
            await store.append("s", f"{writer}.{number}", turn(f"{writer}.{number}"))

    writers = [threading.Thread(target=lambda each=each: asyncio.run(write(each))) for each in range(8)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    stored = [each[0]["content"] for each in asyncio.run(store.turns("s"))]
    assert len(stored) == 80
    for writer in range(8):
        assert [text for text in stored if text.startswith(f"{writer}.")] == [f"{writer}.{n}" for n in range(10)]


async def one_turn_written_by_many_at_once_is_stored_once(store: ContextStore) -> None:
    stored = await asyncio.gather(*(store.append("s", "t", turn(str(number))) for number in range(20)))
    assert stored.count(True) == 1
    assert len(await store.turns("s")) == 1


CONTEXT_RULES: Final = rules_of(
    a_unknown_session_has_no_turns,
    turns_come_back_in_order_and_by_session,
    a_turn_is_stored_once,
    any_text_comes_back_as_it_was,
    what_is_returned_or_given_is_the_callers_own,
    a_cleared_session_is_gone_and_may_begin_anew,
    the_last_turn_is_dropped_if_there_are_as_many_as_the_caller_knows,
    a_session_whose_only_turn_is_dropped_is_gone,
    a_summary_goes_with_the_turn_that_it_stands_for_and_no_sooner,
    a_summary_that_stands_for_more_turns_stays,
    a_summary_of_more_turns_than_there_are_is_not_kept,
    writers_in_many_threads_lose_nothing_and_keep_their_order,
    one_turn_written_by_many_at_once_is_stored_once,
)
"""What every context store must do."""
RULES_OF_TIME: Final = rules_of(
    sessions_are_named_until_they_are_gone,
    a_session_expires_as_a_whole,
    a_summary_goes_with_its_session,
    seconds_left_are_those_until_the_session_expires,
    a_copied_session_expires_when_it_would_have,
    a_later_ttl_prolongs_the_session,
    a_expired_session_starts_afresh,
)
"""What it must do as time passes; they take what lets time pass as well."""
