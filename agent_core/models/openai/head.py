"""The head of a request to OpenAI's APIs, at their own vendor or at any other."""

import os
from typing import Final
from urllib.parse import urlsplit

from agent_core.models.endpoint.request_head import RequestHead

OWN_HOST: Final = "api.openai.com"
"""The APIs' own vendor, proven by TLS."""
OF_ACCOUNT: Final = (("openai-organization", "OPENAI_ORG_ID"), ("openai-project", "OPENAI_PROJECT_ID"))
CUSTOM_HEADERS: Final = "OPENAI_CUSTOM_HEADERS"
"""A variable with a header in each line, `Name: value`, as the vendor's own SDK reads it."""


def write_head(path: str, base_url: str, api_key: str | None) -> RequestHead:
    """Return the head of a request to a path below the base URL. What the environment says of an account goes to the
    vendor alone."""
    headers = {"accept": "application/json", "content-type": "application/json", "user-agent": "agent-core"}
    if api_key:
        headers["authorization"] = f"Bearer {api_key}"
    if _is_own_vendor(base_url):
        headers |= {name: value for name, variable in OF_ACCOUNT if (value := os.environ.get(variable))}
        headers |= _read_custom_headers(os.environ.get(CUSTOM_HEADERS, ""))
    return RequestHead(base_url.rstrip("/") + path, tuple(headers.items()))


def _is_own_vendor(base_url: str) -> bool:
    parts = urlsplit(base_url)
    return (parts.scheme, parts.hostname, parts.port or 443) == ("https", OWN_HOST, 443)


def _read_custom_headers(text: str) -> dict[str, str]:
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    return {name.strip().lower(): value.strip() for name, value in pairs}
