"""The registry that most hosts start with: all built-in tools, rooted at one directory."""

import os
from typing import TYPE_CHECKING

from utools.registry import ToolRegistry

if TYPE_CHECKING:
    from utools.calls.shared import SharedCalls
    from utools.context.store import ContextStore


def default_registry(
    root: str | os.PathLike[str] = ".",
    *,
    context_store: "ContextStore | None" = None,
    calls: "SharedCalls | None" = None,
) -> ToolRegistry:
    """A new registry with the built-in tools; file tools see nothing outside `root`.

    Without `context_store`, conversations are kept in SQLite, at `AGENT_CORE_CONTEXT_DB` or in the user's
    data directory; the file is opened at first use. Without `calls`, kept answers and rate limits are this process's.
    """
    from utools.builtin import builtin_tools

    return ToolRegistry(builtin_tools(root, context_store=context_store), calls=calls)
