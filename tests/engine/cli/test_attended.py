"""A person at the terminal is asked about the calls that wait, on a real one; who goes away decides later."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.by_hand import action, final
from support.command import Cli, Write
from support.terminal import Terminal

LEDGER = """
from pathlib import Path
from utools import tool


@tool
def pay(to: str, pieces: int = 1) -> str:
    "Pay."
    with Path("paid.txt").open("a") as file:
        file.write(f"{to} {pieces}\\n")
    return "paid"
"""


Start = Callable[..., Terminal]


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:
        yield lambda *words, **environment: _ending(stack, Terminal(*words, **environment))


def _ending(stack: ExitStack, terminal: Terminal) -> Terminal:
    stack.callback(terminal.process.kill)
    return terminal


@pytest.fixture
def paid(write: Write) -> Path:
    """A workflow whose agent pays once, with a person's approval; the file in which a payment is noted."""
    write("ledger.py", LEDGER)
    write("agent-core.yaml", "tools: [ledger.py:pay]")
    write("replies.json", [action("pay", to="a\x1b[2J\u202eb"), final("Done.")])
    return write("w.json", agent("pay")).with_name("paid.txt")


def agent(*tools: str) -> dict[str, Any]:
    allowed = [{"tool": tool, "approval": "always"} for tool in tools]
    config = {"model": "scripted:replies.json", "max_steps": 4, "allowed_tools": allowed, "prompt": "Go."}
    return {"id": "w", "nodes": [{"tool": "agent_core", "config": config}]}


def test_yes_lets_the_call_run_and_the_run_go_on(start: Start, paid: Path) -> None:
    terminal = (
        start("run", "w.json")
        .expect("? agent_core wants to call pay, and waits for your yes or no")
        .expect('"to": "a\\u001b[2J\\u202eb"')
    )
    assert terminal.expect("[y/n/edit] ").type("y\n").end() == 0
    assert "agent_core: Done." in terminal.shown
    assert len(paid.read_text().splitlines()) == 1
    assert "\x1b[2J" not in terminal.shown


@pytest.mark.exhaustive
@pytest.mark.parametrize("words", [["N", "Not today."], ["n Not today."], ["No, Not today."]], ids=len)
def test_no_has_a_message_that_the_model_reads(start: Start, paid: Path, cli: Cli, words: list[str]) -> None:
    terminal = start("run", "w.json").expect("[y/n/edit] ").type(f"{words[0]}\n")
    for message in words[1:]:
        terminal.expect("why? ").type(f"{message}\n")
    assert terminal.end() == 0
    assert not paid.exists()
    resolved = [each for each in cli("show", "last", "--json").json["records"] if each["kind"] == "resolved"]
    assert [(each["decision"], each["message"]) for each in resolved] == [("deny", "Not today.")]


@pytest.mark.exhaustive
def test_edited_arguments_are_asked_until_they_are_right(start: Start, paid: Path) -> None:
    terminal = start("run", "w.json")
    terminal.expect("[y/n/edit] ").type("maybe\n").expect("write one of y, n, edit")
    for wrong, why in (("{", "this is not JSON: "), ("[1]", "this is not a JSON object"), ('{"to": 1}', "/to")):
        terminal.expect("[y/n/edit] ").type("edit\n").expect("JSON object: ").type(f"{wrong}\n").expect(why)
    terminal.expect("[y/n/edit] ").type("edit\n").expect("JSON object: ").type('{"to": "b", "pieces": 2}\n')
    assert terminal.end() == 0
    assert paid.read_text() == "b 2\n"


@pytest.mark.exhaustive
def test_an_editor_of_the_environment_gets_the_arguments(start: Start, paid: Path, write: Write) -> None:
    script = (
        "import json, sys; f = sys.argv[1]; args = json.load(open(f)); json.dump({**args, 'to': 'c'}, open(f, 'w'))"
    )
    write("edit.py", script)
    terminal = start("run", "w.json", EDITOR=f"{sys.executable} edit.py").expect("[y/n/edit] ").type("e\n")
    assert terminal.end() == 0
    assert paid.read_text() == "c 1\n"


@pytest.mark.exhaustive
def test_an_editor_that_does_not_work_is_told(start: Start, paid: Path) -> None:
    terminal = start("run", "w.json", VISUAL="no-such-editor").expect("[y/n/edit] ").type("edit\n")
    terminal.expect("the editor 'no-such-editor' did not work: ").expect("[y/n/edit] ").type("y\n")
    assert terminal.end() == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("leaving", ["\x04", "\x03"], ids=["Ctrl-D", "Ctrl-C"])
def test_who_leaves_decides_later(start: Start, paid: Path, cli: Cli, leaving: str) -> None:
    terminal = start("run", "w.json").expect("[y/n/edit] ").type(leaving)
    assert terminal.end() == 6
    assert "Traceback" not in terminal.shown
    decide = re.search(r"agent-core (decide \S+ approve)", terminal.shown)
    assert decide
    assert cli(*decide[1].split()).code == 0
    assert paid.exists()


@pytest.mark.exhaustive
def test_several_calls_are_asked_one_after_the_other(start: Start, paid: Path, write: Write) -> None:
    write("replies.json", [action("pay", to="a"), action("pay", to="b"), final("Done.")])
    terminal = start("run", "w.json").expect('"to": "a"').expect("[y/n/edit] ").type("yes\n")
    terminal.expect('"to": "b"').expect("[y/n/edit] ").type("y\n")
    assert terminal.end() == 0
    assert paid.read_text() == "a 1\nb 1\n"


@pytest.mark.exhaustive
@pytest.mark.parametrize("words", [["resume", "last"], ["decide", "last", "approve"]])
def test_resume_and_decide_ask_as_well(start: Start, paid: Path, write: Write, cli: Cli, words: list[str]) -> None:
    write("replies.json", [action("pay", to="a"), action("pay", to="b"), final("Done.")])
    assert cli("run", "w.json").code == 6
    terminal = start(*words)
    for _ in range(2 if words[0] == "resume" else 1):
        terminal.expect("[y/n/edit] ").type("y\n")
    assert terminal.end() == 0
    assert len(paid.read_text().splitlines()) == 2


@pytest.mark.exhaustive
def test_a_call_in_doubt_is_told_its_result(start: Start, write: Write) -> None:
    write("dies.py", "import os\nfrom utools import tool\n\n@tool\ndef pay() -> str:\n    'Pay.'\n    os._exit(1)\n")
    write("agent-core.yaml", "tools: [dies.py:pay]")
    write("w.json", {"id": "w", "nodes": [{"tool": "pay"}]})
    assert start("run", "w.json").end() == 1
    terminal = start("resume", "last").expect("pay may or may not have happened").expect("[retry/skip/fail/done] ")
    terminal.type("done\n").expect("what did it give?").type("{\n").expect("this is not JSON")
    terminal.expect("[retry/skip/fail/done] ").type("done\n").expect("what did it give?").type('"paid"\n')
    assert terminal.end() == 0
    assert "pay: paid" in terminal.shown


@pytest.mark.usefixtures("paid")
@pytest.mark.exhaustive
def test_nobody_is_asked_for_a_document(start: Start) -> None:
    terminal = start("run", "w.json", "--json")
    assert terminal.end() == 6
    assert "[y/n/edit]" not in terminal.shown
    assert json.loads(terminal.shown[terminal.shown.index("{\r\n") :])["status"] == "waiting"


@pytest.mark.exhaustive
def test_an_edit_without_arguments_is_written_at_the_terminal(start: Start, paid: Path, cli: Cli) -> None:
    assert cli("run", "w.json").code == 6
    without = cli("decide", "last", "edit")
    assert (without.code, "edit needs --args with a JSON object" in without.err) == (2, True)
    terminal = start("decide", "last", "edit").expect("pay waits with").expect("JSON object: ").type("{\n")
    terminal.expect("this is not JSON").expect("JSON object: ").type('{"to": "d"}\n')
    assert terminal.end() == 0
    assert paid.read_text() == "d 1\n"


@pytest.mark.exhaustive
def test_a_call_of_several_says_which_it_is(start: Start, write: Write) -> None:
    write("ledger.py", LEDGER)
    write("agent-core.yaml", "tools: [ledger.py:pay]")
    node = {"id": "each", "tool": "pay", "config": {"to": "{{item}}"}, "foreach": ["a", "b"], "approval": "always"}
    write("w.json", {"id": "w", "nodes": [node]})
    terminal = start("run", "w.json").expect("? each: call 1 of 2 wants to call pay")
    terminal.expect('"to": "a"').expect("] ").type("y\n").expect("? each: call 2 of 2 wants to call pay")
    terminal.expect('"to": "b"').expect("] ").type("n\n").expect("why? ").type("\n")
    assert terminal.end() == 3
