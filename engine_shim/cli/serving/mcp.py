"""mcp: the MCP server of this host, over stdin and stdout or over HTTP."""

import asyncio
import os
from collections.abc import Sequence

from engine_shim.cli import output, terminal
from engine_shim.cli.output import Options
from engine_shim.cli.store import find_address
from engine_shim.host.find import load_host_config
from engine_shim.mcp_server.stdio import serve_stdio, take_stdin
from engine_shim.service.service import Service


def serve_streams(model: str | None, options: Options) -> int:
    """Serve the client at stdin and stdout: it is a program of this user, and may do whatever this user may."""
    store = find_address(options.store, options.config)
    service = Service.of_host(load_host_config(options.config), store, model=model, is_open=True)
    with terminal.open_stdout(os.dup(terminal.out().fileno())) as stdout:
        asyncio.run(serve_stdio(service, take_stdin(), stdout))
    return output.OK


def serve_http(
    host: str, port: int, hosts: Sequence[str], origins: Sequence[str], model: str | None, options: Options
) -> int:
    """Serve streamable HTTP. BadParameter for an address that others reach while it asks for no token."""
    from engine_shim.api.guard import protect
    from engine_shim.cli.serving.serve import list_names, open_service, run_server, write_base
    from engine_shim.mcp_server.http import create_app
    from engine_shim.mcp_server.mount import PATH

    service = open_service(host, hosts, model, options)
    app = create_app(service)
    protect(app, list_names(host, hosts), origins)
    return run_server(app, service, host, port, lambda port: f"agent-core: MCP at {write_base(host, port)}{PATH}\n")
