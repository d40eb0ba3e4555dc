"""What is built and installed: a wheel that carries all that runs, in an empty environment, far from this checkout."""

import json
import os
import socket
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import httpx2
import pytest

from support.optional import needs

pytestmark = [
    pytest.mark.exhaustive,
    needs("build"),
    pytest.mark.xdist_group("packaging"),
    pytest.mark.timeout(600),
]
ROOT = Path(__file__).parents[1]
PACKAGES = ("utools", "agent_core", "engine_shim")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sdist, and the wheel that is built from it."""
    out = tmp_path_factory.mktemp("built")
    run([sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)], ROOT, dict(os.environ))
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has the wheel with its extra `web`, and nothing else of ours."""
    place = tmp_path_factory.mktemp("environment")
    environment = clean_environment(place)
    run([sys.executable, "-m", "venv", str(place / "venv")], place, environment)
    programs = place / "venv" / "bin"
    run([str(programs / "pip"), "install", "-q", f"agent-core[web] @ {wheel.as_uri()}"], place, environment)
    return programs


def clean_environment(home: Path) -> dict[str, str]:
    """This environment, without what names this checkout or a host."""
    ours = ("AGENT_CORE_", "OPENAI_", "PYTHON", "COVERAGE", "REDIS_URL", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "XDG_DATA_HOME": str(home / "data"), "HOME": str(home), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def run(command: list[str], directory: Path, environment: dict[str, str]) -> str:
    """What a command prints; it has to succeed."""
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def files_of(package: str) -> Iterator[str]:
    """The files of a package in this checkout, but what Python and others put there."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", package],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    yield from listed.stdout.splitlines()


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return BytesParser().parsebytes(archive.read(name))


def test_wheel_carries_every_file_of_the_packages_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == {name for package in PACKAGES for name in files_of(package)}
    kinds = ("prompts/en/system.md", "py.typed", "demo_files/workflow.yaml", "init_files/gitignore.txt", "prices.json")
    assert [kind for kind in kinds if not any(name.endswith(kind) for name in names)] == []
    assert any(name.startswith("engine_shim/examples/support-desk/") for name in names)


def test_wheel_has_the_licence_and_complete_metadata(wheel: Path) -> None:
    metadata = metadata_of(wheel)
    assert (metadata["Name"], metadata["Version"]) == (PROJECT["name"], PROJECT["version"])
    assert (metadata["License-Expression"], metadata["Requires-Python"]) == ("MIT AND Apache-2.0 AND ISC", ">=3.11")
    assert metadata["Summary"] == PROJECT["description"]
    assert "Typing :: Typed" in (metadata.get_all("Classifier") or [])
    assert metadata["Keywords"]
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert set(metadata.get_all("Provides-Extra") or []) == set(PROJECT["optional-dependencies"])
    with zipfile.ZipFile(wheel) as archive:
        licences = {
            each.partition("/licenses/")[2]: archive.read(each) for each in archive.namelist() if "/licenses/" in each
        }
    assert licences == {each: (ROOT / each).read_bytes() for each in PROJECT["license-files"]}


def test_sdist_has_the_packages_with_their_tests_and_nothing_of_a_workplace(built: Path) -> None:
    (found,) = built.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "agent_core/LICENSE", "tests/test_packaging.py"} <= names
    assert {name.partition("/")[0] for name in names} <= {
        *PACKAGES,
        *("tests", "fixtures", "README.md", "pyproject.toml", "PKG-INFO", ".gitignore"),
    }


def test_installed_demo_init_and_validate_work(installed: Path, tmp_path: Path) -> None:
    program, environment = str(installed / "agent-core"), clean_environment(tmp_path)
    assert run([program, "--version"], tmp_path, environment) == f"agent-core {PROJECT['version']}\n"
    told = json.loads(run([program, "demo", "--json"], tmp_path, environment))
    assert (told["status"], told["verified"], told["replay_identical"]) == ("completed", True, True)
    run([program, "init", "desk"], tmp_path, environment)
    assert run([program, "validate", "flow.yaml"], tmp_path / "desk", environment) == "ok\n"
    run([program, "run", "flow.yaml", "--input", "question=Where is order 17?"], tmp_path / "desk", environment)
    run([program, "init", "--example", "support-desk", "support"], tmp_path, environment)
    assert "$schema" in json.loads(run([program, "schema"], tmp_path, environment))
    assert "extra web" in run([program, "doctor"], tmp_path, environment)
    origin = run(
        [str(installed / "python"), "-c", "import engine_shim; print(engine_shim.__file__)"], tmp_path, environment
    )
    assert origin.startswith(str(installed.parent))


def test_installed_server_serves_without_another_step(installed: Path, tmp_path: Path) -> None:
    environment = clean_environment(tmp_path)
    write_workflow(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(installed / "agent-core"), "serve", "--port", str(port)]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as server:
        try:
            done = ask(f"http://127.0.0.1:{port}", server)
            server.terminate()
            _, words = server.communicate(timeout=60)
        finally:
            server.kill()
    assert (done["status"], done["outputs"]["echo"]) == ("completed", "hello Ann"), words
    assert server.returncode == 0, words


def test_windows_is_told_where_it_runs() -> None:
    code = "import sys; sys.platform = 'win32'; import agent_core; agent_core.run_agent"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ran.stderr.splitlines()[-1].startswith("ImportError: agent_core locks its files as POSIX systems do: ")


def write_workflow(folder: Path) -> None:
    inputs = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    nodes = [{"tool": "echo", "config": {"text": "hello {{external.name}}"}}]
    (folder / "workflows").mkdir()
    (folder / "workflows" / "hello.json").write_text(json.dumps({"id": "hello", "inputs": inputs, "nodes": nodes}))
    (folder / "agent-core.yaml").write_text("workflows: workflows\n")


def ask(url: str, server: "subprocess.Popen[str]") -> Any:
    """The run that a server answers with, once it listens."""
    deadline = time.monotonic() + 60
    while True:
        try:
            answer = httpx2.post(f"{url}/workflows/hello/runs", json={"external": {"name": "Ann"}}, timeout=30)
            return answer.json()
        except httpx2.ConnectError:
            assert server.poll() is None, server.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.1)
