"""Discovery: the tools that installed packages offer through the entry-point group `utools.tools`."""

import os
import sys
from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from utools.error_text import describe, raised_at
from utools.errors import DefinitionError
from utools.tool import Tool

BUILT_IN = EntryPoint("built-in", "utools.builtin:builtin_tools", "utools.tools")
"""The entry of the built-in tools, which no package has to offer."""


def installed_entries(group: str) -> list[EntryPoint]:
    """Return the entries of all installed packages, in a stable order; they are looked for once as long as no package
    comes or goes."""
    return list(_find_entries(group, tuple((path, _read_time(path)) for path in sys.path)))


def _read_time(path: str) -> int:
    """Return when a directory was changed last, in nanoseconds; 0 for none."""
    try:
        return os.stat(path or ".").st_mtime_ns
    except OSError:
        return 0


@lru_cache(4)
def _find_entries(group: str, paths: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    return tuple(sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value)))


def origin_of(entry: EntryPoint) -> str:
    """Return the entry and its package, for an error message."""
    return f"entry point {entry.name} of {entry.dist.name if entry.dist else entry.value}"


def tools_of(entry: EntryPoint) -> list[Tool]:
    """Return the tools of one entry; DefinitionError, which names its package, if it cannot be loaded."""
    where = origin_of(entry)
    try:
        offered: Any = entry.load()
        if not isinstance(offered, Tool | list | tuple) and callable(offered):
            offered = offered()
    except (Exception, SystemExit) as error:  # another package's code: the error must name that package
        raise DefinitionError(f"cannot be loaded: {describe(error)}{raised_at(error)}", where=where) from error
    tools = [offered] if isinstance(offered, Tool) else offered
    if not isinstance(tools, Iterable) or isinstance(tools, str):
        raise DefinitionError("must be a Tool, a list of Tools or a function returning them", where=where, value=tools)
    found = list(tools)
    for each in found:
        if not isinstance(each, Tool):
            raise DefinitionError("offers something that is not a Tool", where=where, value=each)
    return found
