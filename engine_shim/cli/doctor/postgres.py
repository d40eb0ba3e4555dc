"""The runs of a host in PostgreSQL: whether the server answers, and how its tables are; nothing is made there."""

from collections.abc import Iterator

from agent_core.errors import JournalError
from engine_shim.cli.doctor.finding import Finding
from engine_shim.runs.database import Database
from engine_shim.runs.database_postgres import PostgresDatabase


def check_database(database: Database, part: str) -> Iterator[Finding]:
    """How a database is; it can be looked into if that is "ok"."""
    assert isinstance(database, PostgresDatabase)
    facts = {"path": database.name}
    try:
        state = database.find_state()
    except JournalError as error:
        yield Finding(part, "problem", str(error), "--store or AGENT_CORE_STORE names another", facts)
        return
    match state:
        case "missing":
            yield Finding(part, "warning", f"{database.name}: no tables yet", "the first run makes them", facts)
        case "older":
            message = f"{database.name}: of an older version, not looked into"
            yield Finding(part, "warning", message, "the next run brings it up", facts)
        case "current":
            yield Finding(part, "ok", database.name, facts=facts)
