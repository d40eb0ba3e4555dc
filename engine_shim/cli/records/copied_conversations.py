"""The conversations of the runs that are copied from one store into another."""

from collections.abc import Iterable, Iterator

from agent_core.journal.facts import Call, RunStarted
from agent_core.journal.reader import read_tape
from agent_core.journal.record import Tape
from engine_shim.store.open import shared_database
from engine_shim.store.run_store import DatabaseRunStore
from utools.context.open_store import configured_address
from utools.context.store import ContextStore
from utools.databases.redis_server import redis_of_host
from utools.defaults import host_context_store


def open_conversations(source: DatabaseRunStore, target: DatabaseRunStore) -> tuple[ContextStore, ContextStore] | None:
    """Return where the conversations of the runs of two stores are, those of the host or of the tenant whose stores
    they are; None where that is one place."""
    databases = [shared_database(store) for store in (source, target)]
    if databases[0] is databases[1] or redis_of_host() is not None or configured_address() is not None:
        return None
    tenant = None if source.journal.identity is None else source.journal.identity.tenant
    held, other = (host_context_store(tenant, database=database) for database in databases)
    return held, other


def find_sessions(store: DatabaseRunStore, runs: Iterable[str]) -> set[str]:
    """Return the conversations that these runs read or wrote."""
    return {session for run in runs for session in _find_sessions(store.journal.load(run))}


def _find_sessions(tape: Tape) -> Iterator[str]:
    for fact in read_tape(tape, {"run_started", "asked"}):
        match fact:
            case Call(tool="context_manager", args={"session_id": str(session)}):
                yield session
            case RunStarted(begun=begun) if begun.conversation is not None:
                yield begun.conversation
            case _:
                pass
