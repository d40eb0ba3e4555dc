"""The desks of two tenants on a real socket of this machine."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import date
from pathlib import Path
from typing import Any, Protocol

import httpx2
import uvicorn

from agent_core import ModelClient
from service.app import Office, Principal, create_app
from service.desk import Desk
from service.shop import Order, ReturnPolicy

LAMP = Order("17", "ada", "a lamp", 40_00, date(2026, 5, 1))
SOFA = Order("18", "ada", "a sofa", 900_00, date(2026, 5, 1))
PRINCIPALS = {
    "t-ada": Principal("acme", "ada"),
    "t-bob": Principal("acme", "bob"),
    "t-max": Principal("acme", "max", "manager"),
    "t-eve": Principal("evil", "eve", "manager"),
}
ADA, BOB, MAX, EVE = ({"Authorization": f"Bearer {token}"} for token in PRINCIPALS)
LOOK_UP: Mapping[str, Any] = {"type": "action", "tool": "find_order", "args": {"number": "17"}}
"""A reply of a model: it looks for an order of Ada's."""


class OpenDesk(Protocol):
    """Opens the desk of a tenant, whose agents ask this model."""

    def __call__(self, model: ModelClient, tenant: str = "acme") -> Desk: ...


class Serve(Protocol):
    """Serves the desks of tenants, whose agents all ask one model, until the block ends."""

    def __call__(self, model: ModelClient, *tenants: str) -> AbstractAsyncContextManager[httpx2.AsyncClient]: ...


def open_desk(directory: Path, model: ModelClient, tenant: str = "acme") -> Desk:
    """Open the desk of a tenant. It has two orders at first, and what was done to them whenever it is opened again."""
    folder = directory / tenant
    is_new = not folder.exists()
    folder.mkdir(exist_ok=True)
    desk = Desk(folder, model=model, policy=ReturnPolicy(30, today=lambda: date(2026, 5, 10)))
    if is_new:
        desk.shop.add([LAMP, SOFA])
    return desk


@asynccontextmanager
async def serve_desks(desks: Mapping[str, Desk]) -> AsyncGenerator[httpx2.AsyncClient]:
    """Serve the desks, by their tenants, until the block ends."""
    server = uvicorn.Server(uvicorn.Config(create_app(Office(desks, PRINCIPALS)), log_level="warning"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with httpx2.AsyncClient(base_url=url, trust_env=False, verify=False) as client:
            yield client
        server.should_exit = True
        await serving


def read_sse(text: str) -> list[tuple[str, Any]]:
    """Return the events of a stream, each with its data."""
    events = [dict(line.split(": ", 1) for line in event.splitlines()) for event in text.split("\n\n") if event]
    return [(event["event"], json.loads(event["data"])) for event in events]
