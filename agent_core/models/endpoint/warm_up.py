"""warm_up_endpoints(): what the first question to any endpoint needs, built before it."""

import asyncio
from collections.abc import Collection
from importlib import import_module

from agent_core.models.endpoint.route import usual_tls

MODULES = (
    "agent_core.models.endpoint.transport",
    "agent_core.models.endpoint.by_aiohttp",
    "agent_core.models.openai.chat",
    "agent_core.models.openai.head",
)


async def warm_up_endpoints(packages: Collection[str]) -> None:
    """Import the HTTP library and read the TLS certificates, which take a good part of a second on a slow machine.

    `packages` are the SDKs of vendors that are asked by their own API, which are imported too. Nothing is sent.
    """
    for module in (*MODULES, *packages):
        await asyncio.to_thread(import_module, module)
    await asyncio.to_thread(usual_tls)
