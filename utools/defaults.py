"""The registries that most hosts start with: all built-in tools, rooted at one directory."""

import os
from typing import TYPE_CHECKING

from utools.registry import ToolRegistry

if TYPE_CHECKING:
    from utools.calls.shared import SharedCalls
    from utools.context.manager import Summarise
    from utools.context.store import ContextStore


def default_registry(
    root: str | os.PathLike[str] = ".",
    *,
    context_store: "ContextStore | None" = None,
    calls: "SharedCalls | None" = None,
    summarise: "Summarise | None" = None,
) -> ToolRegistry:
    """A new registry with the built-in tools; file tools see nothing outside `root`.

    Without `context_store`, conversations are kept in SQLite, at `AGENT_CORE_CONTEXT_DB` or in the user's
    data directory; the file is opened at first use. Without `calls`, kept answers and rate limits are this process's.
    `summarise` tells what falls out of a conversation's window.
    """
    from utools.builtin import builtin_tools

    return ToolRegistry(builtin_tools(root, context_store=context_store, summarise=summarise), calls=calls)


def host_registry(root: str | os.PathLike[str] = ".", *, summarise: "Summarise | None" = None) -> ToolRegistry:
    """The default registry as the environment says: with REDIS_URL, all processes that name the same server share
    conversations, kept answers and rate limits. DefinitionError for a URL that is none.
    """
    from utools.redis_server import redis_of_host

    server = redis_of_host()
    if server is None:
        return default_registry(root, summarise=summarise)
    from utools.calls.shared import SharedCalls
    from utools.calls.store_redis import RedisCallStore
    from utools.context.store_redis import RedisContextStore

    calls = SharedCalls(RedisCallStore(server))
    return default_registry(root, context_store=RedisContextStore(server), calls=calls, summarise=summarise)
