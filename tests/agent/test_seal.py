"""Seals: with a key, not even a full rewrite of a journal passes."""

from pathlib import Path
from typing import Any

import pytest
from by_hand import Q, action, final

from agent_core import Approve, DefinitionError, JsonlJournal, MemoryJournal, replay, run_agent, verify
from agent_core.journal.record import Tape, chained, genesis
from agent_core.journal.seal import STRAND, VARIABLE, Keys
from agent_core.models import ScriptedModel
from utools import Tool, ToolRegistry

KEYS = Keys({"k2": "new", "k1": "old"})
CONFIG = {"model": "m", "max_steps": 4, "allowed_tools": ["look"], "prompt": "Go."}
REGISTRY = ToolRegistry([Tool("look", "Looks.", Q, lambda args, context: "seen", effect="read")])


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "k2:new, k1:old")


async def _run(journal: Any, **options: Any) -> Any:
    config = {**CONFIG, **options.pop("config", {})}
    model = ScriptedModel([action(), final()])
    return await run_agent(config, registry=REGISTRY, model=model, journal=journal, run_id="r", **options)


def _rewritten(tape: Tape) -> MemoryJournal:
    """The same run with another answer, all its hashes made anew, as a thorough forger would."""
    journal = MemoryJournal()
    for path, rows in tape.items():
        previous = genesis("r", path)
        for row in rows:
            record = row.record()
            if record.get("output") == "seen":
                record["output"] = "forged"
            new = chained(path, row.n, previous, record)
            journal.append("r", [new])
            previous = new.hash
    return journal


async def test_a_finished_run_is_sealed_and_still_replays(tmp_path: Path) -> None:
    for journal in (MemoryJournal(), JsonlJournal(tmp_path / "run.jsonl")):
        output = await _run(journal)
        assert verify(journal, run_id="r", keys=KEYS).ok
        assert verify(journal, run_id="r", keys=KEYS, head=output.journal["head"], count=output.journal["count"]).ok
        assert replay(journal, run_id="r").identical


async def test_a_rewrite_passes_only_without_the_key() -> None:
    journal = MemoryJournal()
    await _run(journal)
    forged = _rewritten(journal.load("r"))
    assert verify(forged, run_id="r").ok
    found = verify(forged, run_id="r", keys=KEYS)
    assert (found.ok, found.why) == (False, "it goes on, or ends, elsewhere than where it was sealed")


async def test_a_seal_that_is_missing_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    journal = MemoryJournal()
    await _run(journal)
    assert verify(journal, run_id="r").ok
    assert verify(journal, run_id="r", keys=KEYS).why == "it is not sealed, though a key is given"


async def test_any_of_the_keys_verifies_and_a_wrong_one_does_not() -> None:
    journal = MemoryJournal()
    await _run(journal)
    assert verify(journal, run_id="r", keys=Keys({"k3": "x", "k2": "new"})).ok
    assert (
        verify(journal, run_id="r", keys=Keys({"k1": "old"})).why
        == "it is sealed with the key 'k2', which is not given"
    )
    assert verify(journal, run_id="r", keys=Keys({"k2": "guess"})).why == "its seal was not made with the key 'k2'"


async def test_a_waiting_run_is_sealed_and_sealed_again_when_it_ends() -> None:
    journal = MemoryJournal()
    output = await _run(journal, config={"approval": "always"})
    emitted = {"head": output.journal["head"], "count": output.journal["count"]}
    assert verify(journal, run_id="r", keys=KEYS, **emitted).ok
    place = (output.waiting[0]["strand"], output.waiting[0]["n"])
    await _run(journal, config={"approval": "always"}, decisions={place: Approve()})
    assert len(journal.load("r")[STRAND]) == 2
    assert verify(journal, run_id="r", keys=KEYS).ok


async def test_a_damaged_seal_is_named() -> None:
    journal = MemoryJournal()
    await _run(journal)
    tape = journal.load("r")
    (seal,) = tape[STRAND]
    rows = [row for rows in tape.values() for row in rows if row is not seal]
    bad = type(seal)(seal.path, seal.n, seal.hash, seal.data.replace(b"k2", b"k9"))
    found = verify([*rows, bad], run_id="r")
    assert found.first_bad == {"strand": STRAND, "n": 0, "line": None}


@pytest.mark.parametrize("text", ["nokey", "k:", ":x", "a:b,,c"])
def test_keys_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(DefinitionError, match=VARIABLE):
        Keys.read(text)


def test_no_keys_are_none_and_never_shown() -> None:
    assert Keys.read(" , ") is None
    assert "new" not in repr(KEYS)
