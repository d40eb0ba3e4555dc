"""load_environment(): what `.env` beside the host configuration sets, such as keys of models."""

import logging
import os
import stat
from pathlib import Path
from typing import Final

from engine_shim.errors import DefinitionError
from utools.files.protected_paths import protect_store

NAME: Final = ".env"
EARLIER: Final = ("AGENT_CORE_CONFIG", "AGENT_CORE_STORE")
"""Variables that are read before the file is."""
log = logging.getLogger("engine_shim")


def load_environment(config: Path | None) -> None:
    """Set the variables of the file in this process, but for those that its environment has already.

    No tool reads the file. DefinitionError when it cannot be read.
    """
    file = None if config is None else config.absolute().parent / NAME
    if file is None or not file.is_file():
        return
    protect_store(file)
    _warn_of_readers(file)
    for name, value in _read_values(file).items():
        if name in EARLIER:
            log.warning("%s: %s has no effect here; set it in the environment, or give the option", file, name)
        elif value is not None:
            os.environ.setdefault(name, value)


def _read_values(file: Path) -> dict[str, str | None]:
    from dotenv import dotenv_values

    try:
        return dotenv_values(file)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise DefinitionError(f"cannot be read: {why}", where=str(file)) from None


def _warn_of_readers(file: Path) -> None:
    if os.name == "posix" and file.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        log.warning("%s can be read by other users; `chmod 600` keeps its keys to yourself", file)
