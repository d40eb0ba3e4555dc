"""The google-genai SDK, asked for the request that it would send."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import httpx2

VERSION = "v1beta"
PATHS = (f"/{VERSION}/openai", "/openai", f"/{VERSION}")
"""Ends of a base URL that the SDK adds itself, or that are of Google's endpoint for chat completions."""
KEY_HEADER = "x-goog-api-key"


async def send_empty(
    http: httpx2.AsyncClient, model: str, base_url: str, api_key: str | None, *, streams: bool
) -> None:
    """Let the SDK send a request to a model below the base URL, with its headers and the key.

    Whatever the SDK would read of the environment is given to it. It wants a key: an absent one is taken off again.
    """
    await asyncio.to_thread(import_module, "google.genai")  # a second and more, in which others go on
    from google.genai import Client, types
    from google.genai.client import DebugConfig

    if not api_key:
        http.event_hooks = {"request": [_take_off_key]}
    with httpx2.Client(transport=httpx2.MockTransport(_refuse), trust_env=False) as unused:
        options = types.HttpOptions(
            base_url=strip_path(base_url), api_version=VERSION, httpx_client=unused, httpx_async_client=http
        )
        debug = DebugConfig(client_mode="", replays_directory="", replay_id="")
        with _quiet():
            client = Client(vertexai=False, api_key=api_key or "none", http_options=options, debug_config=debug)
        if not streams:
            await client.aio.models.generate_content(model=model, contents="-")
            return
        async for _ in await client.aio.models.generate_content_stream(model=model, contents="-"):
            pass


def strip_path(base_url: str) -> str:
    """Return a base URL without the path that the SDK adds to it."""
    url = base_url.rstrip("/")
    return next((url.removesuffix(path) for path in PATHS if url.endswith(path)), url)


@contextmanager
def _quiet() -> Iterator[None]:
    """Drop what the SDK logs of the environment's keys, which it does not use here."""
    log = logging.getLogger("google_genai._api_client")
    log.addFilter(_drop)
    try:
        yield
    finally:
        log.removeFilter(_drop)


def _drop(record: logging.LogRecord) -> bool:
    return False


async def _take_off_key(request: httpx2.Request) -> None:
    del request.headers[KEY_HEADER]


def _refuse(request: httpx2.Request) -> httpx2.Response:
    raise AssertionError(f"{request.url} was asked by the client that is not used")
