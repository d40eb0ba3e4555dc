"""The command line: every command under its name. Each imports what it needs when it is called."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from engine_shim.cli.chats.commands import chat, context
from engine_shim.cli.evals.commands import evaluate, run_tests
from engine_shim.cli.evidence.commands import key, ledger, report
from engine_shim.cli.host.commands import agents, demo, doctor, graph, init, schema, show_help, tools, validate
from engine_shim.cli.records.commands import diff, erase, export, replay, retention, runs, show, stats, store, verify
from engine_shim.cli.runs.commands import cancel, decide, fork, pause, resume, run, signal
from engine_shim.cli.serving.commands import dev, mcp, serve, token, worker
from engine_shim.cli.terminal import with_own_streams
from engine_shim.cli.values import Command, take_as_given

GROUPS: Mapping[str, tuple[Callable[..., int], ...]] = {
    "Every day": (init, validate, run, chat, runs, show, decide, resume, replay, serve),
    "Runs": (signal, pause, cancel, fork, context),
    "Audit": (verify, key, ledger, diff, export, report, stats, erase, retention, store),
    "Host": (doctor, agents, tools, schema, graph, dev, worker, token, mcp),
    "Tests": (run_tests, evaluate),
    "Learn": (show_help, demo),
}
"""The commands by what a person does, as `--help` lists them."""
COMMANDS = tuple(chain.from_iterable(GROUPS.values()))
NAMES = {evaluate: "eval", run_tests: "test", show_help: "help"}
"""Commands whose name another thing has."""


def name_of(command: Callable[..., int]) -> str:
    """Return the name of a command on the command line."""
    return NAMES.get(command) or command.__name__


class Commands(TyperGroup):
    """The commands, listed by what a person does."""

    def get_params(self, ctx: Any) -> Any:
        return take_as_given(super().get_params(ctx))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, commands in GROUPS.items():
            names = [name_of(command) for command in commands]
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


def make_app(commands: Iterable[Callable[..., int]] = COMMANDS) -> typer.Typer:
    """Return the command line with these commands."""
    app = typer.Typer(
        cls=Commands,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="`agent-core help` has recipes; `agent-core COMMAND -h` has examples of each command.",
    )
    app.callback()(describe)
    for command in commands:
        app.command(name_of(command), cls=Command)(with_own_streams(command))  # pyright: ignore[reportArgumentType]
    return app


def choose_commands(words: Sequence[str]) -> Iterable[Callable[..., int]]:
    """Return the command that the words begin with, or all, which `help` speaks of: typer takes a millisecond to read
    one."""
    chosen = {name_of(command): command for command in COMMANDS if command is not show_help}
    return [chosen[words[0]]] if words and words[0] in chosen else COMMANDS
