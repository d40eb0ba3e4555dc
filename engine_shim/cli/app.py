"""The command line: every command under its name. Each imports what it needs when it is called."""

from collections.abc import Callable
from typing import Annotated

import typer

from engine_shim.cli.chats.commands import chat, context
from engine_shim.cli.evals.commands import evaluate
from engine_shim.cli.host.commands import agents, demo, doctor, graph, init, schema, tools, validate
from engine_shim.cli.records.commands import diff, export, ledger, replay, retention, runs, show, stats, store, verify
from engine_shim.cli.runs.commands import cancel, decide, fork, pause, resume, run
from engine_shim.cli.serving.commands import mcp, serve, token, worker
from engine_shim.cli.terminal import with_own_streams

COMMANDS: tuple[Callable[..., int], ...] = (
    *(init, run, chat, resume, decide, pause, cancel, fork, demo),
    *(runs, show, verify, ledger, replay, diff, export, stats),
    *(evaluate, retention, store, context, agents, tools, schema, validate, graph),
    *(serve, worker, token, mcp, doctor),
)
NAMES = {evaluate: "eval"}
"""Commands whose name is one of Python's own."""


def show_version(wanted: bool) -> None:
    """Write the version, and end the command."""
    if wanted:
        from importlib.metadata import version

        typer.echo(f"agent-core {version('agent-core')}")
        raise typer.Exit


def describe(
    version: Annotated[bool, typer.Option("--version", callback=show_version, is_eager=True, help="The version.")] = (
        False
    ),
) -> None:
    """Run workflows whose agents call tools under limits, and prove later what they did."""


app = typer.Typer(
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`agent-core demo` shows it all at once; `agent-core COMMAND -h` has examples of each.",
)
app.callback()(describe)
for _command in COMMANDS:
    app.command(NAMES.get(_command))(with_own_streams(_command))  # pyright: ignore[reportArgumentType]
