"""The checks of `health`: of a URL, a server at a port, a Redis server by its URL, and a SQLite file."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from utools.errors import DefinitionError, NetworkError, ToolError
from utools.files.sandbox import Sandbox
from utools.lazy_pattern import lazy_compile
from utools.words.text import Text

if TYPE_CHECKING:
    from utools.net.guard import NetworkGuard

PING = b"PING\r\n"
REFUSED_BY_SERVER = lazy_compile(r"FATAL: +(.*)")
LETS_NOBODY_IN = lazy_compile(r"the database system is|too many|connection slots|database \".*\" does not exist")
"""PostgreSQL's words when it starts or ends, has no connection left, or has no such database."""
UNREACHED = lazy_compile(r"failed: (.*)\n\tIs the server running")
PORT_ONLY = Text("the port is open; to check PostgreSQL itself: pip install 'agent-core[postgres]'")


class Finding(NamedTuple):
    """Whether a target is healthy, and what else is to be said of it."""

    healthy: bool = True
    detail: str | Exception | None = None


Check = Callable[[], Awaitable[Finding]]


async def check_http(url: str, guard: "NetworkGuard") -> Finding:
    from utools.net.transport import fetch

    answer = await fetch(guard, "GET", url, limit=1)
    return Finding() if answer.status < 400 else Finding(False, Text("status {status}", status=answer.status))


async def check_server(kind: str, host: str, port: int, database: str, guard: "NetworkGuard") -> Finding:
    """Return whether the port is open, and a server of this kind answers there."""
    bracketed = f"[{host}]" if ":" in host else host
    target = guard.target(f"http://{bracketed}:{port}")
    addresses = await guard.addresses(target.host, target.port)
    if kind in ("postgresql", "postgres") and find_spec("psycopg"):
        return await _check_postgres(addresses, port, database)
    reader, writer = await _connect(addresses, port)
    try:
        if kind == "redis":
            return await _check_redis(reader, writer)
    finally:
        writer.close()
    return Finding(detail=None if kind == "tcp" else PORT_ONLY)


async def _check_redis(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Finding:
    writer.write(PING)
    try:
        line = await reader.readline()
    except ValueError:
        return Finding(False, Text("not as Redis answers: a line without end"))
    if line.startswith((b"+PONG", b"-NOAUTH")):
        return Finding()
    return Finding(False, Text("not as Redis answers: {line!r}", line=line[:80].decode("utf-8", "replace").strip()))


async def _check_postgres(addresses: list[str], port: int, database: str) -> Finding:
    """Return whether it lets clients in, or asks who they are. No password is sent, and any certificate is accepted."""
    from psycopg import AsyncConnection, OperationalError

    try:
        connection = await AsyncConnection.connect(
            hostaddr=",".join(addresses),
            port=port,
            dbname=database or "postgres",
            user="postgres",
            password="",
            passfile=os.path.join(os.devnull, "none"),
            sslmode="prefer",
            sslcertmode="disable",
            gssencmode="disable",
        )
    except OperationalError as error:
        if error.pgconn is not None and error.pgconn.needs_password:
            return Finding()
        return _postgres_failure(str(error), database)
    await connection.close()
    return Finding()


def _postgres_failure(message: str, database: str) -> Finding:
    """Return what libpq's message means. A server that only refuses us, or the database that we made up, is healthy."""
    if unreached := UNREACHED.search(message):
        return Finding(False, unreached[1])
    refusal = REFUSED_BY_SERVER.search(message)
    if refusal is None:
        return Finding(False, Text("not as PostgreSQL answers"))
    made_up = not database and "does not exist" in refusal[1]
    return Finding(False, refusal[1]) if LETS_NOBODY_IN.search(refusal[1]) and not made_up else Finding()


async def _connect(addresses: list[str], port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection to the first address that takes one."""
    failure: OSError | None = None
    for address in addresses:
        try:
            return await asyncio.open_connection(address, port)
        except OSError as error:
            failure = error
    raise failure or NetworkError("the host has no address", transient=True)


def redis_check(url: str, name: str) -> Check:
    """Return the check of a server by its URL, which may hold a password; `name` stands for it in errors."""
    from utools.databases.redis_server import RedisServer

    async def check() -> Finding:
        server = RedisServer(url, name=name)
        try:
            await server.ask("PING")
        except (ToolError, DefinitionError) as error:
            return Finding(False, error)
        finally:
            await server.close()
        return Finding()

    return check


def check_sqlite(files: Sandbox, path: str) -> Finding:
    import sqlite3
    from contextlib import closing

    with files.open(path, stores=True) as file:
        # by its descriptor: the file at the path may have changed since it was checked
        where = f"file:/dev/fd/{file.fileno()}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(where, uri=True)) as database:
                database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            return Finding(False, str(error))
    return Finding()
