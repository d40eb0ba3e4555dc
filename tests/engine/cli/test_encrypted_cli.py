"""An encrypted host by the command line: nothing readable is written, and what is erased or locked is told."""

import json
import secrets
from pathlib import Path

import pytest

from agent_core.encryption.operator_key import make_operator_file
from engine_shim.store import content_keys
from support.command import Cli, Write
from support.optional import needs

pytestmark = [needs("cryptography"), pytest.mark.exhaustive]
VARIABLE = "AGENT_CORE_ENCRYPTION_KEY"
TURN = {"op": "persist", "session_id": "desk", "user_message": "{{external.ask}}", "final_answer": "It is there."}
WORKFLOW = {"id": "w", "nodes": [{"tool": "context_manager", "config": TURN}]}
CASES = "cases:\n  - {{name: {mark}, message: 'Where is {mark}?', answer: {{contains: [{mark}]}}}}\n"


@pytest.fixture
def host(write: Write, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_operator_file(key := home / "store.key")
    monkeypatch.setenv(VARIABLE, str(key))
    monkeypatch.delenv("AGENT_CORE_STORE", raising=False)
    write("agent-core.yaml", "encrypt: true\nstore: here/runs.db\n")
    write("w.json", WORKFLOW)
    return home


def find_readable(mark: str, folder: Path) -> list[str]:
    files = [each for each in folder.rglob("*.db*") if each.is_file()]
    return [str(each) for each in files if mark.encode() in each.read_bytes()]


def run_one(cli: Cli, mark: str) -> str:
    ran = cli("run", "w.json", "--input", f"ask={mark}", "--json")
    assert ran.code == 0
    return str(ran.json["run_id"])


def test_commands_write_nothing_readable(cli: Cli, host: Path, write: Write) -> None:
    """Those of the demo and of evals come first: they make the store, and would make it a plain one."""
    mark = f"ZINNIA{secrets.token_hex(4)}"
    assert cli("demo").code == 0
    assert cli("demo", "crash").code == 0
    write("cases.yaml", CASES.format(mark=mark))
    write("replies.json", json.dumps({mark: [json.dumps({"type": "final", "answer": mark})]}))
    evaluated = cli("eval", "cases.yaml", "--model", "scripted:replies.json", "--store", "evals.db")
    assert "give each store a key of its own" in evaluated.err  # which the demo's has
    assert cli("eval", "cases.yaml", "--model", "scripted:replies.json", "--store", "here/runs.db").code == 0
    run_one(cli, mark)
    shown = cli("context", "show", "desk").out
    assert mark in shown
    assert list(host.rglob("runs.db")) != []
    assert find_readable(mark, host) == []


def test_what_is_erased_is_told_and_is_no_fault(cli: Cli, host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, stays = run_one(cli, "one"), run_one(cli, "two")
    assert cli("erase", gone, "--why", "request 71").code == 0
    assert cli("verify", gone).out.endswith("; its contents were erased\n")
    assert cli("verify", gone, "--json").json["contents"] == "erased"
    assert cli("verify", "--all").code == 0
    assert cli("key", "new", "sign.pem").code == 0
    monkeypatch.setenv("AGENT_CORE_SIGNING_KEY", str(Path("sign.pem").absolute()))
    for words in (("show",), ("show", "--prompt", "1"), ("export", "--in-toto"), ("export", "--receipts")):
        told = cli(words[0], gone, *words[1:])
        assert (told.code, told.err) == (1, f"agent-core: run {gone!r} cannot be read: it was erased\n")
    monkeypatch.delenv("AGENT_CORE_SIGNING_KEY")
    again = cli("replay", "--all", "--json")
    assert (again.code, again.json["outcomes"]) == (0, {"identical": 1, "erased": 1})
    none = "nothing to erase: no run of this store was handed in by 'nobody'\n"
    assert (cli("erase", "--subject", "nobody").code, cli("erase", "--subject", "nobody").out) == (0, none)
    none = "nothing to erase: no run of this store is of the conversation 'c9', and nothing is remembered of it\n"
    assert [cli("erase", "--conversation", "c9", *more).out for more in ((), ("--dry-run",))] == [none, none]
    planned = cli("erase", gone, stays, "--dry-run", "--json").json
    assert (planned["would_erase"], planned["before"]) == ([stays], [gone])


def test_what_is_locked_is_told(cli: Cli, host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_one(cli, "one")
    monkeypatch.delenv(VARIABLE)
    content_keys._OPENED.clear()
    assert cli("verify", run).out.endswith("; its contents are encrypted, and cannot be read here\n")
    for words in (("show", run), ("replay", run), ("export", run), ("context", "show", "desk")):
        told = cli(*words)
        assert (told.code, "set AGENT_CORE_ENCRYPTION_KEY to the key of its store" in told.err) == (1, True)
    assert cli("runs").out.startswith(run)
    (host / ".env").write_text(f"{VARIABLE}={host / 'store.key'}\n")
    assert cli("show", run, "--store", "here/runs.db").code == 0
