"""The command run --watch: it runs again when a file changes that the run was made of, and for no other."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.command import Cli, Write

COMMAND = str(Path(sys.executable).with_name("agent-core"))
TOOL = """
from pathlib import Path
from helping import WORD
from utools import tool

@tool(effect="read")
def says() -> str:
    "Says."
    Path("written.json").write_text("{{}}")
    return f"{word} {{WORD}}"
"""


class Watching:
    """A command that watches, and its lines as they come."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [COMMAND, "run", *words, "--watch"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def expect(self, text: str) -> None:
        """Read on to a line that has this text."""
        assert self.process.stdout is not None
        seen = []
        for line in self.process.stdout:
            seen.append(line)
            if text in line:
                return
        raise AssertionError(f"{text!r} did not come: {seen}")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait()


@pytest.fixture
def watching(write: Write) -> Iterator[Callable[..., Watching]]:
    """Starts `run … --watch` over a workflow with a sub-workflow, a tool file, and a module that the file imports."""
    write("tooling.py", TOOL.format(word="one"))
    write("helping.py", "WORD = 'uno'")
    write("agent-core.yaml", "tools: [tooling.py:says]")
    write("sub.yaml", "{id: sub, nodes: [{tool: says}], outputs: {said: '{{nodes.says}}'}}")
    write("w.yaml", "{id: w, nodes: [{tool: invoke_workflow, config: {workflow: sub.yaml}}]}")
    with ExitStack() as stack:

        def start(*words: str) -> Watching:
            watch = Watching(*words)
            stack.callback(watch.end)
            return watch

        yield start


@pytest.mark.exhaustive
def test_a_change_of_any_file_of_the_run_runs_it_again(watching: Callable[..., Watching], write: Write) -> None:
    watch = watching("w.yaml")
    watch.expect("one uno")
    watch.expect("watching ")
    write("tooling.py", TOOL.format(word="two"))
    watch.expect("two uno")
    write("helping.py", "WORD = 'dos'")
    watch.expect("two dos")
    write("sub.yaml", "{id: sub, nodes: [{id: a, tool: says}], outputs: {said: '{{nodes.a}} (sub)'}}")
    watch.expect("two dos (sub)")
    write("agent-core.yaml", "tools: []")
    watch.expect("agent-core: ")
    watch.expect("watching ")
    write("agent-core.yaml", "tools: [tooling.py:says]")
    watch.expect("two dos (sub)")
    watch.expect("watching ")
    assert watch.interrupt() == 0


@pytest.mark.exhaustive
def test_a_definition_that_is_wrong_at_first_is_watched(watching: Callable[..., Watching], write: Write) -> None:
    write("w.yaml", "{id: w")
    watch = watching("w.yaml")
    watch.expect("watching 1 file")
    write("w.yaml", "{id: w, nodes: [{tool: says}]}")
    watch.expect("one uno")


@pytest.mark.parametrize("words", [["--json"], ["--inputs", "-"]])
def test_a_watch_does_not_go_with(cli: Cli, write: Write, words: list[str]) -> None:
    write("w.json", {"id": "w", "nodes": [{"tool": "echo", "config": {"text": "x"}}]})
    ran = cli("run", "w.json", "--watch", *words)
    assert (ran.code, "--watch runs many times" in ran.out + ran.err) == (2, True)
