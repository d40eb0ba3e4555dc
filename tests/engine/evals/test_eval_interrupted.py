"""`agent-core eval` that Ctrl-C ends: what was measured until then is written."""

import json
import signal
import subprocess
from collections.abc import Callable

import pytest

from support.by_hand import final
from support.command import Ran, Write
from support.terminal import COMMAND

TOOL = '''
import asyncio

from utools import tool

@tool(effect="read")
async def wait_long() -> str:
    """Wait longer than the test."""
    await asyncio.sleep(600)
    return "over"
'''
CASES = [{"name": name, "message": name, "answer": {"contains": ["yes"]}} for name in ("good", "bad", "stuck", "never")]
STUCK = json.dumps({"type": "action", "tool": "wait_long", "args": {}})
REPLIES = {"good": [final("yes")], "bad": [final("no")], "stuck": [STUCK], "never": [final("yes")]}
Interrupt = Callable[..., Ran]


@pytest.fixture
def interrupted(write: Write) -> Interrupt:
    """What an eval leaves that is interrupted in its third case; where two are compared, in that of this side."""
    write("slow.py", TOOL)
    write("agent-core.yaml", "tools: [slow.py:wait_long]")
    write("cases.json", {"host": "agent-core.yaml", "tools": ["wait_long"], "cases": CASES})
    write("stuck.json", REPLIES)
    write("fluent.json", {**REPLIES, "stuck": [final("yes")]})

    def run(*words: str, after: str) -> Ran:
        command = [COMMAND, "eval", "cases.json", *words]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, **pipes, text=True, preexec_fn=_hear_ctrl_c) as process:
            seen = ""
            assert process.stderr is not None
            while after not in seen:
                seen += (line := process.stderr.readline())
                assert line, seen
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            return Ran(process.returncode, out, seen + err)

    return run


def _hear_ctrl_c() -> None:
    """Whatever the tests' own process ignores."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_what_was_measured_before_ctrl_c_is_written(interrupted: Interrupt) -> None:
    ran = interrupted("--model", "scripted:stuck.json", after="2/4 bad")
    assert ran.code == 130
    assert ran.out.startswith("scripted:stuck.json: 2 runs\n")
    assert 'bad  expected an answer with "yes"' in ran.out
    assert ran.err.splitlines()[-1] == "agent-core: cases.json: interrupted after 2 of 4 runs"


def test_json_has_what_was_measured_and_the_interruption(interrupted: Interrupt) -> None:
    ran = interrupted("--model", "scripted:stuck.json", "--json", after="2/4 bad")
    assert (ran.code, [each["name"] for each in ran.json["cases"]]) == (130, ["good", "bad"])
    message = "interrupted after 2 of 4 runs"
    assert ran.json["error"] == {"kind": "interrupted", "message": message, "where": "cases.json"}


@pytest.mark.exhaustive
def test_of_two_only_cases_that_both_ran_are_compared(interrupted: Interrupt) -> None:
    words = ("--model", "scripted:fluent.json", "--compare", "scripted:stuck.json")
    ran = interrupted(*words, after="B 2/4 bad")
    assert (ran.code, ran.err.splitlines()[-1]) == (130, "agent-core: cases.json: interrupted after 6 of 8 runs")
    assert [line for line in ran.out.splitlines() if line.endswith(" runs")] == [
        "scripted:fluent.json: 4 runs",
        "scripted:stuck.json: 2 runs",
    ]
    told = json.loads(interrupted(*words, "--json", after="B 2/4 bad").out)
    assert [each["name"] for each in told["compared"]] == ["good", "bad"]
    assert [told[side]["total"]["runs"] for side in "ab"] == [4, 2]
