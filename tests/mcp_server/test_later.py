"""The endpoint of MCP that a server opens a little after its start: the import of its library holds nobody up."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine_shim.host.config import read_host_config
from engine_shim.service.service import Service
from support.optional import needs
from support.programs import environment

pytestmark = needs("mcp", "fastapi")
PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from engine_shim.api import create_app
from engine_shim.host.config import read_host_config
from engine_shim.mcp_server import later
from engine_shim.mcp_server.mount import mount
from engine_shim.service.service import Service

async def ask(app, method, path):
    said, sent = [], iter([{"type": "http.request", "body": b"{}", "more_body": False}])
    accepted = b"application/json, text/event-stream"
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"accept", accepted)]
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
             "raw_path": path.encode(), "query_string": b"", "root_path": "", "scheme": "http", "headers": headers,
             "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1)}
    async def receive():
        for message in sent:
            return message
        return await asyncio.get_running_loop().create_future()
    async def send(message):
        said.append(message.get("status"))
    await app(scope, receive, send)
    return said[0]

async def main(folder):
    (folder / "agent-core.yaml").write_text("{}")
    service = Service.of_host(read_host_config(folder / "agent-core.yaml"), folder / "runs.db", is_open=True)
    app = create_app(service)
    later.EARLIEST_S = 60.0
    mount(app, later.LaterEndpoint(service))
    told = {}
    async with app.router.lifespan_context(app):
        told["health"] = await ask(app, "GET", "/health")
        told["imported before"] = "mcp" in sys.modules
        told["mcp"] = await ask(app, "POST", "/mcp")
        told["imported after"] = "mcp" in sys.modules
    print(json.dumps(told))

asyncio.run(main(Path(sys.argv[1])))
"""


def test_library_is_imported_for_whoever_asks_first(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told == {"health": 200, "imported before": False, "mcp": 400, "imported after": True}


@pytest.fixture
def service(tmp_path: Path) -> Service:
    (tmp_path / "agent-core.yaml").write_text("{}")
    return Service.of_host(read_host_config(tmp_path / "agent-core.yaml"), tmp_path / "runs.db", is_open=True)


async def answer_of(endpoint: Any) -> list[Any]:
    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message.get("status") or message.get("body"))

    await endpoint({"type": "http", "method": "POST", "path": "/mcp", "headers": []}, None, send)
    return said


async def test_server_that_ends_at_once_imports_nothing(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine_shim.mcp_server import later

    imported: list[str] = []
    monkeypatch.setattr(later, "import_module", imported.append)
    endpoint = later.LaterEndpoint(service)
    async with endpoint.running():
        await asyncio.sleep(0)
    assert imported == []


@pytest.mark.parametrize("error", [ImportError("it is broken"), TypeError("it is broken")])
async def test_library_that_cannot_be_imported_is_told(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    from starlette.exceptions import HTTPException

    from engine_shim.mcp_server import later

    def refuse(name: str) -> Any:
        raise error

    monkeypatch.setattr(later, "import_module", refuse)
    endpoint = later.LaterEndpoint(service)
    async with endpoint.running():
        with pytest.raises(HTTPException) as raised:
            await asyncio.wait_for(answer_of(endpoint), 5)
    assert raised.value.status_code == 503
    assert raised.value.detail == f"MCP cannot be served: {type(error).__name__}: it is broken"
    assert "MCP is not served" in caplog.text


async def test_library_that_does_not_begin_to_serve_is_told(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    from starlette.exceptions import HTTPException

    from engine_shim.mcp_server import later

    class Endpoint:
        def __init__(self, service: Service) -> None:
            pass

        def running(self) -> Any:
            raise TypeError("it is broken")

    monkeypatch.setattr(later, "import_module", lambda name: SimpleNamespace(McpEndpoint=Endpoint))
    endpoint = later.LaterEndpoint(service)
    async with endpoint.running():
        with pytest.raises(HTTPException, match="MCP cannot be served: TypeError: it is broken"):
            await asyncio.wait_for(answer_of(endpoint), 5)


async def test_library_is_imported_after_a_while(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine_shim.mcp_server import later

    monkeypatch.setattr(later, "EARLIEST_S", 0.01)
    endpoint = later.LaterEndpoint(service)
    async with endpoint.running():
        assert endpoint._endpoint is not None
        await asyncio.wait_for(asyncio.shield(endpoint._endpoint), 60)
