"""Two tenants whose desks are served on a real socket of this machine."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import date
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn

from agent_core import ModelClient

from .app import Office, Principal, create_app
from .desk import Desk
from .shop import Order, ReturnPolicy

ORDERS = [
    Order("17", "ada", "a lamp", 40_00, date(2026, 5, 1)),
    Order("18", "ada", "a sofa", 900_00, date(2026, 5, 1)),
]
PRINCIPALS = {
    "t-ada": Principal("acme", "ada"),
    "t-bob": Principal("acme", "bob"),
    "t-max": Principal("acme", "max", "manager"),
    "t-eve": Principal("evil", "eve", "manager"),
}
ADA, BOB, MAX, EVE = ({"Authorization": f"Bearer {token}"} for token in PRINCIPALS)

OpenDesk = Callable[..., Desk]
Serve = Callable[[ModelClient], AbstractAsyncContextManager[httpx2.AsyncClient]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def open_desk(tmp_path: Path) -> OpenDesk:
    """Opens the desk of a tenant; that of the same name again has the same data."""

    def open_desk(model: ModelClient, tenant: str = "acme") -> Desk:
        directory = tmp_path / tenant
        is_new = not directory.exists()
        directory.mkdir(exist_ok=True)
        desk = Desk(directory, model=model, policy=ReturnPolicy(30, today=lambda: date(2026, 5, 10)))
        if is_new:
            desk.shop.add(ORDERS)
        return desk

    return open_desk


@pytest.fixture
def serve(open_desk: OpenDesk) -> Serve:
    """Serves the desks of both tenants, whose agents ask one model, until the block ends."""

    @asynccontextmanager
    async def serve(model: ModelClient) -> AsyncGenerator[httpx2.AsyncClient]:
        desks = {tenant: open_desk(model, tenant) for tenant in ("acme", "evil")}
        server = uvicorn.Server(uvicorn.Config(create_app(Office(desks, PRINCIPALS)), log_level="warning"))
        with socket.create_server(("127.0.0.1", 0)) as listener:
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            async with httpx2.AsyncClient(base_url=url, trust_env=False) as client:
                yield client
            server.should_exit = True
            await serving

    return serve


def read_sse(text: str) -> list[tuple[str, Any]]:
    """Return the events of a stream, each with its data."""
    events = [dict(line.split(": ", 1) for line in event.splitlines()) for event in text.split("\n\n") if event]
    return [(event["event"], json.loads(event["data"])) for event in events]
