"""The command line: every command under its name. Each imports what it needs when it is called."""

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from engine_shim.cli.chats.commands import chat, context
from engine_shim.cli.evals.commands import evaluate, run_tests
from engine_shim.cli.host.commands import agents, demo, doctor, graph, init, schema, show_help, tools, validate
from engine_shim.cli.records.commands import diff, export, ledger, replay, retention, runs, show, stats, store, verify
from engine_shim.cli.runs.commands import cancel, decide, fork, pause, resume, run, signal
from engine_shim.cli.serving.commands import dev, mcp, serve, token, worker
from engine_shim.cli.terminal import with_own_streams

GROUPS: Mapping[str, tuple[Callable[..., int], ...]] = {
    "Every day": (init, validate, run, chat, runs, show, decide, resume, replay, serve),
    "Runs": (signal, pause, cancel, fork, context),
    "Audit": (verify, ledger, diff, export, stats, retention, store),
    "Host": (doctor, agents, tools, schema, graph, dev, worker, token, mcp),
    "Tests": (run_tests, evaluate),
    "Learn": (show_help, demo),
}
"""The commands by what a person does, as `--help` lists them."""
COMMANDS = tuple(chain.from_iterable(GROUPS.values()))
NAMES = {evaluate: "eval", run_tests: "test", show_help: "help"}
"""Commands whose name another thing has."""


class Commands(TyperGroup):
    """The commands, listed by what a person does."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, commands in GROUPS.items():
            names = [NAMES.get(command) or command.__name__ for command in commands]
            room = formatter.width - 6 - max(map(len, self.commands))
            rows = [(name, self.commands[name].get_short_help_str(room)) for name in names]
            with formatter.section(title):
                formatter.write_dl(rows, col_max=max(map(len, self.commands)))


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
    cls=Commands,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`agent-core help` has recipes; `agent-core COMMAND -h` has examples of each command.",
)
app.callback()(describe)
for _command in COMMANDS:
    app.command(NAMES.get(_command))(with_own_streams(_command))  # pyright: ignore[reportArgumentType]
