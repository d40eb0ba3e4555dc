"""`agent-core test` that Ctrl-C ends: what came of the cases until then is written."""

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support.command import Ran, Write
from support.terminal import COMMAND

TOOL = '''
import asyncio
from pathlib import Path

from utools import tool

@tool(effect="read")
async def wait_long(q: str) -> str:
    """Waits longer than the test, where it is told to."""
    if q == "stuck":
        Path("begun").touch()
        await asyncio.sleep(600)
    return q
'''
FLOW = {
    "id": "waits",
    "inputs": {"type": "object", "properties": {"q": {"type": "string"}}},
    "nodes": [{"id": "wait", "tool": "wait_long", "config": {"q": "{{external.q}}"}, "timeout": 600}],
    "outputs": {"q": "{{nodes.wait}}"},
}
CASES = [{"name": name, "inputs": {"q": name}, "outputs": {"q": "good"}} for name in ("good", "bad", "stuck", "never")]
Interrupt = Callable[..., Ran]


@pytest.fixture
def interrupted(write: Write) -> Interrupt:
    """What a test leaves that is interrupted in its third case."""
    write("slow.py", TOOL)
    write("agent-core.yaml", "tools: [slow.py:wait_long]")
    write("flow.json", FLOW)
    write("flow.test.json", {"workflow": "flow.json", "cases": CASES})

    def run(*words: str) -> Ran:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen([COMMAND, "test", *words], **pipes, text=True, preexec_fn=_hear_ctrl_c) as process:
            while not Path("begun").exists():
                assert process.poll() is None, process.communicate()
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            return Ran(process.wait(60), *process.communicate())

    return run


def _hear_ctrl_c() -> None:
    """Whatever the tests' own process ignores."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_what_came_of_the_cases_before_ctrl_c_is_written(interrupted: Interrupt) -> None:
    ran = interrupted("flow.json", "--junit", "report.xml")
    assert (ran.code, ran.out.splitlines()[-1]) == (130, "2 cases, 1 failed")
    assert ran.err == "agent-core: flow.json: interrupted after 2 of 4 cases\n"
    suites = {each.get("name"): each for each in ElementTree.parse("report.xml").getroot()}
    error = suites.pop("interrupted").find("testcase/error")
    assert error is not None
    assert error.get("message") == "interrupted after 2 of 4 cases"
    (suite,) = suites.values()
    assert [(each.get("name"), len(each)) for each in suite] == [("good", 0), ("bad", 1)]


@pytest.mark.exhaustive
def test_json_has_what_came_and_the_interruption(interrupted: Interrupt) -> None:
    ran = interrupted("flow.json", "--json", "--only", "*u*", "--only", "bad")
    assert (ran.code, [each["name"] for each in ran.json["cases"]]) == (130, ["bad"])
    message = "interrupted after 1 of 2 cases"
    assert ran.json["error"] == {"kind": "interrupted", "message": message, "where": "flow.json"}
