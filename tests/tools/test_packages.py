"""A package of somebody else offers its tools to this host: installed by pip, offline, and found by another process."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parents[2] / "fixtures" / "packages" / "greetings"
REPLIES = [
    '{"type":"action","tool":"greetings.hello","args":{"name":"Ada","language":"it"}}',
    '{"type":"action","tool":"greetings.bye","args":{"name":"Ada"}}',
    '{"type":"final","answer":"Ciao Ada!"}',
]


def installed(source: Path, target: Path) -> Path:
    """The package in a directory of its own."""
    words = ["install", "-q", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(target), str(source)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True, capture_output=True)
    return target


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("source") / "greetings"
    shutil.copytree(PACKAGE, source)  # a build may write beside its sources
    return installed(source, tmp_path_factory.mktemp("packages"))


def command(packages: Path, home: Path, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
    quiet = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "AGENT_CORE_"))}
    return subprocess.run(
        [Path(sys.executable).with_name("agent-core"), *words],
        cwd=home,
        env={**quiet, "PYTHONPATH": str(packages), "XDG_DATA_HOME": str(home), **more},
        capture_output=True,
        text=True,
    )


def codes(done: "subprocess.CompletedProcess[str]") -> set[str]:
    assert done.returncode == 0, done.stderr
    return {each["code"] for each in json.loads(done.stdout)}


@pytest.mark.exhaustive
def test_tools_of_an_installed_package_are_there(packages: Path, tmp_path: Path) -> None:
    assert {"greetings.hello", "greetings.bye"} <= codes(command(packages, tmp_path, "tools", "--json"))
    assert "greetings.hello" not in codes(command(tmp_path, tmp_path, "tools", "--json"))


@pytest.mark.exhaustive
def test_an_agent_calls_them(packages: Path, tmp_path: Path) -> None:
    (tmp_path / "replies.json").write_text(json.dumps(REPLIES))
    node: dict[str, Any] = {"model": "scripted:replies.json", "max_steps": 5, "allowed_tools": ["greetings.*"]}
    flow = {"id": "f", "nodes": [{"tool": "agent_core", "config": {**node, "prompt": "Greet Ada, and say goodbye."}}]}
    (tmp_path / "flow.json").write_text(json.dumps(flow))
    done = command(packages, tmp_path, "run", "flow.json", "--json", GREETINGS_BYE="Farewell")
    assert done.returncode == 0, done.stderr
    outputs = json.loads(done.stdout)["outputs"]["agent_core"]
    assert [step["observation"] for step in outputs["trace"][:2]] == ["Ciao Ada!", "Farewell Ada!"]


@pytest.mark.exhaustive
def test_a_package_that_cannot_be_loaded_is_named(packages: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(packages, broken)
    (broken / "greetings" / "farewell.py").write_text("import no_such_module\n")
    done = command(broken, tmp_path, "tools")
    assert done.returncode == 3
    assert "entry point farewell of agent-core-greetings: cannot be loaded: ModuleNotFoundError" in done.stderr
