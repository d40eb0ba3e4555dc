"""load_environment(): what `.env` beside the host configuration sets, such as keys of models."""

import logging
import os
import stat
from pathlib import Path
from typing import Final

from engine_shim.errors import DefinitionError
from utools.files.protected_paths import protect_store
from utools.secrets.looks import looks_secret

NAME: Final = ".env"
EARLIER: Final = ("AGENT_CORE_CONFIG", "AGENT_CORE_STORE")
"""Variables that are read before the file is."""
log = logging.getLogger("engine_shim")


def load_environment(config: Path | None) -> frozenset[str]:
    """Set the variables of the file in this process, but for those that its environment has already.

    Returns the names of those that look secret. No tool reads the file. DefinitionError when it cannot be read.
    """
    file = None if config is None else config.absolute().parent / NAME
    if file is None or not file.is_file():
        return frozenset()
    protect_store(file)
    _warn_of_readers(file)
    values = _read_values(file)
    for name, value in values.items():
        if name in EARLIER:
            log.warning("%s: %s has no effect here; set it in the environment, or give the option", file, name)
        elif value is not None:
            os.environ.setdefault(name, value)
    return frozenset(name for name, value in values.items() if value and looks_secret(name, value))


def _read_values(file: Path) -> dict[str, str | None]:
    from dotenv import dotenv_values

    parser, unread = logging.getLogger("dotenv.main"), _UnreadLines()
    parser.addFilter(unread)
    try:
        values = dotenv_values(file)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise DefinitionError(f"cannot be read: {why}", where=str(file)) from None
    finally:
        parser.removeFilter(unread)
    for line in unread.lines:
        log.warning("%s:%s: this line is not read; write NAME=value, and close what is in quotes", file, line)
    return values


class _UnreadLines(logging.Filter):
    """Takes the parser's own warnings, and gives the lines that they are about."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[object] = []

    def filter(self, record: logging.LogRecord) -> bool:
        self.lines += record.args if isinstance(record.args, tuple) else ()
        return False


def _warn_of_readers(file: Path) -> None:
    if os.name == "posix" and file.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        log.warning("%s can be read by other users; `chmod 600` keeps its keys to yourself", file)
