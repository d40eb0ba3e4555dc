"""The engine of a command, on the host that is found for it."""

import os
from pathlib import Path

import typer
from pydantic import ValidationError

from engine_shim.cli.output import Options
from engine_shim.cli.parameters import ADDRESS
from engine_shim.cli.store import open_named_store
from engine_shim.host.config import HostConfig, TemporalConfig
from engine_shim.host.find import VARIABLE, find_host_config, open_host, recorded_host_config
from engine_shim.runs.engine import Engine


def open_engine(options: Options, *, definition: Path | None = None, run: str | None = None) -> Engine:
    """Return the engine for a definition that is to run, or for a run: on the host that began it, unless another is
    named."""
    file = find_host_config(options.config, definition)
    store = open_named_store(options.store, file)
    entry = store.entry(run) if run is not None else None
    if entry is not None and entry.host and options.config is None and not os.environ.get(VARIABLE):
        file = recorded_host_config(entry.host, entry.run)
    return Engine._of_host(with_engine(open_host(file), options), store=store)


def with_engine(config: HostConfig, options: Options) -> HostConfig:
    """Return the host with the engine that the options name. BadParameter for what is no address, and for one that
    nothing would ask."""
    temporal, engine = config.temporal, options.engine or config.engine
    if engine == "process" and options.temporal not in (None, os.environ.get(ADDRESS)):
        raise typer.BadParameter("--temporal names the server of --engine temporal, and this process drives its runs")
    if options.temporal is not None:
        try:
            temporal = TemporalConfig.model_validate({**temporal.model_dump(), "address": options.temporal})
        except ValidationError:
            message = f"--temporal, or TEMPORAL_ADDRESS, is {options.temporal!r}: write HOST:PORT"
            raise typer.BadParameter(message) from None
    return config.model_copy(update={"temporal": temporal, "engine": engine})
