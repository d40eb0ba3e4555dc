"""The table of tokens in a store, and copy_tokens(): the tokens of one store, brought into another."""

from typing import Final

from engine_shim.store.database import Database, Reader

COLUMNS: Final = "id, name, tenant, scopes, hash, made_at, expires_at"
TABLE: Final = "api_tokens"


def list_tokens(database: Reader) -> list[tuple[str, bool]]:
    """Return the id of each token that a store has had, and whether it still is one."""
    found = database.rows(TABLE, f"SELECT id, hash FROM {TABLE} ORDER BY made_at, id")
    return [(identity, bool(secret_hash)) for identity, secret_hash in found]


def copy_tokens(source: Database, target: Database) -> None:
    """Add the tokens that the target lacks, and revoke there what was revoked.

    Those that were revoked come along as well: a store that has had a token stays closed.
    """
    rows = source.rows(TABLE, f"SELECT {COLUMNS} FROM {TABLE} ORDER BY made_at, id")
    if not rows:
        return
    revoked = [identity for identity, _, _, _, secret_hash, _, _ in rows if not secret_hash]
    with target.writing() as db:
        for row in rows:
            insert = f"INSERT INTO {TABLE} ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
            db.execute(insert, tuple(row))
        for identity in revoked:
            db.execute(f"UPDATE {TABLE} SET hash = ? WHERE id = ?", (b"", identity))
