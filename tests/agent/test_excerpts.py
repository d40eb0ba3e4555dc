"""Excerpts of runs: what they prove to a stranger. Each change is found, by two programs that share nothing."""

import asyncio
import base64
import json
import random
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_core import DefinitionError, Keys, MemoryJournal, SqliteJournal, run_agent, verify
from agent_core.audit.excerpt import make_excerpt, verify_excerpt
from agent_core.evidence import verify_evidence
from agent_core.evidence.checkpoints import Checkpoint
from agent_core.evidence.excerpts import prove_leaves, salt_of
from agent_core.evidence.key_files import KeyFiles, make_key_file, public_file, replace_text
from agent_core.evidence.merkle import compute_root, hash_leaf
from agent_core.evidence.public_keys import PublicKeys
from agent_core.evidence.variables import KEY_VARIABLE
from agent_core.journal.path import SEAL
from agent_core.journal.record import Tape, chain_row, genesis
from agent_core.models import ScriptedModel
from support.by_hand import Q, action, final
from support.optional import needs
from utools import Tool, ToolRegistry

pytestmark = needs("cryptography")
PROGRAM = Path(str(verify_evidence.__file__))
CONFIG = {"model": "m", "max_steps": 4, "allowed_tools": ["look"], "prompt": "What does the letter say?"}
SECRET = "The letter says: the price is 4711 euros."
REGISTRY = ToolRegistry([Tool("look", "Looks.", Q, lambda args, context: SECRET, effect="read")])


@pytest.fixture(name="key")
def _key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "desk.key"
    replace_text(public_file(path), PublicKeys.of(make_key_file(path)).write())
    monkeypatch.setenv(KEY_VARIABLE, str(path))
    return path


async def run_one(run: str = "r") -> Tape:
    journal = MemoryJournal()
    model = ScriptedModel([action(), final()])
    await run_agent(CONFIG, registry=REGISTRY, model=model, journal=journal, run_id=run)
    return journal.load(run)


def log_of(key: Path, run: str, tape: Tape, others: int = 5, at: int = 2) -> dict[str, Any]:
    """What proves that a log of several entries has the run."""
    signer = KeyFiles(str(key)).signer()
    assert signer is not None
    entry = {"kind": "ended", "run": run, "status": "completed", "root": tape[SEAL][-1].record()["root"]}
    entries = [json.dumps({"run": f"other {number}"}).encode() for number in range(others)]
    entries.insert(at, json.dumps(entry).encode())
    hashes = [hash_leaf(each) for each in entries]
    (proof,) = prove_leaves(hashes, [at])
    checkpoint = Checkpoint("agent-core/test", len(entries), compute_root(hashes)).sign(signer)
    return {
        "entry": entries[at].decode(),
        "index": at,
        "hashes": [base64.b64encode(each).decode() for each in proof],
        "checkpoint": checkpoint.write(),
    }


def trusting(key: Path) -> Keys:
    return Keys(keyring=KeyFiles(trusted=str(public_file(key))))


def by_program(text: str, key: Path) -> str | None:
    """Why the program that is given away does not take an excerpt."""
    try:
        verify_evidence.verify(text, verify_evidence.read_keys(public_file(key).read_text()))
    except verify_evidence.Fault as fault:
        return str(fault)
    return None


def judge(text: str, key: Path) -> bool:
    """Whether an excerpt is taken, by both programs alike."""
    found = verify_excerpt(text, trusting(key))
    other = by_program(text, key)
    assert found.ok == (other is None), (found.why, other, text)
    return found.ok


async def test_some_records_are_proven_and_nothing_is_told_of_the_others(key: Path) -> None:
    tape = await run_one()
    text = make_excerpt("r", tape, [("agent", 0), ("agent", 3)], log_of(key, "r", tape))
    found = verify_excerpt(text, trusting(key))
    assert (found.ok, found.run, found.shown, found.count) == (True, "r", 2, len(tape["agent"]))
    assert (found.log, found.status) == ("agent-core/test", "completed")
    assert judge(text, key)
    assert SECRET not in text
    salts = {base64.b64encode(salt).decode() for salt in salts_of(tape)}
    shown = {each["salt"] for each in json.loads(text)["records"]}
    assert (len(shown), shown < salts, len(salts)) == (2, True, len(tape["agent"]))
    assert tape[SEAL][-1].record()["salt"] not in text


def salts_of(tape: Tape) -> list[bytes]:
    secret = base64.b64decode(tape[SEAL][-1].record()["salt"])
    return [salt_of(secret, (row.path, row.n)) for rows in tape.values() for row in rows if row.path != SEAL]


async def test_two_seals_of_the_same_run_have_salts_of_their_own(key: Path) -> None:
    one, other = [await run_one("r") for _ in range(2)]
    assert not set(salts_of(one)) & set(salts_of(other))


async def test_each_place_and_number_of_records_is_proven(key: Path) -> None:
    tape = await run_one()
    places = [("agent", n) for n in range(len(tape["agent"]))]
    for first in range(len(places)):
        for last in range(first, len(places)):
            assert judge(make_excerpt("r", tape, places[first : last + 1], None), key)


async def test_whoever_has_the_whole_run_finds_that_its_tree_is_another(key: Path) -> None:
    tape = await run_one()
    keys = trusting(key)
    rows = [row for each in tape.values() for row in each]
    assert verify(rows, run_id="r", keys=keys).ok
    for change in ({"salt": base64.b64encode(b"another salt 16b").decode()}, {"root": "0" * 64}, {"salt": "?"}):
        seal = chain_row(SEAL, 0, genesis("r", SEAL), {**tape[SEAL][0].record(), **change})
        assert not verify([*(row for row in rows if row.path != SEAL), seal], run_id="r", keys=keys).ok


def mutations(text: str, chance: random.Random) -> Iterator[str]:
    """An excerpt, changed in one place: a value, a field, an order, or a byte."""
    while True:
        document = json.loads(text)
        kind = chance.randrange(4)
        if kind == 0:
            at = chance.randrange(len(text))
            yield text[:at] + chr(chance.randrange(32, 127)) + text[at + 1 :]
            continue
        holder, name = chance.choice(list(places_of(document)))
        if kind == 1:
            holder[name] = other_value(holder[name], chance)
        elif kind == 2 and isinstance(holder, dict):
            del holder[name]
        elif kind == 2:
            holder.append(holder[name])
        elif isinstance(holder, dict):
            holder[f"{name}x"] = holder[name]
        else:
            holder.reverse()
        yield json.dumps(document, ensure_ascii=False)


def places_of(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each place within a value, as what holds it and its key there."""
    for name, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, name
        if isinstance(inner, dict | list):
            yield from places_of(inner)


def other_value(value: Any, chance: random.Random) -> Any:
    if isinstance(value, str) and value and chance.random() < 0.8:
        at = chance.randrange(len(value))
        return value[:at] + chance.choice("aZ09+/=é\n ") + value[at + 1 :]
    if isinstance(value, int) and chance.random() < 0.8:
        return chance.choice([value + 1, value - 1, -value, float(value), bool(value), 2**63, 2**70])
    return chance.choice([None, 0, 1, "", "x", [], {}, True, 1.5, "\ud800"])


def says_no_more(text: str, other: str) -> bool:
    """Whether another text is the same excerpt, written in another way, or without what a log says of the run."""
    try:
        one, changed = json.loads(text), json.loads(other)
    except ValueError:
        return False
    for each in (one, changed):
        if isinstance(each, dict) and isinstance(each.get("seal"), dict):
            each["seal"].pop("timestamp", None)  # another authority's word, which nothing here depends on
    if isinstance(changed, dict) and changed.get("ledger", 0) is None:
        one["ledger"] = None
    return json.dumps(one, sort_keys=True) == json.dumps(changed, sort_keys=True)


@pytest.mark.exhaustive
async def test_ten_thousand_changes_are_found_by_both_programs(key: Path) -> None:
    await find_changes(key, 10_000)


async def test_a_thousand_changes_are_found_by_both_programs(key: Path) -> None:
    await find_changes(key, 1_000)


async def find_changes(key: Path, count: int) -> None:
    chance, tape = random.Random(38), await run_one()
    text = make_excerpt("r", tape, [("agent", 1), ("agent", 2), ("agent", 4)], log_of(key, "r", tape))
    assert judge(text, key)
    changed = mutations(text, chance)
    for _ in range(count):
        mutant = next(changed)
        if not says_no_more(text, mutant):
            assert not judge(mutant, key), mutant


async def test_records_of_another_run_or_seal_are_found(key: Path) -> None:
    one, other = await run_one("r"), await run_one("s")
    mine = json.loads(make_excerpt("r", one, [("agent", 0), ("agent", 1)], log_of(key, "r", one)))
    theirs = json.loads(make_excerpt("s", other, [("agent", 0), ("agent", 1)], log_of(key, "s", other)))
    assert judge(json.dumps(mine), key)
    for part in ("run", "seal", "records", "ledger"):
        assert not judge(json.dumps({**mine, part: theirs[part]}), key), part
    later = await run_one("r")
    again = json.loads(make_excerpt("r", later, [("agent", 0)], log_of(key, "r", later)))
    for part in ("seal", "records", "ledger"):
        assert not judge(json.dumps({**mine, part: again[part]}), key), part


async def test_a_key_that_is_not_given_or_was_not_valid_proves_nothing(key: Path, tmp_path: Path) -> None:
    tape = await run_one()
    text = make_excerpt("r", tape, [("agent", 0)], log_of(key, "r", tape))
    public = public_file(key)
    (own,) = PublicKeys.read(public.read_text(), "").keys.values()
    for changed in (
        replace(own, until="2020-01-01T00:00:00.000Z"),
        replace(own, since="2100-01-01T00:00:00.000Z"),
        replace(own, revoked="2100-01-01T00:00:00.000Z", reason="stolen"),
    ):
        replace_text(public, PublicKeys.of(changed).write())
        assert not judge(text, key)
    other = tmp_path / "other.key"
    replace_text(public_file(other), PublicKeys.of(make_key_file(other)).write())
    assert not judge(text, other)
    both = public_file(other).read_text() + "\n# ours:\n" + PublicKeys.of(own).write()
    public.write_text(both)
    assert judge(text, key)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "7", '"x"', "{", "[" * 100_000, '{"run": 1, "run": 2}'])
def test_what_is_no_excerpt_is_refused(key: Path, text: str) -> None:
    assert not judge(text, key)


async def test_only_a_run_whose_seal_others_can_check_is_shown_in_part(
    key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = await run_one()
    with pytest.raises(DefinitionError, match=r"has no such record \(got 'agent:99'\)"):
        make_excerpt("r", tape, [("agent", 99)], None)
    monkeypatch.delenv(KEY_VARIABLE)
    monkeypatch.setenv("AGENT_CORE_JOURNAL_KEYS", "k1:a-secret-key-of-this-host")
    for bare in (await run_one(), {"agent": tape["agent"]}):
        with pytest.raises(DefinitionError, match="its seal names no tree over its records"):
            make_excerpt("r", bare, [("agent", 0)], None)


async def test_a_run_that_waits_in_a_store_is_shown_as_well(key: Path, tmp_path: Path) -> None:
    with closing(SqliteJournal(tmp_path / "runs.db")) as journal:
        model = ScriptedModel([action(), final()])
        config = {**CONFIG, "approval": "always"}
        await run_agent(config, registry=REGISTRY, model=model, journal=journal, run_id="r")
        assert judge(make_excerpt("r", journal.load("r"), [("agent", 1)], None), key)


@pytest.mark.exhaustive
def test_the_program_needs_nothing_of_ours(key: Path, tmp_path: Path) -> None:
    """In an environment with `cryptography` alone, and from another folder."""
    tape = asyncio.run(run_one())
    alone, sound, changed = tmp_path / "alone", tmp_path / "sound.json", tmp_path / "changed.json"
    text = make_excerpt("r", tape, [("agent", 0)], log_of(key, "r", tape))
    sound.write_text(text)
    changed.write_text(text.replace("What does", "What did"))
    venv.create(alone, with_pip=True)
    python = str(alone / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", "cryptography"], check=True, capture_output=True)
    program = tmp_path / "verify_evidence.py"
    program.write_text(PROGRAM.read_text())

    def run(*files: Path) -> tuple[int, str]:
        words = [python, "-I", str(program), str(public_file(key)), *map(str, files)]
        done = subprocess.run(words, capture_output=True, text=True)
        return done.returncode, done.stdout

    assert run(sound)[0] == 0
    code, told = run(sound, changed)
    assert (code, f"{sound}: ok: 1 of " in told) == (1, True)
    assert f"{changed}: NOT ok: record 0 of strand 'agent' does not stand in the run" in told


def test_the_program_is_short_and_imports_nothing_but_one_library() -> None:
    lines = PROGRAM.read_text().splitlines()
    imported = {line.split()[1].partition(".")[0] for line in lines if line.startswith(("import ", "from "))}
    assert len(lines) <= 300
    assert imported - sys.stdlib_module_names == {"cryptography"}
