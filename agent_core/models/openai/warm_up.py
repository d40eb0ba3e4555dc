"""warm_up_endpoints(): what the first question to any endpoint needs, built before it."""

import httpx2

from agent_core.models.endpoint.transport import EndpointTransport
from agent_core.models.openai.sdk import send_empty

_NOWHERE = "http://127.0.0.1:9/v1"


async def warm_up_endpoints() -> None:
    """Import the SDK, read the TLS certificates and build a client, which take a second of CPU on a slow machine.

    Nothing is sent: neither the request nor the connection leaves this process.
    """
    await EndpointTransport(_NOWHERE, _send_empty).warm_up()


async def _send_empty(http: httpx2.AsyncClient, /, *, streams: bool) -> None:
    await send_empty(http, "/chat/completions", _NOWHERE, None)
