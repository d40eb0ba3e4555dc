"""The command serve: the HTTP API of this host, until it is told to end."""

import logging
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer
import uvicorn

from engine_shim.api.app import create_app
from engine_shim.api.guard import LOOPBACK
from engine_shim.cli import output
from engine_shim.cli.output import Options
from engine_shim.host.find import load_host_config
from engine_shim.runs.store import default_store
from engine_shim.service.service import Service
from engine_shim.telemetry.export import exporting

log = logging.getLogger("engine_shim")


class Server(uvicorn.Server):
    """A server that lets those go who follow or wait for runs, before it waits for their connections to end."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on SIGINT and SIGTERM, as a success: what is unfinished goes on at the next start."""
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
    host: str, port: int, hosts: Sequence[str], origins: Sequence[str], model: str | None, options: Options
) -> int:
    """Serve this host. BadParameter for an address that others reach while it asks for no token."""
    config, store = load_host_config(options.config), options.store or default_store()
    service = Service.of_host(config, store, model=model)
    is_local = host in LOOPBACK and not hosts
    if not service.tokens.any_exist():
        if not is_local:
            hint = "make one by `agent-core token new`"
            raise typer.BadParameter(f"{host} can be reached by others, and this host has no token; {hint}")
        service.is_open = True
    app = create_app(service, hosts=[*LOOPBACK, *([host] if not is_local else []), *hosts], origins=origins)
    listening = _listen(host, port)
    settings = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=round(service.grace),
    )
    server = Server(settings, service)
    sys.stderr.write(_describe(host, listening.getsockname()[1], service))
    with exporting():
        server.run([listening])
    return output.OK


def _listen(host: str, port: int) -> socket.socket:
    """A socket at the address. BadParameter for one that cannot be listened at."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=2048)
    except OSError as error:
        raise typer.BadParameter(
            f"{host}:{port} cannot be listened at: {error.strerror}; --port names another"
        ) from None


def _describe(host: str, port: int, service: Service) -> str:
    workflows = sum(len(tenant.workflows.list()) for tenant in service.tenants.values())
    access = "open to every program on this machine; `agent-core token new` closes it" if service.is_open else "tokens"
    tenants = f", {output.count(len(service.tenants) - 1, 'tenant')}" if len(service.tenants) > 1 else ""
    return (
        f"agent-core: at http://{host}:{port}  {output.count(workflows, 'workflow')}{tenants}; {access}\n"
        f"agent-core: what can be asked: http://{host}:{port}/openapi.json\n"
    )
