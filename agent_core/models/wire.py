"""The one module that talks to the openai SDK: a request's bytes out, the endpoint's answer in."""

import os
import ssl
from functools import lru_cache
from typing import Any

import anyio
import httpx2
import openai

from agent_core.errors import DefinitionError
from agent_core.models.chat_reply import Answer, Refusal

LARGEST = 16 * 2**20
"""Bytes of a reply, decompressed, past which it is not read on."""
CONNECTIONS = 1000
KEPT_ALIVE = 100
"""Connections that may be idle. The pool polls each of them at every request, so more are slower, not faster."""
CONNECT_SECONDS = 10.0
KEEPALIVE_SECONDS = 30.0
LOOPBACK = ("127.0.0.1", "localhost", "::1")
OWN_VENDOR = "api.openai.com"


class Wire:
    """The connections to one endpoint, in one event loop."""

    def __init__(self, base_url: str, api_key: str | None) -> None:
        host = _host(base_url)
        timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
        http = httpx2.AsyncClient(
            verify=_ssl_context(),
            timeout=timeout,
            limits=httpx2.Limits(
                max_connections=CONNECTIONS,
                max_keepalive_connections=KEPT_ALIVE,
                keepalive_expiry=KEEPALIVE_SECONDS,
            ),
            follow_redirects=False,
            trust_env=host not in LOOPBACK,  # elsewhere the proxies of the environment are honoured
            event_hooks={"response": [_read_refusal]},
        )
        sdk = openai.AsyncOpenAI if host == OWN_VENDOR else _Stranger
        self._sdk = sdk(api_key=api_key or "none", base_url=base_url, http_client=http, max_retries=0)
        self._url = base_url.rstrip("/") + "/chat/completions"
        # what is said here the SDK need not make up at each call: its defaults are deep-copied, its keys random
        self._options: Any = {
            "security": {"bearer_auth": True},
            "headers": {} if api_key else {"Authorization": openai.Omit()},
            "max_retries": 0,
            "timeout": timeout,
            "idempotency_key": "unused",
            "post_parser": openai.NOT_GIVEN,
        }

    async def post(self, body: bytes) -> Answer | Refusal:
        """Send one request and read its answer, whatever its status. Only cancellation is raised."""
        try:
            response = await self._sdk.post(
                self._url,
                content=body,
                cast_to=httpx2.Response,
                options=self._options,
                stream=True,
                stream_cls=openai.AsyncStream[Any],
            )
            assert isinstance(response, httpx2.Response)
            try:
                return await _answer(response)
            finally:
                await response.aclose()
        except _Refused as refused:
            return refused.answer
        except _TooLarge:
            return Refusal(f"sent more than {LARGEST >> 20} MiB; the rest was not read")
        except (openai.OpenAIError, httpx2.HTTPError, ssl.SSLError, anyio.EndOfStream, OSError) as error:
            return _unreached(error)
        except Exception as error:  # five faults are known to leave the SDK undressed; others must not end a run either
            return Refusal(f"could not be asked: {type(error).__name__}: {error}")

    async def close(self) -> None:
        await self._sdk.close()


class _Stranger(openai.AsyncOpenAI):
    """The SDK for another vendor's endpoint: nothing of the environment (organisation, own headers) goes there."""

    @property
    def default_headers(self) -> dict[str, str | openai.Omit]:
        return {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": self.user_agent}


class _Refused(Exception):
    """Carries an answer past the SDK, which would read the body of an error however long it is."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


class _TooLarge(Exception):
    pass


async def _read_refusal(response: httpx2.Response) -> None:
    if not response.is_success:
        raise _Refused(await _answer(response))


async def _answer(response: httpx2.Response) -> Answer:
    chunks, size = [], 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > LARGEST:
            raise _TooLarge
        chunks.append(chunk)
    return Answer(response.status_code, response.headers, b"".join(chunks))


def _unreached(error: BaseException) -> Refusal:
    """Why no whole answer came: the reason nearest to the operating system says most."""
    chain = [error]
    while cause := chain[-1].__cause__ or chain[-1].__context__:
        chain.append(cause)
    why = next((_reason(each) for each in reversed(chain) if isinstance(each, OSError) and each.strerror), None)
    lasting = any(isinstance(each, ssl.SSLCertVerificationError) for each in chain)
    sdk_aside = next((each for each in chain if not isinstance(each, openai.OpenAIError)), error)
    told = why or str(sdk_aside) or type(sdk_aside).__name__
    return Refusal(f"gave no answer: {told}", transient=not lasting)


def _reason(error: OSError) -> str | None:
    """asyncio puts the address where the reason belongs."""
    return os.strerror(error.errno) if isinstance(error, ConnectionError) and error.errno else error.strerror


def _host(base_url: str) -> str:
    try:
        return httpx2.URL(base_url).host
    except httpx2.InvalidURL as error:
        raise DefinitionError(f"not a URL: {error}", where="base_url", value=base_url) from None


@lru_cache(maxsize=1)
def _ssl_context() -> ssl.SSLContext:
    """One for the process: reading the certificates takes longer than many a request."""
    return httpx2.create_ssl_context()
