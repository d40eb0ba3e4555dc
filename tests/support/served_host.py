"""A host that is served over HTTP on loopback: its files, the server in a thread, and a client."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import uvicorn

from engine_shim.api.app import create_app
from engine_shim.host.config import read_host_config
from engine_shim.service.service import Service
from engine_shim.telemetry.telemetry import Telemetry
from engine_shim.web.decision_page import write_decision_page
from engine_shim.web.site import serve_page
from support.by_hand import action, final
from utools.databases.store_address import StoreAddress

TOOLS = '''
import asyncio
from pathlib import Path

from utools import tool

HERE = Path(__file__).parent


@tool(effect="read")
def stock(article: str) -> dict:
    """How many pieces of an article there are."""
    return {"article": article, "pieces": 12}


@tool(effect="write")
def order(article: str, pieces: int) -> str:
    """Order pieces of an article."""
    with (HERE / "orders.txt").open("a") as book:
        book.write(f"{article} {pieces}\\n")
    return f"ordered {pieces} of {article}"


@tool(effect="read")
async def linger(until: str) -> str:
    """Wait until a file exists."""
    (HERE / f"{until}.begun").touch()
    while not (HERE / until).exists():
        await asyncio.sleep(0.01)
    return until


TOOLS = [stock, order, linger]
'''
INPUTS = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
AGENT = {
    "model": "scripted:desk-replies.json",
    "max_steps": 5,
    "allowed_tools": ["stock"],
    "prompt": "{{external.message}}",
}
WORKFLOWS: dict[str, Any] = {
    "desk.json": {
        "id": "desk",
        "description": "Answers questions about the stock.",
        "inputs": INPUTS,
        "nodes": [{"tool": "agent_core", "config": AGENT}],
    },
    "desk-2.json": {
        "id": "desk",
        "version": "2",
        "inputs": INPUTS,
        "nodes": [{"tool": "agent_core", "config": AGENT}, {"id": "end", "tool": "echo", "config": {"text": "two"}}],
        "edges": [{"from": "agent_core", "to": "end"}],
    },
    "buy.json": {
        "id": "buy",
        "inputs": {"type": "object", "properties": {"article": {"type": "string"}}, "required": ["article"]},
        "nodes": [
            {
                "id": "order",
                "tool": "order",
                "config": {"article": "{{external.article}}", "pieces": 3},
                "approval": "always",
            }
        ],
    },
    "wait.json": {
        "id": "wait",
        "inputs": {"type": "object", "properties": {"until": {"type": "string"}}, "required": ["until"]},
        "nodes": [
            {"id": "linger", "tool": "linger", "config": {"until": "{{external.until}}"}, "timeout": 60},
            {"id": "after", "tool": "echo", "config": {"text": "{{nodes.linger}}"}},
        ],
    },
    "count.json": {
        "id": "count",
        "inputs": {"type": "object", "properties": {"sum": {"type": "string"}}, "required": ["sum"]},
        "nodes": [{"tool": "calculator", "config": {"expression": "{{external.sum}}"}}],
    },
    "desk-replies.json": [action("stock", article="A-17"), final("There are 12.")],
}
AGENTS = {
    "clerk.yaml": """
name: clerk
description: Knows the stock.
system_prompt: You are the clerk of a shop.
model: scripted:clerk-replies.json
skill_policy: {allow: [stock]}
runtime_policy: {max_steps: 4}
""",
    "buyer.yaml": """
name: buyer
description: Orders what is asked for.
system_prompt: You order.
model: scripted:buyer-replies.json
skill_policy: {allow: [order]}
runtime_policy: {max_steps: 4, approval: on_write}
""",
    "clerk-replies.json": json.dumps([action("stock", article="A-17"), final("There are 12.")]),
    "buyer-replies.json": json.dumps([action("order", article="A-17", pieces=3), final("It is ordered.")]),
}
HOST = {
    "tools": ["shop.py:TOOLS"],
    "execute_tools": ["stock", "order", "linger"],
    "env": ["HOME"],
    "model_files": ["workflows/*.json"],
}


def write_host(folder: Path, **keys: Any) -> Path:
    """Write a host's files; gives its configuration."""
    for name, content in WORKFLOWS.items():
        _write(folder / "workflows" / name, json.dumps(content))
    for name, text in AGENTS.items():
        _write(folder / ("agents" if name.endswith(".yaml") else ".") / name, text)
    _write(folder / "shop.py", TOOLS)
    return _write(folder / "agent-core.yaml", json.dumps({**HOST, **keys}))


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@dataclass
class Asked:
    """A host that serves, as its client sees it: its files, where it is, and what it is asked."""

    folder: Path
    url: str
    client: httpx2.Client

    def submit(self, workflow: str, *, wait: bool = True, key: str | None = None, **external: Any) -> Any:
        """The run that a workflow's submission gives."""
        headers = {} if key is None else {"Idempotency-Key": key}
        answer = self.client.post(
            f"/workflows/{workflow}/runs", params={"wait": wait}, json={"external": external}, headers=headers
        )
        assert answer.status_code in (200, 202), answer.text
        return answer.json()

    def await_status(self, run: str, *statuses: str, seconds: float = 30) -> Any:
        """The run once it has one of the statuses."""
        deadline = time.monotonic() + seconds
        while (found := self.client.get(f"/runs/{run}").json())["status"] not in statuses:
            assert time.monotonic() < deadline, found
            time.sleep(0.02)
        return found

    def await_file(self, name: str) -> None:
        deadline = time.monotonic() + 30
        while not (self.folder / name).exists():
            assert time.monotonic() < deadline, name
            time.sleep(0.01)

    def events(self, run: str, *, after: str | None = None) -> list[dict[str, Any]]:
        """The events of a run until its end, each with its id."""
        headers = {} if after is None else {"Last-Event-ID": after}
        with self.client.stream("GET", f"/runs/{run}/events", headers=headers) as answer:
            return list(read_events(answer.iter_lines()))


@dataclass
class Served(Asked):
    """A host that this process serves."""

    service: Service
    stop: Callable[[], None] = field(repr=False)

    @property
    def store(self) -> Any:
        return self.service.tenants[None].store

    def issue(self, name: str, *scopes: str, tenant: str | None = None) -> dict[str, str]:
        """The header of a new token."""
        return {"Authorization": f"Bearer {self.service.tokens.issue(name, scopes, tenant)}"}


def read_events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Server-sent events: each event's data, and its id as `position`."""
    identity: str | None = None
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "id":
            identity = value
        elif name == "data":
            yield {**json.loads(value), "position": identity}
            identity = None


@contextmanager
def served(
    folder: Path,
    *,
    is_open: bool = True,
    closes_by_token: bool = False,
    origins: Sequence[str] = (),
    with_mcp: bool = False,
    with_page: bool = False,
    telemetry: Telemetry | None = None,
    http: Any = "auto",
    store: StoreAddress | None = None,
    **keys: Any,
) -> Iterator[Served]:
    """Serve a host whose files are in the folder, or are written there; `http` is uvicorn's protocol."""
    config = folder / "agent-core.yaml"
    if not config.exists():
        write_host(folder, **keys)
    service = Service.of_host(
        read_host_config(config), store or folder / "runs.db", is_open=is_open, telemetry=telemetry
    )
    service.grace, service.closes_by_token = 5, closes_by_token
    app = create_app(service, origins=origins, write_page=write_decision_page if with_page else None)
    if with_page:
        serve_page(app, service)
    if with_mcp:
        from engine_shim.mcp_server.http import McpEndpoint
        from engine_shim.mcp_server.mount import mount

        mount(app, McpEndpoint(service))
    settings = uvicorn.Config(app, "127.0.0.1", 0, http=http, log_config=None, access_log=False)
    server = uvicorn.Server(settings)
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server ended"
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]

    def stop() -> None:
        service.let_go()
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()

    url = f"http://127.0.0.1:{port}"
    with httpx2.Client(base_url=url, timeout=30) as client:
        try:
            yield Served(folder, url, client, service, stop)
        finally:
            stop()
