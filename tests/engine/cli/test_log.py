"""What a run logs: for a program that embeds the engine, and for one that reads the command's stderr."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve, MemoryJournal, run_agent
from agent_core.models import ScriptedModel
from engine_shim import Engine, load_workflow
from engine_shim.cli.log import configure_log
from engine_shim.store.run_store_memory import MemoryRunStore
from support.by_hand import action, final
from support.command import Cli, Write
from utools import ToolError, ToolRegistry, tool

pytestmark = pytest.mark.exhaustive

COMMAND = str(Path(sys.executable).with_name("agent-core"))
KEY = "sk-proj-0123456789abcdefghijABCDEFGHIJ0123456789"


@tool(effect="read")
def find(q: str) -> str:
    """Find."""
    return f"found {q}"


@tool(effect="read")
def broken(q: str) -> str:
    """Break."""
    raise ValueError("out of order")


CONFIG = {"model": "m", "max_steps": 4, "allowed_tools": ["find", "broken"], "prompt": f"Go with {KEY}."}
REPLIES = [action("find", q="x"), action("broken"), final(f"Done with {KEY}.")]


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    """The events of the run's logger with their fields."""
    return [
        (getattr(record, "event", ""), getattr(record, "fields", {}))
        for record in caplog.records
        if record.name == "agent_core.run"
    ]


async def run(level: int, caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    caplog.set_level(level, "agent_core.run")
    await run_agent(CONFIG, registry=ToolRegistry([find, broken]), model=ScriptedModel(REPLIES), run_id="r")
    assert {getattr(record, "run_id", None) for record in caplog.records if record.name == "agent_core.run"} <= {"r"}
    return logged(caplog)


@pytest.mark.anyio
async def test_a_run_logs_its_steps_calls_and_end(caplog: pytest.LogCaptureFixture) -> None:
    events = await run(logging.INFO, caplog)
    assert [event for event, _ in events] == [
        *("run_started", "step", "tool_call", "step", "tool_call", "step", "run_finished")
    ]
    assert all(fields["agent"] == "agent" for _, fields in events)
    steps = [(fields["step"], fields["max_steps"]) for event, fields in events if event == "step"]
    assert steps == [(1, 4), (2, 4), (3, 4)]
    calls = [fields for event, fields in events if event == "tool_call"]
    assert [(call["tool"], call["success"], call["step"]) for call in calls] == [
        ("find", True, 1),
        ("broken", False, 2),
    ]
    end = events[-1][1]
    assert (end["reason"], end["tokens"] > 0, end["seconds"] >= 0) == ("final", True, True)
    assert caplog.messages[-1].startswith("run_finished run_id=r agent=agent reason=final tokens=")
    assert (" steps=3 " in caplog.messages[-1], end["steps"], events[0][1]["max_steps"]) == (True, 3, 4)
    assert "run_started run_id=r agent=agent strand=agent model=m max_steps=4" in caplog.text
    assert "step 2/4 run_id=r agent=agent model=" in caplog.text


class Away(logging.Handler):
    """A host's handler that does not catch what it meets."""

    def emit(self, record: logging.LogRecord) -> None:
        raise OSError("the log server is away")


@pytest.mark.anyio
async def test_handler_that_fails_ends_no_run(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("agent_core.run"), "handlers", [Away()])
    caplog.set_level(logging.DEBUG, "agent_core.run")
    output = await run_agent(CONFIG, registry=ToolRegistry([find, broken]), model=ScriptedModel(REPLIES), run_id="r")
    assert output.status == "completed"
    said = capsys.readouterr().err
    assert "OSError: the log server is away" in said
    assert "Message: 'run_finished run_id=r'" in said


@tool(effect="read")
def noisy(q: str) -> str:
    """Break loudly."""
    raise ToolError(f"first\nsecond\x1b[31m {KEY} " + "x" * 500)


@pytest.mark.anyio
async def test_a_failed_call_is_logged_with_its_error_in_one_short_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "agent_core.run")
    config = {**CONFIG, "allowed_tools": ["noisy"]}
    model = ScriptedModel([action("noisy"), final()])
    await run_agent(config, registry=ToolRegistry([noisy]), model=model, run_id="r")
    (call,) = [fields for event, fields in logged(caplog) if event == "tool_call"]
    assert call["error"].startswith("first second [31m ")
    assert (call["error"][-1], len(call["error"]), KEY in caplog.text) == ("…", 300, False)
    assert [message for message in caplog.messages if not message.isprintable()] == []


@pytest.mark.anyio
async def test_a_model_that_fails_is_logged_with_its_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "agent_core.run")
    await run_agent(CONFIG, registry=ToolRegistry([find, broken]), model=ScriptedModel([]), run_id="r")
    (step,) = [fields for event, fields in logged(caplog) if event == "step"]
    assert step["error"] == "the script has no reply 1 for strand agent"


@pytest.mark.anyio
async def test_arguments_are_logged_at_debug_alone_and_redacted(caplog: pytest.LogCaptureFixture) -> None:
    events = await run(logging.INFO, caplog)
    assert not any("args" in fields for _, fields in events)
    assert KEY not in caplog.text
    caplog.clear()
    await run(logging.DEBUG, caplog)
    calls = [record for record in caplog.records if getattr(record, "event", "") == "tool_call"]
    with_args = [record for record in calls if "args" in record.fields]  # type: ignore[attr-defined]
    assert [record.levelno for record in calls] == [logging.INFO, logging.DEBUG] * 2
    assert [record.levelno for record in with_args] == [logging.DEBUG] * 2
    assert with_args[0].fields["args"] == {"q": "x"}  # type: ignore[attr-defined]
    outputs = [record.fields.get("output") for record in with_args]  # type: ignore[attr-defined]
    assert outputs[0] is not None
    assert KEY not in caplog.text
    assert KEY not in str([record.__dict__ for record in calls])


@pytest.mark.anyio
async def test_what_is_fed_back_to_a_model_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "agent_core.run")
    config = {**CONFIG, "max_repairs": 2}
    model = ScriptedModel(["?", action("nope"), final()])
    await run_agent(config, registry=ToolRegistry([find, broken]), model=model, run_id="r")
    repairs = [(fields.get("tool"), fields["reason"]) for event, fields in logged(caplog) if event == "repair"]
    assert [reason for _, reason in repairs][1:] == ["policy_denied"]
    assert [tool for tool, _ in repairs] == [None, "nope"]
    caplog.clear()
    caplog.set_level(logging.DEBUG, "agent_core.run")
    model = ScriptedModel(["?", final()])
    await run_agent(config, registry=ToolRegistry([find, broken]), model=model, run_id="d")
    shown = [fields.get("error") for event, fields in logged(caplog) if event == "repair"]
    assert (shown[0], len(shown)) == (None, 2)
    assert "JSON" in str(shown[1])


@pytest.mark.anyio
async def test_nothing_is_logged_where_nobody_asked(caplog: pytest.LogCaptureFixture) -> None:
    assert await run(logging.WARNING, caplog) == []


@pytest.mark.anyio
async def test_a_run_that_goes_on_logs_what_is_new(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "agent_core.run")
    config = {**CONFIG, "allowed_tools": [{"tool": "find", "approval": "always"}]}
    journal, model = MemoryJournal(), ScriptedModel([action("find", q="a"), final()])
    registry = ToolRegistry([find])
    output = await run_agent(config, registry=registry, model=model, journal=journal, run_id="r")
    assert logged(caplog)[-1][0] == "waiting"
    caplog.clear()
    (call,) = output.waiting
    decisions = {(call["strand"], call["n"]): Approve()}
    await run_agent(config, registry=registry, model=model, journal=journal, run_id="r", decisions=decisions)
    assert [event for event, _ in logged(caplog)] == ["tool_call", "step", "run_finished"]
    assert logged(caplog)[0][1]["step"] == 1


@pytest.mark.anyio
async def test_a_program_with_an_engine_sees_its_workflows(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "agent_core.run")
    nodes = [{"id": "a", "tool": "find", "config": {"q": "x"}}]
    engine = Engine(ToolRegistry([find]), store=MemoryRunStore())
    result = await engine.run(load_workflow({"id": "w", "nodes": nodes}))
    events = logged(caplog)
    assert result.status == "completed"
    assert [event for event, _ in events] == ["run_started", "tool_call", "run_finished"]
    assert (events[1][1]["workflow"], events[1][1]["tool"], events[2][1]["reason"]) == ("w", "find", "completed")


# ── the command line ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def flow(write: Write) -> None:
    write("replies.json", [action("echo", text="x"), final(f"Done with {KEY}.")])
    config = {"model": "scripted:replies.json", "max_steps": 3, "allowed_tools": ["echo"], "prompt": "Go."}
    write("w.json", {"id": "w", "nodes": [{"tool": "agent_core", "config": config}]})


@pytest.mark.usefixtures("flow")
def test_json_logs_are_one_object_a_line(home: Path) -> None:
    words = [COMMAND, "run", "w.json", "--log-level", "debug", "--log-format", "json", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    run_id = json.loads(done.stdout)["run_id"]
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert all({"ts", "level", "event", "run_id"} <= line.keys() for line in lines)
    own = [line for line in lines if line["run_id"] == run_id]
    assert [line["event"] for line in own] == [
        *("run_started", "run_started", "step", "tool_call", "tool_call", "step", "run_finished", "run_finished")
    ]
    assert [line["args"].keys() for line in own if "args" in line] == [{"text"}]
    assert KEY not in done.stderr


@pytest.mark.usefixtures("flow")
def test_json_logs_tell_the_run_unless_another_level_is_asked_for(cli: Cli) -> None:
    told = [json.loads(line)["event"] for line in cli("run", "w.json", "--log-format", "json").err.splitlines()]
    assert (told[-1], {"run_started", "tool_call"} <= set(told)) == ("run_finished", True)
    for words in (
        ["--log-format", "json", "--log-level", "warning"],
        ["--log-level", "warning", "--log-format", "json"],
    ):
        assert cli("run", "w.json", *words).err == ""


@pytest.mark.sampled
@pytest.mark.usefixtures("flow")
@pytest.mark.parametrize("command", ["run", "resume", "demo"])
def test_verbose_and_debug_are_levels(cli: Cli, command: str) -> None:
    cli("run", "w.json")
    words = {"run": ["run", "w.json"], "resume": ["resume", "last"], "demo": ["demo"]}[command]
    for option, told, arguments in ((None, 0, 0), ("--verbose", 1, 0), ("--debug", 1, 1)):
        err = cli(*words, *([option] if option else [])).err
        if command != "resume":  # it is finished: nothing happens
            assert ("agent-core: step 1/" in err, " args={" in err) == (bool(told), bool(arguments))


@pytest.mark.usefixtures("flow")
def test_a_level_that_is_none_is_told(cli: Cli) -> None:
    ran = cli("run", "w.json", "--log-level", "loud")
    assert (ran.code, "'loud' is not one of 'debug'" in ran.err) == (2, True)


def test_warning_of_a_library_is_a_line_like_ours(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        for form in ("text", "json"):
            configure_log(level="warning", form=form)
            logging.getLogger("asyncio").warning("a task was %s", "lost")
            logging.getLogger("psycopg.pool").warning("discarding closed connection")
    finally:
        configure_log(level="warning")
    text, line = capsys.readouterr().err.splitlines()
    assert text == "agent-core: a task was lost"
    assert (json.loads(line)["logger"], json.loads(line)["message"]) == ("asyncio", "a task was lost")
