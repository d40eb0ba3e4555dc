"""A person at the terminal is asked about the calls that wait, on a real one; who goes away decides later."""

import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.by_hand import action, final
from support.command import Cli, Write

COMMAND = str(Path(sys.executable).with_name("agent-core"))
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


class Terminal:
    """A command on a terminal of its own, and what it has written there so far."""

    def __init__(self, *words: str, **environment: str) -> None:
        self._ours, theirs = pty.openpty()
        without = {name: value for name, value in os.environ.items() if name not in ("EDITOR", "VISUAL")}
        environment = {**without, "TERM": "xterm-256color", "COLUMNS": "200", **environment}
        streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        self.process = subprocess.Popen(
            [COMMAND, *words], **streams, env=environment, start_new_session=True, preexec_fn=_take_terminal
        )
        os.close(theirs)
        self.shown = self._new = ""

    def expect(self, text: str) -> "Terminal":
        """Read on until this text has come."""
        while text not in self._new:
            chunk = self._read()
            assert chunk, f"{text!r} did not come: {self.shown}"
        self._new = self._new.partition(text)[2]
        return self

    def type(self, text: str) -> "Terminal":
        os.write(self._ours, text.encode())
        return self

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            pass
        os.close(self._ours)
        return self.process.wait()

    def _read(self) -> str:
        try:
            chunk = os.read(self._ours, 2**16).decode("utf-8", "replace")
        except OSError:  # nobody has it open any more
            return ""
        self.shown, self._new = self.shown + chunk, self._new + chunk
        return chunk


def _take_terminal() -> None:
    """Let what is typed there signal this process, whatever the tests' own process ignores."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


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
    terminal = start("run", "w.json").expect("? pay needs your word").expect('"to": "a\\u001b[2J\\u202eb"')
    assert terminal.expect("[y/n/edit] ").type("y\n").end() == 0
    assert "agent_core: Done." in terminal.shown
    assert len(paid.read_text().splitlines()) == 1
    assert "\x1b[2J" not in terminal.shown


def test_no_asks_for_a_message_that_the_model_reads(start: Start, paid: Path, cli: Cli) -> None:
    terminal = start("run", "w.json").expect("[y/n/edit] ").type("N\n").expect("why? ").type("Not today.\n")
    assert terminal.end() == 0
    assert not paid.exists()
    resolved = [each for each in cli("show", "last", "--json").json["records"] if each["kind"] == "resolved"]
    assert [(each["decision"], each["message"]) for each in resolved] == [("deny", "Not today.")]


def test_edited_arguments_are_asked_until_they_are_right(start: Start, paid: Path) -> None:
    terminal = start("run", "w.json")
    terminal.expect("[y/n/edit] ").type("maybe\n").expect("write one of y, n, edit")
    for wrong, why in (("{", "this is not JSON: "), ("[1]", "this is not a JSON object"), ('{"to": 1}', "/to")):
        terminal.expect("[y/n/edit] ").type("edit\n").expect("JSON object: ").type(f"{wrong}\n").expect(why)
    terminal.expect("[y/n/edit] ").type("edit\n").expect("JSON object: ").type('{"to": "b", "pieces": 2}\n')
    assert terminal.end() == 0
    assert paid.read_text() == "b 2\n"


def test_an_editor_of_the_environment_gets_the_arguments(start: Start, paid: Path, write: Write) -> None:
    script = (
        "import json, sys; f = sys.argv[1]; args = json.load(open(f)); json.dump({**args, 'to': 'c'}, open(f, 'w'))"
    )
    write("edit.py", script)
    terminal = start("run", "w.json", EDITOR=f"{sys.executable} edit.py").expect("[y/n/edit] ").type("e\n")
    assert terminal.end() == 0
    assert paid.read_text() == "c 1\n"


def test_an_editor_that_does_not_work_is_told(start: Start, paid: Path) -> None:
    terminal = start("run", "w.json", VISUAL="no-such-editor").expect("[y/n/edit] ").type("edit\n")
    terminal.expect("the editor 'no-such-editor' did not work: ").expect("[y/n/edit] ").type("y\n")
    assert terminal.end() == 0


@pytest.mark.parametrize("leaving", ["\x04", "\x03"], ids=["Ctrl-D", "Ctrl-C"])
def test_who_leaves_decides_later(start: Start, paid: Path, cli: Cli, leaving: str) -> None:
    terminal = start("run", "w.json").expect("[y/n/edit] ").type(leaving)
    assert terminal.end() == 6
    assert "Traceback" not in terminal.shown
    decide = re.search(r"agent-core (decide \S+ approve)", terminal.shown)
    assert decide
    assert cli(*decide[1].split()).code == 0
    assert paid.exists()


def test_several_calls_are_asked_one_after_the_other(start: Start, paid: Path, write: Write) -> None:
    write("replies.json", [action("pay", to="a"), action("pay", to="b"), final("Done.")])
    terminal = start("run", "w.json").expect('"to": "a"').expect("[y/n/edit] ").type("yes\n")
    terminal.expect('"to": "b"').expect("[y/n/edit] ").type("y\n")
    assert terminal.end() == 0
    assert paid.read_text() == "a 1\nb 1\n"


@pytest.mark.parametrize("words", [["resume", "last"], ["decide", "last", "approve"]])
def test_resume_and_decide_ask_as_well(start: Start, paid: Path, write: Write, cli: Cli, words: list[str]) -> None:
    write("replies.json", [action("pay", to="a"), action("pay", to="b"), final("Done.")])
    assert cli("run", "w.json").code == 6
    terminal = start(*words)
    for _ in range(2 if words[0] == "resume" else 1):
        terminal.expect("[y/n/edit] ").type("y\n")
    assert terminal.end() == 0
    assert len(paid.read_text().splitlines()) == 2


def test_a_call_in_doubt_is_retried_skipped_or_failed(start: Start, write: Write) -> None:
    write("dies.py", "import os\nfrom utools import tool\n\n@tool\ndef pay() -> str:\n    'Pay.'\n    os._exit(1)\n")
    write("agent-core.yaml", "tools: [dies.py:pay]")
    write("w.json", {"id": "w", "nodes": [{"tool": "pay"}]})
    assert start("run", "w.json").end() == 1
    terminal = start("resume", "last").expect("pay may or may not have happened").expect("[retry/skip/fail] ")
    assert terminal.type("skip\n").end() == 0


@pytest.mark.usefixtures("paid")
def test_nobody_is_asked_for_a_document(start: Start) -> None:
    terminal = start("run", "w.json", "--json")
    assert terminal.end() == 6
    assert "[y/n/edit]" not in terminal.shown
    assert json.loads(terminal.shown[terminal.shown.index("{\r\n") :])["status"] == "waiting"
