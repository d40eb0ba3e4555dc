"""`health`: whether URLs, TCP ports, Redis servers and databases answer, as far as the author lets it look.

PostgreSQL is checked with the extra `postgres`; without it, only its port is.
"""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.util import find_spec
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from utools.builtin.http_request import CIDRS
from utools.error_text import reason_of
from utools.errors import DefinitionError, NetworkError, ToolError
from utools.files.sandbox import Sandbox
from utools.threads import DaemonThreads
from utools.tool import Args, Tool, ToolContext

if TYPE_CHECKING:
    from utools.net.guard import NetworkGuard

SECONDS, LONGEST = 5.0, 30.0
TARGETS = 20
PORTS = {"redis": 6379, "postgresql": 5432, "postgres": 5432}
KINDS = "https://…, http://…, tcp://HOST:PORT, redis://HOST:PORT, postgresql://HOST:PORT/NAME or sqlite:PATH"
PING = b"PING\r\n"
REFUSED_BY_SERVER = re.compile(r"FATAL: +(.*)")
LETS_NOBODY_IN = re.compile(r"the database system is|too many|connection slots|database \".*\" does not exist")
"""PostgreSQL's words when it starts or ends, has no connection left, or has no such database."""
UNREACHED = re.compile(r"failed: (.*)\n\tIs the server running")
PORT_ONLY = "the port is open; to check PostgreSQL itself: pip install 'agent-core[postgres]'"
LIST = {"type": "array", "items": {"type": "string", "minLength": 1}, "x-author": True}

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "targets": {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": 2048},
            "minItems": 1,
            "maxItems": TARGETS,
            "description": f"What to check: {KINDS}.",
        },
        "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": LONGEST, "description": "Seconds for each."},
        "redis_env": {**LIST, "maxItems": TARGETS, "description": "Secrets with Redis URLs, which are checked too."},
        "allowed_domains": LIST,
        "allow_cidrs": CIDRS,
        "allowed_ports": {"type": "array", "items": {"type": "integer"}, "x-author": True},
    },
}


class _Finding(NamedTuple):
    """Whether a target is healthy, and what else is to be said of it."""

    healthy: bool = True
    detail: str | None = None


Check = Callable[[], Awaitable[_Finding]]


@dataclass(frozen=True, slots=True)
class _Scope:
    """What the checks may reach: hosts by the guard, and files."""

    guard: "NetworkGuard"
    files: Sandbox
    threads: DaemonThreads


def health(root: str | os.PathLike[str] = ".") -> Tool:
    """The tool `health`. It reaches what `http_request` would, by the same presets, and database files below `root`."""
    threads = DaemonThreads(4)

    async def execute(args: Args, context: ToolContext) -> dict[str, Any]:
        from utools.net.guard import NetworkGuard

        guard = NetworkGuard.of(
            allowed_domains=args.get("allowed_domains"),
            allow_cidrs=args.get("allow_cidrs", ()),
            allowed_ports=args.get("allowed_ports"),
        )
        scope = _Scope(guard, Sandbox(root), threads)
        by_secret = [(name, _redis_check(context.secret(name), name)) for name in args.get("redis_env", ())]
        checks = [*((target, _check_of(target, scope)) for target in args.get("targets", ())), *by_secret]
        if not checks:
            raise ToolError(f"there is nothing to check; give targets: {KINDS}")
        seconds = args.get("timeout", SECONDS)
        reports = await asyncio.gather(*(_report(name, check, seconds) for name, check in checks))
        return {"healthy": all(each["healthy"] for each in reports), "targets": list(reports)}

    return Tool(
        code="health",
        description="Check whether URLs, TCP ports, Redis servers and databases answer.",
        config_schema=SCHEMA,
        execute=execute,
        effect="read",
    )


async def _report(name: str, check: Check, seconds: float) -> dict[str, Any]:
    """The state of one target. NetworkError and SandboxError pass: a target that may not be checked is a wrong call."""
    start = perf_counter()
    try:
        found = await asyncio.wait_for(check(), seconds)
    except TimeoutError:
        found = _Finding(False, f"no answer within {seconds:g} seconds")
    except ToolError as error:
        if not error.transient:
            raise
        found = _Finding(False, str(error))
    except OSError as error:
        found = _Finding(False, reason_of(error))
    detail = {} if found.detail is None else {"detail": found.detail}
    return {"target": name, "healthy": found.healthy, "ms": round((perf_counter() - start) * 1000, 1), **detail}


def _check_of(target: str, scope: _Scope) -> Check:
    """The check for a target; ToolError for a text that is no target."""
    scheme, separator, rest = target.partition(":")
    match scheme.lower():
        case "http" | "https":
            return lambda: _check_http(target, scope.guard)
        case "sqlite" if separator:
            return lambda: scope.threads.run(_check_sqlite, scope.files, rest.removeprefix("///"))
        case "tcp" | "redis" | "postgresql" | "postgres" as kind:
            host, port = _host_and_port(target, kind)
            database = _database_name(target)
            return lambda: _check_server(kind, host, port, database, scope.guard)
    raise ToolError(f"{target!r} cannot be checked; write {KINDS}")


def _host_and_port(target: str, kind: str) -> tuple[str, int]:
    try:
        parts = urlsplit(target)
        host, port = parts.hostname or "", parts.port or PORTS.get(kind)
    except ValueError:
        host, port = "", None
    if not host or port is None:
        raise ToolError(f"{target!r} has no host or no port; write {kind}://HOST:PORT")
    if "@" in target:
        raise ToolError("a target must not carry a user or a password; name a secret instead (preset redis_env)")
    return host, port


def _database_name(target: str) -> str:
    name = unquote(urlsplit(target).path).strip("/")
    if "\0" in name:
        raise ToolError(f"{target!r} has a database's name with a NUL character; write postgresql://HOST:PORT/NAME")
    return name


async def _check_http(url: str, guard: "NetworkGuard") -> _Finding:
    from utools.net.transport import fetch

    answer = await fetch(guard, "GET", url, limit=1)
    return _Finding() if answer.status < 400 else _Finding(False, f"status {answer.status}")


async def _check_server(kind: str, host: str, port: int, database: str, guard: "NetworkGuard") -> _Finding:
    """Whether the port is open, and a server of this kind answers there."""
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
    return _Finding(detail=None if kind == "tcp" else PORT_ONLY)


async def _check_redis(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> _Finding:
    writer.write(PING)
    try:
        line = await reader.readline()
    except ValueError:
        return _Finding(False, "not as Redis answers: a line without end")
    if line.startswith((b"+PONG", b"-NOAUTH")):
        return _Finding()
    return _Finding(False, f"not as Redis answers: {line[:80].decode('utf-8', 'replace').strip()!r}")


async def _check_postgres(addresses: list[str], port: int, database: str) -> _Finding:
    """Whether it lets clients in, or asks who they are. No password is sent, and any certificate is accepted."""
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
            return _Finding()
        return _postgres_failure(str(error), database)
    await connection.close()
    return _Finding()


def _postgres_failure(message: str, database: str) -> _Finding:
    """What libpq's message means. A server that only refuses us, or the database that we made up, is healthy."""
    if unreached := UNREACHED.search(message):
        return _Finding(False, unreached[1])
    refusal = REFUSED_BY_SERVER.search(message)
    if refusal is None:
        return _Finding(False, "not as PostgreSQL answers")
    made_up = not database and "does not exist" in refusal[1]
    return _Finding(False, refusal[1]) if LETS_NOBODY_IN.search(refusal[1]) and not made_up else _Finding()


async def _connect(addresses: list[str], port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the first address that takes one."""
    failure: OSError | None = None
    for address in addresses:
        try:
            return await asyncio.open_connection(address, port)
        except OSError as error:
            failure = error
    raise failure or NetworkError("the host has no address", transient=True)


def _redis_check(url: str, name: str) -> Check:
    """The check of a server by its URL, which may hold a password; `name` stands for it in errors."""
    from utools.redis_server import RedisServer

    async def check() -> _Finding:
        server = RedisServer(url, name=name)
        try:
            await server.ask("PING")
        except (ToolError, DefinitionError) as error:
            return _Finding(False, str(error))
        finally:
            await server.close()
        return _Finding()

    return check


def _check_sqlite(files: Sandbox, path: str) -> _Finding:
    import sqlite3
    from contextlib import closing

    with files.open(path, stores=True) as file:
        # by its descriptor: the file at the path may have changed since it was checked
        where = f"file:/dev/fd/{file.fileno()}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(where, uri=True)) as database:
                database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            return _Finding(False, str(error))
    return _Finding()
