"""Nothing acts on a damaged run: resume, decide and fork refuse it, and say which record is at fault."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve, JsonlJournal, MemoryJournal, agent_tool, run_agent, verify
from agent_core.errors import Damaged, DecisionError
from agent_core.journal.control import waiting_calls
from agent_core.journal.path import SEAL
from agent_core.journal.record import chain_row, genesis
from agent_core.journal.signature import VARIABLE, Keys, signature_fault
from agent_core.models import ScriptedModel
from agent_core.run.control import append_signed
from engine_shim import Engine, RunResult, SqliteRunStore, load_workflow
from support.by_hand import Q, action, final
from utools import Tool, ToolRegistry, default_registry
from utools.context.store_memory import MemoryContextStore

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
        self.script: Any = SCRIPT

    def registry(self) -> ToolRegistry:
        return ToolRegistry([Tool(name, "Acts.", Q, self._pay, effect="write") for name in ("pay", "ask")])

    def _pay(self, args: Any, context: Any) -> str:
        self.paid += 1
        return "paid"

    def engine(self) -> Engine:
        registry = default_registry(self.path.parent, context_store=MemoryContextStore())
        for tool in self.registry().all():
            registry.register(tool)
        return Engine(registry, store=SqliteRunStore(self.path), model=ScriptedModel(self.script))

    def run(self, *, approval: bool = False) -> RunResult:
        """A payment by an agent, then one by a plain node, or by another agent with a person's approval."""
        plain = {"id": "last", "tool": "pay", "config": {"q": "1"}}
        last = {"id": "last", "tool": "agent_core", "config": ASKING} if approval else plain
        nodes = [{"tool": "agent_core", "config": PAYING}, last]
        edges = [{"from": "agent_core", "to": "last"}]
        return self.engine().run_sync(load_workflow({"id": "w", "nodes": nodes, "edges": edges}))

    def cut(self, where: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as db:
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


@pytest.mark.parametrize("how", ["pause", "cancel"])
def test_what_was_changed_is_not_signed_by_a_pause(world: World, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setenv(VARIABLE, KEYS)
    run = world.run(approval=True).run_id
    world.cut("strand = ? AND n > 2", AGENT)
    before = _rows(world, run)
    with pytest.raises(Damaged):
        asyncio.run(getattr(world.engine(), how)(run))
    assert _rows(world, run) == before


def test_first_record_that_was_cut_is_named(world: World) -> None:
    run = world.run().run_id
    world.cut("strand = 'flow'")
    assert str(_refused(world, run)) == "record 0 of strand 'flow' is damaged: it is missing"


def test_value_of_another_type_is_named(world: World) -> None:
    run = world.run().run_id
    with closing(sqlite3.connect(world.path, isolation_level=None)) as db:
        db.execute("UPDATE rows SET data = replace(data, 'pay', 'eve') WHERE strand = ? AND n = 4", (AGENT,))
    refused = _refused_unread(world, run)
    assert (refused.path, refused.n) == (AGENT, 4)
    assert verify(world.path, run_id=run).first_bad == {"strand": AGENT, "n": 4, "line": None}


def _refused_unread(world: World, run: str) -> Damaged:
    with pytest.raises(Damaged) as refused:
        asyncio.run(world.engine().resume(run))
    return refused.value


def test_a_signature_that_comes_too_late_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Keys.read(KEYS)
    assert keys is not None
    journal, rival = MemoryJournal(), MemoryJournal()
    first, second = (chain_row(path, 0, genesis("r", path), {"kind": "resolved"}) for path in ("a", "b"))

    class Racing:
        """A journal in which somebody else signs between a load and an append."""

        identity = None

        def load(self, run: str) -> Any:
            return journal.load(run)

        def append(self, run: str, rows: Any) -> bool:
            if not rival.load("r"):
                rival.append("r", [first])
                append_signed(journal, "r", [first], keys)
            return journal.append(run, rows)

    append_signed(Racing(), "r", [second], keys)  # type: ignore[arg-type]
    assert signature_fault("r", journal.load("r"), keys) is None
    assert len(journal.load("r")[SEAL]) == 2


def test_a_call_in_a_run_that_has_ended_waits_no_more(world: World, tmp_path: Path) -> None:
    paying = {**PAYING, "allowed_tools": [{"tool": "pay", "approval": "always"}]}
    sub = {
        "id": "sub",
        "nodes": [
            {"id": "a", "tool": "agent_core", "config": paying},
            {"id": "b", "tool": "read_file", "config": {"path": "nowhere"}},
        ],
        "edges": [],
    }
    (tmp_path / "sub.json").write_text(json.dumps(sub))
    nodes = [
        {"id": "s", "tool": "invoke_workflow", "config": {"workflow": "sub.json"}},
        {"id": "last", "tool": "agent_core", "config": ASKING},
    ]
    flow = {"id": "w", "nodes": nodes, "edges": [{"from": "s", "to": "last", "on": "error"}]}
    world.script = {"flow/s.1/a.1": [action("pay"), final()], "flow/last.1": ASKED}
    waits = world.engine().run_sync(load_workflow(flow, base=tmp_path))
    tape = SqliteRunStore(world.path).journal.load(waits.run_id)
    assert [entry["strand"] for entry in waiting_calls(tape)] == [entry["strand"] for entry in waits.waiting]
    assert [entry["strand"] for entry in waits.waiting] == ["flow/last.1"]
    with pytest.raises(DecisionError, match="the run that this call belongs to has ended"):
        asyncio.run(world.engine().resume(waits.run_id, decisions={("flow/s.1/a.1", 4): Approve()}))
    assert asyncio.run(world.engine().cancel(waits.run_id)) == "cancelled"
    assert (world.paid, verify(world.path, run_id=waits.run_id).ok) == (0, True)


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


async def test_signed_agent_goes_on_wherever_its_file_was_torn(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, KEYS)
    whole = JsonlJournal(tmp_path / "whole.jsonl")
    waits = await _agent(world, whole, *ASKED, config=ASKING)
    data = whole.path.read_bytes()
    decisions = {(entry["strand"], entry["n"]): Approve() for entry in waits.waiting}
    for end in range(data.index(b"\n") + 2, len(data), 40):
        torn = JsonlJournal(tmp_path / f"{end}.jsonl")
        torn.path.write_bytes(data[:end] if data[end - 1 : end] != b"\n" else data[: end - 1])
        again = await _agent(world, torn, *ASKED, config=ASKING)
        assert (again.finish_reason, world.paid) == ("awaiting_approval", 0)
    ended = await _agent(world, whole, *ASKED, config=ASKING, decisions=decisions)
    assert (ended.finish_reason, world.paid) == ("final", 1)


async def test_agent_under_an_agent_that_waits_is_not_driven_without_its_signature(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, KEYS)
    registry = world.registry()
    model = ScriptedModel({"agent": [action("agent_core", prompt="Ask."), final()], "agent/agent_core.4": ASKED})
    registry.register(agent_tool(registry, model))
    inner = {key: value for key, value in ASKING.items() if key != "prompt"}
    config = {**PAYING, "allowed_tools": [{"tool": "agent_core", "preset": inner}]}
    journal, stripped = MemoryJournal(), MemoryJournal()
    waits = await run_agent(config, registry=registry, model=model, journal=journal, run_id="r")
    (entry,) = waits.waiting
    stripped.append("r", [row for path, rows in journal.load("r").items() if path != SEAL for row in rows])
    decisions = {(entry["strand"], entry["n"]): Approve()}
    with pytest.raises(Damaged, match="it is not sealed"):
        await run_agent(config, registry=registry, model=model, journal=stripped, run_id="r", decisions=decisions)
    assert world.paid == 0
