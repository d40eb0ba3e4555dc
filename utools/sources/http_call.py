"""A request that a tool of a manifest, of an OpenAPI document or of another host makes, and what comes of it."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from utools.builtin.http_request import FRAMING_HEADERS, LIMIT, NAME, READS, TRANSIENT, read_body
from utools.errors import DefinitionError, NetworkError, ToolError
from utools.jsonvalue import as_json
from utools.net.guard import NetworkGuard, read_url
from utools.net.outgoing_secrets import secret_headers
from utools.tool import ToolContext, ToolResult

if TYPE_CHECKING:
    from utools.net.transport import Fetched

SHOWN = 500
"""Characters of an error's body that a model reads."""
TURNS = frozenset({".", ".."})
ORIGIN = re.compile(r"https?://[^/?#{}\s]+(?=[/?#]|\Z)", re.IGNORECASE)
"""A URL up to its path, without any placeholder."""

HeaderName = Annotated[str, Field(pattern=f"^{NAME}$")]


class HttpPolicy(BaseModel):
    """Where calls may go, which secrets they carry, how long they may take. Secrets are names, read at call time."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    token_env: str | None = None
    """The secret that is sent as a bearer token."""
    secret_headers: dict[HeaderName, str] = {}
    """Headers whose values are secrets, by name."""
    allowed_domains: list[str] | None = None
    """More hosts than the URL's own, for redirects."""
    allow_cidrs: list[str] = []
    max_bytes: int = Field(LIMIT, ge=1, le=16 * 2**20)
    timeout: float = Field(30.0, gt=0, le=3600)

    @field_validator("allowed_domains", "allow_cidrs")
    @classmethod
    def _readable(cls, value: list[str] | None, field: ValidationInfo) -> list[str] | None:
        try:
            NetworkGuard.of(**{str(field.field_name): value})  # type: ignore[arg-type]
        except DefinitionError as error:
            raise ValueError(error.message) from None
        return value

    @field_validator("secret_headers")
    @classmethod
    def _settable(cls, value: dict[str, str]) -> dict[str, str]:
        return {check_header(name): each for name, each in value.items()}

    def guard(self, url: str) -> NetworkGuard:
        """The guard of calls to the host of `url`."""
        domains = [read_url(url).host, *(self.allowed_domains or ())]
        return NetworkGuard.of(allowed_domains=domains, allow_cidrs=self.allow_cidrs)

    def secrets(self, context: ToolContext) -> dict[str, str]:
        """The headers that carry secrets."""
        return secret_headers(context.secret, self.token_env, self.secret_headers)


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be sent."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None = None


def check_header(name: str) -> str:
    """The name, if a tool may set that header; ValueError otherwise."""
    if name.lower() in FRAMING_HEADERS or name.lower().startswith("proxy-"):
        raise ValueError(f"the header {name} is not yours to set")
    return name


def checked_origin(url: str) -> str:
    """Scheme, host and port of a URL template; ValueError if they are not fixed and sound."""
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


def header_value(name: str, value: str) -> str:
    """A header's value; ToolError for one that could be read as more than that."""
    if not value.isprintable() or not value.isascii():
        raise ToolError(f"the header {name} must be printable ASCII, got {value[:80]!r}")
    return value


def in_path(value: str) -> str:
    """A value as a part of one path segment; ToolError for one that would lead elsewhere."""
    if not value or TURNS & set(re.split(r"[/\\]", value)):
        raise ToolError(f"{value[:80]!r} cannot be part of a URL's path: it is empty, or leads to another one")
    return quote(value, safe="")


def in_query(value: str) -> str:
    """A value as a part of a query."""
    return quote(value, safe="")


def check_path(path: str) -> None:
    """ToolError where values have come together to a segment that leads elsewhere."""
    for segment in path.split("/"):
        if segment.lower().replace("%2e", ".") in TURNS:
            raise ToolError(f"{path!r} leads to another path than the tool's own")


async def send(request: Request, reach: HttpPolicy, context: ToolContext) -> "Fetched":
    """One request and its response. TimeoutError when it takes too long."""
    from utools.net.transport import fetch

    headers = {name.lower(): value for name, value in request.headers.items()} | reach.secrets(context)
    if request.method not in READS and context.idempotency_key:
        headers.setdefault("idempotency-key", context.idempotency_key)
    guard = reach.guard(request.url)
    try:
        async with asyncio.timeout(reach.timeout):
            return await fetch(
                guard, request.method, request.url, headers=headers, content=request.content, limit=reach.max_bytes
            )
    except TimeoutError:
        raise TimeoutError(f"no answer within {reach.timeout:g} seconds") from None


def result_of(answer: "Fetched", *, reads: bool) -> ToolResult:
    """The body, JSON parsed; a status of 400 and more is a failure, and one that may pass where nothing was changed."""
    body = read_body(answer.headers, answer.body)
    if answer.status >= 400:
        passing = reads and (answer.status in TRANSIENT or answer.status >= 500)
        told = f"the server answered {answer.status}: {_shown(body)}".rstrip(": ")
        return ToolResult(False, error=told, metadata={"transient": True} if passing else {})
    if answer.truncated:
        body = {"truncated": f"only the first {len(answer.body)} bytes of the body were read", "body": body}
    return ToolResult(output=as_json(body), metadata={"status": answer.status})


def too_large(whose: str, reach: HttpPolicy, *, reads: bool) -> ToolResult:
    """A failure where an answer was needed as a whole: a write may have been made, and nobody knows how it went."""
    told = f"the answer of {whose} is larger than {reach.max_bytes} bytes (max_bytes)"
    if reads:
        return ToolResult(False, error=f"{told}; ask for less")
    told = f"{told}; the call was made, and whether it succeeded is not known"
    return ToolResult(False, error=told, metadata={"cut_off": True})


def _shown(body: Any) -> str:
    import json

    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def joined(pairs: Sequence[tuple[str, str]]) -> str:
    """A query of names and values."""
    return "&".join(f"{in_query(name)}={in_query(value)}" for name, value in pairs)
