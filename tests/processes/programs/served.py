"""A WSGI application that has run an agent before its server forks, and runs one for each request."""

from collections.abc import Callable, Iterable
from typing import Any

from asking import ask

assert ask() == "done 12"


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    body = ask().encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
