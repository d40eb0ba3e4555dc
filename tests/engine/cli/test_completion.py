"""What the shell offers when a person presses Tab: runs, files and tools, and nothing where anything is wrong."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine_shim.store.entries import RunEntry
from engine_shim.store.run_store import SqliteRunStore
from support.command import Write

pytestmark = pytest.mark.exhaustive

COMMAND = str(Path(sys.executable).with_name("agent-core"))
RUNS = ("20260101-000000-aa", "20260102-000000-bb")


def offered(*words: str, shell: str = "bash") -> list[str]:
    """What a shell is offered for the last word; nothing else may be written."""
    line = " ".join(["agent-core", *words])
    environment = {
        **os.environ,
        "_AGENT_CORE_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words)),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = subprocess.run([COMMAND], capture_output=True, text=True, env=environment)
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1] if shell == "fish" else done.stdout.split()


@pytest.fixture
def store(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    runs = SqliteRunStore(home / "runs.db")
    for run in RUNS:
        runs.save(RunEntry(run, "w", "1", "completed", f"{run[:4]}-01-{run[6:8]}T00:00:00Z", "."))
    runs.close()
    monkeypatch.setenv("AGENT_CORE_STORE", str(runs.path))
    return runs.path


@pytest.mark.sampled
@pytest.mark.parametrize("command", ["show", "resume", "decide", "verify", "replay", "diff", "cancel", "fork"])
@pytest.mark.usefixtures("store")
def test_runs_are_offered_newest_first(command: str) -> None:
    assert offered(command, "2") == [RUNS[1], RUNS[0]]


@pytest.mark.usefixtures("store")
def test_a_beginning_and_last_are_completed(write: Write) -> None:
    write("run.jsonl", "")
    assert offered("show", "20260102") == [RUNS[1]]
    assert offered("show", "la") == ["last"]
    assert offered("show", "run") == ["run.jsonl"]
    assert offered("diff", "last", "202601") == [RUNS[1], RUNS[0]]


@pytest.mark.exhaustive
def test_fixed_words_are_offered() -> None:
    assert offered("decide", "last", "e") == ["edit"]
    assert offered("tools", "") == ["show", "approve"]
    assert offered("runs", "--status", "failed,wai") == ["failed,waiting"]
    assert offered("run", "flow.yaml", "--log-level", "de") == ["debug"]
    assert offered("eval", "se") == ["seed-scenarios"]
    assert offered("init", "--example", "or") == ["orders"]


@pytest.mark.usefixtures("store")
def test_a_shell_that_shows_more_is_told_more() -> None:
    assert any(RUNS[0] in line and "w completed" in line for line in offered("show", "2", shell="fish"))


def test_the_named_store_is_looked_into(home: Path, store: Path) -> None:
    store.rename(home / "other.db")
    assert offered("show", "2") == []
    assert offered("show", "--store", "other.db", "2") == [RUNS[1], RUNS[0]]


@pytest.mark.exhaustive
def test_flows_are_files_that_may_be_definitions(write: Write) -> None:
    for name in ("flow.yaml", "flow.json", "flow.py", "agent-core.yaml", "flows/deep.yml", ".hidden.yaml"):
        write(name, "")
    assert offered("run", "f") == ["flow.json", "flow.yaml", "flows/"]
    assert offered("validate", "flows/") == ["flows/deep.yml"]
    assert offered("schema", "a") == []


def test_no_file_is_offered_whose_name_is_refused(write: Write) -> None:
    for name in ("flow.yaml", "流程一.yaml"):
        write(name, "")
    for name in (b"bad\xff.yaml", b"bad\xfe", b"two\nlines.yaml"):
        os.makedirs(name)
    assert offered("run", "") == ["flow.yaml", "流程一.yaml"]


def test_tools_are_offered_without_being_loaded(write: Write) -> None:
    write("loud.py", "raise SystemExit('loaded')")
    write("agent-core.yaml", "tools: ['loud.py:calls']")
    assert offered("tools", "show", "cal") == ["calculator", "calls"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("content", ["Dear diary, " * 99, ""], ids=["no database", "an empty file"])
def test_nothing_is_offered_where_something_is_wrong(write: Write, store: Path, content: str) -> None:
    store.write_text(content)
    assert offered("show", "2") == []
    write("agent-core.yaml", "{")
    assert offered("tools", "show", "calc") == []
    assert offered("run", "nowhere/x") == []
