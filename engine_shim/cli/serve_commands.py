"""The command that serves: its options and help."""

from importlib.util import find_spec
from typing import Annotated

import typer

from engine_shim.cli.parameters import Config, LogFormat, LogLevel, Model, Store, Verbose


def serve(
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen at.")] = 8080,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A name by which clients call this server; repeat it.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="An origin whose pages may call; repeat it.")
    ] = None,
    model: Model = None,
    store: Store = None,
    config: Config = None,
    verbose: Verbose = False,
    log_level: LogLevel = None,
    log_format: LogFormat = "text",
) -> int:
    """Serve the workflows and agents of this host over HTTP. Ctrl-C ends it; what is unfinished then goes on at the
    next start.

    \b
    Examples:
      agent-core serve
      agent-core serve --host 0.0.0.0 --allow-host agents.example.com
    """
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise typer.BadParameter("serve needs the extra web: pip install 'agent-core[web]'")
    from engine_shim.cli.output import Options
    from engine_shim.cli.serve import serve_host

    return serve_host(host, port, allow_host or (), allow_origin or (), model, Options(store, config))
