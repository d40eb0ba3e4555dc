"""export --records, and verify of the file that it writes: what a stranger is shown of a run."""

import asyncio
import base64
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent_core import SqliteJournal, run_agent
from agent_core.evidence import verify_evidence
from agent_core.evidence.variables import KEY_VARIABLE
from agent_core.models import ScriptedModel
from support.by_hand import final
from support.command import Cli
from support.optional import needs
from utools import ToolRegistry

pytestmark = needs("cryptography")
FLOW = str(Path(__file__).parents[3] / "fixtures/workflows/parallel.yaml")
KEY, PUBLIC = "desk.key", "desk.key.pub"


@pytest.fixture(name="run")
def _run(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run of a host that signs."""
    cli("key", "new", KEY)
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    return str(cli("run", FLOW, "--json").json["run_id"])


def strands_of(path: str) -> list[tuple[str, int]]:
    return [(each["strand"], each["n"]) for each in json.loads(Path(path).read_text())["records"]]


def test_some_records_are_written_and_a_stranger_verifies_them(
    cli: Cli, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrote = cli("export", run, "--records", "flow:0", "--records", "flow:0-1", "--to", "shown.json")
    assert (wrote.code, wrote.out) == (0, "shown.json\n")
    assert strands_of("shown.json") == [("flow", 0), ("flow", 1)]
    monkeypatch.delenv(KEY_VARIABLE)
    told = cli("verify", "shown.json", "--key", PUBLIC)
    assert (told.code, told.out.startswith("ok: 2 of ")) == (0, True)
    assert f"of the run {run}, sealed by ed25519:" in told.out
    assert "; completed in the log agent-core/" in told.out
    assert cli("verify", "shown.json", "--key", PUBLIC, "--json").json["shown"] == 2
    refused = cli("verify", "shown.json", "--key", PUBLIC, "--count", "2")
    assert (refused.code, "it takes no --strand, --head or --count" in refused.err) == (2, True)
    refused = cli("verify", "shown.json")
    assert (refused.code, "an excerpt is checked by a public key: --key FILE.pub" in refused.err) == (2, True)
    Path("shown.json").write_text(Path("shown.json").read_text().replace("run_started", "run_Started"))
    told = cli("verify", "shown.json", "--key", PUBLIC)
    assert told.code == 5
    assert told.out == "NOT ok: record 0 of strand 'flow' does not stand in the run that was sealed\n"


def test_a_strand_is_shown_as_a_whole(cli: Cli, run: str) -> None:
    assert cli("export", run, "--records", "flow").out == f"{run}.json\n"
    strands = {strand for strand, _ in strands_of(f"{run}.json")}
    assert strands == {"flow"}
    shown = json.loads(cli("export", run, "--records", "flow:0", "--to", "-").out)
    assert (shown["format"], len(shown["records"])) == ("agent-core/excerpt/1", 1)


def test_a_waiting_run_is_in_the_log_as_well(cli: Cli, run: str) -> None:
    approval = str(Path(FLOW).with_name("approval.yaml"))
    waiting = cli("run", approval, "--json").json["run_id"]
    cli("export", waiting, "--records", "flow:0", "--to", "shown.json")
    assert "; waiting in the log agent-core/" in cli("verify", "shown.json", "--key", PUBLIC).out


def test_a_run_that_no_log_has_is_shown_without_one(cli: Cli, run: str) -> None:
    """One that a program has driven by itself, in a journal of its own."""
    config = {"model": "m", "max_steps": 2, "allowed_tools": [], "prompt": "Say something."}
    with closing(SqliteJournal(Path("own.db"))) as journal:
        asyncio.run(
            run_agent(config, registry=ToolRegistry(), model=ScriptedModel([final()]), journal=journal, run_id="own")
        )
    ran = cli("export", "own", "--records", "agent:0", "--to", "shown.json", "--store", "own.db")
    assert (ran.code, ran.out) == (0, "shown.json\n"), ran.err
    told = cli("verify", "shown.json", "--key", PUBLIC, "--json").json
    assert (told["ok"], told["log"], told["status"]) == (True, None, None)


def test_a_page_of_some_records_is_checked_as_its_excerpt_is(cli: Cli, run: str) -> None:
    assert cli("export", run, "--records", "flow:0", "--html").out == f"{run}.excerpt.html\n"
    cli("export", run, "--records", "flow:0", "--to", "shown.json")
    told = [cli("verify", name, "--key", PUBLIC, "--json").json for name in (f"{run}.excerpt.html", "shown.json")]
    assert told[0] == told[1]
    assert (told[0]["ok"], told[0]["part"], told[0]["shown"], told[0]["status"]) == (True, None, 1, "completed")
    assert cli("export", run, "--html").out == f"{run}.html\n"
    assert cli("verify", f"{run}.html", "--key", PUBLIC).code == 0
    page = Path(f"{run}.excerpt.html")
    page.write_text(page.read_text().replace("run_started", "run_Started"))
    assert cli("verify", page.name, "--key", PUBLIC, "--json").json["part"] == "records"
    assert "it holds no journal" in cli("show", page.name).err


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--records", "nope"), "--records nope: write STRAND, STRAND:N or STRAND:N-M; strands are flow"),
        (("--records", "flow:99"), "--records flow:99: the strand has the records 0 to "),
        (("--records", "flow:2-1"), "--records flow:2-1: the strand has the records 0 to "),
        (("--records", "flow:x"), "write STRAND, STRAND:N or STRAND:N-M"),
        (("--records", "flow:0", "--jsonl"), "--records, --in-toto and --receipts write a file each; export twice"),
        (("--records", "flow:0", "--to", "no/such/file.json"), "no/such/file.json cannot be written"),
    ],
)
def test_records_that_a_run_does_not_have_are_named(cli: Cli, run: str, words: tuple[str, ...], told: str) -> None:
    ran = cli("export", run, *words)
    assert (ran.code, told in ran.err) == (2, True), ran.err


def test_no_excerpt_is_made_of_a_run_that_is_damaged_or_not_signed_so(
    cli: Cli, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE)
    bare = cli("run", FLOW, "--json").json["run_id"]
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    assert "its seal names no tree over its records" in cli("export", bare, "--records", "flow:0").err
    with closing(sqlite3.connect("data/agent-core/runs.db")) as db, db:
        db.execute("UPDATE rows SET data = CAST('{}' AS BLOB) WHERE run = ? AND n = 1", (run,))
    ran = cli("export", run, "--records", "flow:0")
    assert (ran.code, "is damaged, and nothing is said of it to others" in ran.err) == (1, True), ran.err


def test_a_run_is_written_in_the_formats_of_others(cli: Cli, run: str) -> None:
    assert cli("export", run, "--in-toto").out == f"{run}.intoto.json\n"
    envelope = json.loads(Path(f"{run}.intoto.json").read_text())
    statement = json.loads(base64.b64decode(envelope["payload"]))
    assert (envelope["payloadType"], statement["subject"][0]["name"]) == ("application/vnd.in-toto+json", run)
    assert statement["predicate"]["journal"]["head"] == cli("verify", run, "--json").json["head"]
    assert cli("export", run, "--receipts", "--to", "receipts.json").out == "receipts.json\n"
    receipts = json.loads(Path("receipts.json").read_text())
    assert receipts
    assert {each["credentialSubject"]["chain"]["chain_id"] for each in receipts} == {run}


def test_a_file_that_is_no_run_is_told_with_what_checks_it(cli: Cli, run: str) -> None:
    cli("ledger", "checkpoint", "--to", "kept.txt")
    cli("ledger", "proof", run, "--to", "proof.json")
    cli("export", run, "--in-toto", "--to", "statement.json")
    cli("export", run, "--receipts", "--to", "receipts.json")
    cli("export", run, "--records", "flow:0", "--to", "shown.json")
    kinds = {
        "kept.txt": "is a checkpoint; `agent-core verify --all --checkpoint FILE`",
        "proof.json": "is what `ledger proof` wrote",
        "statement.json": "is a signed in-toto statement",
        "receipts.json": "is a list of receipts of calls",
        PUBLIC: "is a file of public keys; name it by --key",
    }
    for name, told in kinds.items():
        ran = cli("verify", name, "--key", PUBLIC)
        assert (ran.code, f"{name} {told}" in ran.err) == (2, True), ran.err
    for name in ("none.json", "none.html"):
        assert f"there is no file {name}" in cli("verify", name, "--key", PUBLIC).err
    ran = cli("show", "shown.json")
    assert (ran.code, "shown.json is an excerpt, which shows its records itself" in ran.err) == (2, True), ran.err


def test_the_program_of_a_stranger_says_which_file_holds_no_keys(
    cli: Cli, run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cli("export", run, "--records", "flow:0", "--to", "shown.json")
    capsys.readouterr()
    for words, told in (
        (["none.pub", "shown.json"], "none.pub: no public keys: [Errno 2] No such file or directory: 'none.pub'"),
        (
            ["shown.json", PUBLIC],
            "shown.json: no public keys: the file has no public key; the file of keys",
        ),
    ):
        assert verify_evidence.main(words) == 1
        assert told in capsys.readouterr().out
