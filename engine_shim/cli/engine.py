"""open_engine(): the engine of a command, on the host that is found for it."""

import os
from pathlib import Path

from engine_shim.cli.output import Options
from engine_shim.cli.store import open_named_store
from engine_shim.host.find import VARIABLE, find_host_config, open_host, recorded_host_config
from engine_shim.runs.engine import Engine


def open_engine(options: Options, *, definition: Path | None = None, run: str | None = None) -> Engine:
    """The engine for a definition that is to run, or for a run: on the host that began it, unless another is named."""
    file = find_host_config(options.config, definition)
    store = open_named_store(options.store, file)
    entry = store.entry(run) if run is not None else None
    if entry is not None and entry.host and options.config is None and not os.environ.get(VARIABLE):
        file = recorded_host_config(entry.host, entry.run)
    return Engine.of_host(open_host(file), store=store)
