"""The command line on a real terminal: nothing steers it but the command itself, and what tools print stays apart."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from engine_shim.cli.terminal import visible, visible_json
from support.by_hand import action, final
from support.command import Cli, Write
from support.mcp_servers import FAULTY

pytestmark = pytest.mark.exhaustive

COMMAND = str(Path(sys.executable).with_name("agent-core"))
HOSTILE = "a\x1b[2J\x1b]0;t\x07\x9b31m\x7f\u202egnp\u2066\u200f\u061c\u200b\u2028\U000e0041\rb"
STEERS = [char.encode() for char in "\x07\x9b\x7f\u202e\u2066\u200f\u061c\u200b\u2028\U000e0041"]
SEEN = r"a\x1b[2J\x1b]0;t\x07\x9b31m\x7f\u202egnp\u2066\u200f\u061c\u200b\u2028\U000e0041\x0db"


class Shown(NamedTuple):
    """What a command wrote to its terminal, and to what was none."""

    code: int
    terminal: bytes
    pipe: bytes


def started(words: tuple[str, ...], piped: str | None) -> Shown:
    """Run a command whose streams are a terminal, but for one that is a pipe."""
    ours, theirs = pty.openpty()
    os.write(ours, b"\x04")  # whoever is asked has left
    streams: dict[str, Any] = {name: subprocess.PIPE if name == piped else theirs for name in ("stdout", "stderr")}
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "400"}
    with subprocess.Popen([COMMAND, *words], stdin=theirs, env=environment, **streams) as process:
        os.close(theirs)
        shown = b""
        while chunk := read(ours):
            shown += chunk
        pipe = process.stdout or process.stderr
        rest = pipe.read() if pipe else b""
    os.close(ours)
    return Shown(process.returncode, shown, rest)


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 2**16)
    except OSError:  # nobody has it open any more
        return b""


def on_terminal(*words: str, piped: str | None = None) -> Shown:
    shown = started(words, piped)
    for steering in (b"\x1b[2J", b"\x1b]0;", *STEERS):
        assert steering not in shown.terminal, shown
    return shown


def agent(**config: Any) -> dict[str, Any]:
    usual = {"model": "scripted:replies.json", "max_steps": 3, "allowed_tools": ["echo"], "prompt": "Go."}
    return {"id": "w", "nodes": [{"tool": "agent_core", "config": {**usual, **config}}]}


@pytest.fixture
def echo(write: Write) -> None:
    """A workflow that gives the hostile text, and its inputs."""
    write("w.json", {"id": "w", "nodes": [{"tool": "echo", "config": {"text": "{{external.text}}"}}]})
    write("in.json", {"text": HOSTILE})


# ── what steers a terminal ───────────────────────────────────────────────────────────────────────


def test_what_steers_a_terminal_is_shown_as_text() -> None:
    assert visible(HOSTILE) == SEEN
    assert visible("\ud800 \x00 \ufeff \U000e007f") == r"\ud800 \x00 \ufeff \U000e007f"
    assert visible(visible(HOSTILE)) == visible(HOSTILE)


def test_text_of_any_script_stays_as_it_is() -> None:
    text = "Grüße\t中文\nनमस्ते می‌خواهم עברית 👩‍💻 🏳️‍🌈 \\x1b"
    assert visible(text) == text


def test_json_stays_the_same_value() -> None:
    text = json.dumps({"a": HOSTILE, HOSTILE: ["\ud800"]}, ensure_ascii=False, indent=2)
    shown = visible_json(text)
    assert json.loads(shown) == {"a": HOSTILE, HOSTILE: ["\ud800"]}
    assert shown.replace("\n", "").isprintable()


@pytest.mark.usefixtures("echo")
def test_output_of_a_run_and_its_live_view_do_not_steer_the_terminal() -> None:
    shown = on_terminal("run", "w.json", "--inputs", "in.json")
    assert shown.code == 0
    assert f"echo: {SEEN}".encode() in shown.terminal
    assert shown.terminal.count(SEEN.encode()) == 2


@pytest.mark.exhaustive
@pytest.mark.usefixtures("echo")
def test_a_pipe_gets_what_is_there() -> None:
    shown = on_terminal("run", "w.json", "--inputs", "in.json", piped="stdout")
    assert f"echo: {HOSTILE}\n".encode() in shown.pipe
    shown = on_terminal("run", "w.json", "--inputs", "in.json", "--json", piped="stdout")
    assert json.loads(shown.pipe)["outputs"]["echo"] == HOSTILE
    assert "\u202e".encode() in shown.pipe


@pytest.mark.usefixtures("echo")
@pytest.mark.exhaustive
def test_stderr_is_for_people_wherever_it_goes() -> None:
    shown = on_terminal("run", "w.json", "--inputs", "in.json", piped="stderr")
    assert SEEN.encode() in shown.pipe
    assert not any(steering in shown.pipe for steering in STEERS)


@pytest.mark.usefixtures("echo")
@pytest.mark.exhaustive
def test_json_on_a_terminal_has_its_own_escapes() -> None:
    shown = on_terminal("run", "w.json", "--inputs", "in.json", "--json")
    document = shown.terminal[shown.terminal.index(b"{\r\n") :]
    assert json.loads(document)["outputs"]["echo"] == HOSTILE


@pytest.mark.exhaustive
def test_an_agents_thoughts_arguments_errors_and_answer_do_not_steer_the_terminal(write: Write) -> None:
    thinking = json.dumps({"type": "action", "thought": HOSTILE, "tool": "echo", "args": {"text": HOSTILE}})
    write("replies.json", [action("echo", **{HOSTILE: 1}), thinking, final(HOSTILE)])
    write("w.json", agent())
    shown = on_terminal("run", "w.json")
    assert shown.code == 0
    assert f"agent_core: {SEEN}".encode() in shown.terminal
    assert b'echo {"text": "a\\u001b[2J' in shown.terminal
    assert on_terminal("runs").code == 0


def test_escapes_do_not_hide_that_an_observation_was_cut(cli: Cli, write: Write) -> None:
    write("replies.json", [action("echo", text="\x1b" * 300), final()])
    write("w.json", agent(observation_max_len=256))
    assert " (cut from 300 to 256 characters)" in cli("run", "w.json").err


@pytest.mark.exhaustive
def test_what_an_approver_reads_does_not_steer_the_terminal_and_is_one_line(write: Write) -> None:
    write("replies.json", [action("echo", text=f"{HOSTILE}\nrun"), final()])
    write("w.json", {**agent(allowed_tools=[{"tool": "echo", "approval": "always"}]), "version": f"1\n{HOSTILE}"})
    shown = on_terminal("run", "w.json")
    assert shown.code == 6
    asked = json.dumps(f"{HOSTILE}\nrun", ensure_ascii=False)
    assert visible_json(f'    "text": {asked}').encode() in shown.terminal
    (waiting,) = [line for line in shown.terminal.splitlines() if line.startswith(b"waiting")][-1:]
    assert waiting.endswith("needs your decision (text ← the model)".encode())
    run = next(line.split()[1] for line in shown.terminal.splitlines() if line.startswith(b"run "))
    assert on_terminal("show", run.decode()).code == 0
    listed = on_terminal("runs")
    assert len(listed.terminal.splitlines()) == 1
    assert rb"1\na\x1b[2J" in listed.terminal


WRONG = {
    "a file": (["run", f"{HOSTILE}.json"], 2),
    "a run": (["show", HOSTILE], 2),
    "an input": (["run", "w.json", "--input", HOSTILE], 2),
    "a command": ([HOSTILE], 2),
    "an option": (["run", f"--{HOSTILE}"], 2),
    "a store": (["runs", "--store", f"/proc/{HOSTILE}/runs.db"], 2),
    "a configuration": (["tools", "--config", f"{HOSTILE}.yaml"], 2),
}


@pytest.mark.sampled
@pytest.mark.usefixtures("echo")
@pytest.mark.parametrize(("words", "code"), WRONG.values(), ids=WRONG)
def test_the_users_own_words_do_not_steer_the_terminal(words: list[str], code: int) -> None:
    shown = on_terminal(*words)
    assert shown.code == code
    assert rb"\x1b[2J" in shown.terminal


# ── what tools print ─────────────────────────────────────────────────────────────────────────────

PRINTING = """
import os, subprocess, sys
from utools import tool

print("printed at import")
os.write(1, b"written at import\\n")

@tool(effect="read")
def noisy() -> str:
    "Prints."
    assert sys.stdout.encoding and sys.stderr.writable()
    sys.stdout.writelines(["printed in a call\\n"])
    sys.stdout.write("written in a call\\n")
    os.write(1, b"written to the descriptor\\n")
    subprocess.run([sys.executable, "-c", "print('printed by a child')"], check=True)
    return "quiet"

@tool(effect="read")
def logs() -> str:
    "Logs."
    import logging
    logging.getLogger("mine").warning("logged \\x1b[2J\\u202e")
    print("printed \\x1b[2J\\u202e")
    return "quiet"
"""
PRINTED = ["printed at import", "written at import", "printed in a call", "written in a call"]
WRITTEN = [*PRINTED, "written to the descriptor", "printed by a child"]


@pytest.fixture
def noisy(write: Write) -> None:
    write("printing.py", PRINTING)
    write("agent-core.yaml", "tools: [printing.py:noisy, printing.py:logs]")
    write("w.json", {"id": "w", "nodes": [{"tool": "noisy"}]})
    write("logs.json", {"id": "w", "nodes": [{"tool": "logs"}]})


@pytest.mark.exhaustive
@pytest.mark.usefixtures("noisy")
def test_stdout_is_one_document_whatever_tools_print() -> None:
    done = subprocess.run([COMMAND, "run", "w.json", "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["outputs"] == {"noisy": "quiet"}
    assert [text for text in WRITTEN if text not in done.stderr] == []


@pytest.mark.exhaustive
@pytest.mark.usefixtures("noisy")
@pytest.mark.parametrize("words", [["tools", "--json"], ["tools", "show", "noisy"], ["validate", "w.json", "--json"]])
def test_stdout_is_one_document_whatever_is_printed_at_import(words: list[str]) -> None:
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True, check=True)
    json.loads(done.stdout)
    assert [text for text in WRITTEN[:2] if text not in done.stderr] == []


@pytest.mark.usefixtures("noisy")
def test_in_a_callers_own_process_prints_stay_apart_and_its_streams_come_back(cli: Cli) -> None:
    before = sys.stdout, sys.stderr
    ran = cli("run", "w.json", "--json")
    assert ran.json["outputs"] == {"noisy": "quiet"}
    assert [text for text in PRINTED[2:] if text not in ran.err] == []
    assert (sys.stdout, sys.stderr) == before


@pytest.mark.exhaustive
@pytest.mark.usefixtures("noisy")
def test_what_tools_print_and_log_does_not_steer_the_terminal() -> None:
    shown = on_terminal("run", "logs.json")
    assert rb"logged \x1b[2J\u202e" in shown.terminal
    assert rb"printed \x1b[2J\u202e" in shown.terminal


@pytest.mark.usefixtures("noisy")
def test_help_still_goes_to_stdout() -> None:
    done = subprocess.run([COMMAND, "run", "--help"], capture_output=True, text=True, check=True)
    assert (done.stdout.startswith("Usage: "), done.stderr) == (True, "")


@pytest.mark.exhaustive
@pytest.mark.usefixtures("noisy")
def test_a_reader_that_goes_away_is_no_mistake_of_ours() -> None:
    with subprocess.Popen([COMMAND, "tools"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()
    assert "Traceback" not in err
    assert "BrokenPipe" not in err


FULL = Path("/dev/full")
"""A file that can never be written to."""


LOGGING = """
import logging
from utools import tool

@tool(effect="read")
def logs() -> str:
    "Logs."
    logging.getLogger("utools").warning("logged")
    print("printed")
    return "quiet"
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
def test_a_run_does_not_end_over_what_cannot_be_written(write: Write) -> None:
    write("logs.py", LOGGING)
    write("agent-core.yaml", "tools: [logs.py:logs]")
    write("w.json", {"id": "w", "nodes": [{"tool": "logs"}]})
    command = [COMMAND, "run", "w.json"]
    with FULL.open("w") as full:
        told = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, text=True, check=False)
        lost = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        long = subprocess.run([COMMAND, "schema"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (told.returncode, "logs: quiet" in told.stdout) == (0, True)
    assert lost.returncode == 1
    assert "Traceback" not in lost.stderr
    assert lost.stderr.splitlines()[-1] == "agent-core: stdout cannot be written: No space left on device"
    assert (long.returncode, long.stderr) == (1, "agent-core: stdout cannot be written: No space left on device\n")


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@pytest.mark.parametrize("words", ["--help", "tools --json", "mcp"])
@pytest.mark.parametrize(
    ("redirection", "why"), [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
)
@pytest.mark.usefixtures("home")
def test_stdout_that_cannot_be_written_is_told(words: str, redirection: str, why: str) -> None:
    command = f'exec "{COMMAND}" {words} {redirection}'
    sent = json.dumps(INITIALIZE) + "\n"
    done = subprocess.run(["sh", "-c", command], input=sent, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"agent-core: stdout cannot be written: {why}\n")


@pytest.mark.parametrize("words", ["--version", "tools approve"])
@pytest.mark.usefixtures("home")
def test_a_command_without_any_standard_stream_ends_as_ever(words: str, write: Write) -> None:
    write("agent-core.yaml", {"mcp_servers": {"own": {"command": [sys.executable, FAULTY, "."]}}})
    code = {"--version": 1}.get(words, 2)
    ended = subprocess.run(["sh", "-c", f'exec "{COMMAND}" {words} <&- >&- 2>&-'], check=False, timeout=60)
    assert ended.returncode == code


# ── tools that end the program ───────────────────────────────────────────────────────────────────

LEAVING = """
import sys
from utools import Tool, tool

@tool(effect="read")
def leaves() -> str:
    "Leaves."
    sys.exit(3)

async def leave(args, context):
    sys.exit("no licence")

leaves_async = Tool("leaves_async", "Leaves.", {"type": "object"}, leave)

def factory():
    raise SystemExit
"""


@pytest.mark.parametrize(
    ("name", "why"), [("leaves", "it called sys.exit(3)"), ("leaves_async", "it called sys.exit('no licence')")]
)
def test_a_tool_that_calls_exit_has_failed(cli: Cli, write: Write, name: str, why: str) -> None:
    write("leaving.py", LEAVING)
    write("agent-core.yaml", f"tools: [leaving.py:{name}]")
    write("w.json", {"id": "w", "nodes": [{"tool": name}]})
    ran = cli("run", "w.json", "--json")
    assert (ran.code, ran.json["status"], ran.json["error"]["kind"]) == (1, "failed", "tool_error")
    assert ran.json["error"]["message"] == why


@pytest.mark.parametrize(
    ("source", "reference"),
    [("import sys\nsys.exit(0)", "leaving.py:leaves"), (LEAVING, "leaving.py:factory")],
    ids=["at import", "in a factory"],
)
def test_a_tool_file_that_calls_exit_is_named(cli: Cli, write: Write, source: str, reference: str) -> None:
    write("leaving.py", source)
    write("agent-core.yaml", f"tools: [{reference}]")
    ran = cli("tools")
    assert (ran.code, ran.out) == (3, "")
    assert "agent-core.yaml:1: tools/0: cannot be loaded: it called sys.exit(" in ran.err
    assert reference in ran.err
