"""A decision that was recorded is carried out, whatever ends between the record and the run."""

from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve
from agent_core.errors import DecisionError, JournalAway
from engine_shim import Engine, SqliteRunStore
from engine_shim.runs import steering
from utools import ToolRegistry, tool

FLOW = {"id": "w", "nodes": [{"id": "ship", "tool": "ship", "config": {"name": "A-17"}, "approval": "always"}]}
SENT: list[str] = []


@tool(effect="write", code="ship")
async def ship(name: str) -> str:
    """Send an article."""
    SENT.append(name)
    return "sent"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    SENT.clear()
    return Engine(ToolRegistry([ship]), store=SqliteRunStore(tmp_path / "runs.db"))


async def waiting(engine: Engine) -> tuple[str, dict[tuple[str, int], Any]]:
    result = await engine.run(FLOW, run_id="r")
    assert result.status == "waiting"
    engine.store.save_submission("r", "somebody")
    return "r", {(each["strand"], each["n"]): Approve() for each in result.waiting}


@pytest.mark.parametrize("is_recorded", [True, False])
async def test_run_whose_store_goes_away_while_it_is_decided_is_taken_up(
    engine: Engine, is_recorded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, decisions = await waiting(engine)
    plain = steering.append_decisions

    def append(*given: Any, **more: Any) -> None:
        if is_recorded:
            plain(*given, **more)
        raise JournalAway("the store is away")

    with monkeypatch.context() as patched:
        patched.setattr(steering, "append_decisions", append)
        with pytest.raises(JournalAway):
            await engine.resume(run, decisions=decisions)
    assert (engine.status(run), engine.store.list_orphaned("")) == ("pending", [run])
    result = await engine.resume(run)
    assert (result.status, SENT) == (("completed", ["A-17"]) if is_recorded else ("waiting", []))
    assert engine.status(run) == result.status
    await engine.close()


async def test_decision_that_is_refused_leaves_the_run_as_it_was(engine: Engine) -> None:
    run, _ = await waiting(engine)
    with pytest.raises(DecisionError):
        await engine.resume(run, decisions={("flow/gone.1", 0): Approve()})
    assert (engine.status(run), engine.store.list_orphaned("")) == ("waiting", [])
    await engine.close()
