"""The openai SDK, asked for the request that it would send."""

from typing import Any

import httpx2
import openai

OWN_VENDOR = ("https", "api.openai.com", None)
"""Scheme, host and port (None is the scheme's default) of the SDK's own vendor, proven by TLS."""


async def send_empty(http: httpx2.AsyncClient, path: str, base_url: str, api_key: str | None) -> None:
    """Let the SDK send a request without a body to a path below the base URL, with its headers and the key."""
    url = httpx2.URL(base_url)
    sdk = openai.AsyncOpenAI if (url.scheme, url.host, url.port) == OWN_VENDOR else _OtherVendorClient
    headers: Any = {"X-Stainless-Retry-Count": openai.Omit()}  # we count
    if not api_key:
        headers["Authorization"] = openai.Omit()
    async with sdk(api_key=api_key or "none", base_url=base_url, http_client=http) as client:
        await client.post(path, content=b"", cast_to=httpx2.Response, options={"headers": headers})


class _OtherVendorClient(openai.AsyncOpenAI):
    """The SDK for another vendor's endpoint: nothing of the environment (organisation, headers) is sent there."""

    @property
    def default_headers(self) -> dict[str, str | openai.Omit]:
        return {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": self.user_agent}
