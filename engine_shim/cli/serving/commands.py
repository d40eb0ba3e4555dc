"""The commands about serving: their options and help."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Annotated, Final, Literal

import typer

from engine_shim.cli.parameters import (
    AsJson,
    Config,
    EngineKind,
    LogFormat,
    LogLevel,
    Model,
    Store,
    Temporal,
    Verbose,
    refuse_others,
)
from utools.lazy_pattern import lazy_compile

NAME: Final = lazy_compile(r"[^/:*\s]+|\[?[0-9A-Fa-f]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*\]?")
"""A name, or an address: only one of IPv6 has two colons."""
ORIGIN: Final = lazy_compile(r"[A-Za-z][\w+.-]*://[^/?#@\s]+|null")
"""An origin; that of a page in a file is null."""
USUAL_PORTS: Final = {"http": ":80", "https": ":443"}
"""What browsers leave out of an origin."""


def check_names(context: typer.Context, names: list[str] | None) -> list[str] | None:
    """BadParameter for what no request names as its host: a URL, or a name with a port."""
    for each in names or () if not context.resilient_parsing else ():
        if not NAME.fullmatch(each):
            raise typer.BadParameter(f"{each!r}: write the name alone, such as agents.example.com, without a port")
    return names


def check_origins(context: typer.Context, origins: list[str] | None) -> list[str] | None:
    """Return the origins as browsers write them. BadParameter for what is none, whose pages could never call."""
    for each in origins or () if not context.resilient_parsing else ():
        if not ORIGIN.fullmatch(each):
            raise typer.BadParameter(f"{each!r}: write an origin, such as https://desk.example.com, without a path")
    return origins and [_as_browsers_write(each.lower()) for each in origins]


def _as_browsers_write(origin: str) -> str:
    return origin.removesuffix(USUAL_PORTS.get(origin.partition(":")[0], ""))


Host = Annotated[str, typer.Option(help="The address to listen at.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port to listen at.")]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A name by which clients call this server; repeat it.", callback=check_names),
]
AllowOrigin = Annotated[
    list[str] | None,
    typer.Option(metavar="ORIGIN", help="An origin whose pages may call; repeat it.", callback=check_origins),
]


def serve(
    host: Host = "127.0.0.1",
    port: Port = 8080,
    allow_host: AllowHost = None,
    allow_origin: AllowOrigin = None,
    model: Model = None,
    max_conversation_tokens: Annotated[
        int | None,
        typer.Option(min=1, metavar="<n>", help="Tokens of a whole conversation; by default the host's."),
    ] = None,
    store: Store = None,
    config: Config = None,
    engine: EngineKind = None,
    temporal: Temporal = None,
    verbose: Verbose = False,
    log_level: LogLevel = None,
    log_format: LogFormat = "text",
) -> int:
    """Serve the workflows and agents of this host over HTTP. Ctrl-C ends it; unfinished runs resume at the next start.

    \b
    Examples:
      agent-core serve
      agent-core serve --host 0.0.0.0 --allow-host agents.example.com
    """
    check_extra("serve")
    from engine_shim.cli.output import Options
    from engine_shim.cli.serving.serve import serve_host

    options = Options(store, config, engine=engine, temporal=temporal)
    return serve_host(host, port, allow_host or (), allow_origin or (), model, options, max_conversation_tokens)


def dev(
    port: Port = 8080,
    model: Model = None,
    store: Store = None,
    config: Config = None,
) -> int:
    """Serve this host while you write it.

    The server starts again when a tool, an agent or agent-core.yaml changes. A changed workflow is taken up at once.
    Runs that were under way continue after the restart.

    \b
    Examples:
      agent-core dev
      agent-core dev --port 9000 --model scripted:replies.json
    """
    check_extra("dev")
    from engine_shim.cli.serving.dev import serve_while_writing

    words = ["--port", str(port), *([] if model is None else ["--model", model])]
    return serve_while_writing(words, config, store)


def worker(
    temporal: Temporal = None,
    model: Model = None,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve the worker's metrics there, for Prometheus, without a token."),
    ] = None,
    store: Store = None,
    config: Config = None,
    verbose: Verbose = False,
    log_level: LogLevel = None,
    log_format: LogFormat = "text",
) -> int:
    """Drive the runs that Temporal hands out.

    Any number of workers share a store. Ctrl-C ends one: its calls under way may answer, and the other workers go on
    with its runs.

    \b
    Examples:
      agent-core worker --temporal 127.0.0.1:7233
      agent-core worker --metrics 127.0.0.1:9464
    """
    if find_spec("temporalio") is None:
        raise typer.BadParameter("worker needs the extra temporal: pip install 'agent-core[temporal]'")
    if metrics is not None and find_spec("prometheus_client") is None:
        raise typer.BadParameter("--metrics needs the extra web: pip install 'agent-core[web]'")
    from engine_shim.cli.output import Options
    from engine_shim.cli.serving.worker import run_worker

    return run_worker(model, Options(store, config, engine="temporal", temporal=temporal), metrics)


def check_extra(command: str) -> None:
    """BadParameter where what a server needs is not installed."""
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise typer.BadParameter(f"{command} needs the extra web: pip install 'agent-core[web]'")


def token(
    context: typer.Context,
    action: Annotated[Literal["new", "list", "revoke"], typer.Argument(metavar="new|list|revoke")],
    identity: Annotated[str | None, typer.Argument(metavar="[ID]", help="With revoke: the token's id.")] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="With new: the name of its bearer in records.")
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[read|run|decide|admin]", help="With new: what its bearer may do; repeat it. admin is all."
        ),
    ] = None,
    tenant: Annotated[str | None, typer.Option(metavar="TENANT", help="With new: the tenant that it is for.")] = None,
    days: Annotated[
        float | None, typer.Option(min=0.001, max=36_500, help="With new: the days until it expires.")
    ] = None,
    store: Store = None,
    config: Config = None,
    as_json: AsJson = False,
) -> int:
    """Make, list and revoke the tokens that a server asks for. A new one is shown once; the store keeps only its hash.

    \b
    Examples:
      agent-core token new --name ci --scope run --scope read
      agent-core token list
      agent-core token revoke 1f2e3d4c5b6a
    """
    from engine_shim.cli.output import Options
    from engine_shim.cli.serving.token import list_tokens, make_token, revoke_token

    made = dict.fromkeys(("name", "scope", "tenant", "days"), ("token new",))
    refuse_others(context, f"token {action}", {**made, "identity": ("token revoke",)})
    options = Options(store, config, as_json)
    if action == "new":
        if name is None or not scope:
            raise typer.BadParameter("new needs --name and at least one --scope")
        return make_token(name, scope, tenant, days, options)
    if action == "revoke":
        if identity is None:
            raise typer.BadParameter("revoke needs the token's id, as `agent-core token list` shows it")
        return revoke_token(identity, options)
    return list_tokens(options)


def mcp(
    context: typer.Context,
    http: Annotated[bool, typer.Option("--http", help="Serve streamable HTTP instead of stdin and stdout.")] = False,
    host: Host = "127.0.0.1",
    port: Port = 8081,
    allow_host: AllowHost = None,
    allow_origin: AllowOrigin = None,
    model: Model = None,
    store: Store = None,
    config: Config = None,
    verbose: Verbose = False,
    log_level: LogLevel = None,
    log_format: LogFormat = "text",
) -> int:
    """Offer the workflows and agents of this host as tools over MCP.

    An MCP client starts it and talks over stdin and stdout. With --http it serves any number of clients at /mcp, as
    `agent-core serve` does as well.

    \b
    Examples:
      agent-core mcp
      agent-core mcp --http --port 8081
    """
    served: dict[str, Sequence[str]] = dict.fromkeys(("host", "port", "allow_host", "allow_origin"), ("mcp --http",))
    refuse_others(context, "mcp --http" if http else "mcp", served)
    if find_spec("mcp") is None:
        raise typer.BadParameter("mcp needs the extra mcp: pip install 'agent-core[mcp]'")
    if http and find_spec("fastapi") is None:
        raise typer.BadParameter("mcp --http needs the extra web: pip install 'agent-core[mcp,web]'")
    from engine_shim.cli.output import Options
    from engine_shim.cli.serving.mcp import serve_http, serve_streams

    options = Options(store, config)
    if http:
        return serve_http(host, port, allow_host or (), allow_origin or (), model, options)
    return serve_streams(model, options)
