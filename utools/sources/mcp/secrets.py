"""What an MCP server is given by name and nobody else is to see: values that look secret, by name or by form."""

import os
import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from utools.secrets.redaction import Redactor
from utools.sources.mcp.config import McpServer

SECRET = re.compile(
    r"(?:^|_)[A-Z0-9]*(?:AUTH|COOKIE|CREDENTIAL|DSN|KEY|PASS|PASSPHRASE|PASSWD|PASSWORD|PAT|PWD|SECRET|TOKEN)S?(?:_|$)",
    re.I,
)
NO_VALUE = re.compile(r"_(?:DIR|FILE|HOST|NAME|PATH|SOCK)$", re.I)
LOGIN = re.compile(r"://[^/\s@]*:[^/\s@]+@")


def redactor_of(names: Iterable[str]) -> Redactor:
    """Hides those of these variables that look secret. What else is secret, the operator lists in `secret_env`.

    Not all of them: the name of a city or a directory would be missing wherever the server speaks of it.
    """
    present = ((name, os.environ[name]) for name in sorted(set(names)) if name in os.environ)
    return _redactor(tuple((name, value) for name, value in present if _looks_secret(name, value)))


def redactor_for(server: McpServer, secret: Callable[[str], str]) -> Redactor:
    """Hides what a server is given: those variables where it is started, the secrets that are sent where it runs."""
    if server.command is not None:
        return redactor_of(server.env)
    sent = sorted({*server.secret_headers.values(), *([server.token_env] if server.token_env else [])})
    return Redactor({name: secret(name) for name in sent})


def _looks_secret(name: str, value: str) -> bool:
    named = SECRET.search(name) is not None and NO_VALUE.search(name) is None
    return named or LOGIN.search(value) is not None


@lru_cache(maxsize=64)
def _redactor(secrets: tuple[tuple[str, str], ...]) -> Redactor:
    return Redactor(dict(secrets))
