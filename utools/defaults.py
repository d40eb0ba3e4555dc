"""The registries that most hosts start with: all built-in tools below one directory."""

import os
from pathlib import Path
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


def host_context_store(tenant: str | None = None) -> "ContextStore":
    """Where the host registry's ContextManager stores conversations, those of a tenant apart from all others.

    DefinitionError for a URL that cannot be used.
    """
    from utools.redis_server import redis_of_host

    server = redis_of_host()
    if server is None:
        from utools.context.store_sqlite import SqliteContextStore, default_path

        return SqliteContextStore(None if tenant is None else of_tenant(default_path(), tenant))
    from utools.context.store_redis import PREFIX, RedisContextStore

    return RedisContextStore(server, prefix=_prefix_of(tenant, PREFIX))


def of_tenant(path: Path, tenant: str) -> Path:
    """The file of a tenant beside the host's own."""
    return path.with_name(f"{path.stem}.{tenant}{path.suffix}")


def _prefix_of(tenant: str | None, prefix: str) -> str:
    return prefix if tenant is None else f"agent-core@{tenant}:{prefix.partition(':')[2]}"


def host_registry(
    root: str | os.PathLike[str] = ".",
    *,
    summarise: "Summarise | None" = None,
    policy: HostPolicy | None = None,
    tenant: str | None = None,
) -> ToolRegistry:
    """The default registry as the environment configures it.

    With REDIS_URL, all processes on the same server share conversations, cached answers and rate limits; those of a
    `tenant` are its own. DefinitionError for a URL that cannot be used.
    """
    from utools.redis_server import redis_of_host

    server, store, calls = redis_of_host(), None, None
    if server is not None:
        from utools.calls.shared import SharedCalls
        from utools.calls.store_redis import PREFIX, RedisCallStore

        calls = SharedCalls(RedisCallStore(server, prefix=_prefix_of(tenant, PREFIX)))
    if server is not None or tenant is not None:
        store = host_context_store(tenant)
    return default_registry(root, context_store=store, calls=calls, summarise=summarise, policy=policy)
