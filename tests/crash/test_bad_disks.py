"""A disk that fails: the run ends with a word on what to do, and goes on from where it stood when that is done."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_core import JournalError, JsonlJournal, SqliteJournal, run_agent
from agent_core.journal.record import FORMAT, chain_row, genesis
from agent_core.journal.sqlite_layout import LAYOUT
from agent_core.journal.storage_errors import explain
from agent_core.models import ScriptedModel
from support.programs import json_lines
from utools import ToolRegistry

QUESTIONS = ["2", "4", "6", "8", "10"]
"""Each question that the run asks, by how many messages it has."""
ONE_STEP = ["asked", "answered", "decided", "asked"]
HELD = ["run_started", *ONE_STEP, "answered", *ONE_STEP]
"""What the journal holds when the disk fails in the second call of a tool."""


def attempts(suffix: str, fault: str) -> Any:
    (found,) = json_lines("crash.disk_victim", suffix, fault)
    return found


FORBIDDEN = "; let this user write to the file and its folder, or choose another file"
LOCKED = "another process has kept it locked for 0.5 s; resume the run when that is done"
TROUBLES = {
    (".jsonl", "full"): "cannot write to journal {path}: No space left on device; make room on the disk, then resume",
    (".db", "full"): "cannot write to journal {path}: disk I/O error; see whether the disk is full or failing, then",
    (".jsonl", "locked"): "cannot write to journal {path}: " + LOCKED,
    (".db", "locked"): "cannot write to journal {path}: " + LOCKED,
    (".jsonl", "read-only"): "cannot write to journal {path}: Permission denied" + FORBIDDEN,
    (".db", "read-only"): "cannot write to journal {path}: attempt to write a readonly database" + FORBIDDEN,
    (".jsonl", "a folder"): "cannot read journal {path}: Is a directory; choose another file",
    (".db", "a folder"): "cannot read journal {path}: it is a directory; choose another file",
    (".jsonl", "something else"): "line 1 of {path} is no journal line: verify it, or choose another file",
    (".db", "something else"): "cannot read journal {path}: file is not a database; choose another file",
    (".jsonl", "no folder"): "cannot write to journal {path}: there is no folder ",
    (".db", "no folder"): "cannot write to journal {path}: there is no folder ",
}


OFTEN = [(".jsonl", "full"), (".db", "full"), (".db", "locked"), (".jsonl", "read-only"), (".db", "something else")]
"""The troubles that the fast tests try; the others are in the exhaustive ones."""


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("suffix", "fault"),
    [each if each in OFTEN else pytest.param(*each, marks=pytest.mark.exhaustive) for each in TROUBLES],
)
def test_a_run_whose_disk_fails_says_what_to_do_and_goes_on_when_that_is_done(suffix: str, fault: str) -> None:
    told = attempts(suffix, fault)
    expected = "JournalError: " + TROUBLES[suffix, fault].replace("{path}", told["path"])
    assert told["troubled"].startswith(expected)
    assert (told["held"], told["asked"]) == (HELD, QUESTIONS[:2])
    assert (told["again"], told["verified"], told["identical"]) == ("final", True, True)
    assert told["asked_in_all"] == QUESTIONS, "an answered question was asked again"


def test_a_line_that_its_writer_did_not_end_is_no_trouble() -> None:
    told = attempts(".jsonl", "torn")
    assert (told["troubled"], told["again"], told["verified"], told["identical"]) == ("final", "final", True, True)
    assert told["asked_in_all"] == QUESTIONS


# ── files that another agent_core wrote ──────────────────────────────────────────────────────────

FILES = {"jsonl": JsonlJournal, "sqlite": SqliteJournal}


async def run(journal: Any, model: ScriptedModel) -> Any:
    config = {"model": "m", "max_steps": 2, "allowed_tools": [], "prompt": "Go."}
    return await run_agent(config, registry=ToolRegistry([]), model=model, journal=journal, run_id="r")


def never(messages: Any) -> str:
    raise AssertionError("the model was asked")


@pytest.mark.parametrize("backend", FILES)
async def test_a_run_in_a_newer_format_is_left_as_it_is(backend: str, tmp_path: Path) -> None:
    newer = {"kind": "run_started", "loop": "agent", "format": FORMAT + 1, "thoughts": "in a way that nobody knows yet"}
    rows = [chain_row("agent", 0, genesis("r", "agent"), newer)]
    with closing(FILES[backend](tmp_path / "journal")) as journal:
        journal.append("r", rows)
        with pytest.raises(JournalError, match=f"run 'r' cannot be read: it has format {FORMAT + 1}.*use a newer vers"):
            await run(journal, ScriptedModel(never))
        assert journal.load("r") == {"agent": rows}


async def test_a_database_of_a_newer_layout_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with closing(SqliteJournal(path)) as journal:
        await run(journal, ScriptedModel(['{"type":"final","answer":"done"}']))
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {LAYOUT.version + 1}")
    content = path.read_bytes()
    with closing(SqliteJournal(path)) as journal:
        newer = f"has layout {LAYOUT.version + 1}, this agent_core knows {LAYOUT.version}: use a newer"
        with pytest.raises(JournalError, match=newer):
            await run(journal, ScriptedModel(never))
        with pytest.raises(JournalError, match="use a newer version"):
            journal.delete("r")
    assert path.read_bytes() == content


def test_a_database_that_may_not_grow_says_that_the_disk_is_full(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (x)")
        db.execute("PRAGMA max_page_count = 3")
        with pytest.raises(sqlite3.OperationalError) as full:
            db.execute("INSERT INTO t VALUES (?)", ("x" * 100_000,))
    assert explain(path, full.value) == "database or disk is full; make room on the disk, then resume the run"
