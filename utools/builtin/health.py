"""`health`: whether URLs, TCP ports, Redis servers and databases answer, as far as the author lets it look.

PostgreSQL is checked with the extra `postgres`; without it, only its port is.
"""

import os
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from utools.builtin.http_request import CIDRS
from utools.error_text import reason_of
from utools.errors import ToolError
from utools.files.sandbox import Sandbox
from utools.threads import DaemonThreads
from utools.tool import Args, Tool, ToolContext
from utools.words.text import Text, translate

if TYPE_CHECKING:
    from utools.builtin.health_checks import Check
    from utools.net.guard import NetworkGuard

SECONDS, LONGEST = 5.0, 30.0
TARGETS = 20
PORTS = {"redis": 6379, "postgresql": 5432, "postgres": 5432}
KINDS = Text("https://…, http://…, tcp://HOST:PORT, redis://HOST:PORT, postgresql://HOST:PORT/NAME or sqlite:PATH")
LIST = {"type": "array", "items": {"type": "string", "minLength": 1}, "x-author": True, "x-narrow": "patterns"}

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
        "allowed_domains": {**LIST, "description": "Hosts that may be checked, or patterns such as *.example.com."},
        "allow_cidrs": CIDRS,
        "allowed_ports": {
            "type": "array",
            "items": {"type": "integer"},
            "x-author": True,
            "x-narrow": "subset",
            "description": "Ports that may be checked.",
        },
    },
}
_REPORT = {
    "type": "object",
    "properties": {
        "target": {"type": "string"},
        "healthy": {"type": "boolean"},
        "ms": {"type": "number"},
        "detail": {"type": "string"},
    },
    "additionalProperties": False,
}
OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {"healthy": {"type": "boolean"}, "targets": {"type": "array", "items": _REPORT}},
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class _Scope:
    """What the checks may reach: hosts by the guard, and files."""

    guard: "NetworkGuard"
    files: Sandbox
    threads: DaemonThreads


def health(root: str | os.PathLike[str] = ".") -> Tool:
    """Return the tool `health`. It reaches what `http_request` would, by the same presets, and database files below
    `root`."""
    threads = DaemonThreads(4)

    async def execute(args: Args, context: ToolContext) -> dict[str, Any]:
        from asyncio import gather

        from utools.builtin.health_checks import redis_check
        from utools.net.guard import NetworkGuard

        guard = NetworkGuard.from_settings(
            allowed_domains=args.get("allowed_domains"),
            allow_cidrs=args.get("allow_cidrs", ()),
            allowed_ports=args.get("allowed_ports"),
        )
        scope = _Scope(guard, Sandbox(root), threads)
        by_secret = [(name, redis_check(context.secret(name), name)) for name in args.get("redis_env", ())]
        checks = [*((target, _check_of(target, scope)) for target in args.get("targets", ())), *by_secret]
        if not checks:
            raise ToolError("there is nothing to check; give targets: {kinds}", kinds=KINDS)
        seconds = args.get("timeout", SECONDS)
        reports = await gather(*(_report(name, check, seconds, context.language) for name, check in checks))
        return {"healthy": all(each["healthy"] for each in reports), "targets": list(reports)}

    return Tool(
        code="health",
        description="Check whether URLs, TCP ports, Redis servers and databases answer.",
        config_schema=SCHEMA,
        output_schema=OUTPUT,
        examples=[
            {
                "user": "Does https://shop.example answer?",
                "args": {"targets": ["https://shop.example"]},
                "output": {"healthy": True, "targets": [{"target": "https://shop.example", "healthy": True, "ms": 41}]},
                "answer": "Yes, https://shop.example answers.",
            }
        ],
        execute=execute,
        effect="read",
    )


async def _report(name: str, check: "Check", seconds: float, language: str) -> dict[str, Any]:
    """Return the state of one target. NetworkError and SandboxError pass: a target that may not be checked is a wrong
    call."""
    from asyncio import timeout

    from utools.builtin.health_checks import Finding

    start = perf_counter()
    try:
        async with timeout(seconds):
            found = await check()
    except TimeoutError:
        found = Finding(False, Text("no answer within {seconds:g} seconds", seconds=seconds))
    except ToolError as error:
        if not error.transient:
            raise
        found = Finding(False, error)
    except OSError as error:
        found = Finding(False, reason_of(error))
    detail = {} if found.detail is None else {"detail": translate(found.detail, language)}
    return {"target": name, "healthy": found.healthy, "ms": round((perf_counter() - start) * 1000, 1), **detail}


def _check_of(target: str, scope: _Scope) -> "Check":
    """Return the check for a target; ToolError for a text that is no target."""
    from utools.builtin.health_checks import check_http, check_server, check_sqlite

    scheme, separator, rest = target.partition(":")
    match scheme.lower():
        case "http" | "https":
            return lambda: check_http(target, scope.guard)
        case "sqlite" if separator:
            return lambda: scope.threads.run(check_sqlite, scope.files, rest.removeprefix("///"))
        case "tcp" | "redis" | "postgresql" | "postgres" as kind:
            host, port = _host_and_port(target, kind)
            database = _database_name(target)
            return lambda: check_server(kind, host, port, database, scope.guard)
        case _:
            raise ToolError("{target!r} cannot be checked; write {kinds}", target=target, kinds=KINDS)


def _host_and_port(target: str, kind: str) -> tuple[str, int]:
    try:
        parts = urlsplit(target)
        host, port = parts.hostname or "", parts.port or PORTS.get(kind)
    except ValueError:
        host, port = "", None
    if not host or port is None:
        raise ToolError("{target!r} has no host or no port; write {kind}://HOST:PORT", target=target, kind=kind)
    if "@" in target:
        raise ToolError("a target must not carry a user or a password; name a secret instead (preset redis_env)")
    return host, port


def _database_name(target: str) -> str:
    name = unquote(urlsplit(target).path).strip("/")
    if "\0" in name:
        raise ToolError(
            "{target!r} has a database's name with a NUL character; write postgresql://HOST:PORT/NAME", target=target
        )
    return name
