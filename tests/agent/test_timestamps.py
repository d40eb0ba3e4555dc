"""Timestamps of signatures, by an authority on this machine that OpenSSL answers for."""

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from agent_core import DefinitionError, MemoryJournal, run_agent, verify
from agent_core.evidence.key_files import KeyFiles, make_key_file, public_file, replace_text
from agent_core.evidence.public_keys import PublicKeys
from agent_core.evidence.variables import KEY_VARIABLE, PUBLIC_VARIABLE, ROOTS_VARIABLE, URL_VARIABLE
from agent_core.journal.path import SEAL
from agent_core.journal.record import Record, Tape, chain_row, genesis
from agent_core.journal.signature import Keys
from agent_core.models import ScriptedModel
from agent_core.run.secrets import verifying_keys
from support.by_hand import final
from support.optional import needs
from support.time_authority import TimeAuthority, time_authority

pytestmark = [
    needs("cryptography", "rfc3161_client"),
    pytest.mark.skipif(which("openssl") is None, reason="OpenSSL, the program, answers for the authority"),
]
CONFIG = {"model": "m", "max_steps": 2, "allowed_tools": [], "prompt": "Go."}


@pytest.fixture(name="running", scope="module")
def _running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TimeAuthority]:
    with time_authority(tmp_path_factory.mktemp("time") / "authority") as authority:
        yield authority


@pytest.fixture(name="authority")
def _authority(running: TimeAuthority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TimeAuthority:
    """An authority that this host asks, and trusts."""
    path = tmp_path / "desk.key"
    replace_text(public_file(path), PublicKeys.of(make_key_file(path)).write())
    running.answers, running.asked = None, 0
    monkeypatch.setenv(KEY_VARIABLE, str(path))
    monkeypatch.setenv(URL_VARIABLE, running.url)
    monkeypatch.setenv(ROOTS_VARIABLE, str(running.root))
    return running


async def sealed() -> tuple[Tape, Record]:
    """A run that was sealed, without its seal, and what that said."""
    journal = MemoryJournal()
    await run_agent(CONFIG, registry=[], model=ScriptedModel([final()]), journal=journal, run_id="r")
    tape = journal.load("r")
    (seal,) = tape.pop(SEAL)
    return tape, seal.record()


def found(tape: Tape, seal: Record, keys: Keys | None = None) -> Any:
    rows = [row for strand in tape.values() for row in strand]
    keys = keys or verifying_keys()
    return verify([*rows, chain_row(SEAL, 0, genesis("r", SEAL), seal)], run_id="r", keys=keys)


async def test_a_seal_is_stamped_and_the_stamp_is_checked(authority: TimeAuthority) -> None:
    tape, seal = await sealed()
    verdict = found(tape, seal)
    assert (verdict.ok, authority.asked) == (True, 1)
    by, _, time = verdict.seal.partition(", there by ")
    assert by == f"sealed by {seal['kid']}"
    assert time[:16] == seal["at"][:16] or time > seal["at"]


async def test_only_a_stamp_proves_what_a_revoked_key_signed(authority: TimeAuthority, tmp_path: Path) -> None:
    tape, seal = await sealed()
    bare = {name: value for name, value in seal.items() if name != "timestamp"}
    public = public_file(tmp_path / "desk.key")
    (key,) = PublicKeys.read(public.read_text(), "").keys.values()
    for revoked, is_proven in (("2100-01-01T00:00:00.000Z", True), ("2020-01-01T00:00:00.000Z", False)):
        replace_text(public, PublicKeys.of(replace(key, revoked=revoked)).write())
        assert (found(tape, seal).ok, found(tape, bare).ok) == (is_proven, False)
    replace_text(public, PublicKeys.of(key).write())
    assert found(tape, bare).ok


async def test_a_stamp_of_another_signature_or_authority_is_found(authority: TimeAuthority, tmp_path: Path) -> None:
    tape, seal = await sealed()
    _, other = await sealed()
    stamp = bytearray(base64.b64decode(seal["timestamp"]))
    stamp[-40] ^= 1
    for changed in (other["timestamp"], base64.b64encode(bytes(stamp)).decode(), "", "AAAA", "?"):
        verdict = found(tape, seal | {"timestamp": changed})
        assert "its timestamp is none of an authority that is trusted" in str(verdict.why), changed
    elsewhere = TimeAuthority(tmp_path / "elsewhere")
    strange = Keys(keyring=KeyFiles(trusted=str(public_file(tmp_path / "desk.key")), roots=str(elsewhere.root)))
    assert not found(tape, seal, strange).ok
    without = Keys(keyring=KeyFiles(trusted=str(public_file(tmp_path / "desk.key"))))
    assert found(tape, seal, without).seal == f"sealed by {seal['kid']}"


@pytest.mark.sampled
@pytest.mark.parametrize(
    "answers", [(503, b""), (200, b""), (200, b"<html>"), (200, b"x" * 100_000)], ids=["503", "none", "page", "long"]
)
async def test_an_authority_that_gives_no_stamp_keeps_no_run_from_its_end(
    authority: TimeAuthority, answers: tuple[int, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    authority.answers = answers
    tape, seal = await sealed()
    assert "timestamp" not in seal
    assert found(tape, seal).ok
    assert f"{authority.url} gave no timestamp" in caplog.text


async def test_an_answer_to_another_question_is_no_stamp(authority: TimeAuthority) -> None:
    _, seal = await sealed()
    authority.answers = (200, base64.b64decode(seal["timestamp"]))
    _, later = await sealed()
    assert "timestamp" not in later


async def test_certificates_that_are_none_are_named(
    authority: TimeAuthority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape, seal = await sealed()
    monkeypatch.delenv(KEY_VARIABLE)
    monkeypatch.setenv(PUBLIC_VARIABLE, str(public_file(tmp_path / "desk.key")))
    public = public_file(tmp_path / "desk.key")
    for path, why in ((public, "holds no certificate in PEM"), (tmp_path / "no", "cannot be read")):
        monkeypatch.setenv(ROOTS_VARIABLE, str(path))
        with pytest.raises(DefinitionError, match=why):
            found(tape, seal)
