"""Signatures by public key: whoever has the public key checks a run, and only the private one signs it."""

import os
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from agent_core import Approve, DefinitionError, JournalAway, Keys, MemoryJournal, SqliteJournal, run_agent, verify
from agent_core.evidence import ed25519
from agent_core.evidence.key_files import KeyFiles, make_key_file, public_file, replace_text
from agent_core.evidence.public_keys import PublicKey, PublicKeys
from agent_core.evidence.variables import KEY_VARIABLE, PUBLIC_VARIABLE
from agent_core.journal.path import SEAL
from agent_core.journal.record import Record, Tape, chain_row, genesis
from agent_core.journal.signature import VARIABLE
from agent_core.models import ScriptedModel
from agent_core.run.retries import VARIABLE as PATIENCE
from agent_core.run.secrets import signing_keys, verifying_keys
from support.by_hand import Q, action, final
from support.optional import needs
from utools import Tool, ToolRegistry

pytestmark = needs("cryptography")
SECRET = "k1:a-secret-key-of-this-host"
CONFIG = {"model": "m", "max_steps": 4, "allowed_tools": ["look"], "prompt": "Go."}
REGISTRY = ToolRegistry([Tool("look", "Looks.", Q, lambda args, context: "seen", effect="read")])


@pytest.fixture(name="key")
def _key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a key, which this host signs with."""
    path = tmp_path / "desk.key"
    replace_text(public_file(path), PublicKeys.of(make_key_file(path)).write())
    monkeypatch.setenv(KEY_VARIABLE, str(path))
    return path


async def _run(journal: Any, **options: Any) -> Any:
    config = {**CONFIG, **options.pop("config", {})}
    return await run_agent(
        config, registry=REGISTRY, model=ScriptedModel([action(), final()]), journal=journal, run_id="r", **options
    )


async def _sealed() -> tuple[Tape, Record]:
    """A run that was sealed, without its seal, and what that said."""
    journal = MemoryJournal()
    await _run(journal)
    tape = journal.load("r")
    (seal,) = tape.pop(SEAL)
    return tape, seal.record()


def _verified(tape: Tape, seal: Record, keys: Keys) -> str | None:
    """Why a run under this seal is not proven."""
    rows = [row for strand in tape.values() for row in strand]
    return verify([*rows, chain_row(SEAL, 0, genesis("r", SEAL), seal)], run_id="r", keys=keys).why


def trusting(path: Path) -> Keys:
    """Keys that check, and sign nothing."""
    return Keys(keyring=KeyFiles(trusted=str(path)))


async def test_a_stranger_with_the_public_key_alone_verifies_a_run(key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = MemoryJournal()
    await _run(journal)
    monkeypatch.delenv(KEY_VARIABLE)
    public = key.with_name("given.pub")
    public_file(key).rename(public)
    key.unlink()
    found = verify(journal, run_id="r", keys=trusting(public))
    (kid,) = PublicKeys.read(public.read_text(), "given").keys
    assert (found.ok, found.why, found.seal) == (True, None, f"sealed by {kid}")
    assert verify(journal, run_id="r").seal == f"sealed by {kid}, not checked: no key here"


async def test_each_change_of_a_seal_is_found(key: Path) -> None:
    tape, seal = await _sealed()
    keys = signing_keys()
    assert keys is not None
    assert _verified(tape, seal, keys) is None
    for name, value in seal.items():
        near = value[:-1] + ("0" if value[-1] != "0" else "1") if isinstance(value, str) else 3
        for other in (near, "", 7, ["x"]):
            assert _verified(tape, seal | {name: other}, keys) is not None, (name, other)
    for name in seal.keys() - {"kind"}:
        assert _verified(tape, {each: seal[each] for each in seal if each != name}, keys) is not None, name
    for more in ({"run": "r"}, {"mac": "0" * 64}, {"store": "another"}, {"tenant": "acme"}, {"sig ": "x"}):
        assert _verified(tape, seal | more, keys) is not None, more
    shorter = {path: rows[:-1] for path, rows in tape.items()}
    assert "it goes on, or ends, elsewhere" in str(_verified(shorter, seal, keys))


async def test_every_bit_of_a_signature_counts(key: Path) -> None:
    tape, seal = await _sealed()
    keys, code = signing_keys(), ed25519.decode_signature(seal["sig"])
    assert keys is not None
    assert code is not None
    for bit in range(0, 8 * len(code), 7):
        changed = bytearray(code)
        changed[bit // 8] ^= 1 << bit % 8
        assert _verified(tape, seal | {"sig": ed25519.encode_signature(bytes(changed))}, keys) is not None


async def test_a_key_proves_what_it_signed_while_it_was_valid(key: Path) -> None:
    tape, seal = await _sealed()
    public = next(iter(PublicKeys.read(public_file(key).read_text(), "").keys.values()))
    at, earlier, later = seal["at"], "2020-01-01T00:00:00.000Z", "2100-01-01T00:00:00.000Z"
    for changed, why in (
        (public, None),
        (replace(public, since=at, until=at), None),
        (replace(public, since=earlier, until=later), None),
        (replace(public, since=later), f"was valid from {later} on, and this says that it was signed at {at}"),
        (replace(public, until=earlier), f"was valid until {earlier}, and this says that it was signed at {at}"),
        (replace(public, revoked=later, reason="stolen"), f"is revoked, since {later}: stolen"),
        (replace(public, revoked=earlier), f"is revoked, since {earlier}"),
    ):
        replace_text(public_file(key), PublicKeys.of(changed).write())
        found = _verified(tape, seal, trusting(public_file(key)))
        assert found == (why if why is None else f"the key {public.kid} {why}")


async def test_another_key_of_the_same_host_is_told_apart(key: Path, tmp_path: Path) -> None:
    tape, seal = await _sealed()
    other = tmp_path / "other.key"
    replace_text(public_file(other), PublicKeys.of(make_key_file(other)).write())
    assert _verified(tape, seal, trusting(public_file(other))) == (
        f"it is signed with the key {seal['kid']!r}, which is not given"
    )
    forged = next(iter(PublicKeys.read(public_file(other).read_text(), "").keys))
    both = tmp_path / "both.pub"
    both.write_text(public_file(key).read_text() + "\n# and\n" + public_file(other).read_text())
    assert _verified(tape, seal | {"kid": forged}, trusting(both)) == (
        f"its signature was not made with the key {forged!r}"
    )
    assert _verified(tape, seal, trusting(both)) is None


async def test_a_key_that_is_rotated_while_a_run_waits_seals_its_end(key: Path, tmp_path: Path) -> None:
    """The process that drives it reads the key anew, and trusts the old one by the file of public keys."""
    asking = {"approval": "always"}
    with closing(SqliteJournal(tmp_path / "runs.db")) as journal:
        waits = await _run(journal, config=asking)
        first = journal.load("r")[SEAL][-1].record()["kid"]
        fresh = tmp_path / "fresh.key"
        new = make_key_file(fresh)
        replace_text(public_file(key), public_file(key).read_text() + "\n" + PublicKeys.of(new).write())
        fresh.replace(key)
        (at,) = ((each["strand"], each["n"]) for each in waits.waiting)
        output = await _run(journal, config=asking, decisions={at: Approve()})
        seals = [row.record()["kid"] for row in journal.load("r")[SEAL]]
        assert (output.finish_reason, seals[0], seals[-1]) == ("final", first, new.kid)
        assert verify(journal, run_id="r", keys=trusting(public_file(key))).ok


async def test_a_host_with_both_kinds_signs_by_public_key_and_verifies_older_seals(
    key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE)
    monkeypatch.setenv(VARIABLE, SECRET)
    older = MemoryJournal()
    await _run(older)
    monkeypatch.setenv(KEY_VARIABLE, str(key))
    newer = MemoryJournal()
    await _run(newer)
    for journal, field in ((older, "mac"), (newer, "sig")):
        assert field in journal.load("r")[SEAL][-1].record()
        assert verify(journal, run_id="r", keys=signing_keys()).ok


async def test_without_the_library_a_signature_is_named_and_not_checked(
    key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = MemoryJournal()
    await _run(journal)
    kid = journal.load("r")[SEAL][-1].record()["kid"]
    monkeypatch.setattr(ed25519, "find_spec", lambda name: None)
    for keys in (None, verifying_keys(), trusting(public_file(key))):
        found = verify(journal, run_id="r", keys=keys)
        assert (found.ok, found.seal) == (True, f"signed by {kid}, not checked: install agent-core[evidence]")
    cut = {path: rows[:-1] if path == "agent" else rows for path, rows in journal.load("r").items()}
    assert not verify([row for rows in cut.values() for row in rows], run_id="r", keys=trusting(public_file(key))).ok
    with pytest.raises(DefinitionError, match="signatures by public key need the extra evidence: install agent-core"):
        signing_keys()


def _command(folder: Path, body: str) -> str:
    """A program of the operator's, as it would be in front of an HSM."""
    path = folder / "sign with me.py"
    path.write_text(f"#!{sys.executable}\n{dedent(body)}")
    path.chmod(0o755)
    return f"command:'{path}' --slot 3"


SIGNS = """
    import sys
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
    key = load_pem_private_key(open({key!r}, "rb").read(), None)
    assert sys.argv[1:3] == ["--slot", "3"]
    if sys.argv[3] == "public":
        print(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode())
    else:
        sys.stdout.buffer.write(key.sign(sys.stdin.buffer.read()))
"""
BREAKS = """
    import os, sys
    if os.path.exists({down!r}) and sys.argv[3] == "sign":
        {then}
        sys.exit("the vault is sealed")
"""


async def test_a_command_signs_and_the_key_never_comes_here(
    key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, _command(tmp_path, SIGNS.format(key=str(key))))
    journal = MemoryJournal()
    await _run(journal)
    assert verify(journal, run_id="r", keys=trusting(public_file(key))).ok
    assert verify(journal, run_id="r", keys=signing_keys()).ok


async def test_a_command_that_fails_for_a_while_leaves_no_run_without_a_seal(
    key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run waits for it as it waits for its database; and when it stays away, the run can be continued."""
    down = tmp_path / "down"
    once = BREAKS.format(down=str(down), then=f"os.unlink({str(down)!r})") + SIGNS.format(key=str(key))
    monkeypatch.setenv(KEY_VARIABLE, _command(tmp_path, once))
    down.touch()
    with closing(SqliteJournal(tmp_path / "runs.db")) as journal:
        output = await _run(journal)
        assert (output.finish_reason, verify(journal, run_id="r", keys=signing_keys()).ok) == ("final", True)
    monkeypatch.setenv(PATIENCE, "0")
    always = BREAKS.format(down=str(down), then="pass") + SIGNS.format(key=str(key))
    monkeypatch.setenv(KEY_VARIABLE, _command(tmp_path, always))
    down.touch()
    with closing(SqliteJournal(tmp_path / "others.db")) as journal:
        with pytest.raises(JournalAway, match="sign ended with 1: the vault is sealed"):
            await _run(journal)
        assert not verify(journal, run_id="r").complete
        down.unlink()
        await _run(journal)
        assert verify(journal, run_id="r", keys=signing_keys()).ok


async def test_what_a_command_signs_with_another_key_is_refused(
    key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = SIGNS.format(key=str(key)).replace("key.sign(sys.stdin.buffer.read())", "b'x' * 64")
    monkeypatch.setenv(KEY_VARIABLE, _command(tmp_path, body))
    with pytest.raises(Exception, match=r"sign wrote no signature by the key that .* public names"):
        await _run(MemoryJournal())


def test_a_key_in_a_variable_may_have_its_lines_in_one(key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pem, expected = key.read_text(), KeyFiles(str(key)).signer()
    assert expected is not None
    for text in (pem, pem.replace("\n", "\\n")):
        monkeypatch.setenv(KEY_VARIABLE, text)
        keys = signing_keys()
        assert keys is not None
        assert (keys.signer, list(keys.public.keys)) == (expected.kid, [expected.kid])
        assert pem.splitlines()[1] not in repr(keys)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no/such.key", "cannot be read: No such file or directory"),
        (".", "cannot be read: Is a directory"),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "is no private key in PEM without a password"),
        ("command:", "names no program"),
        ("command:/no/such/program", "/no/such/program cannot be run: No such file or directory"),
        ("command:false", "false public ended with 1"),
        ("command:true", "holds no public key in PEM"),
    ],
)
def test_a_key_that_cannot_be_used_is_named(
    text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o755)  # a directory is named as one, not as a key that others may read
    monkeypatch.setenv(KEY_VARIABLE, text)
    with pytest.raises(DefinitionError) as caught:
        signing_keys()
    assert why in str(caught.value)


def test_a_private_key_that_others_may_read_is_refused(key: Path) -> None:
    key.chmod(0o640)
    with pytest.raises(DefinitionError, match=r"others than its owner may read this private key: chmod 600 .*'0o640'"):
        signing_keys()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda text: "", "holds no public key in PEM"),
        (lambda text: text + "and more", "has something after its last key"),
        (lambda text: "valid untill: x\n" + text, "has a line that is none of"),
        (lambda text: "valid until: tomorrow\n" + text, "`valid until` is no time as records have it"),
        (lambda text: "key: ed25519:0000000000000000\n" + text.partition("\n")[2], "names a key that is ed25519:"),
        (lambda text: text.replace("MCow", "MCox"), "holds a key that is no public key of Ed25519"),
        (lambda text: text.replace("PUBLIC", "PRIVATE"), "holds a private key that is no public key"),
    ],
)
def test_a_file_of_public_keys_says_what_is_wrong_with_it(key: Path, change: Any, why: str) -> None:
    text = change(public_file(key).read_text())
    with pytest.raises(DefinitionError) as caught:
        PublicKeys.read(text, "desk.key.pub")
    assert (why in str(caught.value), "desk.key.pub" in str(caught.value)) == (True, True)


def test_a_file_of_public_keys_comes_back_as_it_was_written(key: Path) -> None:
    plain = PublicKey(next(iter(PublicKeys.read(public_file(key).read_text(), "").keys.values())).raw)
    at = "2026-11-29T10:00:00.000Z"
    for one in (plain, replace(plain, since=at), replace(plain, since=at, until=at, revoked=at, reason="a: b")):
        assert PublicKeys.read(PublicKeys.of(one).write(), "").keys == {one.kid: one}


def test_public_keys_alone_verify_and_sign_nothing(key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE)
    monkeypatch.setenv(PUBLIC_VARIABLE, str(public_file(key)))
    assert signing_keys() is None
    keys = verifying_keys()
    assert keys is not None
    assert (keys.signer, len(keys.public.keys)) == ("", 1)
    assert not os.environ.get(KEY_VARIABLE)
