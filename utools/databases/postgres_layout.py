"""PostgresLayout: tables that belong together in a PostgreSQL database, made and brought up to date under a lock."""

from collections.abc import Sequence
from typing import Final, LiteralString, NamedTuple

from psycopg.sql import SQL, Identifier

from utools.databases.postgres_connection import Connection
from utools.errors import DatabaseError

_MIGRATING: Final = 0x61676A6F
"""The number of the lock under which schemas and tables are made and changed."""
_LAYOUTS: Final = "CREATE TABLE IF NOT EXISTS agent_core_layouts (name TEXT PRIMARY KEY, version INTEGER NOT NULL)"
_SET_VERSION: Final = """INSERT INTO agent_core_layouts VALUES (%s, %s)
    ON CONFLICT (name) DO UPDATE SET version = excluded.version"""


class PostgresLayout(NamedTuple):
    """Tables that belong together: `steps` bring them from each version to the next."""

    name: str
    steps: Sequence[LiteralString]


def read_versions(db: Connection) -> dict[str, int]:
    """Return the version of each layout that is there."""
    if db.execute("SELECT to_regclass('agent_core_layouts')").fetchone() == (None,):
        return {}
    return dict(db.execute("SELECT name, version FROM agent_core_layouts").fetchall())


def make_tables(db: Connection, schema: str | None, layouts: Sequence[PostgresLayout]) -> None:
    """Make the schema and the tables in a transaction, or bring them up to date. DatabaseError for newer ones."""
    db.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
    if schema is not None:
        name = Identifier(schema)
        db.execute(SQL("CREATE SCHEMA IF NOT EXISTS {}").format(name))
        db.execute(SQL("SET LOCAL search_path TO {}").format(name))
    db.execute(_LAYOUTS)
    for layout in layouts:
        _lay_out(db, layout)


def _lay_out(db: Connection, layout: PostgresLayout) -> None:
    """Bring tables to this version. DatabaseError for those of a newer one."""
    found = db.execute("SELECT version FROM agent_core_layouts WHERE name = %s", (layout.name,)).fetchone()
    version = 0 if found is None else found[0]
    if version > len(layout.steps):
        raise DatabaseError(
            f"the {layout.name} in this database has version {version}, and this program knows {len(layout.steps)}; "
            "upgrade agent-core"
        )
    for step in layout.steps[version:]:
        db.execute(step)
    if version < len(layout.steps):
        db.execute(_SET_VERSION, (layout.name, len(layout.steps)))
