"""The README's commands and examples run, as they stand there."""

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
BLOCK = re.compile(r"^```(\w+)(?: (run|file=\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = BLOCK.findall(README)
COMMANDS = [text for language, mark, text in BLOCKS if (language, mark) == ("sh", "run")]
GRAPHS = BLOCK.findall((ROOT / "engine_shim" / "README.md").read_text("utf-8"))
EXAMPLES = [
    (commands, told)
    for (language, mark, commands), (_, _, told) in pairwise(GRAPHS)
    if (language, mark) == ("sh", "run")
]
IDS = [commands.partition(".yaml")[0].rpartition(" ")[2] for commands, _ in EXAMPLES]


def _environment(home: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    quiet = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "AGENT_CORE_"))}
    return {**quiet, "PATH": path, "XDG_DATA_HOME": str(home)}


def _ran(commands: str, blocks: list[tuple[str, str, str]], home: Path) -> str:
    """What commands print in a directory with the files of these blocks; they have to succeed."""
    for _, mark, text in blocks:
        if mark.startswith("file="):
            (home / mark.removeprefix("file=")).write_text(text)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=home,
        env=_environment(home),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_own_tool_runs_in_a_workflow_as_the_readme_says(tmp_path: Path) -> None:
    own_tool, *_ = COMMANDS
    printed = _ran(own_tool, BLOCKS, tmp_path)
    assert "There are 12 pieces of A-17." in printed
    assert '"status": "completed"' in printed


def test_runs_are_looked_at_as_the_readme_says(tmp_path: Path) -> None:
    printed = _ran("".join(COMMANDS), BLOCKS, tmp_path)
    assert "\nok: " in printed
    assert printed.splitlines()[-1].endswith("  stock_desk 1")


def test_each_kind_of_graph_has_its_example() -> None:
    assert len(EXAMPLES) == 11


@pytest.mark.parametrize(("commands", "told"), EXAMPLES, ids=IDS)
def test_examples_of_graphs_say_what_the_readme_says(commands: str, told: str, tmp_path: Path) -> None:
    printed = _ran(commands, GRAPHS, tmp_path).splitlines()
    assert [line for line in told.splitlines() if line not in printed] == []


def test_the_program_of_the_readme_prints_what_it_should(tmp_path: Path) -> None:
    (program,) = [text for language, mark, text in BLOCKS if (language, mark) == ("python", "run")]
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["final A spring in the desert.", "True True"]


def test_the_demo_proves_itself_without_a_key(tmp_path: Path) -> None:
    done = subprocess.run(
        ["agent-core", "demo"], env=_environment(tmp_path), cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "896.35 euros" in done.stdout
    assert "verified: ok" in done.stdout
    assert "replayed: identical" in done.stdout


def test_the_two_commands_of_the_readme_are_what_ci_runs() -> None:
    commands = re.findall(r"^python3 -m venv .+$", README, re.MULTILINE)
    assert [command.rsplit("/", 1)[-1] for command in commands] == ["agent-core demo", "pytest"]
