"""The registries that most hosts start with: all built-in tools below one directory."""

import os
from typing import TYPE_CHECKING

from utools.host_policy import HostPolicy
from utools.registry import ToolRegistry

if TYPE_CHECKING:
    from utools.calls.shared import SharedCalls
    from utools.context.store import ContextStore
    from utools.context.summary import Summarise


def default_registry(
    root: str | os.PathLike[str] = ".",
    *,
    context_store: "ContextStore | None" = None,
    calls: "SharedCalls | None" = None,
    summarise: "Summarise | None" = None,
    policy: HostPolicy | None = None,
) -> ToolRegistry:
    """A new registry with the built-in tools; file tools see nothing outside `root`.

    Without `context_store`, conversations are stored in SQLite, at `AGENT_CORE_CONTEXT_DB` or in the user's
    data directory; the file is opened at first use. Without `calls`, cached answers and rate limits are this process's.
    `summarise` makes a summary of the messages that fall out of a conversation's window. `policy` is what the host
    presets, allows and denies; `shell_command` is off until it lists the commands.
    """
    from utools.builtin import builtin_tools

    tools = builtin_tools(root, context_store=context_store, summarise=summarise)
    return ToolRegistry(tools, calls=calls, policy=policy, known_good=True)


def host_context_store() -> "ContextStore":
    """Where the host registry's ContextManager stores conversations. DefinitionError for a URL that cannot be used."""
    from utools.redis_server import redis_of_host

    server = redis_of_host()
    if server is None:
        from utools.context.store_sqlite import SqliteContextStore

        return SqliteContextStore()
    from utools.context.store_redis import RedisContextStore

    return RedisContextStore(server)


def host_registry(
    root: str | os.PathLike[str] = ".",
    *,
    summarise: "Summarise | None" = None,
    policy: HostPolicy | None = None,
) -> ToolRegistry:
    """The default registry as the environment configures it.

    With REDIS_URL, all processes on the same server share conversations, cached answers and rate limits.
    DefinitionError for a URL that cannot be used.
    """
    from utools.redis_server import redis_of_host

    server = redis_of_host()
    if server is None:
        return default_registry(root, summarise=summarise, policy=policy)
    from utools.calls.shared import SharedCalls
    from utools.calls.store_redis import RedisCallStore
    from utools.context.store_redis import RedisContextStore

    calls = SharedCalls(RedisCallStore(server))
    store = RedisContextStore(server)
    return default_registry(root, context_store=store, calls=calls, summarise=summarise, policy=policy)
