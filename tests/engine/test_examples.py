"""The examples that `init --example` writes: their READMEs are followed, and print what stands there."""

import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest
from hatchling.builders.wheel import WheelBuilder

from engine_shim.cli.host.commands import Example
from support.command import Cli

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "engine_shim" / "examples"
NAMES = get_args(Example)
QUIET = "2>/dev/null"
BLOCK = re.compile(r"^```(\w+ ?\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
VARYING = {
    r"\d{8}-\d{6}-[0-9a-f]{8}": "RUN",
    r"(about )?[\d,]+ tokens": "TOKENS",
    r"\d+\.\d s\b": "SECONDS",
    r"\b[0-9a-f]{64}\b": "HEAD",
}
"""What is not the same twice."""


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def project(cli: Cli, home: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example, written into a directory of its own, which is the working directory."""
    assert cli("init", "--example", name, "mine").code == 0
    monkeypatch.chdir(home / "mine")
    return home / "mine"


def lasting(text: str) -> str:
    """What a person sees, without what is not the same twice."""
    for pattern, word in VARYING.items():
        text = re.sub(pattern, word, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def follow(cli: Cli, kind: str, text: str) -> str:
    """What a block of a README prints: commands, or a program."""
    if kind == "sh run":
        return "".join(run(cli, command) for command in text.splitlines())
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(cli: Cli, command: str) -> str:
    program, *words = shlex.split(command)
    assert program == "agent-core"
    quiet = words[-1] == QUIET
    ran = cli(*(words[:-1] if quiet else words))
    return ran.out if quiet else ran.err + ran.out


@pytest.mark.sampled
def test_the_readme_says_what_its_commands_print_and_each_run_is_proven(cli: Cli, project: Path) -> None:
    blocks = BLOCK.findall((project / "README.md").read_text("utf-8"))
    followed = [(kind, text, told) for (kind, text), (_, told) in pairwise(blocks) if kind.endswith(" run")]
    assert followed
    for kind, text, told in followed:
        assert lasting(follow(cli, kind, text)) == lasting(told), text
    recorded = cli("runs", "--json").json
    assert recorded
    for run in recorded:
        assert cli("verify", run["run_id"]).code == 0
        assert cli("replay", run["run_id"]).code == 0


@pytest.mark.sampled
def test_every_workflow_of_an_example_is_valid(cli: Cli, project: Path) -> None:
    files = sorted(project.rglob("*.yaml"))
    flows = [str(path) for path in files if "nodes:" in path.read_text("utf-8").splitlines()]
    assert flows
    assert [(flow, cli("validate", flow).code) for flow in flows] == [(flow, 0) for flow in flows]


def test_init_says_to_run_what_the_readme_runs_first(cli: Cli, name: str) -> None:
    told = cli("init", "--example", name, "desk", "--json").json
    assert told["next"][0] == "cd desk"
    assert told["next"][1].startswith("agent-core run ")
    assert {"README.md", "replies.json", ".gitignore"} <= set(told["files"])
    assert not [file for file in told["files"] if file.endswith(".py.txt")]


def test_the_names_are_those_of_the_directories() -> None:
    assert sorted(NAMES) == sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())


def test_their_page_has_a_row_for_each() -> None:
    first = (EXAMPLES / "README.md").read_text("utf-8")
    assert [name for name in NAMES if f"| `{name}` | " not in first] == []


def test_an_unknown_example_lists_those_there_are(cli: Cli, home: Path) -> None:
    ran = cli("init", "--example", "suport-desk")
    assert (ran.code, ran.out, list(home.iterdir())) == (2, "", [])
    assert [name for name in NAMES if f"'{name}'" not in ran.err] == []


def test_help_names_every_example(cli: Cli) -> None:
    told = cli("init", "--help").out
    assert [name for name in NAMES if name not in told] == []


def test_no_file_is_overwritten_by_an_example(cli: Cli, home: Path) -> None:
    (home / "README.md").write_text("mine")
    ran = cli("init", "--example", NAMES[0])
    assert (ran.code, "README.md: already there; name another DIR" in ran.err) == (2, True)
    assert [(path.name, path.read_text()) for path in home.iterdir()] == [("README.md", "mine")]


def test_the_examples_are_part_of_the_wheel() -> None:
    shipped = {Path(file.distribution_path) for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    files = {path.relative_to(ROOT) for path in EXAMPLES.rglob("*") if path.is_file()}
    assert files - shipped == set()
