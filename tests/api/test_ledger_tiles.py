"""Others follow the ledger of a server: by our own command in another process, and by `aics-tlog`."""

import fcntl
import json
import os
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_core.evidence.checkpoints import Checkpoint, find_log_fault
from agent_core.evidence.key_files import KeyFiles, make_key_file, public_file, replace_text
from agent_core.evidence.notes import COSIGNATURE_KIND, Note, verifier_key
from agent_core.evidence.public_keys import PublicKey, PublicKeys
from agent_core.evidence.variables import KEY_VARIABLE
from agent_core.run.secrets import find_signer
from engine_shim.cli.evidence.cosign import TOKEN
from support.cosigned import find_cosigned
from support.optional import needs
from support.served_host import Served, served
from utools.files.atomic import changing

pytestmark = needs("cryptography")
TLOG = os.environ.get("AGENT_CORE_TEST_TLOG", "")


def new_key(path: Path) -> PublicKey:
    made = make_key_file(path)
    replace_text(public_file(path), PublicKeys.of(made).write())
    return made


@pytest.fixture(name="log_key")
def _log_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PublicKey:
    made = new_key(tmp_path / "log.key")
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "log.key"))
    return made


class Witness:
    """A second host, in a process and a folder of its own, which has its own key and that of the log."""

    def __init__(self, folder: Path, log: Path) -> None:
        folder.mkdir()
        self.folder, self.key = folder, new_key(folder / "eye.key")
        (folder / "log.pub").write_text(log.read_text())

    def look(self, url: str, *, code: int = 0, **environment: str) -> str:
        process = self.begin_look(url, **environment)
        out, err = process.communicate()
        assert process.returncode == code, err + out
        return out or err

    def begin_look(self, url: str, **environment: str) -> "subprocess.Popen[str]":
        words = ["ledger", "cosign", url, "--key", "log.pub", "--to", "seen.txt"]
        command = [sys.executable, "-c", "from engine_shim.cli.main import main; main()", *words]
        own = {**os.environ, KEY_VARIABLE: "eye.key", **environment}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=self.folder, env=own, text=True, **pipes)

    @property
    def seen(self) -> Note:
        return Note.read((self.folder / "seen.txt").read_text())


def copy(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


def submit_some(host: Served, count: int) -> None:
    for number in range(count):
        host.submit("count", sum=f"{number} + 1")


@pytest.mark.exhaustive
@pytest.mark.parametrize("more", [8, 300])
def test_a_second_host_finds_a_store_that_was_put_back_to_yesterday(
    tmp_path: Path, log_key: PublicKey, more: int
) -> None:
    """Also with more entries than there are in one tile."""
    folder, kept = tmp_path / "host", tmp_path / "yesterday.db"
    witness = Witness(tmp_path / "witness", public_file(tmp_path / "log.key"))
    size = 3 + more
    with served(folder) as host:
        submit_some(host, 2)
        assert "has 3 entries, 0 of them seen before; signed into seen.txt" in witness.look(host.url)
        first = witness.seen
        copy(folder / "runs.db", kept)
        submit_some(host, more)
        assert f"has {size} entries, 3 of them seen before" in witness.look(host.url)
        assert f"has {size} entries, {size} of them seen before" in witness.look(host.url)
    seen = witness.seen
    assert find_log_fault(seen, PublicKeys.of(log_key)) is None
    assert find_cosigned(seen, witness.key.kid, witness.key) is not None
    assert (Checkpoint.read(first.text).size, Checkpoint.read(seen.text).size) == (3, size)
    copy(kept, folder / "runs.db")
    with served(folder) as host:
        assert f"NOT ok: the log has 3 entries, and had {size}: it was cut off" in witness.look(host.url, code=5)
        submit_some(host, more + 1)
        told = witness.look(host.url, code=5)
        why = f"the first {size} entries of the log are not those that were seen: it was written anew"
        assert f"NOT ok: {why}" in told
    assert witness.seen == seen


def test_a_log_that_does_not_answer_keeps_no_other_command_waiting(tmp_path: Path, log_key: PublicKey) -> None:
    witness = Witness(tmp_path / "witness", public_file(tmp_path / "log.key"))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        look = witness.begin_look(f"http://127.0.0.1:{silent.getsockname()[1]}")
        try:
            connection, _ = silent.accept()
            with connection:
                folder = os.open(witness.folder, os.O_RDONLY)
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.close(folder)
        finally:
            look.kill()
            look.communicate()


@pytest.mark.exhaustive
def test_of_two_looks_at_once_the_later_does_not_replace_more_by_less(tmp_path: Path, log_key: PublicKey) -> None:
    witness = Witness(tmp_path / "witness", public_file(tmp_path / "log.key"))
    kept = witness.folder / "seen.txt"
    with served(tmp_path / "host") as host:
        submit_some(host, 1)
        witness.look(host.url)
        with changing(kept):
            other = witness.begin_look(host.url)
            with pytest.raises(subprocess.TimeoutExpired):
                other.wait(3)
            ahead, signer = Checkpoint.read(witness.seen.text), find_signer()
            assert signer
            note = Checkpoint(ahead.origin, ahead.size + 5, ahead.root).sign(signer)
            kept.write_text(note.write())
        out, _ = other.communicate()
    assert (other.returncode, "and had 7: it was cut off" in out) == (5, True), out
    assert Note.read(kept.read_text()) == note


@pytest.mark.exhaustive
def test_a_log_under_another_key_or_of_another_host_is_not_signed(tmp_path: Path, log_key: PublicKey) -> None:
    witness = Witness(tmp_path / "witness", public_file(tmp_path / "log.key"))
    with served(tmp_path / "one") as host:
        submit_some(host, 1)
        witness.look(host.url)
    with served(tmp_path / "two") as host:
        submit_some(host, 1)
        assert "NOT ok: the log is agent-core/" in witness.look(host.url, code=5)
        new_key(tmp_path / "other.key")
        (witness.folder / "log.pub").write_text(public_file(tmp_path / "other.key").read_text())
        assert witness.look(host.url, code=5) == "NOT ok: it is signed with no key that is given\n"


def test_tiles_that_are_not_of_the_checkpoint_are_found(tmp_path: Path, log_key: PublicKey) -> None:
    witness = Witness(tmp_path / "witness", public_file(tmp_path / "log.key"))
    with served(tmp_path / "host") as host:
        submit_some(host, 4)
        host.client.get("/ledger/checkpoint")
        with host.store.database.writing() as db:
            db.execute("DELETE FROM ledger_nodes WHERE level = 0 AND n = 1")
            db.execute("INSERT INTO ledger_nodes SELECT 0, 1, hash FROM ledger_nodes WHERE level = 0 AND n = 3")
        told = witness.look(host.url, code=5)
        assert told == "NOT ok: the tiles of the log do not have the root that its checkpoint has\n"


@pytest.mark.exhaustive
def test_only_those_who_may_read_follow_the_log(tmp_path: Path, log_key: PublicKey) -> None:
    witness = Witness(tmp_path / "witness", public_file(tmp_path / "log.key"))
    with served(tmp_path / "host", is_open=False) as host:
        reader, runner = host.issue("eye", "read"), host.issue("runner", "run")
        host.client.headers.update(runner)
        host.submit("count", sum="1 + 1")
        assert host.client.get("/ledger/checkpoint", headers=reader).status_code == 200
        assert host.client.get("/ledger/tile/0/000.p/2", headers=reader).status_code == 200
        for path in ("/ledger/checkpoint", "/ledger/tile/0/000.p/2"):
            assert host.client.get(path).status_code == 403
        assert "/ledger/checkpoint answered 401" in witness.look(host.url, code=2)
        token = reader["Authorization"].removeprefix("Bearer ")
        assert "has 2 entries" in witness.look(host.url, **{TOKEN: token})


def test_a_server_without_a_key_or_a_run_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path / "host") as host:
        assert "set AGENT_CORE_SIGNING_KEY" in host.client.get("/ledger/checkpoint").json()["detail"]
        new_key(tmp_path / "log.key")
        monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "log.key"))
        answer = host.client.get("/ledger/checkpoint")
        assert answer.status_code in (200, 404)
        for path in ("0/000", "0/000.p/200", "entries/000", "0/1", "9/x", "..%2f..%2fetc", "entries/000.p/300"):
            assert host.client.get(f"/ledger/tile/{path}").status_code == 404, path


@pytest.mark.exhaustive
@pytest.mark.skipif(not TLOG, reason="AGENT_CORE_TEST_TLOG does not name the program aics-tlog")
def test_another_program_follows_the_log_by_its_tiles(tmp_path: Path, log_key: PublicKey) -> None:
    witness = Witness(tmp_path / "witness", public_file(tmp_path / "log.key"))

    def tlog(*words: str) -> Any:
        return json.loads(subprocess.run([TLOG, *words], capture_output=True, text=True).stdout)

    with served(tmp_path / "host") as host:
        submit_some(host, 270)
        witness.look(host.url)
        origin = Checkpoint.read(witness.seen.text).origin
        submit_some(host, 5)
        signer = KeyFiles(str(tmp_path / "log.key")).signer()
        assert signer is not None
        log = ("--log-key", verifier_key(origin, signer.public), "--tiles", f"{host.url}/ledger")
        eye = ("--witness-key", verifier_key(witness.key.kid, witness.key.raw, COSIGNATURE_KIND), "--quorum", "1")
        seen = str(witness.folder / "seen.txt")
        assert tlog("verify-checkpoint", "--note", seen, *log[:2], *eye)["witnesses"] == [witness.key.kid]
        found = tlog("verify-consistency", "--old-checkpoint", seen, *log)
        assert (found["ok"], found["old_size"], found["new_size"]) == (True, 271, 276), found
        entry = tmp_path / "entry"
        assert tlog("verify-inclusion", "--index", "273", "--entry-out", str(entry), *log)["ok"]
        assert json.loads(entry.read_text())["kind"] == "ended"
