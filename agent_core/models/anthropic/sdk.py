"""The anthropic SDK, asked for the request that it would send."""

from typing import Any

import anthropic
import httpx2

OWN_VENDOR = ("https", "api.anthropic.com", None)
"""Scheme, host and port (None is the scheme's default) of the SDK's own vendor, proven by TLS."""
OURS = ("x-stainless-retry-count", "x-stainless-timeout", "x-stainless-read-timeout")
"""Headers of what the SDK would do: we count the attempts, and watch the time."""

OF_THE_API = ("accept", "content-type", "anthropic-version")


async def send_empty(http: httpx2.AsyncClient, base_url: str, api_key: str | None) -> None:
    """Let the SDK send a request without a body to `/v1/messages` below the base URL, which may end with `/v1`."""
    url = httpx2.URL(base_url)
    base_url = base_url.rstrip("/").removesuffix("/v1")
    sdk = anthropic.AsyncAnthropic if (url.scheme, url.host, url.port) == OWN_VENDOR else _OtherVendorClient
    headers: Any = {name: anthropic.Omit() for name in OURS}
    # the vendor's own header: gateways know it, and each version of the API
    headers |= {"Authorization": anthropic.Omit(), "x-api-key": api_key or anthropic.Omit()}
    # given a key, be it an empty one, the SDK looks for none in the environment
    async with sdk(api_key=api_key or "", base_url=base_url, http_client=http, open_telemetry=False) as client:
        await client.post("/v1/messages", content=b"", cast_to=httpx2.Response, options={"headers": headers})


class _OtherVendorClient(anthropic.AsyncAnthropic):
    """The SDK for another endpoint of this API: nothing of the environment (custom headers) is sent there."""

    def __init__(self, **about: Any) -> None:
        super().__init__(**about)
        self._custom_headers = {}

    @property
    def default_headers(self) -> dict[str, str | anthropic.Omit]:
        sent = super().default_headers.items()
        headers = {name: value for name, value in sent if name.lower() in OF_THE_API}
        return {**headers, "User-Agent": self.user_agent}
