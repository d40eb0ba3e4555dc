"""import_libraries(): what built-in tools import at their first call, imported before it."""

from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from typing import Final

_NET: Final = ("utools.net.guard", "utools.net.transport")
LIBRARIES: Final = {
    "email": ("aiosmtplib", "email.message", "email.utils"),
    "feishu_bot": _NET,
    "formatter": ("jinja2", "utools.command"),
    "health": (*_NET, "psycopg", "sqlite3", "utools.builtin.health_checks", "utools.databases.redis_server"),
    "http_request": _NET,
    "json_transform": ("utools.query",),
    "shell_command": ("utools.command",),
}
"""By the code of a tool, the modules that it imports where it runs."""


def import_libraries(codes: Iterable[str]) -> None:
    """Import what these tools need at their first call. A library that is not installed is left out: the tool says so
    when it is called."""
    for code in codes:
        for name in LIBRARIES.get(code, ()):
            with suppress(ImportError):
                import_module(name)
