"""Where the host configuration is found: as it is named, else upwards from the working directory."""

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from engine_shim.errors import DefinitionError
from engine_shim.host.environment import load_environment

if TYPE_CHECKING:
    from engine_shim.host.config import HostConfig

VARIABLE = "AGENT_CORE_CONFIG"
NAME = "agent-core.yaml"
OTHER_NAMES = ("agent-core.yml", "agent-core.json", "agent_core.yaml")
log = logging.getLogger("engine_shim")


def find_host_config(named: Path | None = None, definition: Path | None = None) -> Path | None:
    """Return the configuration's file: `named`, AGENT_CORE_CONFIG, or the nearest agent-core.yaml upwards from the
    working directory; else the one beside `definition`, if it lies beneath the working directory. None where there is
    none.

    A workflow from elsewhere does not bring its own host: a file beside it that is not used is named in a warning.
    """
    given = named or _find_in_environment()
    if given is not None:
        found: Path | None = given
    else:
        found = _find_upwards() or _find_beneath(definition)
        _warn_of_unused(definition, found)
    log.info("host configuration: %s", found or f"none; no {NAME} here or above")
    return found


def load_host_config(named: Path | None = None, definition: Path | None = None) -> "HostConfig":
    """Return the configuration of the file that is found, with its environment; the usual one where there is none."""
    return open_host(find_host_config(named, definition))


def open_host(file: Path | None) -> "HostConfig":
    """Return the configuration of a file, once `.env` beside it has been loaded."""
    from engine_shim.host.config import read_host_config  # short commands look for the file alone

    return read_host_config(file, load_environment(file))


def recorded_host_config(recorded: str, run: str) -> Path:
    """Return the file with which a run began. DefinitionError when it is gone."""
    file = Path(recorded)
    if not file.is_file():
        message = f"run {run!r} began with this host configuration, which is gone; name one by --config"
        raise DefinitionError(message, where=recorded)
    log.info("host configuration: %s, with which run %s began", file, run)
    return file


def _find_in_environment() -> Path | None:
    """Return the file that the variable names. DefinitionError for one that is not there."""
    given = os.environ.get(VARIABLE)
    if given and not Path(given).exists():
        raise DefinitionError("there is no such file; correct it, or unset it", where=VARIABLE, value=given)
    return Path(given) if given else None


def _find_upwards() -> Path | None:
    if Path(NAME).is_file():
        return Path(NAME)
    for name in (other for other in OTHER_NAMES if Path(other).is_file()):
        log.warning("%s is not read; call it %s", name, NAME)
    above = (directory / NAME for directory in Path.cwd().parents)
    return next((file for file in above if file.is_file() and _is_trusted(file)), None)


def _is_trusted(file: Path) -> bool:
    """Return whether a file above the working directory is this user's, or the administrator's: it may run Python."""
    if not hasattr(os, "geteuid") or file.stat().st_uid in (0, os.geteuid()):
        return True
    log.warning("%s belongs to another user and is not used; --config takes it", file)
    return False


def _find_beneath(definition: Path | None) -> Path | None:
    beside = _beside(definition)
    return beside if beside is not None and beside.resolve().is_relative_to(Path.cwd().resolve()) else None


def _beside(definition: Path | None) -> Path | None:
    """Return the configuration in the definition's directory, if there is one."""
    beside = None if definition is None else definition.absolute().parent / NAME
    return beside if beside is not None and beside.is_file() else None


def _warn_of_unused(definition: Path | None, found: Path | None) -> None:
    beside = _beside(definition)
    if beside is not None and (found is None or beside.resolve() != found.resolve()):
        log.warning("%s lies beside the definition and is not used; --config takes it", beside)
