"""The host over each transport, and in each generation of the protocol."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.mcp_host import McpHost, serving, url_in, write_host

WAYS = [
    pytest.param(("http", "auto"), id="http-2026"),
    pytest.param(("http", "legacy"), id="http-2025"),
    pytest.param(("stdio", "auto"), id="stdio-2026", marks=pytest.mark.exhaustive),
    pytest.param(("stdio", "legacy"), id="stdio-2025", marks=pytest.mark.long),
]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpHost]:
    """A server over HTTP that the tests of a module share."""
    home = tmp_path_factory.mktemp("host")
    write_host(home)
    with serving(home, "mcp", "--http", "--port", "0") as (line, _):
        yield McpHost(home, url=url_in(line))


@pytest.fixture(params=WAYS)
def host(request: pytest.FixtureRequest, tmp_path: Path) -> McpHost:
    """A host to connect to."""
    transport, mode = request.param
    if transport == "http":
        shared: McpHost = request.getfixturevalue("endpoint")
        for file in [*shared.home.glob("*.begun"), *shared.home.glob("*.go"), *shared.home.glob("orders")]:
            file.unlink()
        return McpHost(shared.home, mode, shared.url)
    write_host(tmp_path)
    return McpHost(tmp_path, mode)
