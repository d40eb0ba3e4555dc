"""Arguments and options that several commands take."""

from pathlib import Path
from typing import Annotated

import typer


def show_log(verbose: bool) -> None:
    """Write what the packages log to stderr."""
    from engine_shim.cli.log import configure_log

    configure_log(verbose=verbose)


def check_store(context: typer.Context, path: Path | None) -> Path | None:
    """BadParameter for a --store that does not exist; one that the environment names may be made later."""
    source = context.get_parameter_source("store")
    if path is None or path.exists() or context.resilient_parsing or source is None or source.name != "COMMANDLINE":
        return path
    from engine_shim.runs.store import default_store

    raise typer.BadParameter(f"there is no run store {path}; check --store, or leave it out for {default_store()}")


Flow = Annotated[Path, typer.Argument(metavar="FLOW", help="A workflow definition, JSON or YAML.")]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, the beginning of it, or `last`.")]
Recorded = Annotated[
    str, typer.Argument(metavar="RUN|FILE", help="A run's id, the beginning of it, `last`, or a journal file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Exactly one JSON document on stdout.")]
Store = Annotated[Path | None, typer.Option(help="The run store's file.", envvar="AGENT_CORE_STORE")]
ExistingStore = Annotated[
    Path | None, typer.Option(help="The run store's file.", envvar="AGENT_CORE_STORE", callback=check_store)
]
"""For commands that do not make a store."""
Config = Annotated[Path | None, typer.Option(help="The host configuration.", envvar="AGENT_CORE_CONFIG")]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", help="Say on stderr which configuration is used.", callback=show_log, expose_value=False),
]
