"""The wire to an endpoint: what the openai SDK would send, with the bytes of a request, and the answer in bytes."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import anyio
import httpx2
import openai

from agent_core.errors import DefinitionError
from agent_core.models.openai.connections import Connections, Transport
from agent_core.models.openai.response import Answer, Refusal
from utools.error_text import os_reason

LARGEST = 16 * 2**20
"""Bytes of a reply, decompressed, past which it is not read on."""
SLICE = 2**18
"""Bytes that are written at once, as that holds up all else in the event loop; aiohttp warns of a whole MiB."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
OWN_VENDOR = ("https", "api.openai.com", None)
"""Scheme, host and port, which is None for the scheme's own: what only TLS shows to be the vendor."""
Part = Answer | bytes | Refusal


class Wire:
    """The connections to one endpoint, in one event loop."""

    def __init__(self, base_url: str, api_key: str | None, transport: Transport | None = None) -> None:
        url = _url(base_url)
        self._base_url, self._api_key = base_url, api_key
        # elsewhere the proxies of the environment are honoured
        self._connections = Connections(transport, trust_env=url.host not in LOOPBACK)
        self._sdk = openai.AsyncOpenAI if (url.scheme, url.host, url.port) == OWN_VENDOR else _Stranger
        self._sent_by_sdk: httpx2.Request | None = None
        self._asking_sdk = asyncio.Lock()
        self._open: AsyncGenerator[None] | None = None

    async def ask(self, body: bytes) -> AsyncGenerator[Part]:
        """Send one request; its answer, whatever the status: first the head, then the body in pieces as they come.

        A Refusal is the last: there is no more, or no whole answer. Only cancellation is raised; closing the iterator
        lets go of the connection.
        """
        try:
            if self._open is None:
                self._open = self._until_closed()
                await anext(self._open)
            request = await self.request(body)
            http = self._connections.take()
            try:
                response = await http.send(request, stream=True)
                try:
                    yield Answer(response.status_code, response.headers, b"")
                    size = 0
                    async for piece in response.aiter_bytes():
                        size += len(piece)
                        if size > LARGEST:
                            yield Refusal(f"sent more than {LARGEST >> 20} MiB; the rest was not read")
                            return
                        yield piece
                finally:
                    await response.aclose()
            finally:
                await self._connections.give_back(http)
        except (openai.OpenAIError, httpx2.HTTPError, ssl.SSLError, anyio.EndOfStream, OSError) as error:
            yield _unreached(error)
        except Exception as error:  # some faults leave a transport undressed; they must not end a run either
            odd = Refusal(f"could not be asked: {type(error).__name__}: {error}")
            yield _unreached(error) if _by_aiohttp(error) else odd

    async def close(self) -> None:
        if self._open is not None:
            await self._open.aclose()

    async def _until_closed(self) -> AsyncGenerator[None]:
        """An event loop that ends closes the generators that it has begun, and this one takes the connections along."""
        try:
            yield
        finally:
            await self._connections.close()

    async def request(self, body: bytes) -> httpx2.Request:
        """What the SDK sends, with this body. The SDK is asked once: its walk takes longer than all else."""
        if self._sent_by_sdk is None:
            async with self._asking_sdk:
                self._sent_by_sdk = self._sent_by_sdk or await self._by_sdk()
        sent = self._sent_by_sdk
        if len(body) <= SLICE:
            return httpx2.Request(sent.method, sent.url, headers=sent.headers, content=body)
        headers = [*sent.headers.raw, (b"content-length", b"%d" % len(body))]
        return httpx2.Request(sent.method, sent.url, headers=headers, content=_slices(body))

    async def _by_sdk(self) -> httpx2.Request:
        """The request that the SDK sends to the endpoint, caught on its way: URL, key and headers are its business."""
        caught: list[httpx2.Request] = []

        def nowhere(request: httpx2.Request) -> httpx2.Response:
            caught.append(request)
            return httpx2.Response(200)

        http = httpx2.AsyncClient(transport=httpx2.MockTransport(nowhere), timeout=None, trust_env=False)
        headers: Any = {"X-Stainless-Retry-Count": openai.Omit()}  # it is we who count
        if not self._api_key:
            headers["Authorization"] = openai.Omit()
        async with self._sdk(api_key=self._api_key or "none", base_url=self._base_url, http_client=http) as sdk:
            await sdk.post("/chat/completions", content=b"", cast_to=httpx2.Response, options={"headers": headers})
        request = caught[0]
        del request.headers["content-length"]
        return request


async def _slices(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), SLICE):
        yield body[start : start + SLICE]


class _Stranger(openai.AsyncOpenAI):
    """The SDK for another vendor's endpoint: nothing of the environment (organisation, own headers) goes there."""

    @property
    def default_headers(self) -> dict[str, str | openai.Omit]:
        return {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": self.user_agent}


def _by_aiohttp(error: BaseException) -> bool:
    """Whether it is one of aiohttp's own faults, which not all become httpx2's."""
    return any(each.__module__.startswith("aiohttp.") for each in type(error).__mro__)


def _unreached(error: BaseException) -> Refusal:
    """Why no whole answer came: the reason nearest to the operating system says most."""
    chain = [error]
    while cause := chain[-1].__cause__ or chain[-1].__context__:
        chain.append(cause)
    lasting = any(isinstance(each, ssl.SSLCertVerificationError) for each in chain)
    sdk_aside = next((each for each in chain if not isinstance(each, openai.OpenAIError)), error)
    told = os_reason(error) or str(sdk_aside) or type(sdk_aside).__name__
    return Refusal(f"gave no answer: {told}", transient=not lasting)


def _url(base_url: str) -> httpx2.URL:
    try:
        return httpx2.URL(base_url)
    except httpx2.InvalidURL as error:
        raise DefinitionError(f"not a URL: {error}", where="base_url", value=base_url) from None
