"""`health`: whether URLs, TCP ports, Redis servers and databases answer, as far as the author lets it look."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from utools.builtin.http_request import CIDRS
from utools.errors import DefinitionError, NetworkError, ToolError
from utools.files.sandbox import Sandbox
from utools.threads import DaemonThreads
from utools.tool import Args, Tool, ToolContext

if TYPE_CHECKING:
    import ssl

    from utools.net.guard import NetworkGuard

SECONDS, LONGEST = 5.0, 30.0
TARGETS = 20
PORTS = {"redis": 6379, "postgresql": 5432, "postgres": 5432}
KINDS = "https://…, http://…, tcp://HOST:PORT, redis://HOST:PORT, postgresql://HOST:PORT/NAME or sqlite:PATH"
PING = b"PING\r\n"
WHETHER_TLS = bytes.fromhex("0000000804d2162f")
"""PostgreSQL's SSLRequest: it is answered S or N before any login."""
PROTOCOL, LET_IN, NO_DATABASE = bytes.fromhex("00030000"), bytes(4), "3D000"
CLOSED = re.compile(f"57P|53|{NO_DATABASE}")
"""PostgreSQL's SQLSTATEs of a server that lets nobody in: starting or ending, short of something, no such database."""
LONGEST_MESSAGE = 65_536
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
Detail = str | None
"""What is wrong; None when all is well."""


@dataclass(frozen=True, slots=True)
class _Looking:
    """What the checks need: what may be reached, and the files that may be read."""

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
        looking = _Looking(guard, Sandbox(root), threads)
        named = [(name, _redis_by_secret(context.secret(name), name)) for name in args.get("redis_env", ())]
        checks = [*((target, _check(target, looking)) for target in args.get("targets", ())), *named]
        if not checks:
            raise ToolError(f"there is nothing to check; give targets: {KINDS}")
        seconds = args.get("timeout", SECONDS)
        told = await asyncio.gather(*(_told(name, check, seconds) for name, check in checks))
        return {"healthy": all(each["healthy"] for each in told), "targets": list(told)}

    return Tool(
        code="health",
        description="Check whether URLs, TCP ports, Redis servers and databases answer.",
        config_schema=SCHEMA,
        execute=execute,
        effect="read",
    )


async def _told(name: str, check: Callable[[], Awaitable[Detail]], seconds: float) -> dict[str, Any]:
    """How one target is. One that may not be looked at is a mistake of the call: NetworkError, SandboxError."""
    start = perf_counter()
    try:
        detail = await asyncio.wait_for(check(), seconds)
    except TimeoutError:
        detail = f"no answer within {seconds:g} seconds"
    except ToolError as error:
        if not error.transient:
            raise
        detail = str(error)
    except OSError as error:
        detail = _reason(error)
    shown = {} if detail is None else {"detail": detail}
    return {"target": name, "healthy": detail is None, "ms": round((perf_counter() - start) * 1000, 1), **shown}


def _check(target: str, looking: _Looking) -> Callable[[], Awaitable[Detail]]:
    """The check that a target asks for; ToolError for one that is none."""
    scheme, separator, rest = target.partition(":")
    match scheme.lower():
        case "http" | "https":
            return lambda: _http(target, looking.guard)
        case "sqlite" if separator:
            return lambda: looking.threads.run(_sqlite, looking.files, rest.removeprefix("///"))
        case "tcp" | "redis" | "postgresql" | "postgres" as kind:
            host, port = _place(target, kind)
            database = _database(target)
            return lambda: _spoken(kind, host, port, database, looking.guard)
    raise ToolError(f"{target!r} cannot be checked; write {KINDS}")


def _place(target: str, kind: str) -> tuple[str, int]:
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


def _database(target: str) -> str:
    name = unquote(urlsplit(target).path).strip("/")
    if "\0" in name:
        raise ToolError(f"{target!r} has a database's name with a NUL character; write postgresql://HOST:PORT/NAME")
    return name


async def _http(url: str, guard: "NetworkGuard") -> Detail:
    from utools.net.transport import fetch

    answer = await fetch(guard, "GET", url, limit=1)
    return None if answer.status < 400 else f"status {answer.status}"


async def _spoken(kind: str, host: str, port: int, database: str, guard: "NetworkGuard") -> Detail:
    """Whether the port is open, and whoever is behind it answers as such a server does."""
    bracketed = f"[{host}]" if ":" in host else host
    target = guard.target(f"http://{bracketed}:{port}")
    reader, writer = await _connected(await guard.addresses(target.host, target.port), target.port)
    try:
        match kind:
            case "redis":
                writer.write(PING)
                line = await reader.readline()
                ready = line.startswith((b"+PONG", b"-NOAUTH"))
                return None if ready else f"not as Redis answers: {line[:80].decode('utf-8', 'replace').strip()!r}"
            case "postgresql" | "postgres":
                return await _postgres(reader, writer, database)
        return None
    except ValueError:
        return "not as Redis answers: a line without end"
    finally:
        writer.close()


async def _postgres(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, database: str) -> Detail:
    """Whether it lets clients in, or asks who they are: no password is given, as `pg_isready` gives none."""
    strange = "not as PostgreSQL answers"
    try:
        writer.write(WHETHER_TLS)
        tls = await reader.readexactly(1)
        if tls not in (b"S", b"N"):
            return strange
        if tls == b"S":
            await writer.start_tls(_any_certificate())
        writer.write(_startup(database or "postgres"))
        while True:
            kind, body = await _message(reader)
            match kind:
                case b"E":
                    return _refusal(body, database)
                case b"R" if body != LET_IN:
                    return None
                case b"Z":
                    return None
                case b"R" | b"S" | b"K" | b"N" | b"v":
                    continue
            return strange
    except (EOFError, ValueError):
        return strange


def _refusal(body: bytes, database: str) -> Detail:
    """Why a server lets nobody in; None when it only does not let us in, or has not the database that we made up."""
    said = {field[:1]: field[1:].decode("utf-8", "replace") for field in body.split(b"\0")}
    code = said.get(b"C", "")
    made_up = code == NO_DATABASE and not database
    return said.get(b"M", f"SQLSTATE {code}") if CLOSED.match(code) and not made_up else None


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The kind and the body of PostgreSQL's next message; ValueError for a length that is none."""
    head = await reader.readexactly(5)
    length = int.from_bytes(head[1:], "big") - 4
    if not 0 <= length <= LONGEST_MESSAGE:
        raise ValueError(length)
    return head[:1], await reader.readexactly(length)


def _startup(database: str) -> bytes:
    words = ("user", "postgres", "database", database, "")
    body = PROTOCOL + b"".join(word.encode("utf-8", "replace") + b"\0" for word in words)
    return (len(body) + 4).to_bytes(4, "big") + body


def _any_certificate() -> "ssl.SSLContext":
    """TLS with whoever it is: nothing secret is said, and many databases vouch for themselves."""
    import ssl

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _connected(addresses: list[str], port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    failed: OSError | None = None
    for address in addresses:
        try:
            return await asyncio.open_connection(address, port)
        except OSError as error:
            failed = error
    raise failed or NetworkError("the host has no address", transient=True)


def _redis_by_secret(url: str, name: str) -> Callable[[], Awaitable[Detail]]:
    from utools.redis_server import RedisServer

    async def check() -> Detail:
        server = RedisServer(url, name=name)
        try:
            await server.ask("PING")
        except (ToolError, DefinitionError) as error:
            return str(error)
        finally:
            await server.close()
        return None

    return check


def _sqlite(files: Sandbox, path: str) -> Detail:
    import sqlite3
    from contextlib import closing

    with files.open(path, stores=True) as file:
        # by its descriptor: what lies at the path may have changed since it was checked
        where = f"file:/dev/fd/{file.fileno()}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(where, uri=True)) as database:
                database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            return str(error)
    return None


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error) or type(error).__name__
