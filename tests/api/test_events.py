"""Events of runs as server-sent events: from the beginning, from where a follower left, live, after a restart."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import pytest

from agent_core import MemoryJournal
from agent_core.errors import JournalError
from agent_core.journal.record import Row
from engine_shim.service.feed import Feed
from engine_shim.service.feed_merge import Position
from engine_shim.service.feeds import OVERLAP, QUIET_READS, TOGETHER_BYTES, Feeds, QuietReads
from support.served_host import Served, read_events, served


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("host")) as found:
        yield found


def test_events_of_a_finished_run_come_in_order_and_end(host: Served) -> None:
    run = host.submit("desk@1", message="How many?")["run_id"]
    events = host.events(run)
    assert [event["event"] for event in events] == [
        "step_started",
        "action",
        "observation",
        "step_started",
        "finished",
        "finished",
    ]
    assert events[1]["args"] == {"article": "A-17"}
    assert events[-1]["status"] == "completed"


def test_follower_goes_on_after_each_event_that_it_has_seen(host: Served) -> None:
    run = host.submit("desk", message="How many?")["run_id"]
    events = host.events(run)
    assert len({event["position"] for event in events}) == len(events)
    for at, event in enumerate(events, 1):
        assert host.events(run, after=event["position"]) == events[at:]


def test_follower_who_has_all_of_a_run_that_ended_is_told_not_to_come_again(host: Served) -> None:
    run = host.submit("count", sum="1 + 1")["run_id"]
    first, *_, last = (event["position"] for event in host.events(run))
    for after, status in ((last, 204), (first, 200), ("", 200)):
        answer = host.client.get(f"/runs/{run}/events", headers={"Last-Event-ID": after})
        assert (answer.status_code, bool(answer.text)) == (status, status == 200)


@pytest.mark.parametrize("after", ["", "x", "-1.0", "1", "1.x", "9" * 30, "0.0"])
def test_id_that_no_event_has_is_the_beginning_or_the_end(host: Served, after: str) -> None:
    run = host.submit("count", sum="1 + 1")["run_id"]
    events = host.events(run)
    assert host.events(run, after=after) in (events, [])


def test_follower_gets_what_happens_while_it_happens(host: Served) -> None:
    run = host.submit("wait", wait=False, until="live")["run_id"]
    seen: list[str] = []
    with host.client.stream("GET", f"/runs/{run}/events") as answer:
        for event in read_events(answer.iter_lines()):
            seen.append(event["event"])
            if seen == ["action"]:
                assert host.client.get(f"/runs/{run}").json()["status"] == "running"
                (host.folder / "live").touch()
    assert seen == ["action", "observation", "action", "observation", "finished"]


def test_waiting_run_is_followed_until_it_is_decided(host: Served) -> None:
    run = host.submit("buy", article="E-1")["run_id"]
    seen: list[str] = []
    with host.client.stream("GET", f"/runs/{run}/events") as answer:
        for event in read_events(answer.iter_lines()):
            seen.append(event["event"])
            if event["event"] == "waiting":
                host.client.post(f"/runs/{run}/decide", json={"decision": "approve"})
    assert seen == ["waiting", "action", "observation", "finished"]


def test_run_that_another_process_drives_is_followed(host: Served) -> None:
    from engine_shim import Engine
    from engine_shim.store.run_store import SqliteRunStore

    run = host.submit("buy", article="E-2")["run_id"]
    other = Engine.from_config(host.folder / "agent-core.yaml", store=SqliteRunStore(host.folder / "runs.db"))
    seen: list[str] = []
    with host.client.stream("GET", f"/runs/{run}/events") as answer:
        for event in read_events(answer.iter_lines()):
            seen.append(event["event"])
            if event["event"] == "waiting":
                assert other.run_sync is not None
                _decide(other, run)
    assert seen[-1] == "finished"


def _decide(engine: Any, run: str) -> None:
    import asyncio

    from agent_core import Approve

    async def decide() -> None:
        await engine.resume(run, decisions={("flow/order.1", 0): Approve()}, by="elsewhere")
        await engine.close()

    asyncio.run(decide())


@pytest.mark.exhaustive
def test_many_followers_of_a_run_read_its_journal_once(host: Served) -> None:
    run = host.submit("wait", wait=False, until="many")["run_id"]
    reads: list[int] = []
    store, tail = host.store, host.store.tail

    def counted(run: str, after: int = 0) -> Any:
        reads.append(after)
        return tail(run, after)

    ended: list[str] = []

    def follow() -> None:
        with httpx2.stream("GET", f"{host.url}/runs/{run}/events", timeout=30) as answer:
            ended.append(list(read_events(answer.iter_lines()))[-1]["event"])

    store.tail = counted
    try:
        followers = [Thread(target=follow) for _ in range(40)]
        for follower in followers:
            follower.start()
        feed = None
        while feed is None or feed._followers < 40:
            time.sleep(0.01)
            feed = host.service.tenants[None].runs.feeds.find(run)
        reads.clear()
        (host.folder / "many").touch()
        for follower in followers:
            follower.join(30)
    finally:
        store.tail = tail
    assert ended == ["finished"] * 40
    assert len(reads) < 20  # one reader for all


def test_events_go_on_after_a_restart_where_the_follower_left(tmp_path: Path) -> None:
    with served(tmp_path) as first:
        run = first.submit("buy", article="E-3")["run_id"]
        with first.client.stream("GET", f"/runs/{run}/events") as answer:
            seen = next(read_events(answer.iter_lines()))
    with served(tmp_path) as second:
        second.client.post(f"/runs/{run}/decide", json={"decision": "approve"})
        rest = second.events(run, after=seen["position"])
        assert [seen, *rest] == second.events(run)
    assert [event["event"] for event in rest] == ["action", "observation", "finished"]


@pytest.mark.exhaustive
def test_followers_are_let_go_when_the_server_ends(tmp_path: Path) -> None:
    with served(tmp_path) as host:
        run = host.submit("buy", article="E-4")["run_id"]
        ended: list[str] = []

        def follow() -> None:
            with httpx2.stream("GET", f"{host.url}/runs/{run}/events", timeout=30) as answer:
                ended.extend(event["event"] for event in read_events(answer.iter_lines()))
            ended.append("let go")

        follower = Thread(target=follow)
        follower.start()
        while not ended and host.service.tenants[None].runs.feeds.find(run) is None:
            time.sleep(0.01)
        time.sleep(0.1)
        host.stop()
        follower.join(10)
        assert ended == ["waiting", "let go"]


Tail = Callable[[str, int], Any]


def feeds_of(tail: Tail) -> Feeds:
    """Feeds of a store that has these rows."""

    class Store:
        journal = MemoryJournal()

        def tail(self, run: str, after: int = 0) -> Any:
            return tail(run, after)

        def list_news(self, after: int) -> dict[str, int]:
            return {}

    return Feeds(Store())  # type: ignore[arg-type]


@pytest.mark.exhaustive
def test_runs_without_news_are_looked_at_all_together() -> None:
    looks, reads = list[int](), list[str]()

    class Store:
        journal = MemoryJournal()

        def tail(self, run: str, after: int = 0) -> Any:
            reads.append(run)
            return []

        def list_news(self, after: int) -> dict[str, int]:
            looks.append(after)
            return {"r3": 400} if len(looks) > 1 else {"r1": 390}

    async def play() -> None:
        feeds = Feeds(Store())  # type: ignore[arg-type]

        async def follow(run: str) -> None:
            async for _ in feeds.frames(run, Position(0, 0)):
                pass

        followers = [asyncio.create_task(follow(f"r{n}")) for n in range(30)]
        while len(looks) < 5:
            await asyncio.sleep(0.01)
        feeds.close()
        await asyncio.gather(*followers)

    asyncio.run(play())
    assert looks[:4] == [0, 390 - OVERLAP, 400 - OVERLAP, 400 - OVERLAP]
    assert len(reads) <= 30 + 2 + 2 * len(looks), "each once, again where a look saw news, and a few in turn"
    assert reads.count("r3") == 2


async def test_a_batch_of_rows_is_read_once_for_all_who_follow(host: Served) -> None:
    rows = host.store.tail(host.submit("desk@1", message="How many?")["run_id"])
    assert await count_reads(rows, followers=50) == await count_reads(rows, followers=1) == 1 + len(rows)


async def count_reads(rows: list[tuple[int, Row]], *, followers: int) -> int:
    """How often the rows of a run are read that come one by one, each once all have the events of the one before."""
    reads, known, heard = list[int](), list[tuple[int, Row]](), [0] * followers

    def tail(run: str, after: int) -> Any:
        reads.append(after)
        return [each for each in known if each[0] > after]

    feeds = feeds_of(tail)

    async def follow(number: int) -> None:
        async for frames in feeds.frames("r", Position(0, 0)):
            heard[number] += len(frames)

    following = [asyncio.create_task(follow(number)) for number in range(followers)]
    listener = feeds.watch("r")
    async with asyncio.timeout(20):
        while not reads:
            await asyncio.sleep(0)
        for count, (position, row) in enumerate(rows, 2):
            known.append((position, row))
            listener(row)
            while len(reads) < count:
                await asyncio.sleep(0.001)
        await asyncio.gather(*following)
    assert len(set(heard)) == 1
    assert heard[0] == 6
    return len(reads)


@pytest.mark.parametrize(("count", "looks", "read"), [(1, 40, 2), (100, 20, 100), (10_000, 400, 10_000)])
def test_runs_without_news_are_read_in_turn_and_no_look_reads_more_because_more_are_open(
    count: int, looks: int, read: int
) -> None:
    quiet, runs = QuietReads(), {f"r{n}": None for n in range(count)}
    taken = [quiet.take(runs) for _ in range(looks + 1)]
    assert max(map(len, taken)) <= min(QUIET_READS, count)
    assert read <= sum(map(len, taken)) <= read + QUIET_READS
    assert {run for each in taken for run in each} == runs.keys(), "each has its turn"


def test_runs_that_nobody_follows_any_more_have_no_turn() -> None:
    quiet = QuietReads()
    runs = {f"r{n}": None for n in range(100)}
    quiet.take(runs)
    assert quiet.take({}) == []
    assert {run for _ in range(40) for run in quiet.take(["r7"])} == {"r7"}


async def test_look_for_all_feeds_outlives_an_error_that_nobody_foresaw(caplog: pytest.LogCaptureFixture) -> None:
    looks, reads = list[int](), list[str]()

    class Store:
        journal = MemoryJournal()

        def tail(self, run: str, after: int = 0) -> Any:
            reads.append(run)
            return []

        def list_news(self, after: int) -> dict[str, int]:
            looks.append(after)
            if len(looks) == 1:
                raise RuntimeError("odd")
            return {"r": 1}

    feeds = Feeds(Store())  # type: ignore[arg-type]

    async def follow() -> None:
        async for _ in feeds.frames("r", Position(0, 0)):
            pass

    following = asyncio.create_task(follow())
    async with asyncio.timeout(10):
        while len(looks) < 3:
            await asyncio.sleep(0.01)
    feeds.close()
    await following
    assert reads.count("r") == 2, "once at first, and once where the look after the error saw news"
    assert "RuntimeError('odd')" in caplog.text


@pytest.mark.parametrize("late", [0, 3, 100])
def test_what_no_record_holds_is_told_where_it_happened_however_late_the_rows_are_read(host: Served, late: int) -> None:
    run = host.submit("desk@1", message="How many?")["run_id"]
    rows = host.store.tail(run)

    async def follow() -> list[tuple[int, int]]:
        there: list[Any] = []
        feeds = feeds_of(lambda run, after: [each for each in there if each[0] > after])
        told: list[tuple[int, int]] = []

        async def read() -> None:
            async for frames in feeds.frames(run, Position(0, 0)):
                told.extend((each.position.row, 0) if each.position else (each.event["n"], 1) for each in frames)

        reading = asyncio.create_task(read())
        await asyncio.sleep(0)
        watcher, feed = feeds.watch(run), feeds.find(run)
        assert feed is not None
        for number, (position, row) in enumerate(rows):
            there.extend(rows[max(number - late, 0) : number - late + 1] if number >= late else [])
            watcher(row)
            feed.show(lambda source, at=position: source.show_progress("flow", at, "", None))  # type: ignore[misc]
            await asyncio.sleep(0.005 if number % 4 == 0 else 0)
        there[:] = rows
        feed.wake()
        await asyncio.wait_for(reading, 20)
        return told

    told = asyncio.run(follow())
    passing = [row for row, is_passing in told if is_passing]
    assert passing == [position for position, _ in rows][: len(passing)]
    assert len(passing) >= len(rows) - 1, "after the last row the run is over"
    assert told == sorted(told)


class LateThreads:
    """In place of threads: a call is made once it is allowed."""

    def __init__(self) -> None:
        self.allowed = asyncio.Event()

    async def run(self, function: Callable[[], Any]) -> Any:
        await self.allowed.wait()
        return function()


def test_who_joins_in_the_middle_of_an_answer_sees_it_after_the_question(host: Served) -> None:
    rows = host.store.tail(host.submit("desk@1", message="How many?")["run_id"])
    asked = next(at for at, (_, row) in enumerate(rows) if row.record()["kind"] == "asked")
    strand, n = rows[asked][1].path, rows[asked][1].n

    async def follow() -> list[str]:
        feeds = feeds_of(lambda run, after: [each for each in rows[: asked + 1] if each[0] > after])
        threads = feeds._store.journal.threads = LateThreads()  # type: ignore[misc,assignment]
        followed = feeds.frames("r", Position(0, 0))
        first = asyncio.create_task(anext(followed))
        await asyncio.sleep(0)
        for piece in ("It ", "is "):
            feeds.watch("r").show_delta(strand, n, piece)
        threads.allowed.set()
        told = [*await asyncio.wait_for(first, 20)]
        while len(told) < 3:
            told += await asyncio.wait_for(anext(followed), 20)
        return [each.event["event"] for each in told]

    assert asyncio.run(follow()) == ["step_started", "answer_delta", "answer_delta"]


def test_follower_that_leaves_without_a_word_leaves_no_deaf_feed_behind(host: Served) -> None:
    run = host.submit("buy", article="E-5")["run_id"]
    rows = host.store.tail(run)
    known = rows[:1]

    async def follow() -> list[bytes]:
        feeds = feeds_of(lambda run, after: [row for row in known if row[0] > after])
        known.append(rows[1])
        left = feeds.follow(run, Position(0, 0))
        await anext(left)
        del left  # as a server does whose client is gone while it sends
        await asyncio.sleep(0.05)
        assert feeds.find(run) is None
        known.append((rows[1][0] + 1, rows[1][1]))
        return [await asyncio.wait_for(anext(feeds.follow(run, Position(rows[1][0], 1))), 5)]

    (heard,) = asyncio.run(follow())
    assert b"event: waiting" in heard


def test_follower_that_does_not_read_has_little_of_the_events_for_itself(host: Served) -> None:
    run = host.submit("buy", article="E-6")["run_id"]
    row = host.store.tail(run)[-1][1]

    async def follow() -> list[bytes]:
        feeds = feeds_of(lambda run, after: [(at, row) for at in range(max(after, 0) + 1, 3001)])
        pieces: list[bytes] = []
        async for piece in feeds.follow(run, Position(0, 0)):
            pieces.append(piece)
            if sum(each.count(b"event: waiting") for each in pieces) == 3000:
                break
        return pieces

    pieces = asyncio.run(follow())
    assert len(b"".join(pieces)) > 4 * TOGETHER_BYTES
    assert max(map(len, pieces)) < TOGETHER_BYTES + 1000


async def test_follower_of_a_run_without_news_hears_that_the_server_is_there_however_often_it_is_looked_at() -> None:
    class Store:
        journal = MemoryJournal()

        def tail(self, run: str, after: int = 0) -> Any:
            return []

    store: Any = Store()
    feed = Feed(store, "r", pace=lambda: 0.001, heartbeat=0.2, on_left=lambda feed: None)

    async def look() -> None:
        while True:
            feed.wake()
            await asyncio.sleep(0.01)

    looking = asyncio.create_task(look())
    async with asyncio.timeout(5), aclosing(feed.follow(Position(0, 0))) as followed:
        assert [await anext(followed), await anext(followed)] == [[], []]
    looking.cancel()


def test_followers_of_a_store_that_fails_are_let_go() -> None:
    def fail(run: str, after: int) -> Any:
        raise JournalError("the disk is gone")

    async def follow() -> list[bytes]:
        return [piece async for piece in feeds_of(fail).follow("r", Position(0, 0))]

    assert asyncio.run(asyncio.wait_for(follow(), 5)) == []
