"""warm_up_endpoints(): what the first question to any endpoint needs, built before it."""

import asyncio
from collections.abc import Collection
from importlib import import_module

import httpx2

from agent_core.models.endpoint.transport import EndpointTransport
from agent_core.models.openai.sdk import send_empty

_NOWHERE = "http://127.0.0.1:9/v1"


async def warm_up_endpoints(packages: Collection[str] = ()) -> None:
    """Import the SDK, read the TLS certificates and build a client, which take a second of CPU on a slow machine.

    `packages` are the SDKs of other vendors, which are imported too. Nothing is sent: neither the request nor the
    connection leaves this process.
    """
    await EndpointTransport(_NOWHERE, _send_empty).warm_up()
    for package in packages:
        await asyncio.to_thread(import_module, package)


async def _send_empty(http: httpx2.AsyncClient, /, *, streams: bool) -> None:
    await send_empty(http, "/chat/completions", _NOWHERE, None)
