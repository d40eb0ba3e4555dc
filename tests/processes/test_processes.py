"""Runs in processes that others make: forked, threaded, served, in a notebook, without a home, from a zip file."""

import asyncio
import os
import socket
import sys
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from support.by_hand import final
from support.loopback import Loopback, chat, serving
from support.optional import needs

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
RIGHT = "done 12"
NOTEBOOK = (
    "from asking import *\nfrom agent_core import run_agent",
    "print((await run_agent(at_endpoint(), registry=[])).final_answer)",
    "print(ask())",
    "print((await run_agent(with_tool(), registry=[stock], model=ScriptedModel(REPLIES))).final_answer)",
)
"""The cells of a notebook, whose kernel has an event loop that runs."""


@pytest.fixture
async def endpoint() -> AsyncIterator[Loopback]:
    async with serving(chat(final())) as server:
        yield server


def environment(endpoint: Loopback, *paths: Path, **more: str) -> dict[str, str]:
    path = os.pathsep.join(map(str, [*paths, PROGRAMS]))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("AGENT_CORE_", "OPENAI_"))}
    return {**inherited, "PYTHONPATH": path, "ENDPOINT": endpoint.url, "OPENAI_API_KEY": "key-of-a-test", **more}


async def run(*command: str | Path, env: dict[str, str], cwd: Path, stderr: int = asyncio.subprocess.STDOUT) -> str:
    """What a program writes, with what it writes on stderr unless that goes elsewhere; it must end with 0."""
    process = await asyncio.create_subprocess_exec(
        *command, env=env, cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=stderr
    )
    out, _ = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, out.decode()
    return out.decode()


async def test_a_process_that_has_run_an_agent_may_fork(endpoint: Loopback, tmp_path: Path) -> None:
    forks = ["-W", "ignore:This process"]  # from Python 3.12 on it warns of any thread that is there
    out = await run(sys.executable, *forks, PROGRAMS / "forking.py", env=environment(endpoint), cwd=tmp_path)
    assert out.splitlines() == [RIGHT] * 6


@pytest.mark.exhaustive
async def test_threads_and_spawned_processes_run_side_by_side(endpoint: Loopback, tmp_path: Path) -> None:
    out = await run(sys.executable, PROGRAMS / "in_pools.py", env=environment(endpoint), cwd=tmp_path)
    assert out.splitlines() == [RIGHT] * 36


async def test_no_home_and_no_place_to_write_are_needed(endpoint: Loopback, tmp_path: Path) -> None:
    env = {name: value for name, value in environment(endpoint).items() if not name.startswith(("HOME", "XDG_"))}
    tmp_path.chmod(0o555)
    out = await run(sys.executable, PROGRAMS / "without_home.py", env=env, cwd=tmp_path)
    assert out.splitlines() == [RIGHT] * 2


@pytest.mark.exhaustive
@needs("jinja2")
async def test_the_packages_run_from_a_zip_file(endpoint: Loopback, tmp_path: Path) -> None:
    archive = tmp_path / "packages.zip"
    with zipfile.ZipFile(archive, "w") as made:
        for package in ("utools", "agent_core", "engine_shim"):
            for path in sorted((ROOT / package).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    made.write(path, path.relative_to(ROOT))
    out = await run(sys.executable, PROGRAMS / "from_a_zip.py", env=environment(endpoint, archive), cwd=tmp_path)
    assert out.splitlines() == [RIGHT, "completed {'a': 12, 'result': 12}", "True 12 pieces"]


@pytest.mark.exhaustive
@needs("gunicorn")
async def test_an_application_under_gunicorn_runs_agents_in_each_worker(endpoint: Loopback, tmp_path: Path) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    options = ["--preload", "--workers", "2", "--threads", "4", "--bind", f"127.0.0.1:{port}", "--log-level", "error"]
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gunicorn", *options, "served:application", env=environment(endpoint), cwd=tmp_path
    )
    try:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            for _ in range(600):
                try:
                    assert (await client.get("/")).text == RIGHT
                    break
                except httpx2.ConnectError:
                    assert server.returncode is None
                    await asyncio.sleep(0.1)
            replies = await asyncio.gather(*(client.get("/") for _ in range(100)))
    finally:
        server.terminate()
        await server.wait()
    assert [each.text for each in replies] == [RIGHT] * 100


@pytest.mark.exhaustive
@needs("nbclient", "ipykernel")
async def test_the_cells_of_a_notebook_await_a_run_or_call_it(endpoint: Loopback, tmp_path: Path) -> None:
    program = tmp_path / "notebook.py"
    cells = ", ".join(f"new_code_cell({cell!r})" for cell in NOTEBOOK)
    program.write_text(
        "from nbclient import NotebookClient\n"
        "from nbformat.v4 import new_code_cell, new_notebook\n"
        f"notebook = new_notebook(cells=[{cells}])\n"
        "NotebookClient(notebook, timeout=100).execute()\n"
        "print(*(each.text for cell in notebook.cells for each in cell.outputs), sep='', end='')\n"
    )
    env = environment(endpoint, IPYTHONDIR=str(tmp_path), JUPYTER_RUNTIME_DIR=str(tmp_path), JUPYTER_PLATFORM_DIRS="1")
    out = await run(
        sys.executable, program, env=env, cwd=tmp_path, stderr=asyncio.subprocess.DEVNULL
    )  # the kernel's own
    assert out.splitlines() == ["done", RIGHT, "12"]
