"""What the protocol's own conformance suite says of the server, as far as it asks for no tools of its own."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.mcp_host import serving, url_in, write_host
from support.optional import needs

PROGRAM = os.environ.get("AGENT_CORE_TEST_MCP_CONFORMANCE", "")
pytestmark = [
    needs("mcp", "fastapi", "uvicorn"),
    pytest.mark.skipif(not PROGRAM, reason="AGENT_CORE_TEST_MCP_CONFORMANCE does not name the conformance suite"),
    pytest.mark.exhaustive,
    pytest.mark.xdist_group("mcp_conformance"),
    pytest.mark.timeout(120),
]
BOTH = ("tools-list", "server-sse-multiple-streams", "dns-rebinding-protection")
SCENARIOS = {
    "2025-11-25": ("server-initialize", "server-session-lifecycle", "ping", *BOTH),
    "2026-07-28": (
        *("server-stateless", "http-header-validation", "sep-2164-resource-not-found"),
        *("input-required-result-unsupported-methods", "input-required-result-ignore-extra-params"),
        *BOTH,
    ),
}
"""The scenarios by version of the protocol. The others call tools, resources and prompts that a server has for them."""
NEEDS_A_TOOL = "Not testable"
"""How a check begins that finds no tool made for it."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("host")
    write_host(home)
    with serving(home, "mcp", "--http", "--port", "0") as (line, _):
        yield url_in(line)


@pytest.mark.parametrize(("version", "scenario"), [(key, each) for key, names in SCENARIOS.items() for each in names])
def test_conformance_suite_finds_no_fault(url: str, tmp_path: Path, version: str, scenario: str) -> None:
    words = ["server", "--url", url, "--spec-version", version, "--scenario", scenario, "--output-dir", str(tmp_path)]
    path = f"{Path(PROGRAM).parent}{os.pathsep}{os.environ['PATH']}"  # a node that is installed beside it comes first
    done = subprocess.run(
        [PROGRAM, *words], capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": path}
    )
    (file,) = tmp_path.rglob("checks.json")
    checks: list[dict[str, Any]] = json.loads(file.read_text())
    faults = [
        (check["id"], check.get("errorMessage"))
        for check in checks
        if check["status"] == "FAILURE" and not str(check.get("errorMessage")).startswith(NEEDS_A_TOOL)
    ]
    assert not faults, done.stdout
    assert any(check["status"] == "SUCCESS" for check in checks), done.stdout
