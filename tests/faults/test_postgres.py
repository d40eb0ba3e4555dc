"""A journal and whole runs in a real PostgreSQL, while the network between them fails and comes back."""

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import Approve, replay, verify
from agent_core.errors import JournalAway, JournalError
from agent_core.journal.record import Row, chain_row, genesis
from engine_shim import Engine
from engine_shim.runs.loops import LOOPS
from support.bad_link import BadLink, bad_link
from support.postgres_server import PASSWORD, Postgres
from utools import Tool

if TYPE_CHECKING:
    from agent_core.journal.postgres import PostgresJournal
    from engine_shim.store.run_store_postgres import PostgresRunStore

pytestmark = [pytest.mark.exhaustive, pytest.mark.xdist_group("postgres")]
PATIENCE_S = 0.5
"""With others, and for a connection; the product's own is 5 s."""
OUTAGE_S = 1.0
Fault = Callable[[BadLink], None]
ANY = {"type": "object", "additionalProperties": True}
FLOW: dict[str, Any] = {
    "id": "flow",
    "nodes": [
        {"id": "look", "tool": "look", "config": {"name": "look"}},
        {"id": "pay", "tool": "pay", "config": {"name": "pay", "after": "{{nodes.look}}"}},
        {"id": "send", "tool": "pay", "config": {"name": "send", "after": "{{nodes.pay}}"}, "approval": "always"},
        {"id": "again", "tool": "look", "config": {"name": "again", "after": "{{nodes.send}}"}},
    ],
}


@pytest.fixture
def link(postgres: Postgres) -> Iterator[BadLink]:
    with bad_link(postgres.port) as made:
        yield made


@pytest.fixture
def direct(new_database: Callable[[], str]) -> str:
    """The URL of the database past the link."""
    return new_database()


@pytest.fixture
def url(direct: str, postgres: Postgres, link: BadLink) -> str:
    return direct.replace(f":{postgres.port}/", f":{link.port}/")


@pytest.fixture
def journal(url: str) -> "Iterator[PostgresJournal]":
    from agent_core.journal.postgres import PostgresJournal

    with closing(PostgresJournal(url, patience=PATIENCE_S)) as made:
        yield made


@pytest.fixture
def store(url: str) -> "Iterator[PostgresRunStore]":
    from engine_shim.store.run_store_postgres import PostgresRunStore

    with closing(PostgresRunStore(url, patience=PATIENCE_S)) as made:
        yield made


def slow(link: BadLink) -> None:
    link.latency = 0.05
    link.later(OUTAGE_S, lambda: setattr(link, "latency", 0.0))


def drip(link: BadLink) -> None:
    link.become("drip")
    link.later(OUTAGE_S, lambda: link.become("pass"))


def reset(link: BadLink) -> None:
    link.reset_all()


def lost_commit(link: BadLink) -> None:
    link.cut_answer(b"COMMIT")


def lost_commit_and_outage(link: BadLink) -> None:
    link.cut_answer(b"COMMIT", then="refuse")
    link.later(OUTAGE_S, lambda: link.become("pass"))


def half_open(link: BadLink) -> None:
    link.become("silent")
    link.later(OUTAGE_S, lambda: link.become("pass"))


def outage(link: BadLink) -> None:
    link.become("refuse")
    link.later(OUTAGE_S, lambda: link.become("pass"))


FAULTS = [slow, drip, reset, lost_commit, lost_commit_and_outage, half_open, outage]


# ── the journal ──────────────────────────────────────────────────────────────────────────────────────


def rows_of(count: int) -> list[Row]:
    rows: list[Row] = []
    for n in range(count):
        rows.append(chain_row("agent", n, rows[-1].hash if rows else genesis("r", "agent"), {"kind": "asked", "i": n}))
    return rows


@pytest.mark.parametrize("fault", FAULTS)
def test_append_that_is_tried_until_it_is_acknowledged_is_new_once_and_in_the_journal(
    fault: Fault, link: BadLink, journal: "PostgresJournal"
) -> None:
    first, second = rows_of(2)
    assert journal.append("r", [first])
    fault(link)
    was_new, errors = None, list[str]()
    while was_new is None:
        try:
            was_new = journal.append("r", [second])
        except JournalAway as error:
            errors.append(str(error))
    assert all(f"127.0.0.1:{link.port}/" in error and PASSWORD not in error for error in errors)
    assert was_new, "it is our own row, however often we asked"
    assert not journal.append("r", [second])
    assert journal.load("r") == {"agent": [first, second]}


def test_row_of_another_driver_is_not_taken_for_our_own(link: BadLink, direct: str, journal: "PostgresJournal") -> None:
    from agent_core.journal.postgres import PostgresJournal

    first, second = rows_of(2)
    journal.append("r", [first])
    link.become("silent")
    with pytest.raises(JournalAway):
        journal.append("r", [second])
    with closing(PostgresJournal(direct)) as rival:
        assert rival.append("r", [second])
    link.become("pass")
    assert not journal.append("r", [second])


def test_error_says_why_the_server_is_away_and_never_the_password(link: BadLink, journal: "PostgresJournal") -> None:
    journal.append("r", rows_of(1))
    for state, reason in (("refuse", "Connection refused"), ("silent", "timeout")):
        link.become(state)  # type: ignore[arg-type]
        with pytest.raises(JournalAway) as caught:
            journal.load("r")
        assert str(caught.value).startswith(f"cannot read postgresql://127.0.0.1:{link.port}/test_")
        assert reason in str(caught.value)
        assert PASSWORD not in str(caught.value)


def test_wrong_password_is_no_outage(postgres: Postgres, direct: str) -> None:
    from agent_core.journal.postgres import PostgresJournal

    with postgres.asking_for_passwords(), closing(PostgresJournal(direct.replace(PASSWORD, "wrong"))) as journal:
        with pytest.raises(JournalError, match="password authentication failed") as caught:
            journal.load("r")
        assert not isinstance(caught.value, JournalAway)


# ── whole runs ───────────────────────────────────────────────────────────────────────────────────────


class Desk:
    """An engine on the store, whose tools count in a file what they did, and bring the fault about."""

    def __init__(self, store: "PostgresRunStore", folder: Path, fault: Callable[[], None], at: str) -> None:
        self.counter, self._fault, self._at = folder / "counter", fault, at
        self.counter.touch()
        tools = [Tool("look", "Looks.", ANY, self._make, effect="read"), Tool("pay", "Pays.", ANY, self._make)]
        self.store, self.engine = store, Engine(tools, store=store)

    async def _make(self, args: dict[str, Any], context: Any) -> str:
        return self._count(args["name"])

    def _count(self, what: str) -> str:
        with self.counter.open("a") as file:
            file.write(f"{what}\n")
        if what == self._at:
            self._at = ""
            self._fault()
        return what

    @property
    def done(self) -> list[str]:
        return self.counter.read_text().split()

    async def run(self) -> Any:
        """Run to the end, with the approval."""
        result = await self.engine.run(FLOW, run_id="r")
        return await self.approve(result)

    async def approve(self, result: Any) -> Any:
        assert result.status == "waiting", result
        (call,) = result.waiting
        assert call["reason"] == "awaiting_approval"
        return await self.engine.resume("r", decisions={(call["strand"], call["n"]): Approve()})

    def is_sound(self, result: Any) -> bool:
        whole = verify(self.store.journal, run_id="r", **result.journal).ok
        return whole and replay(self.store.journal, run_id="r", loops=LOOPS).identical


@pytest.mark.parametrize(
    ("fault", "at"),
    [*((fault, "pay") for fault in FAULTS), *((lost_commit, at) for at in ("look", "send", "again")), (outage, "send")],
)
async def test_run_outlasts_the_fault_with_each_call_made_once(
    fault: Fault, at: str, link: BadLink, store: "PostgresRunStore", tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(store, tmp_path, lambda: fault(link), at)
    done = await desk.run()
    assert (done.status, done.outputs["again"]) == ("completed", "again")
    assert desk.done == ["look", "pay", "send", "again"]
    assert desk.is_sound(done)
    assert desk.engine.status("r") == "completed"
    if fault in (outage, lost_commit_and_outage):
        where = f"postgresql://127.0.0.1:{link.port}/"
        assert re.search(f"run r waits for its journal, up to 60 seconds: cannot (read|write to) {where}", caplog.text)
    assert PASSWORD not in caplog.text


@pytest.mark.parametrize(("at", "in_doubt"), [("look", False), ("pay", True)])
async def test_run_whose_store_stays_away_ends_with_the_reason_and_goes_on_when_it_is_back(
    at: str,
    in_doubt: bool,
    link: BadLink,
    store: "PostgresRunStore",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from agent_core import Skip

    monkeypatch.setenv("AGENT_CORE_STORE_PATIENCE", "1")
    desk = Desk(store, tmp_path, lambda: link.become("refuse"), at)
    with pytest.raises(JournalAway, match="Connection refused"):
        await desk.run()
    link.become("pass")
    result = await _resume_once_back(desk)
    if in_doubt:  # the answer of the write died with its driver: a person says what became of it
        (call,) = result.waiting
        assert (call["tool"], call["reason"]) == ("pay", "in_doubt")
        result = await desk.engine.resume("r", decisions={(call["strand"], call["n"]): Skip()})
    if result.status == "waiting":
        result = await desk.approve(result)
    assert len(desk.done) == len(set(desk.done)) + (at == "look"), "a read may be made again"
    assert desk.is_sound(result)


async def _resume_once_back(desk: Desk) -> Any:
    """Resume the run; a busy machine may take longer for a new connection than the store here is patient."""
    async with asyncio.timeout(20):
        while True:
            with suppress(JournalAway):
                return await desk.engine.resume("r")


async def test_event_loop_goes_on_while_a_run_waits_for_its_store(
    link: BadLink, store: "PostgresRunStore", tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    desk = Desk(store, tmp_path, lambda: link.become("refuse"), "pay")
    running = asyncio.create_task(desk.engine.run(FLOW, run_id="r"))
    async with asyncio.timeout(20):
        while "waits for its journal" not in caplog.text:
            await asyncio.sleep(0.01)
    for _ in range(20):
        await asyncio.sleep(0.01)
    assert not running.done()
    link.become("pass")
    assert (await running).status == "waiting"
    assert "run r continues: its journal is back" in caplog.text


async def test_run_that_is_cancelled_while_it_waits_for_its_store_ends_cancelled(
    link: BadLink, store: "PostgresRunStore", tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(store, tmp_path, lambda: link.become("refuse"), "look")
    running = asyncio.create_task(desk.engine.run(FLOW, run_id="r"))
    async with asyncio.timeout(20):
        while "waits for its journal" not in caplog.text:
            await asyncio.sleep(0.01)
    running.cancel()
    link.later(0.5, lambda: link.become("pass"))
    with pytest.raises(asyncio.CancelledError):
        await running
    assert desk.engine.status("r") == "cancelled"
    assert desk.done == ["look"]


@pytest.mark.timeout(120)
async def test_run_outlasts_half_a_minute_without_its_store(
    url: str, link: BadLink, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from engine_shim.store.run_store_postgres import PostgresRunStore

    def begin() -> None:
        link.become("refuse")
        link.later(30, lambda: link.become("pass"))

    with closing(PostgresRunStore(url)) as store:
        desk = Desk(store, tmp_path, begin, "pay")
        done = await desk.run()
        assert (done.status, desk.done) == ("completed", ["look", "pay", "send", "again"])
        assert desk.is_sound(done)
