"""What a host has in PostgreSQL: whether the server answers, and how its tables are; nothing is made there."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Final

from agent_core.errors import JournalError
from engine_shim.cli import output
from engine_shim.cli.doctor.finding import Finding
from engine_shim.cli.doctor.sqlite import PATIENCE_S
from engine_shim.store.clock import ADVICE, StoreClock
from engine_shim.store.database import Database
from engine_shim.store.database_postgres import PostgresDatabase
from utools.context.store_postgres import COUNT, LAYOUT
from utools.databases.postgres_connection import TAKES_WRITES
from utools.databases.postgres_database import PostgresDatabase as Server
from utools.errors import DatabaseError

WRITES_ELSEWHERE: Final = "what only reads works here; to drive runs, use the address of the server that takes writes"
_OTHER: Final = "AGENT_CORE_CONTEXT_DB names another"


def check_database(database: Database, part: str) -> Iterator[Finding]:
    """Yield how a database is; it can be looked into if that is "ok"."""
    assert isinstance(database, PostgresDatabase)
    facts = {"path": database.name}
    try:
        state = database.find_state()
        is_read_only = state == "current" and not database.takes_writes()
    except JournalError as error:
        yield Finding(
            part, "problem", str(error), "--store, AGENT_CORE_STORE or `store` in agent-core.yaml names another", facts
        )
        return
    if is_read_only:
        yield _tell_read_only(part, facts)
    match state:
        case "missing":
            yield Finding(part, "warning", f"{database.name}: no tables yet", "the first run creates them", facts)
        case "older":
            message = f"{database.name}: has an older layout, and was not examined"
            yield Finding(part, "warning", message, "the next run upgrades it", facts)
        case "current":
            yield Finding(part, "ok", database.name, facts=facts)


def _tell_read_only(part: str, facts: Mapping[str, Any]) -> Finding:
    return Finding(part, "problem", f"{facts['path']}: takes no writes, as a replica", WRITES_ELSEWHERE, facts)


def check_clock(clock: StoreClock) -> Finding:
    """Return how the clock of this machine differs from that of a store."""
    try:
        clock.measure()
    except JournalError as error:
        return Finding("clock", "problem", str(error))
    found = clock.compare()
    facts = {"difference_s": round(found.seconds, 3), "within_s": round(found.within, 3)}
    if found.is_notable:
        return Finding("clock", "warning", f"the clock of this machine is {found}", ADVICE, facts)
    return Finding("clock", "ok", "this machine and its store agree within a second", facts=facts)


def check_conversations_in(url: str, schema: str | None, part: str) -> Iterator[Finding]:
    """Yield how many conversations a database holds, or one schema of it."""
    with closing(Server(url, (LAYOUT,), patience=PATIENCE_S, schema=schema)) as database:
        facts = {"path": database.name}
        try:
            version = database.find_versions().get(LAYOUT.name, 0)
            if version < len(LAYOUT.steps):
                yield Finding(part, "ok", f"{database.name}: tables are made when they are first needed", facts=facts)
                return
            [(number,)] = database.select(COUNT)
            is_read_only = database.select(TAKES_WRITES) != [(True,)]
        except DatabaseError as error:
            yield Finding(part, "problem", str(error), _OTHER, facts)
            return
    if is_read_only:
        yield _tell_read_only(part, facts)
    text = f"{database.name}, {output.count(number, 'conversation')}"
    yield Finding(part, "ok", text, facts={**facts, "conversations": number})
