"""fetch: HTTP through a NetworkGuard. Every connection, also of a redirect, goes to an address that was checked.

No proxy of the environment is used and no cookie is stored. The bytes that are read are bounded, compressed or not.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import httpcore2
import httpx2

from utools.error_text import reason_of
from utools.errors import NetworkError, ToolError
from utools.net.decompress import CorruptBody, Decompressor
from utools.net.guard import NetworkGuard
from utools.net.proxies import note_unused
from utools.net.trace_headers import TRACE_HEADERS
from utools.words.text import Text

REDIRECTS = 5
READS = ("GET", "HEAD", "OPTIONS")
CONNECT_SECONDS = 10.0
OVERHEAD = 2**16
"""Bytes by which a compressed body may be longer than its content."""
SAFE_ACROSS_HOSTS = ("accept", "accept-encoding", "accept-language", "user-agent", "content-type", "content-length")
"""Headers that a redirect to another host is sent too; any other may be a secret for the first host."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A response: status, headers by lower-case name, the body as far as it was read, the URL that it came from."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str
    truncated: bool


async def fetch(
    guard: NetworkGuard,
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    limit: int,
    redirects: int = REDIRECTS,
) -> Fetched:
    """Return one request and its response, redirects followed.

    NetworkError for a host that may not be reached. ToolError (transient) if nothing was sent. ConnectionError if the
    connection broke after that: the server may have acted on the request. The caller bounds the time. With the `limit`
    0 nothing of the body is waited for.
    """
    async with _client(guard) as client:
        named = {**TRACE_HEADERS.get(), **(headers or {})}
        request = client.build_request(method, _checked_url(guard, url), headers=named, content=content)
        answered = False
        try:
            for _ in range(redirects + 1):
                async with _send(client, request) as response:
                    answered = method not in READS
                    following = response.next_request if redirects else None
                    if following is None:
                        body, truncated = await _read_body(response, limit)
                        return Fetched(response.status_code, dict(response.headers), body, str(request.url), truncated)
                request = _redirect_request(guard, request, following)
            raise ToolError("more than {redirects} redirects were followed", redirects=redirects)
        except ToolError as error:
            if not answered:
                raise
            raise ConnectionResetError(
                Text("the request was answered, but not to its end: {error}", error=error)
            ) from None


@asynccontextmanager
async def _client(guard: NetworkGuard) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.AsyncHTTPTransport(verify=_ssl_context(), trust_env=False)
    transport._pool = httpcore2.AsyncConnectionPool(
        ssl_context=_ssl_context(), max_connections=1, network_backend=_GuardedBackend(guard)
    )
    timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
    async with httpx2.AsyncClient(transport=transport, trust_env=False, timeout=timeout) as client:
        client.headers = httpx2.Headers({"accept": "*/*", "accept-encoding": "gzip, deflate", "user-agent": "utools"})
        yield client


class _GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to checked addresses only; a certificate must still bear the host's name."""

    def __init__(self, guard: NetworkGuard) -> None:
        self._guard = guard
        self._plain = cast(httpcore2.AsyncNetworkBackend, httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is the library's
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        error: Exception | None = None
        for address in await self._guard.addresses(host.strip("[]"), port):
            try:
                return await self._plain.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as failed:
                error = failed
        raise error or httpcore2.ConnectError(f"{host} has no address")

    async def connect_unix_socket(self, path: str, *args: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        raise NetworkError("a socket of this machine may not be reached")

    async def sleep(self, seconds: float) -> None:
        await self._plain.sleep(seconds)


@asynccontextmanager
async def _send(client: httpx2.AsyncClient, request: httpx2.Request) -> AsyncIterator[httpx2.Response]:
    host = request.url.host
    try:
        response = await client.send(request, stream=True, follow_redirects=False)
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
        raise ToolError(
            "{host} cannot be reached: {reason}{proxy}",
            host=host,
            reason=reason_of(error),
            proxy=note_unused(str(request.url)),
            transient=True,
        ) from None
    except httpx2.LocalProtocolError as error:
        raise ToolError("the request cannot be sent: {error}", error=error) from None
    except httpx2.TransportError as error:
        raise ConnectionResetError(
            Text("{host} gave no answer: {reason}", host=host, reason=reason_of(error))
        ) from None
    try:
        yield response
    except CorruptBody as error:
        raise ToolError("the answer of {host} is damaged: {error}", host=host, error=error) from None
    except httpx2.TransportError as error:
        raise ConnectionResetError(
            Text("{host} broke off its answer: {reason}", host=host, reason=reason_of(error))
        ) from None
    finally:
        await response.aclose()


async def _read_body(response: httpx2.Response, limit: int) -> tuple[bytes, bool]:
    """Return the content up to the limit, which bounds the compressed bytes too; and whether there was more.

    Other tasks run between the pieces, and a timeout can take effect.
    """
    if limit == 0:
        return b"", True
    content, received, body = bytearray(), 0, Decompressor(response.headers.get("content-encoding", ""))
    async for chunk in response.aiter_raw():
        received += len(chunk)
        for piece in body.feed(chunk):
            content += piece
            if len(content) > limit:
                return bytes(content[:limit]), True
            await asyncio.sleep(0)
        if received > limit + OVERHEAD:
            return bytes(content), True
    body.finish()
    return bytes(content), False


def _redirect_request(guard: NetworkGuard, request: httpx2.Request, following: httpx2.Request) -> httpx2.Request:
    """Return the request that a redirect asks for, checked like the first; another host gets none of the secrets."""
    url = _checked_url(guard, str(following.url))
    if (url.scheme, url.host, url.port) != (request.url.scheme, request.url.host, request.url.port):
        for name in [name for name in following.headers if name not in SAFE_ACROSS_HOSTS]:
            del following.headers[name]
        following.headers["host"] = url.netloc.decode("ascii")
    return following


def _checked_url(guard: NetworkGuard, url: str) -> httpx2.URL:
    """Return the URL as the guard reads it, if it may be requested."""
    target = guard.target(url)
    try:
        read = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError) as error:
        raise NetworkError("this is no URL: {error}", error=error) from None
    host = read.raw_host.decode("ascii", "replace").strip("[]").lower().removesuffix(".")
    if (read.scheme, host) != (target.scheme, target.host) or (read.port or target.port) != target.port:
        return read.copy_with(host=target.host, port=target.port)
    return read


@lru_cache(maxsize=1)
def _ssl_context() -> ssl.SSLContext:
    return httpx2.create_ssl_context(trust_env=False)
