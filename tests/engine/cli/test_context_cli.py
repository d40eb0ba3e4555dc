"""agent-core context: conversations listed, shown and cleared."""

from pathlib import Path

import pytest

from support.command import Cli, Write
from utools.context.store_sqlite import default_path

pytestmark = pytest.mark.exhaustive

PERSIST = {
    "tool": "context_manager",
    "config": {"op": "persist", "session_id": "desk", "user_message": "{{external.ask}}", "final_answer": "12\nin all"},
}


@pytest.fixture
def talk(cli: Cli, write: Write) -> None:
    write("w.json", {"id": "w", "nodes": [PERSIST]})
    for question in ("How many A-17?", "And B-3?"):
        assert cli("run", "w.json", "--input", f"ask={question}").code == 0


@pytest.mark.usefixtures("talk")
def test_conversations_are_listed_with_their_last_question(cli: Cli) -> None:
    assert cli("context", "list").out == "desk    2 turns  And B-3?\n"
    assert cli("context", "list", "--json").json == [{"session_id": "desk", "turns": 2}]


@pytest.mark.usefixtures("talk")
def test_a_conversation_is_shown_turn_by_turn(cli: Cli) -> None:
    lines = cli("context", "show", "desk").out.splitlines()
    assert lines[:3] == ["turn 1", "  user: How many A-17?", "  assistant: 12\\nin all"]
    shown = cli("context", "show", "desk", "--json").json
    assert (shown["session_id"], len(shown["turns"]), shown["summary"]) == ("desk", 2, None)


@pytest.mark.usefixtures("talk")
def test_another_store_is_read_by_its_name(cli: Cli, home: Path) -> None:
    default_path().rename(home / "kept.db")
    assert cli("context", "list").out == "no sessions\n"
    assert cli("context", "list", "--store", "kept.db").out == "desk    2 turns  And B-3?\n"
    assert cli("context", "clear", "desk", "--store", "kept.db").code == 0
    missing = cli("context", "list", "--store", "none.db")
    assert (missing.code, "none.db" in missing.err) == (2, True)


@pytest.mark.usefixtures("talk")
def test_a_conversation_is_cleared(cli: Cli) -> None:
    assert cli("context", "clear", "desk").out == "cleared desk\n"
    assert cli("context", "list").out == "no sessions\n"
    again = cli("context", "clear", "desk")
    assert (again.code, "there is no session 'desk'; `agent-core context list` names all" in again.err) == (2, True)


def test_no_conversations_are_no_fault(cli: Cli) -> None:
    assert (cli("context", "list", "--json").json, default_path().exists()) == ([], False)
    assert cli("context", "show").code == cli("context", "forget", "desk").code == 2


def test_a_server_that_is_away_is_named(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1")
    ran = cli("context", "list", "--json")
    assert (ran.code, ran.json["error"]["kind"], "REDIS_URL" in ran.err + ran.out) == (3, "definition", True)
