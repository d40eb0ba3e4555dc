"""HTTP calls of tools that are defined elsewhere: where they may go, how they are sent, how the response is read."""

import asyncio
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BaseModel, Field, ValidationInfo, field_validator

from utools.builtin.http_request import LIMIT, READS, read_body, refuse_status
from utools.errors import DefinitionError, NetworkError
from utools.net.address import ORIGIN
from utools.net.guard import NetworkGuard, read_url
from utools.net.outgoing_secrets import secret_headers
from utools.schema.host_keys import HostKeys
from utools.schema.json_value import as_json
from utools.sources.headers import Headers
from utools.sources.request import Request
from utools.tool import ToolContext, ToolResult
from utools.words.text import Text

if TYPE_CHECKING:
    from utools.net.transport import Fetched


def read_origin(url: str) -> str:
    """Scheme, host and port of a URL template; ValueError if they are not fixed and valid."""
    origin = ORIGIN.match(url)
    if origin is None:
        raise ValueError("must begin with http:// or https:// and a host, and name no argument before the path")
    if "#" in url:
        raise ValueError("a URL that is requested has no fragment (#…)")
    try:
        read_url(origin[0])
    except NetworkError as error:
        raise ValueError(str(error)) from None
    return origin[0]


def _check_url(url: str) -> str:
    read_origin(url)
    return url


Url = Annotated[str, AfterValidator(_check_url)]
"""A URL whose scheme, host and port are fixed."""


class HttpPolicy(HostKeys, BaseModel):
    """Where calls may go, which secrets they carry, how long they may take. Secrets are names, read at call time."""

    token_env: str | None = None
    """The secret that is sent as a bearer token."""
    secret_headers: Headers = {}
    """Headers whose values are secrets, by name."""
    allowed_domains: list[str] | None = None
    """More hosts than the URL's own, for redirects."""
    allow_cidrs: list[str] = []
    max_bytes: int = Field(LIMIT, ge=1, le=16 * 2**20)
    timeout: float = Field(30.0, gt=0, le=3600)

    @field_validator("allowed_domains", "allow_cidrs")
    @classmethod
    def _check_readable(cls, value: list[str] | None, field: ValidationInfo) -> list[str] | None:
        try:
            NetworkGuard.from_settings(**{str(field.field_name): value})  # type: ignore[arg-type]
        except DefinitionError as error:
            raise ValueError(error.message) from None
        return value

    def guard(self, url: str) -> NetworkGuard:
        """Return the guard of calls to the host of `url`."""
        domains = [read_url(url).host, *(self.allowed_domains or ())]
        return NetworkGuard.from_settings(allowed_domains=domains, allow_cidrs=self.allow_cidrs)

    def secrets(self, context: ToolContext) -> dict[str, str]:
        """Return the headers that carry secrets."""
        return secret_headers(context.secret, self.token_env, self.secret_headers)


async def send(request: Request, policy: HttpPolicy, context: ToolContext) -> "Fetched":
    """Send one request and receive its response. TimeoutError when that takes too long."""
    from utools.net.transport import fetch

    headers = {name.lower(): value for name, value in request.headers.items()} | policy.secrets(context)
    if request.method not in READS and context.idempotency_key:
        headers.setdefault("idempotency-key", context.idempotency_key)
    guard = policy.guard(request.url)
    try:
        async with asyncio.timeout(policy.timeout):
            return await fetch(
                guard, request.method, request.url, headers=headers, content=request.content, limit=policy.max_bytes
            )
    except TimeoutError:
        raise TimeoutError(Text("no answer within {seconds:g} seconds", seconds=policy.timeout)) from None


def read_response(response: "Fetched", *, reads: bool) -> ToolResult:
    """Return the body, JSON parsed. A status of 400 and more is a failure."""
    body = read_body(response.headers, response.body)
    if response.status >= 400:
        return refuse_status(response.status, body, reads=reads)
    if response.truncated:
        body = {"truncated": f"only the first {len(response.body)} bytes of the body were read", "body": body}
    return ToolResult(output=as_json(body), metadata={"status": response.status})


def refuse_truncated(server: str, policy: HttpPolicy, *, reads: bool) -> ToolResult:
    """Return a failure where a response is needed as a whole: a write may have been made, and nobody knows how it
    went."""
    text = Text("the answer of {server} is larger than {most} bytes (max_bytes)", server=server, most=policy.max_bytes)
    if reads:
        return ToolResult(False, error=Text("{text}; ask for less", text=text))
    unknown = Text("{text}; the call was made, and whether it succeeded is not known", text=text)
    return ToolResult(False, error=unknown, metadata={"cut_off": True})
