"""Arguments and options that several commands take."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from engine_shim.cli.completion import complete_flow, complete_recorded, complete_run
from utools.databases.store_address import StoreAddress, describe_address, read_address
from utools.errors import DefinitionError

if TYPE_CHECKING:
    from engine_shim.cli.log import Format, Level


ENGINE: Final = "AGENT_CORE_ENGINE"
ADDRESS: Final = "TEMPORAL_ADDRESS"


def set_log(context: typer.Context, option: typer.CallbackParam, value: Any) -> None:
    """Write what the packages log to stderr, as the options that were read so far say."""
    from engine_shim.cli.log import configure_log

    given = context.meta.setdefault(__name__, {})
    given[option.name] = value
    form: Format = given.get("log_format") or "text"
    usual: Level = "debug" if given.get("debug") else "info" if given.get("verbose") or form == "json" else "warning"
    configure_log(level=given.get("log_level") or usual, form=form)


def take_address(context: typer.Context, value: str | None) -> StoreAddress | None:
    """Return the address that a --store gives, or AGENT_CORE_STORE; BadParameter for what looks like a URL and is
    none."""
    if value is None or context.resilient_parsing:
        return value
    return read_option(str(value), "")


def read_option(text: str, where: str) -> StoreAddress:
    """Return the address of a store that an option or an argument gives; BadParameter for what is none, and for another
    program's file: it would be mixed up with what is kept here."""
    from utools.databases.sqlite_file import refuse_foreign

    try:
        address = read_address(text, where=where)
        refuse_foreign(address, where="")
    except DefinitionError as error:
        raise typer.BadParameter(str(error)) from None
    return address


def check_store(context: typer.Context, value: str | None) -> StoreAddress | None:
    """BadParameter for the file of a --store that does not exist; one that the environment names may be made later."""
    address: StoreAddress | None = take_address(context, value)
    source = context.get_parameter_source("store")
    if context.resilient_parsing or source is None or source.name != "COMMANDLINE":
        return address
    if not isinstance(address, Path) or _is_there(address):
        return address
    from engine_shim.cli.store import find_address

    usual = describe_address(find_address(None))
    raise typer.BadParameter(f"there is no run store {address}; check --store, or leave it out for {usual}")


def refuse_others(context: typer.Context, form: str, forms: Mapping[str, Sequence[str]]) -> None:
    """BadParameter for an option or argument of the command line that other forms of the command take than this one.

    `forms` are those of each parameter, by its name; what it says of none, all take.
    """
    for parameter in context.command.params:
        name, source = str(parameter.name), context.get_parameter_source(str(parameter.name))
        if form not in forms.get(name, (form,)) and source is not None and source.name == "COMMANDLINE":
            others = ", ".join(f"`{each}`" for each in forms[name])
            given = parameter.opts[0] if parameter.opts[0].startswith("-") else context.params[name]
            raise typer.BadParameter(f"{given} goes with {others}, and not with `{form}`")


def check_files(context: typer.Context, value: Any) -> Any:
    """Return the path, or the paths, that a command line names; BadParameter for a file that is not there."""
    paths = value if isinstance(value, list | tuple) else [value]
    for path in paths if not context.resilient_parsing else ():
        if path not in (None, "-") and not _is_there(Path(path)):
            raise typer.BadParameter(f"there is no file {path}")
    return value


def _is_there(path: Path) -> bool:
    """Return whether a path exists. BadParameter for one that cannot be looked at, such as a name that is too long."""
    try:
        return path.exists()
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}") from None


Flow = Annotated[
    Path,
    typer.Argument(
        metavar="FLOW",
        help="A workflow definition, JSON or YAML.",
        autocompletion=complete_flow,
        callback=check_files,
    ),
]
Flows = Annotated[
    list[Path],
    typer.Argument(
        metavar="FLOW", help="Workflow definitions, JSON or YAML.", autocompletion=complete_flow, callback=check_files
    ),
]
Model = Annotated[str | None, typer.Option(metavar="<model>", help="Ask only this model, in every agent node.")]
RunId = Annotated[
    str,
    typer.Argument(metavar="RUN", help="A run's id, the beginning of it, or `last`.", autocompletion=complete_run),
]
Recorded = Annotated[
    str,
    typer.Argument(
        metavar="RUN|FILE",
        help="A run's id, the beginning of it, `last`, or a journal file.",
        autocompletion=complete_recorded,
    ),
]
RecordedIfAny = Annotated[
    str | None,
    typer.Argument(
        metavar="[RUN|FILE]",
        help="A run's id, the beginning of it, `last`, or a journal file.",
        autocompletion=complete_recorded,
    ),
]
Since = Annotated[str | None, typer.Option(help="Begun since a date, or in the last 2h, 7d.")]
OfWorkflow = Annotated[str | None, typer.Option("--workflow", help="Of the workflow of this id.")]
AsJson = Annotated[bool, typer.Option("--json", help="Exactly one JSON document on stdout.")]
Store = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|URL",
        help="Where runs are stored: a file, or a PostgreSQL URL.",
        envvar="AGENT_CORE_STORE",
        callback=take_address,
    ),
]
ExistingStore = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|URL",
        help="Where runs are stored: a file, or a PostgreSQL URL.",
        envvar="AGENT_CORE_STORE",
        callback=check_store,
    ),
]
"""For commands that do not make a store."""
TrustedKeys = Annotated[
    Path | None,
    typer.Option(metavar="FILE.pub", help="The public keys that are trusted alone.", callback=check_files),
]
Config = Annotated[
    Path | None, typer.Option(help="The host configuration.", envvar="AGENT_CORE_CONFIG", callback=check_files)
]
EngineKind = Annotated[
    Literal["process", "temporal"] | None,
    typer.Option("--engine", help="What drives runs; by default as the host says.", envvar=ENGINE),
]
Temporal = Annotated[
    str | None,
    typer.Option("--temporal", metavar="HOST:PORT", help="The Temporal server.", envvar=ADDRESS),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Log what happens, on stderr.", callback=set_log, expose_value=False)
]
Debug = Annotated[
    bool, typer.Option("--debug", help="… with arguments, redacted.", callback=set_log, expose_value=False)
]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"] | None,
    typer.Option(help="What to log. --verbose is info, --debug is debug.", callback=set_log, expose_value=False),
]
LogFormat = Annotated[
    Literal["text", "json"],
    typer.Option(help="json: an object a line from info on, and no live view.", callback=set_log, expose_value=False),
]
