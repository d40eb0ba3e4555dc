"""The built-in tools, one module per family; each has a factory that returns its Tools."""

import os
from typing import TYPE_CHECKING

from utools.tool import Tool

if TYPE_CHECKING:
    from utools.context.store import ContextStore


def builtin_tools(
    root: str | os.PathLike[str] = ".", *, context_store: "ContextStore | None" = None
) -> list[Tool]:
    """All built-in tools; file tools see nothing outside `root`."""
    return []
