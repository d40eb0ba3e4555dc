"""An option that a form of a command does not take is refused, and never passed over."""

import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
import typer

from engine_shim.cli import output
from engine_shim.cli.serving.commands import check_names, check_origins
from support.by_hand import final
from support.command import Cli, Write

IDLE = {
    "tools --yes": "--yes goes with `tools approve`, and not with `tools`",
    "tools show echo --yes": "--yes goes with `tools approve`, and not with `tools show`",
    "agents --since 7d": "--since goes with `agents check`, and not with `agents`",
    "schema --node desk": "--node takes the FLOW that has the node",
    "token list --name ci": "--name goes with `token new`, and not with `token list`",
    "token list 1f2e": "1f2e goes with `token revoke`, and not with `token list`",
    "key new desk.key --reason lost": "--reason goes with `key revoke`, and not with `key new`",
    "key rotate store.key --encryption": "store.key goes with `key new`, `key show`",
    "ledger --to head.txt": "--to goes with `ledger checkpoint`, `ledger proof`, `ledger cosign`, and not with",
    "ledger checkpoint last": "last goes with `ledger proof`, `ledger consistency`, `ledger cosign`, and not with",
    "mcp --port 9000": "--port goes with `mcp --http`, and not with `mcp`",
    "serve --allow-host desk.example.com:8443": "'desk.example.com:8443': write the name alone, such as",
    "serve --allow-host 192.168.1.5:8443": "'192.168.1.5:8443': write the name alone, such as",
    "serve --allow-origin https://desk.example.com/app": "'https://desk.example.com/app': write an origin, such as",
    "demo injection --serve": "injection goes with `demo`, and not with `demo --serve`",
    "demo --port 9000": "--port goes with `demo --serve`, and not with `demo`",
    "eval add last --repeat 3": "--repeat goes with `eval CASES`, and not with `eval add`",
    "eval seed-scenarios --model m:n --to x.yaml": "--to goes with `eval add`, and not with `eval CASES`",
    "show last --trace --prompt 2": "--trace, --full, --as-example and --prompt show a thing each",
    "replay last --set max_steps=3 --set max_steps=5": "--set max_steps is given twice",
    "doctor --quick --shared": "--quick, --shared and --copied-from look at a thing each",
}


@pytest.mark.parametrize(("words", "why"), IDLE.items(), ids=IDLE)
def test_an_option_without_effect_is_refused(words: str, why: str, cli: Cli) -> None:
    ran = cli(*words.split())
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err


def test_names_and_origins_are_as_requests_have_them() -> None:
    context = typer.Context(typer.main.get_command(typer.Typer(callback=lambda: None)))
    assert check_names(context, names := ["desk.example.com", "::1", "[fe80::1]"]) == names
    given = ["HTTPS://Desk.example.com:443", "http://desk:80", "http://desk:8080", "null"]
    assert check_origins(context, given) == ["https://desk.example.com", "http://desk", "http://desk:8080", "null"]


def test_a_server_that_no_engine_asks_is_refused_but_of_the_environment(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("w.json", {"id": "w", "nodes": [{"id": "say", "tool": "echo", "config": {"text": "hi"}}]})
    refused = cli("run", "w.json", "--temporal", "127.0.0.1:7233")
    assert (refused.code, "--temporal names the server of --engine temporal" in refused.err) == (2, True)
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:7233")
    assert cli("run", "w.json").code == 0


def test_a_file_on_stdout_takes_no_document_beside_it(cli: Cli, write: Write) -> None:
    write("w.json", {"id": "w", "nodes": [{"id": "say", "tool": "echo", "config": {"text": "hi"}}]})
    cli("run", "w.json")
    refused = cli("export", "last", "--to", "-", "--json")
    assert (refused.code, refused.json["error"]["kind"]) == (2, "usage")
    copied = cli("store", "copy", "other.db", "--run", "last", "--status", "failed")
    assert (copied.code, "it goes with no --status, --workflow or --since" in copied.err) == (2, True)


def test_a_file_on_stdout_has_the_bytes_that_it_has_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    written = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(written, encoding="latin-1", errors="replace"))
    output.write_file(b"no text: \xff, and \xe4\xb8\xad", "-", as_json=False)
    assert written.getvalue() == b"no text: \xff, and \xe4\xb8\xad"
    monkeypatch.undo()


@pytest.mark.parametrize(
    "words",
    [
        *("context list", "erase --conversation c1", "eval add last --to no/such/cases.yaml"),
        "eval seed-scenarios --only echo --model scripted:replies.json --store folder",
    ],
)
def test_a_place_that_cannot_be_used_is_no_mistake_of_ours(
    words: str,
    cli: Cli,
    write: Write,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    write("replies.json", [final("Hi.")])
    config = {"model": "scripted:replies.json", "max_steps": 1, "allowed_tools": [], "prompt": "Go."}
    cli("run", str(write("w.json", {"id": "w", "nodes": [{"tool": "agent_core", "config": config}]})))
    (home / "folder").mkdir()
    monkeypatch.setenv("AGENT_CORE_CONTEXT_DB", "folder")
    ran = cli(*words.split())
    assert ran.code in (1, 3), ran.out
    assert "Traceback" not in ran.err + caplog.text
    told = ("folder, cannot be used: ", "cases.yaml: cannot be written: No such file", "folder: it is a directory")
    assert [each in ran.err.splitlines()[-1] for each in told].count(True) == 1
