"""A Redis server, asked one command at a time: what it refuses, or that it cannot be reached, is told clearly."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from utools.error_text import reason_of
from utools.errors import DefinitionError, ToolError

if TYPE_CHECKING:
    from redis.asyncio.connection import AbstractConnection, ConnectionPool

VARIABLE = "REDIS_URL"
SECONDS = 10.0
"""How long an answer may take, unless the URL says otherwise (`?socket_timeout=2`)."""
CONNECTIONS = 64
"""In one event loop; who comes when all are busy waits."""

ERROR = re.compile(r"Error ([1-9]\d*) ")
LOOKS = 2
"""Turns of the event loop in which it notices that an idle connection was closed, so that no write is lost on it."""
LONG = 10.0**8
NO_LOGIN = "refuses the login; check the user and the password in its URL"


class WrongType(ToolError):
    """The key holds another type of value than the command is for."""


class RedisServer:
    """A server by its URL. Threads and event loops may share it: each loop has connections of its own.

    Connections are made when they are needed, are kept, and end with their event loop. `name` is what errors call the
    server, for its URL may hold a password.
    """

    def __init__(self, url: str, *, name: str | None = None, connections: Any = None) -> None:
        self._url, self._connections = url, connections
        self.name = f"Redis ({name})" if name else "Redis"
        self._open: WeakKeyDictionary[asyncio.AbstractEventLoop, _Open] = WeakKeyDictionary()

    async def ask(self, *command: bytes | str | int) -> Any:
        """The reply to one command, texts as bytes.

        ToolError for what the server refuses (WrongType among it), or when it cannot be reached; that is transient
        where nothing was sent. ConnectionResetError or TimeoutError when no answer came back: it may have been heard.
        """
        here = await self._here()
        async with here.places:
            connection = here.idle.pop() if here.idle else self._made(here.pool)
            try:
                for _ in range(LOOKS if connection.is_connected else 0):
                    await asyncio.sleep(0)
                await self._connect(here.pool, connection)
                return await self._answer(connection, command)
            finally:
                here.idle.append(connection)

    def check(self) -> None:
        """DefinitionError for a URL that is none; nothing is connected."""
        self._pool()

    async def close(self) -> None:
        """Let go of this event loop's connections. A later command opens new ones."""
        here = self._open.pop(asyncio.get_running_loop(), None)
        if here is not None and here.until_closed is not None and here.held is not None:
            here.held.cancel()
            await here.until_closed.aclose()

    async def _here(self) -> "_Open":
        loop = asyncio.get_running_loop()
        here = self._open.get(loop)
        if here is None:
            here = self._open[loop] = _Open(self._pool())
            here.until_closed = _until_closed(here.idle)
            await anext(here.until_closed)
            here.held = loop.call_later(LONG, id, here.until_closed)
        return here

    def _pool(self) -> "ConnectionPool":
        from redis.asyncio.connection import ConnectionPool, parse_url

        try:
            parse_url(self._url)
            options = {"socket_timeout": SECONDS, "socket_connect_timeout": SECONDS, "protocol": 2}
            pool = ConnectionPool.from_url(self._url, **options)
            self._made(pool)
        except Exception as error:  # the library's own readers of URLs raise whatever they like
            told = f"{self.name}: its URL cannot be used; write redis://HOST:6379/0, rediss://… or unix:///PATH"
            raise DefinitionError(f"{told} ({type(error).__name__})") from None
        if self._connections is not None:
            pool.connection_class = self._connections
        return pool

    @staticmethod
    def _made(pool: "ConnectionPool") -> "AbstractConnection":
        made: AbstractConnection = pool.make_connection()  # type: ignore[no-untyped-call]
        return made

    async def _connect(self, pool: "ConnectionPool", connection: "AbstractConnection") -> None:
        from redis import exceptions as said

        try:
            await pool.ensure_connection(connection)
        except (said.AuthenticationError, said.AuthorizationError, said.NoPermissionError):
            raise ToolError(f"{self.name} {NO_LOGIN}") from None
        except (said.RedisError, OSError) as error:
            raise ToolError(f"{self.name} cannot be reached: {_why(error)}", transient=True) from None

    async def _answer(self, connection: "AbstractConnection", command: tuple[bytes | str | int, ...]) -> Any:
        from redis import exceptions as said

        try:
            await connection.send_command(*command)
            return await connection.read_response()
        except (said.ResponseError, said.AuthenticationError, said.BusyLoadingError) as error:
            raise self._refused(error) from None
        except said.TimeoutError:
            raise TimeoutError(f"{self.name} gave no answer in time") from None
        except (said.ConnectionError, OSError) as error:
            raise ConnectionResetError(f"{self.name} broke off before its answer: {_why(error)}") from None
        except said.RedisError as error:
            raise ConnectionResetError(f"{self.name} gave an answer that cannot be read: {error}") from None

    def _refused(self, error: Exception) -> ToolError:
        """What the server's own refusal means; nothing was done."""
        from redis import exceptions as said

        match error:
            case said.OutOfMemoryError():
                told = "is out of memory, so nothing was written; its operator must free some, or raise its maxmemory"
            case said.AuthenticationError():
                told = NO_LOGIN
            case said.NoPermissionError():
                told = f"does not permit this to its user: {error}"
            case said.ReadOnlyError():
                told = "is a replica that only reads; name the server that it copies"
            case said.BusyLoadingError():
                return ToolError(f"{self.name} is still loading its data", transient=True)
            case _ if "WRONGTYPE" in str(error):
                return WrongType(f"{self.name}: the key holds another type of value than this is for")
            case _:
                told = f"refused it: {error}"
        return ToolError(f"{self.name} {told}")


@dataclass(slots=True)
class _Open:
    """The connections of one event loop."""

    pool: "ConnectionPool"
    idle: "list[AbstractConnection]" = field(default_factory=list)
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CONNECTIONS))
    until_closed: "AsyncGenerator[None] | None" = None
    held: asyncio.TimerHandle | None = None


async def _until_closed(idle: "list[AbstractConnection]") -> "AsyncGenerator[None]":
    """An event loop that ends closes the generators that it has begun, and this one takes the connections along.

    The loop itself holds it, by a timer that never comes up: what nobody holds would be closed too late to wait for.
    """
    try:
        yield
    finally:
        for each in idle:
            await each.disconnect()


def redis_of_host() -> RedisServer | None:
    """The server that REDIS_URL names, or None where it is not set; DefinitionError for a URL that is none."""
    url = os.environ.get(VARIABLE)
    if not url:
        return None
    server = RedisServer(url, name=VARIABLE)
    server.check()
    return server


def _why(error: BaseException) -> str:
    """The operating system's own words where there are any: the library's name the address."""
    told = str(error)
    if number := ERROR.match(told):
        return os.strerror(int(number[1]))
    return reason_of(error)
