"""The command serve: the HTTP API of this host, until it is told to end."""

import asyncio
import errno
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import typer
import uvicorn
from starlette.types import ASGIApp

from engine_shim.api.app import create_app
from engine_shim.api.guard import LOOPBACK
from engine_shim.cli import output
from engine_shim.cli.engine import with_engine
from engine_shim.cli.output import Options
from engine_shim.cli.store import find_address
from engine_shim.host.config import HostConfig
from engine_shim.host.find import load_host_config
from engine_shim.service.service import Service
from engine_shim.telemetry.export import exporting
from engine_shim.web.decision_page import write_decision_page
from engine_shim.web.site import serve_page

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as AutoHTTPProtocol
else:
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

OF_THE_PORT: Final = (errno.EADDRINUSE, errno.EACCES)
"""Why a port cannot be listened at, where its address can."""
HEAD_S: Final = 30.0
"""Seconds that the head of a request may take."""
IDLE_S: Final = 75
"""Seconds that a connection may be idle between requests: proxies keep theirs for 60, and a request on one that was
closed at that moment is lost."""


class Connection(AutoHTTPProtocol):
    """A connection whose client has to send the head of a request within a time: a half-open one costs a descriptor."""

    head_seconds = HEAD_S
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._await_head()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.head_seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class Server(uvicorn.Server):
    """A server that lets those go who follow or wait for runs, before it waits for their connections to end."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on SIGINT and SIGTERM, as a success: what is unfinished continues at the next start."""
        before = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    async def shutdown(self, sockets: "list[object] | None" = None) -> None:  # type: ignore[override]
        self._service.let_go()
        await super().shutdown(sockets)  # type: ignore[arg-type]


def serve_host(
    host: str,
    port: int,
    hosts: Sequence[str],
    origins: Sequence[str],
    model: str | None,
    options: Options,
    conversation_tokens: int | None = None,
) -> int:
    """Serve this host. BadParameter for an address that others reach while it asks for no token."""
    service = open_service(host, hosts, model, options, conversation_tokens)
    names = list_names(host, [*hosts, *_names_of_links(service.tenants[None].config)])
    app = create_app(service, hosts=names, origins=origins, write_page=write_decision_page)
    serve_page(app, service)
    if find_spec("mcp"):
        from engine_shim.mcp_server.later import LaterEndpoint
        from engine_shim.mcp_server.mount import mount

        mount(app, LaterEndpoint(service))
    return run_server(app, service, host, port, lambda port: describe_served(write_base(host, port), service))


def open_service(
    host: str, hosts: Sequence[str], model: str | None, options: Options, conversation_tokens: int | None = None
) -> Service:
    """Return the service of this host, open where only this machine reaches it and there is no token. BadParameter for
    an address that others reach while it asks for no token."""
    config, store = with_engine(load_host_config(options.config), options), find_address(options.store, options.config)
    if conversation_tokens is not None:
        config = config.model_copy(update={"max_conversation_tokens": conversation_tokens})
    service = Service.of_host(config, store, model=model)
    if not service.tokens.any_existed():
        if not _is_local(host, [*hosts, *_names_of_links(config)]):
            hint = "make one by `agent-core token new`"
            raise typer.BadParameter(f"{host} can be reached by others, and this host has no token; {hint}")
        service.is_open = service.closes_by_token = True
    return service


def list_names(host: str, hosts: Sequence[str]) -> list[str]:
    """Return the names by which clients may call a server that listens at `host`."""
    return [*LOOPBACK, *([] if _is_local(host, hosts) else [host]), *hosts]


def run_server(app: ASGIApp, service: Service, host: str, port: int, describe: Callable[[int], str]) -> int:
    """Serve until the process is told to end. `describe` returns the greeting, once the port is known."""
    listening = _listen(host, port)
    settings = uvicorn.Config(
        app,
        http=Connection,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=round(service.grace),
    )
    server = Server(settings, service)
    sys.stderr.write(describe(listening.getsockname()[1]))
    with exporting():
        server.run([listening])
    return output.OK


def _names_of_links(config: HostConfig) -> list[str]:
    """Return the name by which those call who have a decision link, unless that is this machine."""
    links = config.decision_links
    return [] if links is None or links.host in LOOPBACK else [links.host]


def _is_local(host: str, hosts: Sequence[str]) -> bool:
    return host in LOOPBACK and not hosts


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket at the address. BadParameter for one that cannot be listened at."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=2048)
    except OSError as error:
        why = str(error.strerror).partition(" (while attempting")[0]
        other = "another port by --port" if error.errno in OF_THE_PORT else "an address of this machine by --host"
        raise typer.BadParameter(f"cannot listen at {host}:{port}: {why}; choose {other}") from None


def write_base(host: str, port: int) -> str:
    """Return the URL of a server that listens there; an IPv6 address is in brackets."""
    return f"http://[{host}]:{port}" if ":" in host and not host.startswith("[") else f"http://{host}:{port}"


def describe_served(base: str, service: Service) -> str:
    """Return what a server says when it starts: where it is, what it serves and to whom."""
    workflows = sum(len(tenant.workflows.list()) for tenant in service.tenants.values())
    access = "open to every program on this machine; `agent-core token new` closes it" if service.is_open else "tokens"
    config = service.tenants[None].config
    empty = f"agent-core: no workflow in {config.workflows}; `workflows` of agent-core.yaml names another directory\n"
    talking = [each.conversations for each in service.tenants.values() if each.conversations is not None]
    agents = sum(len(each.host.catalog.list()) for each in talking)
    hint = "" if workflows or agents else empty
    told = output.count(workflows, "workflow") + (f", {output.count(agents, 'agent')}" if agents else "")
    mcp = f", by MCP at {base}/mcp" if find_spec("mcp") else ""
    tenants = f", {output.count(len(service.tenants) - 1, 'tenant')}" if len(service.tenants) > 1 else ""
    return (
        f"agent-core: at {base}  {told}{tenants}; {access}\n"
        f"agent-core: its page: {base}/ui/, its API: {base}/openapi.json{mcp}\n{hint}"
    )
