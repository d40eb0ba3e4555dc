"""The command key, and verify with a public key alone."""

import errno
import fcntl
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from agent_core.evidence.public_keys import PublicKeys
from agent_core.evidence.variables import KEY_VARIABLE
from support.command import Cli, Write
from support.optional import needs
from support.terminal import COMMAND

pytestmark = needs("cryptography")
FLOW = str(Path(__file__).parents[3] / "fixtures/workflows/parallel.yaml")
KEY, PUBLIC = "desk.key", "desk.key.pub"


@pytest.fixture(name="kid")
def _kid(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a new key, which this host signs with."""
    made = cli("key", "new", KEY, "--json").json
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    return str(made["keys"][0]["id"])


def test_a_new_key_is_for_its_owner_alone_and_says_what_to_do(cli: Cli) -> None:
    ran = cli("key", "new", KEY, "--days", "30")
    assert ran.code == 0
    (key,) = PublicKeys.read(Path(PUBLIC).read_text(), PUBLIC).keys.values()
    assert ran.out.startswith(f"{key.kid}  valid from {key.since}, until {key.until}\nexport {KEY_VARIABLE}=")
    assert f"agent-core verify RUN --key {PUBLIC}" in ran.out
    assert (Path(KEY).stat().st_mode & 0o777, Path(PUBLIC).stat().st_mode & 0o777) == (0o600, 0o644)
    assert "PRIVATE" not in ran.out + Path(PUBLIC).read_text()


def test_no_key_is_written_over(cli: Cli) -> None:
    Path(PUBLIC).write_text("mine")
    refused = cli("key", "new", KEY)
    assert (refused.code, f"{PUBLIC} is there already; move it away" in refused.err) == (2, True)
    assert not Path(KEY).exists()
    Path(PUBLIC).unlink()
    cli("key", "new", KEY)
    before = Path(KEY).read_text()
    refused = cli("key", "new", KEY)
    assert (refused.code, f"`agent-core key rotate {KEY}` puts a new key" in refused.err) == (2, True)
    refused = cli("key", "new", ".")
    assert (refused.code, ". is a directory; name a file in it, such as desk.key" in refused.err) == (2, True)
    assert Path(KEY).read_text() == before


def test_a_run_is_verified_by_the_public_key_alone(cli: Cli, kid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = cli("run", FLOW, "--json").json["run_id"]
    monkeypatch.delenv(KEY_VARIABLE)
    assert cli("verify", run).out.endswith(f"; sealed by {kid}, not checked: no key here\n")
    assert cli("verify", run, "--key", PUBLIC).out.endswith(f"; sealed by {kid}\n")
    assert f"1 run sealed by {kid}\n" in cli("verify", "--all", "--key", PUBLIC).out
    with closing(sqlite3.connect("data/agent-core/runs.db")) as db, db:
        db.execute("DELETE FROM rows WHERE strand = 'seal'")
    for words in ((run,), ("--all",)):
        ran = cli("verify", *words, "--key", PUBLIC)
        assert (ran.code, "it is not sealed, though a key is given" in ran.out) == (5, True)


def test_a_rotated_key_still_proves_and_a_revoked_one_does_not(cli: Cli, kid: str) -> None:
    first = cli("run", FLOW, "--json").json["run_id"]
    rotated = cli("key", "rotate", KEY, "--json").json["keys"]
    second = cli("run", FLOW, "--json").json["run_id"]
    new = rotated[1]["id"]
    assert [each["id"] for each in rotated] == [kid, new]
    assert rotated[0]["valid_until"] > rotated[1]["valid_from"]
    assert cli("verify", first, "--key", PUBLIC).out.endswith(f"; sealed by {kid}\n")
    assert cli("verify", second, "--key", PUBLIC).out.endswith(f"; sealed by {new}\n")
    told = cli("key", "revoke", KEY, "--key", kid, "--since", "2d", "--reason", "the disk was stolen")
    assert (told.code, told.out.startswith(f"{kid}  revoked, since 20")) == (0, True)
    refused = cli("verify", first, "--key", PUBLIC)
    assert (refused.code, "is revoked, since 20" in refused.out, ": the disk was stolen;" in refused.out) == (
        5,
        True,
        True,
    )
    assert cli("verify", second, "--key", PUBLIC).code == 0
    shown = cli("key", "show", KEY)
    assert PublicKeys.read(shown.out, "") == PublicKeys.read(Path(PUBLIC).read_text(), PUBLIC)


def test_keys_that_are_revoked_at_once_are_all_revoked(cli: Cli, kid: str) -> None:
    ids = [kid, *(cli("key", "rotate", KEY, "--json").json["keys"][1]["id"] for _ in range(3))]
    revoking = [subprocess.Popen([COMMAND, "key", "revoke", KEY, "--key", each]) for each in ids]
    assert [each.wait(timeout=60) for each in revoking] == [0] * 4
    assert all(key.revoked for key in PublicKeys.read(Path(PUBLIC).read_text(), PUBLIC).keys.values())


def test_changes_wait_where_the_public_file_is_and_go_on_where_nothing_can_be_locked(
    cli: Cli, kid: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("vault").mkdir()
    os.rename(PUBLIC, f"vault/{PUBLIC}")
    os.symlink(f"vault/{PUBLIC}", PUBLIC)
    waited_for = list[int]()

    def lock(descriptor: int, how: int) -> None:
        waited_for.append(os.fstat(descriptor).st_ino)
        raise OSError(errno.EBADF, "Bad file descriptor")  # as NFS says of a directory

    monkeypatch.setattr(fcntl, "flock", lock)
    new = cli("key", "rotate", KEY, "--json").json["keys"][1]["id"]
    for file, each in ((KEY, kid), (PUBLIC, new)):
        assert cli("key", "revoke", file, "--key", each).code == 0
    assert waited_for == [Path("vault").stat().st_ino] * 3
    assert all(key.revoked for key in PublicKeys.read(Path(PUBLIC).read_text(), PUBLIC).keys.values())


@pytest.mark.usefixtures("kid")
def test_a_key_that_a_link_names_is_rotated_where_it_is_and_stays_its_owners(cli: Cli) -> None:
    for name in (KEY, PUBLIC):
        os.makedirs("vault", exist_ok=True)
        os.rename(name, f"vault/{name}")
        os.symlink(f"vault/{name}", name)
    before, user = Path(KEY).read_text(), 4321 if os.getuid() == 0 else os.getuid()
    os.chown(f"vault/{KEY}", user, -1)
    assert cli("key", "rotate", KEY).code == 0
    assert (Path(KEY).is_symlink(), Path(PUBLIC).is_symlink()) == (True, True)
    assert Path(f"vault/{KEY}").read_text() != before
    assert len(PublicKeys.read(Path(f"vault/{PUBLIC}").read_text(), PUBLIC).keys) == 2
    assert (Path(KEY).stat().st_uid, Path(KEY).stat().st_mode & 0o777) == (user, 0o600)


def test_show_prints_what_a_host_of_a_command_or_a_variable_has(
    cli: Cli, kid: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, Path(KEY).read_text())
    shown = cli("key", "show")
    assert list(PublicKeys.read(shown.out, "").keys) == [kid]
    monkeypatch.delenv(KEY_VARIABLE)
    assert "AGENT_CORE_SIGNING_KEY is not set here; name the FILE of a key" in cli("key", "show").err


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("new",), "new needs the FILE of the private key"),
        (("rotate",), "rotate needs the FILE of the private key"),
        (("revoke", KEY), "revoke needs --key ID"),
        (("revoke", KEY, "--key", "ed25519:0"), "has no key 'ed25519:0', only ed25519:"),
        (("revoke", KEY, "--key", "{kid}", "--since", "soon"), "--since 'soon': write a date or a time"),
        (("revoke", KEY, "--key", "{kid}", "--reason", "a\nb"), "--reason is one line"),
        (("rotate", PUBLIC), "has public keys; name the file of the private one"),
        (("rotate", "none.key"), "none.key: cannot be read: No such file or directory"),
        (("new", "no/such/folder.key"), "no/such/folder.key cannot be written: No such file or directory"),
    ],
)
def test_a_command_about_keys_that_cannot_be_done_changes_nothing(
    cli: Cli, kid: str, words: tuple[str, ...], told: str
) -> None:
    before = Path(KEY).read_text(), Path(PUBLIC).read_text()
    ran = cli("key", *(word.format(kid=kid) for word in words))
    assert (ran.code in (2, 3), told in ran.err) == (True, True), ran.err
    assert (Path(KEY).read_text(), Path(PUBLIC).read_text()) == before


def test_a_file_of_public_keys_that_is_none_is_named(cli: Cli, kid: str, write: Write) -> None:
    run = cli("run", FLOW, "--json").json["run_id"]
    write("other.pub", "hello\n")
    assert "other.pub: holds no public key in PEM" in cli("verify", run, "--key", "other.pub").err
    assert "no.pub" in cli("verify", run, "--key", "no.pub").err
    assert f"{KEY}: holds a private key that is no public key" in cli("verify", run, "--key", KEY).err
