"""Arguments and options that several commands take."""

from pathlib import Path
from typing import Annotated

import typer


def show_log(verbose: bool) -> None:
    """Write what the packages log to stderr."""
    from engine_shim.cli.log import configure_log

    configure_log(verbose=verbose)


Flow = Annotated[Path, typer.Argument(metavar="FLOW", help="A workflow definition, JSON or YAML.")]
RunId = Annotated[str, typer.Argument(metavar="RUN")]
Recorded = Annotated[str, typer.Argument(metavar="RUN|FILE", help="A run's id in the store, or a journal file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Exactly one JSON document on stdout.")]
Store = Annotated[Path | None, typer.Option(help="The run store's file.", envvar="AGENT_CORE_STORE")]
Config = Annotated[Path | None, typer.Option(help="The host configuration.", envvar="AGENT_CORE_CONFIG")]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", help="Say on stderr which configuration is used.", callback=show_log, expose_value=False),
]
