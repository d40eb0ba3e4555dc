"""warm_up_endpoints(): what the first question to any endpoint needs, built before it."""

from agent_core.models.openai.transport import EndpointTransport

_NOWHERE = "http://127.0.0.1:9/v1"


async def warm_up_endpoints() -> None:
    """Import the SDK, read the TLS certificates and build a client, which take a second of CPU on a slow machine.

    Nothing is sent: neither the request nor the connection leaves this process.
    """
    await EndpointTransport(_NOWHERE, None).warm_up()
