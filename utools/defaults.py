"""The registries that most hosts start with: all built-in tools below one directory."""

import os
from typing import TYPE_CHECKING

from utools.host_policy import HostPolicy
from utools.registry import ToolRegistry

if TYPE_CHECKING:
    from utools.calls.shared import SharedCalls
    from utools.context.store import ContextStore
    from utools.context.summary import Summarise
    from utools.databases.postgres_database import PostgresDatabase
    from utools.secrets.text_cipher import TextCipher


def default_registry(
    root: str | os.PathLike[str] = ".",
    *,
    context_store: "ContextStore | None" = None,
    calls: "SharedCalls | None" = None,
    summarise: "Summarise | None" = None,
    policy: HostPolicy | None = None,
) -> ToolRegistry:
    """Return a new registry with the built-in tools; file tools see nothing outside `root`.

    Without `context_store`, conversations are stored in Redis where REDIS_URL names a server, else at
    `AGENT_CORE_CONTEXT_DB`, a SQLite file or a PostgreSQL URL, or in a file in the user's data directory; it is opened
    at first use. Without `calls`, cached answers and rate limits are in that Redis too, else this process's.
    `summarise` makes a summary of the messages that fall out of a conversation's window. `policy` is what the host
    presets, allows and denies; `shell_command` is off until it lists the commands. DefinitionError for a REDIS_URL that
    cannot be used.
    """
    from utools.builtin import builtin_tools

    if context_store is None:
        context_store = host_context_store()
    if calls is None:
        calls = host_calls()
    tools = builtin_tools(root, context_store=context_store, summarise=summarise)
    return ToolRegistry(tools, calls=calls, policy=policy, known_good=True)


def host_context_store(
    tenant: str | None = None,
    *,
    database: "PostgresDatabase | None" = None,
    cipher: "TextCipher | None" = None,
) -> "ContextStore":
    """Return where the host registry's ContextManager stores conversations, those of a tenant apart from all others.

    In Redis with REDIS_URL, else as `open_context_store` has it; encrypted, where there is a `cipher`. DefinitionError
    for a URL that cannot be used.
    """
    store = _open_context_store(tenant, database)
    if cipher is None:
        return store
    from utools.context.store_encrypted import EncryptedContextStore

    return EncryptedContextStore(store, cipher)


def _open_context_store(tenant: str | None, database: "PostgresDatabase | None") -> "ContextStore":
    from utools.databases.redis_server import redis_of_host

    server = redis_of_host()
    if server is None:
        from utools.context.open_store import open_context_store

        return open_context_store(database, tenant=tenant)
    from utools.context.store_redis import PREFIX, RedisContextStore

    return RedisContextStore(server, prefix=_prefix_of(tenant, PREFIX))


def host_calls(
    tenant: str | None = None,
    *,
    database: "PostgresDatabase | None" = None,
    cipher: "TextCipher | None" = None,
) -> "SharedCalls":
    """Return what the calls of a host share: in Redis with REDIS_URL, else in the database, else in this process.

    With a `cipher`, kept answers are encrypted.

    DefinitionError for a URL that cannot be used.
    """
    from utools.calls.shared import SharedCalls, open_calls
    from utools.databases.redis_server import redis_of_host

    if (server := redis_of_host()) is not None:
        from utools.calls.store_redis import PREFIX, RedisCallStore

        calls = SharedCalls(RedisCallStore(server, prefix=_prefix_of(tenant, PREFIX)))
    else:
        calls = open_calls(database)
        if database is None:
            return calls
    if cipher is None:
        return calls
    from utools.calls.store_encrypted import EncryptedCallStore

    return SharedCalls(EncryptedCallStore(calls.store, cipher))


def _prefix_of(tenant: str | None, prefix: str) -> str:
    return prefix if tenant is None else f"agent-core@{tenant}:{prefix.partition(':')[2]}"


def host_registry(
    root: str | os.PathLike[str] = ".",
    *,
    summarise: "Summarise | None" = None,
    policy: HostPolicy | None = None,
    tenant: str | None = None,
    database: "PostgresDatabase | None" = None,
    cipher: "TextCipher | None" = None,
) -> ToolRegistry:
    """Return the default registry as the environment configures it.

    With REDIS_URL, all processes on the same server share conversations, cached answers and rate limits; without it,
    those on the same `database`. Those of a `tenant` are its own, and so is its database. With a `cipher` conversations
    and kept answers are encrypted. DefinitionError for a URL that cannot be used.
    """
    store = host_context_store(tenant, database=database, cipher=cipher)
    calls = host_calls(tenant, database=database, cipher=cipher)
    return default_registry(root, context_store=store, calls=calls, summarise=summarise, policy=policy)
