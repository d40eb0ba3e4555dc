"""Nothing acts on a damaged run: resume, decide and fork refuse it, and say which record is at fault."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve, JsonlJournal, MemoryJournal, run_agent, verify
from agent_core.audit.signature import SEAL, VARIABLE, Keys
from agent_core.errors import Damaged
from agent_core.models import ScriptedModel
from engine_shim import Engine, RunResult, SqliteRunStore, load_workflow
from support.by_hand import Q, action, final
from utools import Tool, ToolRegistry

KEYS = "k1:0123456789abcdef0123456789abcdef"
PAYING: dict[str, Any] = {"model": "m", "max_steps": 4, "prompt": "Go.", "allowed_tools": ["pay"]}
ASKING = {**PAYING, "allowed_tools": [{"tool": "ask", "approval": "always"}]}


REPLIES, ASKED = [action("pay"), final("Paid.")], [action("ask"), final("Asked.")]
AGENT = "flow/agent_core.1"
SCRIPT: Any = {AGENT: REPLIES, "flow/last.1": ASKED}


class World:
    """A host whose writes are counted."""

    def __init__(self, path: Path) -> None:
        self.paid = 0
        self.path = path

    def registry(self) -> ToolRegistry:
        return ToolRegistry([Tool(name, "Acts.", Q, self._pay, effect="write") for name in ("pay", "ask")])

    def _pay(self, args: Any, context: Any) -> str:
        self.paid += 1
        return "paid"

    def engine(self) -> Engine:
        return Engine(self.registry(), store=SqliteRunStore(self.path), model=ScriptedModel(SCRIPT))

    def run(self, *, approval: bool = False) -> RunResult:
        """A payment by an agent, then one by a plain node, or by another agent with a person's approval."""
        plain = {"id": "last", "tool": "pay", "config": {"q": "1"}}
        last = {"id": "last", "tool": "agent_core", "config": ASKING} if approval else plain
        nodes = [{"tool": "agent_core", "config": PAYING}, last]
        edges = [{"from": "agent_core", "to": "last"}]
        return self.engine().run_sync(load_workflow({"id": "w", "nodes": nodes, "edges": edges}))

    def cut(self, where: str, *values: Any) -> None:
        with sqlite3.connect(self.path) as db:
            assert db.execute(f"DELETE FROM rows WHERE {where}", values).rowcount


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.delenv(VARIABLE, raising=False)
    return World(tmp_path / "runs.db")


def _refused(world: World, run: str, **options: Any) -> Damaged:
    """Why the run is not resumed, and proof that nothing was done and nothing written."""
    before, rows = world.paid, _rows(world, run)
    with pytest.raises(Damaged) as refused:
        asyncio.run(world.engine().resume(run, **options))
    with pytest.raises(Damaged):
        asyncio.run(world.engine().fork(run, (AGENT, 1), repeat_writes=True))
    assert (world.paid, _rows(world, run)) == (before, rows)
    return refused.value


def _rows(world: World, run: str) -> int:
    return sum(map(len, SqliteRunStore(world.path).journal.load(run).values()))


def test_write_that_was_cut_from_a_finished_run_is_not_made_again(world: World) -> None:
    run = world.run().run_id
    world.cut("strand = ? AND n > 2", AGENT)
    refused = _refused(world, run)
    assert (refused.path, refused.n) == ("flow", 1)
    assert "closes strand 'flow/agent_core.1' at another head and count than it has" in str(refused)


def test_finished_run_whose_end_was_cut_is_refused(world: World) -> None:
    run = world.run().run_id
    world.cut("strand = 'flow' AND n > 0")
    assert "the run had ended as completed, and its end is missing" in str(_refused(world, run))


def test_write_that_was_cut_from_a_waiting_run_is_not_made_again(world: World) -> None:
    waits = world.run(approval=True)
    assert (waits.status, world.paid) == ("waiting", 1)
    world.cut("strand = ? AND n > 2", AGENT)
    (entry,) = waits.waiting
    refused = _refused(world, waits.run_id, decisions={(entry["strand"], entry["n"]): Approve()})
    assert "the run had 16 records when it stopped, and" in str(refused)


@pytest.mark.parametrize("approval", [True, False])
def test_signed_run_without_its_signature_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch, approval: bool
) -> None:
    monkeypatch.setenv(VARIABLE, KEYS)
    run = world.run(approval=approval).run_id
    world.cut("strand = ?", SEAL)
    assert "it is not sealed, though a key is given" in str(_refused(world, run))


def test_signed_run_that_waits_goes_on_and_stays_signed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEYS)
    waits = world.run(approval=True)
    (entry,) = waits.waiting
    engine = world.engine()
    ended = asyncio.run(engine.resume(waits.run_id, decisions={(entry["strand"], entry["n"]): Approve()}))
    assert (ended.status, world.paid) == ("completed", 2)


# ── agents without an engine ─────────────────────────────────────────────────────────────────────


async def _agent(world: World, journal: Any, *replies: str, config: Any = PAYING, **options: Any) -> Any:
    model = ScriptedModel(list(replies))
    return await run_agent(config, registry=world.registry(), model=model, journal=journal, run_id="r", **options)


async def test_agent_whose_last_records_were_cut_goes_on_only_without_an_end(world: World, tmp_path: Path) -> None:
    journal = JsonlJournal(tmp_path / "run.jsonl")
    await _agent(world, journal, *REPLIES)
    lines = journal.path.read_bytes().splitlines(keepends=True)
    journal.path.write_bytes(b"".join(lines[:-2]) + lines[-2][:20])
    output = await _agent(world, JsonlJournal(journal.path), *REPLIES)
    assert (output.finish_reason, world.paid) == ("final", 1)


ENDS = {"finished": (PAYING, REPLIES), "waiting": (ASKING, ASKED)}


@pytest.mark.parametrize(("config", "replies"), ENDS.values(), ids=ENDS)
async def test_agent_that_lost_its_signature_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch, config: Any, replies: list[str]
) -> None:
    monkeypatch.setenv(VARIABLE, KEYS)
    journal = MemoryJournal()
    output = await _agent(world, journal, *replies, config=config)
    decisions = {(entry["strand"], entry["n"]): Approve() for entry in output.waiting}
    stripped, paid = MemoryJournal(), world.paid
    stripped.append("r", [row for path, rows in journal.load("r").items() if path != SEAL for row in rows])
    with pytest.raises(Damaged, match="it is not sealed"):
        await _agent(world, stripped, *replies, config=config, decisions=decisions)
    assert world.paid == paid
    await _agent(world, journal, *replies, config=config, decisions=decisions)
    assert verify(journal, run_id="r", keys=Keys.read(KEYS)).ok
