"""Ctrl-C while the command line still loads: an exit code, and no traceback."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.terminal import COMMAND

SLOW = """
import asyncio
from utools import tool


@tool(effect="read")
async def slow() -> str:
    'Wait longer than the test.'
    print("called", flush=True)
    await asyncio.sleep(600)
    return "over"
"""

PROGRAM = """
import sys

class Interrupt:
    at = sys.argv.pop(1)

    def find_spec(self, name, path=None, target=None):
        if name == self.at:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from engine_shim.cli.main import main
main()
"""


@pytest.mark.sampled
@pytest.mark.parametrize(
    "module",
    [
        "engine_shim.cli.terminal",
        "engine_shim.cli.app",
        "typer",
        "engine_shim.cli.host.describe",
        "engine_shim.definition.validate",
    ],
)
def test_ctrl_c_while_modules_load_is_no_traceback(module: str) -> None:
    command = [sys.executable, "-c", PROGRAM, module, "validate", __file__]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "Traceback" in done.stderr) == (130, False), done.stderr


def _hear_ctrl_c() -> None:
    """Whatever the tests' own process ignores."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_ctrl_c_is_one_json_document_where_that_was_asked_for(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "agent-core.yaml").write_text("{tools: [slow.py]}")
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "flow.yaml").write_text("{id: w, nodes: [{tool: slow}]}")
    (tmp_path / "flow.test.yaml").write_text("{cases: [{}]}")
    command = [COMMAND, "test", "flow.yaml", *words]
    out, err = subprocess.PIPE, subprocess.PIPE
    with subprocess.Popen(command, stdout=out, stderr=err, text=True, cwd=tmp_path, preexec_fn=_hear_ctrl_c) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "called\n"
        process.send_signal(signal.SIGINT)
        shown, said = process.communicate(timeout=60)
    assert process.returncode == 130
    message = "interrupted after 0 of 1 case"
    if words:
        assert json.loads(shown)["error"] == {"kind": "interrupted", "message": message, "where": "flow.yaml"}
        assert said == ""
    else:
        assert (shown, said) == ("", f"agent-core: flow.yaml: {message}\n")
