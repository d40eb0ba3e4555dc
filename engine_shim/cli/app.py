"""The command line: every command under its name. Each imports what it needs when it is called."""

from collections.abc import Callable

import typer

from engine_shim.cli.host_commands import evaluate, schema, tools, validate
from engine_shim.cli.run_commands import cancel, decide, demo, fork, pause, resume, run
from engine_shim.cli.store_commands import diff, replay, retention, runs, show, verify
from engine_shim.cli.terminal import with_own_streams

COMMANDS: tuple[Callable[..., int], ...] = (
    *(run, resume, decide, pause, cancel, fork, demo),
    *(runs, show, verify, replay, diff),
    *(evaluate, retention, tools, schema, validate),
)
NAMES = {evaluate: "eval"}
"""Commands whose name is one of Python's own."""

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
for command in COMMANDS:
    app.command(NAMES.get(command))(with_own_streams(command))
