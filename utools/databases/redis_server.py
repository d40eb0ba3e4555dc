"""RedisServer: one command at a time, with clear errors for what the server refuses and for one that is away."""

import os
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from utools.error_text import reason_of
from utools.errors import DefinitionError, ToolError
from utools.lazy_pattern import lazy_compile
from utools.words.text import Text

if TYPE_CHECKING:
    import asyncio  # a caller has it already; the registry of a host is built without it

    from redis.asyncio.connection import AbstractConnection, ConnectionPool

VARIABLE = "REDIS_URL"
SECONDS = 10.0
"""How long an answer may take, unless the URL says otherwise (`?socket_timeout=2`)."""
CONNECTIONS = 64
"""In one event loop; a caller that finds all of them busy waits."""
IDLE_SECONDS = 30.0
"""A connection that was idle for longer is made anew: what lies between may have dropped it silently."""

ERROR = lazy_compile(r"Error ([1-9]\d*) ")
TURNS = 2
"""Turns of the event loop in which it notices that the server closed an idle connection: no write is lost on it."""
NEVER = 10.0**8
NO_LOGIN = Text("refuses the login; check the user and the password in its URL")


class WrongType(ToolError):
    """The key holds another type of value than the command is for."""


class RedisServer:
    """A server by its URL. Threads and event loops may share it: each loop has connections of its own.

    Connections are opened when they are needed, reused, and closed with their event loop. Errors call the server by
    `name`, because its URL may hold a password.
    """

    def __init__(
        self, url: str, *, name: str | None = None, connections: Any = None, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self._url, self._connections, self._idle_seconds = url, connections, idle_seconds
        self.name = f"Redis ({name})" if name else "Redis"
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Connections] = WeakKeyDictionary()

    async def ask(self, *command: bytes | str | int) -> Any:
        """Return the reply to one command, with texts as bytes.

        ToolError if the server refuses it (WrongType is one) or cannot be reached; it is transient if nothing was
        sent. ConnectionResetError or TimeoutError if no reply came: the server may have done it.
        """
        from asyncio import sleep

        local = await self._of_this_loop()
        async with local.slots:
            since, connection = local.idle.pop() if local.idle else (0.0, self._new_connection(local.pool))
            try:
                if connection.is_connected and monotonic() - since > self._idle_seconds:
                    await connection.disconnect(nowait=True)
                for _ in range(TURNS if connection.is_connected else 0):
                    await sleep(0)
                await self._connect(local.pool, connection)
                return await self._answer(connection, command)
            finally:
                local.idle.append((monotonic(), connection))

    def check(self) -> None:
        """DefinitionError for a URL that cannot be used; nothing is connected."""
        self._pool()

    async def close(self) -> None:
        """Close this event loop's connections. A later command opens new ones."""
        from asyncio import get_running_loop

        local = self._loops.pop(get_running_loop(), None)
        if local is not None and local.closing is not None and local.holder is not None:
            local.holder.cancel()
            await local.closing.aclose()

    async def _of_this_loop(self) -> "_Connections":
        from asyncio import Semaphore, get_running_loop

        loop = get_running_loop()
        local = self._loops.get(loop)
        if local is None:
            local = self._loops[loop] = _Connections(self._pool(), Semaphore(CONNECTIONS))
            local.closing = _close_with_loop(local.idle)
            await anext(local.closing)
            local.holder = loop.call_later(NEVER, id, local.closing)
        return local

    def _pool(self) -> "ConnectionPool":
        from redis.asyncio.connection import ConnectionPool, parse_url

        try:
            _check_number(self._url)
            parse_url(self._url)
            options = {"socket_timeout": SECONDS, "socket_connect_timeout": SECONDS, "protocol": 2}
            pool = ConnectionPool.from_url(self._url, **options)
            self._new_connection(pool)
        except Exception:  # the library's readers of URLs raise errors of any kind
            raise DefinitionError(
                Text(
                    "{server}: its URL cannot be used; write redis://HOST:6379/0, rediss://… or unix:///PATH",
                    server=self.name,
                )
            ) from None
        if self._connections is not None:
            pool.connection_class = self._connections
        return pool

    @staticmethod
    def _new_connection(pool: "ConnectionPool") -> "AbstractConnection":
        connection: AbstractConnection = pool.make_connection()  # type: ignore[no-untyped-call]
        return connection

    async def _connect(self, pool: "ConnectionPool", connection: "AbstractConnection") -> None:
        from redis import exceptions

        try:
            await pool.ensure_connection(connection)
        except (exceptions.AuthenticationError, exceptions.AuthorizationError, exceptions.NoPermissionError):
            raise ToolError("{server} {reason}", server=self.name, reason=NO_LOGIN) from None
        except (exceptions.RedisError, OSError) as error:
            raise ToolError(
                "{server} cannot be reached: {reason}", server=self.name, reason=_reason(error), transient=True
            ) from None

    async def _answer(self, connection: "AbstractConnection", command: tuple[bytes | str | int, ...]) -> Any:
        from redis import exceptions

        try:
            await connection.send_command(*command)
            return await connection.read_response()
        except (exceptions.ResponseError, exceptions.AuthenticationError, exceptions.BusyLoadingError) as error:
            raise self._refusal(error) from None
        except exceptions.TimeoutError:
            raise TimeoutError(Text("{server} gave no answer in time", server=self.name)) from None
        except (exceptions.ConnectionError, OSError) as error:
            raise ConnectionResetError(
                Text("{server} broke off before its answer: {reason}", server=self.name, reason=_reason(error))
            ) from None
        except exceptions.RedisError as error:
            raise ConnectionResetError(
                Text("{server} gave an answer that cannot be read: {error}", server=self.name, error=error)
            ) from None

    def _refusal(self, error: Exception) -> ToolError:
        """Return the error for a refusal of the server, which has done nothing."""
        from redis import exceptions

        match error:
            case exceptions.OutOfMemoryError():
                reason = Text(
                    "is out of memory, so nothing was written; its operator must free some, or raise its maxmemory"
                )
            case exceptions.AuthenticationError():
                reason = NO_LOGIN
            case exceptions.NoPermissionError():
                reason = Text("does not permit this to its user: {error}", error=error)
            case exceptions.ReadOnlyError():
                reason = Text("is a replica that only reads; name the server that it copies")
            case exceptions.MovedError() | exceptions.AskError() | exceptions.ClusterDownError():
                reason = Text("is one of a cluster, where keys are on several servers; name one that is by itself")
            case exceptions.BusyLoadingError():
                return ToolError("{server} is still loading its data", server=self.name, transient=True)
            case _ if "WRONGTYPE" in str(error):
                return WrongType("{server}: the key holds another type of value than this is for", server=self.name)
            case _:
                reason = Text("refused it: {error}", error=error)
        return ToolError("{server} {reason}", server=self.name, reason=reason)


@dataclass(slots=True)
class _Connections:
    """The connections of one event loop."""

    pool: "ConnectionPool"
    slots: "asyncio.Semaphore"
    idle: "list[tuple[float, AbstractConnection]]" = field(default_factory=list)
    """Each with the time since when it is idle."""
    closing: "AsyncGenerator[None] | None" = None
    holder: "asyncio.TimerHandle | None" = None


async def _close_with_loop(idle: "list[tuple[float, AbstractConnection]]") -> "AsyncGenerator[None]":
    """Closes the connections when the event loop ends, since a loop then closes its unfinished async generators.

    A timer that never fires holds the generator: without it, the generator would be collected outside of the loop.
    """
    try:
        yield
    finally:
        for _, each in idle:
            await each.disconnect()


def redis_of_host() -> RedisServer | None:
    """Return the server of REDIS_URL; None if that is not set. DefinitionError for a URL that cannot be used."""
    url = os.environ.get(VARIABLE)
    if not url:
        return None
    server = RedisServer(url, name=VARIABLE)
    server.check()
    return server


def _check_number(url: str) -> None:
    """ValueError for a database that is no number: the library would take the first one for it."""
    parts = urlsplit(url.strip())
    if parts.scheme != "unix" and (database := parts.path.strip("/")):
        int(database)


def _reason(error: BaseException) -> str:
    """Return the operating system's words if there are any: the library's words hold the address."""
    if number := ERROR.match(str(error)):
        return os.strerror(int(number[1]))
    return reason_of(error)
