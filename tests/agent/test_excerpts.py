"""Excerpts of runs: what they prove to a stranger. Each change is found, by two programs that share nothing."""

import base64
import json
import random
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from agent_core import DefinitionError, SqliteJournal, run_agent, verify
from agent_core.audit.excerpt import make_excerpt, verify_excerpt
from agent_core.evidence.excerpts import salt_of
from agent_core.evidence.key_files import make_key_file, public_file, replace_text
from agent_core.evidence.public_keys import PublicKeys
from agent_core.evidence.variables import KEY_VARIABLE
from agent_core.journal.path import SEAL
from agent_core.journal.record import Tape, chain_row, genesis
from agent_core.models import ScriptedModel
from support.by_hand import action, final
from support.excerpts import (
    CONFIG,
    PROGRAM,
    REGISTRY,
    SECRET,
    judge,
    log_of,
    make_key,
    mutations,
    run_one,
    says_no_more,
    trusting,
)
from support.optional import needs

pytestmark = needs("cryptography")


@pytest.fixture(name="key")
def _key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = make_key(tmp_path / "desk.key")
    monkeypatch.setenv(KEY_VARIABLE, str(path))
    return path


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


async def test_a_thousand_changes_are_found_by_both_programs(key: Path) -> None:
    """More of them, and the page's script as well, are in `tests/web/test_excerpt_verifiers.py`."""
    chance, tape = random.Random(38), await run_one()
    text = make_excerpt("r", tape, [("agent", 1), ("agent", 2), ("agent", 4)], log_of(key, "r", tape))
    assert judge(text, key)
    changed = mutations(text, chance)
    for _ in range(1_000):
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


async def test_a_run_that_has_gone_on_since_its_seal_is_not_shown(key: Path) -> None:
    tape = await run_one()
    rows = {**tape, "agent": tape["agent"][:-1]}
    later = {
        **tape,
        "agent": [*tape["agent"], chain_row("agent", len(tape["agent"]), tape["agent"][-1].hash, {"kind": "x"})],
    }
    for other in (rows, later):
        with pytest.raises(DefinitionError, match="has gone on since it was sealed"):
            make_excerpt("r", other, [("agent", 0)], None)


async def test_a_run_that_waits_in_a_store_is_shown_as_well(key: Path, tmp_path: Path) -> None:
    with closing(SqliteJournal(tmp_path / "runs.db")) as journal:
        model = ScriptedModel([action(), final()])
        config = {**CONFIG, "approval": "always"}
        await run_agent(config, registry=REGISTRY, model=model, journal=journal, run_id="r")
        assert judge(make_excerpt("r", journal.load("r"), [("agent", 1)], None), key)


def test_the_program_is_short_and_imports_nothing_but_one_library() -> None:
    lines = PROGRAM.read_text().splitlines()
    imported = {line.split()[1].partition(".")[0] for line in lines if line.startswith(("import ", "from "))}
    assert len(lines) <= 300
    assert imported - sys.stdlib_module_names == {"cryptography"}
