"""agent-core dev: the server starts again when the host's files change, and waits where they cannot be used."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from engine_shim.cli.serving.dev import find_stamps, name_changes

TOOL = 'from utools import tool\n\n\n@tool(effect="read")\ndef look() -> str:\n    """{words}"""\n    return "x"\n'
COMMAND = Path(sys.executable).with_name("agent-core")
WAIT_S = 60.0


def test_changes_are_named_by_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "b.yaml").write_text("")
    (tmp_path / "flow.yaml").write_text("")
    before = find_stamps(tmp_path)
    assert sorted(path.name for path in before) == ["a.py", "b.yaml"]
    (tmp_path / "agents" / "b.yaml").unlink()
    (tmp_path / ".env").write_text("A=1")
    os.utime(tmp_path / "a.py", ns=(1, 1))
    assert name_changes(before, find_stamps(tmp_path)) == [".env", "a.py", "b.yaml"]
    assert name_changes(before, before) == []


def test_configuration_of_another_name_and_the_agents_that_it_names_are_watched(tmp_path: Path) -> None:
    config, agents = tmp_path / "host.yaml", tmp_path / "people"
    config.write_text("agents: people\n")
    agents.mkdir()
    (agents / "b.yaml").write_text("")
    (agents / "runs.db").write_text("")
    assert sorted(path.name for path in find_stamps(tmp_path, config)) == ["b.yaml", "host.yaml"]
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "c.yaml").write_text("")
    config.write_text("agents: people\ntenants: {acme: {agents: acme}, other: {}}\n")
    assert sorted(path.name for path in find_stamps(tmp_path, config)) == ["b.yaml", "c.yaml", "host.yaml"]
    config.write_text("agents: [")
    assert [path.name for path in find_stamps(tmp_path, config)] == ["host.yaml"]


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture
def server(tmp_path: Path, port: int) -> Iterator["subprocess.Popen[str]"]:
    (tmp_path / "agent-core.yaml").write_text("tools: [own.py]\nstore: runs.db\n")
    (tmp_path / "own.py").write_text(TOOL.format(words="First words."))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_CORE_")}
    with subprocess.Popen(
        [COMMAND, "dev", "--port", str(port)], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(WAIT_S)


def wait_until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.1)


@pytest.mark.exhaustive
def test_changed_tool_is_served_and_a_broken_one_waits_for_its_repair(
    server: "subprocess.Popen[str]", tmp_path: Path, port: int
) -> None:
    def description() -> str | None:
        try:
            tools = httpx2.get(f"http://127.0.0.1:{port}/tools").json()["tools"]
        except httpx2.TransportError:
            return None
        return next((each["description"] for each in tools if each["code"] == "look"), None)

    wait_until(lambda: description() == "First words.")
    (tmp_path / "own.py").write_text("this is no Python\n")
    wait_until(lambda: description() is None)
    (tmp_path / "own.py").write_text(TOOL.format(words="Other words."))
    wait_until(lambda: description() == "Other words.")
    server.send_signal(signal.SIGINT)
    assert server.wait(WAIT_S) == 0
    assert server.stderr is not None
    told = server.stderr.read()
    assert "own.py changed; the server starts again" in told
    assert "own.py" in told
    with pytest.raises(httpx2.TransportError):
        httpx2.get(f"http://127.0.0.1:{port}/health")
