"""The secrets that an MCP server is given: variables that look secret, by name or by form, and secret headers."""

import os
from collections.abc import Callable, Iterable
from functools import lru_cache

from utools.secrets.looks import looks_secret
from utools.secrets.redaction import Redactor
from utools.sources.mcp.config import McpServer


def redactor_of(names: Iterable[str]) -> Redactor:
    """Hides those of these environment variables that look secret. The operator lists others in `secret_env`.

    It does not hide all of them: the name of a city or a directory would be missing wherever the server uses it.
    """
    present = ((name, os.environ[name]) for name in sorted(set(names)) if name in os.environ)
    return _redactor(tuple((name, value) for name, value in present if looks_secret(name, value)))


def redactor_for(server: McpServer, secret: Callable[[str], str]) -> Redactor:
    """Hides what a server is given: variables where it is started, headers where it runs already."""
    if server.command is not None:
        return redactor_of(server.env)
    return Redactor({name: secret(name) for name in server.secret_names})


@lru_cache(maxsize=64)
def _redactor(secrets: tuple[tuple[str, str], ...]) -> Redactor:
    return Redactor(dict(secrets))
