"""The command mcp: its options and help."""

from importlib.util import find_spec
from typing import Annotated

import typer

from engine_shim.cli.parameters import Config, LogFormat, LogLevel, Model, Store, Verbose


def mcp(
    http: Annotated[bool, typer.Option("--http", help="Serve streamable HTTP instead of stdin and stdout.")] = False,
    host: Annotated[str, typer.Option(help="With --http: the address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --http: the port to listen at.")] = 8081,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="With --http: a name that clients use; repeat it.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="With --http: an origin whose pages may call; repeat it.")
    ] = None,
    model: Model = None,
    store: Store = None,
    config: Config = None,
    verbose: Verbose = False,
    log_level: LogLevel = None,
    log_format: LogFormat = "text",
) -> int:
    """Offer the workflows and agents of this host as tools over MCP. A client starts it and talks over stdin and
    stdout; with --http it serves any number of them at /mcp, as `agent-core serve` does as well.

    \b
    Examples:
      agent-core mcp
      agent-core mcp --http --port 8081
    """
    if find_spec("mcp") is None:
        raise typer.BadParameter("mcp needs the extra mcp: pip install 'agent-core[mcp]'")
    if http and find_spec("fastapi") is None:
        raise typer.BadParameter("mcp --http needs the extra web: pip install 'agent-core[mcp,web]'")
    from engine_shim.cli.mcp import serve_http, serve_streams
    from engine_shim.cli.output import Options

    options = Options(store, config)
    if http:
        return serve_http(host, port, allow_host or (), allow_origin or (), model, options)
    return serve_streams(model, options)
