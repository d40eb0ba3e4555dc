"""Guard: what is checked of every request before a route sees it: host, origin, size, and how long its body takes."""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine_shim.api.answers import MANNERS
from engine_shim.api.refusal import Refusal, Refused
from utools.lazy_pattern import lazy_compile

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
MAX_BODY: Final = 4 * 1024 * 1024
PASSED_OVER: Final = 16 * MAX_BODY
"""Bytes of a body that is too large which are taken before it is refused."""
TOO_LARGE: Final = "too_large"
ORIGIN: Final = lazy_compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
_MANNERS: Final = tuple((name.lower().encode(), value.encode()) for name, value in MANNERS.items())
NAMELESS: Final = "null"
BY_TOKEN: Final = "/decide/"
"""Pages that send no referrer have no origin in the forms that they send; below this path they need none, as what
decides there is the token in the address, which a page of others does not have."""
BODY_S: Final = 30.0
"""Bytes that a request may have, and seconds that it may take to send them."""
READ_BY_PAGES: Final = (
    *("Location", "Retry-After", "X-Run-Id", "Journal-Position"),
    *("Mcp-Session-Id", "WWW-Authenticate"),
)
"""Headers of answers that the pages of other origins may read."""


WriteRefusal = Callable[[str, Refusal], Response]
"""Writes a refusal for what is asked of a path."""


def _write_problem(path: str, refusal: Refusal) -> Response:
    return refusal.response()


def protect(
    app: Starlette, hosts: Collection[str], origins: Collection[str], write: WriteRefusal = _write_problem
) -> None:
    """Let an app serve what is asked of `hosts`, also to pages of `origins`, which may read why they are refused."""
    app.add_middleware(Guard, hosts=hosts, origins=origins, write=write)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=READ_BY_PAGES,
        )


@dataclass(frozen=True, slots=True)
class Guard:
    """Refuses requests for other hosts, from pages of other origins, and bodies that are too large or too slow.

    `hosts` are names without ports. A page of any host among them may call, and of any origin in `origins`.
    """

    app: ASGIApp
    hosts: Collection[str] = LOOPBACK
    origins: Collection[str] = ()
    max_body: int = MAX_BODY
    body_seconds: float = BODY_S
    write: WriteRefusal = _write_problem
    _hosts: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hosts", frozenset(map(_as_requested, self.hosts)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # white space around a value is none of it (RFC 9110, 5.5), which not every parser knows
        scope = {**scope, "headers": [(name, value.strip(b" \t")) for name, value in scope["headers"]]}
        if refusal := self._refuse(scope):
            if refusal.kind == TOO_LARGE and not _values(scope, b"expect"):  # who expects an answer has sent no body
                await _pass_over(receive, self.body_seconds)
            await self.write(_path(scope), refusal)(scope, receive, send)
            return

        async def send_with_manners(message: Message) -> None:
            if message["type"] == "http.response.start":
                known = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(each for each in _MANNERS if each[0] not in known)]
            await send(message)

        body = _Body(receive, self.max_body, self.max_body, self.body_seconds)
        await self.app(scope, body.receive, send_with_manners)

    def _refuse(self, scope: Scope) -> Refusal | None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        for host in _values(scope, b"host") or [""]:
            if _name(host) not in self._hosts:
                hint = "`serve --allow-host` names what it is called"
                return Refusal(400, "host", f"this server is not {host!r}; {hint}")
        for origin in _values(scope, b"origin"):
            if origin == NAMELESS and _path(scope).startswith(BY_TOKEN):
                continue
            is_asked_before = scope["method"] == "OPTIONS" and _values(scope, b"access-control-request-method")
            is_ours = origin in self.origins or _name_of_page(origin) in self._hosts
            if is_asked_before or not is_ours:  # browsers ask before a page reads what its own origin did not send
                hint = "`serve --allow-origin` names those that may"
                return Refusal(403, "origin", f"pages of {origin!r} may not call this server; {hint}")
        length = headers.get(b"content-length", "0")
        if not length.isdecimal() or int(length) > self.max_body:
            return _too_large(self.max_body)
        return None


@dataclass(slots=True)
class _Body:
    """The body of a request, as far as it keeps within its limits."""

    source: Receive
    most: int
    left: int
    seconds: float
    is_read: bool = False
    until: float = 0.0

    async def receive(self) -> Message:
        if self.is_read:
            return await self.source()
        now = asyncio.get_running_loop().time()
        self.until = self.until or now + self.seconds
        try:
            async with asyncio.timeout_at(self.until):
                message = await self.source()
        except TimeoutError:
            raise Refused(Refusal(408, "slow", f"the body took longer than {self.seconds:g} seconds")) from None
        if message["type"] == "http.request":
            self.left -= len(message.get("body", b""))
            if self.left < 0:
                if message.get("more_body", False):
                    await _pass_over(self.source, self.until - now)
                raise Refused(_too_large(self.most))
            self.is_read = not message.get("more_body", False)
        return message


async def _pass_over(receive: Receive, seconds: float) -> None:
    """Take the rest of a body that is refused, up to a limit: most clients read no answer until they have sent it."""
    left = PASSED_OVER
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


def _too_large(most: int) -> Refusal:
    return Refusal(413, TOO_LARGE, f"the request is larger than the limit of {most:,} bytes")


def _path(scope: Scope) -> str:
    """Return the path of a request, below that of a program that mounts the app."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def _values(scope: Scope, name: bytes) -> list[str]:
    """Return all values of a header: who reads the first one and who reads the last one have to find the same."""
    return [value.decode("latin-1") for each, value in scope["headers"] if each == name]


def _name_of_page(origin: str) -> str | None:
    """Return the host of an origin; None for what is none: browsers read other texts in other ways."""
    found = ORIGIN.fullmatch(origin)
    return None if found is None else found[1].lower()


def _as_requested(name: str) -> str:
    """Return a name as a Host header has it, in which an IPv6 address is in brackets."""
    return f"[{name.lower()}]" if ":" in name and not name.startswith("[") else name.lower()


def _name(host: str) -> str:
    """Return a Host header without its port."""
    name = host.lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]
