"""The command init: what it writes runs at once, by exactly the commands that it prints."""

import json
import os
import resource
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from support.by_hand import action, final
from support.command import Cli, Ran
from utools.document import parse_document


def printed_commands(ran: Ran) -> list[str]:
    return [line.strip() for line in ran.out.splitlines() if line.startswith("  ")]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "directory",
    [pytest.param([], marks=pytest.mark.exhaustive), ["my desk"]],
    ids=["here", "a new directory"],
)
def test_the_commands_that_it_prints_work_as_typed(cli: Cli, home: Path, directory: list[str]) -> None:
    ran = cli("init", *directory)
    assert ran.code == 0
    commands = printed_commands(ran)
    assert [command.split()[0] for command in commands][-3:] == ["agent-core"] * 3
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    script = "\n".join(["set -e", *commands])
    done = subprocess.run(["bash", "-c", script], env={**quiet, "PATH": path}, capture_output=True, text=True, cwd=home)
    assert done.returncode == 0, done
    assert "answer: Order 17, a lamp, was sent on Monday." in done.stdout
    assert "2 cases, none failed" in done.stdout


def test_another_model_drives_it(cli: Cli, home: Path) -> None:
    cli("init")
    (home / "other.json").write_text(json.dumps([action("find_order", number="18"), final("In the workshop.")]))
    ran = cli("run", "flow.yaml", "--input", "question=Where is order 18?", "--model", "scripted:other.json", "--json")
    assert ran.json["outputs"]["answer"] == "In the workshop."
    assert "a chair" in ran.json["outputs"]["desk"]["trace"][0]["observation"]


PATTERNS = (files("engine_shim.cli.host") / "init_files" / "flow.yaml").read_text().partition("# ── Patterns")[2]
UNCOMMENTED = "\n".join(line.removeprefix("# ") for line in PATTERNS.splitlines()[1:])
EACH = parse_document(UNCOMMENTED, Path("patterns.yaml")).data


def test_there_are_ten_patterns_to_copy() -> None:
    assert len(EACH) == 10


@pytest.mark.sampled
@pytest.mark.parametrize("name", EACH)
def test_pattern_that_is_copied_is_valid(cli: Cli, home: Path, name: str) -> None:
    cli("init")
    inputs = {"properties": {"question": {"type": "string"}}, "required": ["question"]}
    (home / "copy.json").write_text(json.dumps({"id": "copy", "inputs": inputs, **EACH[name]}))
    ran = cli("validate", "copy.json")
    assert (ran.code, ran.out, ran.err) == (0, "ok\n", "")


def test_what_it_writes_is_valid_without_a_doubt(cli: Cli) -> None:
    cli("init")
    ran = cli("validate", "flow.yaml", "--json")
    assert (ran.code, ran.err) == (0, "")


def test_nothing_is_overwritten(cli: Cli, home: Path) -> None:
    (home / "flow.yaml").write_text("mine")
    ran = cli("init")
    assert (ran.code, ran.out) == (2, "")
    assert "flow.yaml: already there; name another DIR" in ran.err
    assert [(path.name, path.read_text()) for path in home.iterdir()] == [("flow.yaml", "mine")]


def test_keys_and_stores_are_kept_out_of_git(cli: Cli, home: Path) -> None:
    cli("init")
    assert {".env", "*.db", "__pycache__/"} <= set((home / ".gitignore").read_text().splitlines())


def test_a_gitignore_that_is_there_stays(cli: Cli, home: Path) -> None:
    (home / ".gitignore").write_text("mine")
    ran = cli("init")
    assert (ran.code, (home / ".gitignore").read_text()) == (0, "mine")
    assert ".gitignore" not in ran.out


def test_a_directory_that_cannot_be_made_is_told(cli: Cli, home: Path) -> None:
    (home / "file").write_text("")
    ran = cli("init", "file/below")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "cannot be written: Not a directory" in ran.err


@pytest.mark.parametrize(
    "words", [["init"], ["init", "new/desk"], ["init", "--example", "orders", "new"]], ids=" ".join
)
def test_a_disk_without_room_leaves_nothing_behind(cli: Cli, home: Path, words: list[str]) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, before[1]))
    try:
        ran = cli(*words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (ran.code, "cannot be written: File too large" in ran.err) == (2, True)
    assert list(home.iterdir()) == []


def test_a_program_is_told_in_one_document(cli: Cli) -> None:
    told = cli("init", "desk", "--json").json
    assert told["files"] == [
        *(".gitignore", "agent-core.yaml", "flow.test.yaml", "flow.yaml", "orders.py", "replies.json"),
    ]
    assert told["next"][0] == "cd desk"
