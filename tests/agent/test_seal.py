"""Seals: with a key, not even a full rewrite of a journal passes."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_core import (
    Approve,
    DefinitionError,
    JsonlJournal,
    MemoryJournal,
    SqliteJournal,
    Verification,
    replay,
    run_agent,
    verify,
)
from agent_core.journal.path import SEAL
from agent_core.journal.record import Record, Tape, chain_row, genesis
from agent_core.journal.signature import VARIABLE, Keys
from agent_core.models import ScriptedModel
from agent_core.run.secrets import signing_keys, verifying_keys
from support.by_hand import Q, action, final
from utools import Tool, ToolRegistry

NEW, OLD = "the-new-key-of-this-host", "the-old-key-of-this-host"
KEYS = Keys({"k2": NEW, "k1": OLD})
CONFIG = {"model": "m", "max_steps": 4, "allowed_tools": ["look"], "prompt": "Go."}
REGISTRY = ToolRegistry([Tool("look", "Looks.", Q, lambda args, context: "seen", effect="read")])


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, f"k2:{NEW}, k1:{OLD}")


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
            new = chain_row(path, row.n, previous, record)
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
    assert verify(journal, run_id="r", keys=Keys({"k3": "x", "k2": NEW})).ok
    assert (
        verify(journal, run_id="r", keys=Keys({"k1": OLD})).why == "it is sealed with the key 'k2', which is not given"
    )
    assert verify(journal, run_id="r", keys=Keys({"k2": "guess"})).why == "its seal was not made with the key 'k2'"


async def _sealed() -> tuple[Tape, Record]:
    """A run that was sealed, without its seal, and what that said."""
    journal = MemoryJournal()
    await _run(journal)
    tape = journal.load("r")
    (seal,) = tape.pop(SEAL)
    return tape, seal.record()


def _verified(tape: Tape, *seals: Any) -> Verification:
    """What is said of a run under seals whose chain is sound."""
    rows = [row for strand in tape.values() for row in strand]
    previous = genesis("r", SEAL)
    for n, seal in enumerate(seals):
        rows.append(chain_row(SEAL, n, previous, seal))
        previous = rows[-1].hash
    return verify(rows, run_id="r", keys=KEYS)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"kid": "k1"}, "was not made with the key 'k1'", id="another key's name"),
        pytest.param({"kid": "k9"}, "sealed with the key 'k9', which is not given", id="an unknown key"),
        pytest.param({"mac": "0" * 64}, "was not made with the key", id="another mac"),
        pytest.param({"mac": "ä"}, "was not made with the key", id="a mac that is not ASCII"),
        pytest.param({"head": "0" * 64}, "was not made with the key", id="another head"),
        pytest.param({"count": 1}, "was not made with the key", id="another count"),
        pytest.param({"kind": "asked"}, "not one that a host writes", id="another record"),
        *(
            pytest.param({name: junk}, "not one that a host writes", id=f"{name} {junk!r}")
            for name in ("head", "count", "kid", "mac")
            for junk in (None, [], {}, 1.5)
        ),
    ],
)
async def test_a_seal_is_taken_for_no_more_than_it_is(change: Record, why: str | None) -> None:
    tape, seal = await _sealed()
    found = _verified(tape, seal | change)
    assert found.ok == (why is None)
    assert why is None or why in str(found.why)


async def test_a_seal_proves_only_the_run_and_the_end_that_it_was_made_for() -> None:
    tape, seal = await _sealed()
    shorter = {path: rows[:-1] for path, rows in tape.items()}
    assert not _verified(shorter, seal).ok
    other = KEYS.seal("another run", seal, "")
    assert not _verified(tape, seal | {"mac": other["mac"]}).ok
    assert _verified(tape).why == "it is not sealed, though a key is given"
    older = KEYS.seal("r", seal | {"count": 3}, "")
    assert _verified(tape, seal, older).why == "it goes on, or ends, elsewhere than where it was sealed"
    assert _verified(tape, older, seal).ok


@pytest.mark.parametrize("suffix", [".jsonl", ".db"])
async def test_a_rewritten_file_is_found_though_its_old_seal_is_chained_anew(tmp_path: Path, suffix: str) -> None:
    journal = MemoryJournal()
    await _run(journal)
    forged = _rewritten(journal.load("r")).load("r")
    path = tmp_path / f"run{suffix}"
    with closing(JsonlJournal(path) if suffix == ".jsonl" else SqliteJournal(path)) as file:
        for rows in forged.values():
            file.append("r", rows)
    assert verify(path).ok
    assert verify(path, keys=KEYS).why == "it goes on, or ends, elsewhere than where it was sealed"


async def test_a_waiting_run_is_sealed_and_sealed_again_when_it_ends() -> None:
    journal = MemoryJournal()
    output = await _run(journal, config={"approval": "always"})
    emitted = {"head": output.journal["head"], "count": output.journal["count"]}
    assert verify(journal, run_id="r", keys=KEYS, **emitted).ok
    place = (output.waiting[0]["strand"], output.waiting[0]["n"])
    await _run(journal, config={"approval": "always"}, decisions={place: Approve()})
    assert len(journal.load("r")[SEAL]) == 3  # where it waited, with the decision, and at its end
    assert verify(journal, run_id="r", keys=KEYS).ok


async def test_a_seal_proves_a_run_that_waits() -> None:
    journal = MemoryJournal()
    await _run(journal, config={"approval": "always"})
    found = verify(journal, run_id="r", keys=KEYS)
    assert (found.ok, found.complete, found.why) == (True, False, None)
    tape = journal.load("r")
    rows = [row for strand in tape.values() for row in strand]
    assert verify(rows, run_id="r", keys=KEYS, strand="agent").ok
    assert not verify(rows, run_id="r").ok
    assert verify(rows, run_id="r", keys=Keys({"k2": "guess"})).why == "its seal was not made with the key 'k2'"
    assert verify(rows, run_id="r", keys=KEYS, head="0" * 64).why is not None


async def test_no_seal_proves_a_run_that_has_gone_on_or_lost_its_end() -> None:
    journal = MemoryJournal()
    await _run(journal, config={"approval": "always"})
    tape = journal.load("r")
    (seal,) = tape.pop(SEAL)
    shorter = {path: rows[:-1] for path, rows in tape.items()}
    assert _verified(shorter, seal.record()).why == "it goes on, or ends, elsewhere than where it was sealed"
    last = tape["agent"][-1]
    tape["agent"].append(chain_row("agent", last.n + 1, last.hash, {"kind": "resolved", "decision": "approve"}))
    assert _verified(tape, seal.record()).why == "it goes on, or ends, elsewhere than where it was sealed"
    assert _verified(shorter).why == "it is not sealed, though a key is given"


async def test_a_short_key_signs_nothing_and_still_verifies(monkeypatch: pytest.MonkeyPatch) -> None:
    tape, seal = await _sealed()
    short = Keys({"k0": "tinykey"})
    old = short.seal("r", seal, "")
    rows = [row for strand in tape.values() for row in strand]
    rows.append(chain_row(SEAL, 0, genesis("r", SEAL), old))
    monkeypatch.setenv(VARIABLE, f"k2:{NEW},k0:tinykey")
    assert verify(rows, run_id="r", keys=verifying_keys()).ok
    assert signing_keys() == Keys({"k2": NEW, "k0": "tinykey"})
    monkeypatch.setenv(VARIABLE, f"k0:tinykey,k2:{NEW}")
    assert verify(rows, run_id="r", keys=verifying_keys()).ok
    journal = MemoryJournal()
    with pytest.raises(DefinitionError, match=r"the key 'k0', which signs, has 7 characters.*at least 16") as refused:
        await _run(journal)
    assert "tinykey" not in str(refused.value)
    assert not journal.load("r")


async def test_a_damaged_seal_is_named() -> None:
    journal = MemoryJournal()
    await _run(journal)
    tape = journal.load("r")
    (seal,) = tape[SEAL]
    rows = [row for rows in tape.values() for row in rows if row is not seal]
    bad = type(seal)(seal.path, seal.n, seal.hash, seal.data.replace(b"k2", b"k9"))
    found = verify([*rows, bad], run_id="r")
    assert found.first_bad == {"strand": SEAL, "n": 0, "line": None}


@pytest.mark.parametrize("text", ["nokey", "k:", ":x", "a:b,,c"])
def test_keys_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(DefinitionError, match=VARIABLE):
        Keys.read(text)


def test_no_keys_are_none_and_never_shown() -> None:
    assert Keys.read(" , ") is None
    assert NEW not in repr(KEYS)


async def test_a_verification_says_what_was_checked_of_the_seal() -> None:
    journal = MemoryJournal()
    await _run(journal)
    rows = [row for strand in journal.load("r").values() for row in strand]
    unsealed = [row for row in rows if row.path != SEAL]
    assert verify(rows, run_id="r", keys=KEYS).seal == "sealed by k2"
    assert verify(rows, run_id="r").seal == "sealed by k2, not checked: no key here"
    assert verify(unsealed, run_id="r").seal == "not sealed"
    assert verify(unsealed, run_id="r", keys=KEYS).seal == "not sealed"
    other = verify(rows, run_id="r", keys=Keys({"k2": "another-key-of-another-host"}))
    assert (other.ok, other.seal) == (False, "sealed by k2, which does not hold")
    damaged = [row._replace(data=b"{}") if row.path == SEAL else row for row in rows]
    found = verify(damaged, run_id="r", keys=KEYS)
    assert (found.ok, found.seal) == (False, "seal not checked: a record is damaged")


@pytest.mark.parametrize("keys", [{"k2": NEW}, "k2:key", [NEW]], ids=["mapping", "text", "list"])
async def test_keys_of_another_shape_are_refused_with_what_is_wanted(keys: Any) -> None:
    tape, _ = await _sealed()
    rows = [row for strand in tape.values() for row in strand]
    with pytest.raises(DefinitionError, match=r"keys: must be Keys.*keys=Keys\(\{'k1': KEY\}\)") as refused:
        verify(rows, run_id="r", keys=keys)
    assert NEW not in str(refused.value)
