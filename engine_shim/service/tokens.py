"""Tokens: who may call a server. Each is shown once, when it is made; the store has its hash alone.

A token that was revoked stays as a row without a hash: a store that has had a token stays closed.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from secrets import token_hex, token_urlsafe
from typing import Any, Final, get_args

from engine_shim.errors import DefinitionError
from engine_shim.service.principal import Principal, Scope
from engine_shim.store.database import Database
from engine_shim.store.token_rows import COLUMNS, TABLE

PREFIX: Final = "act"
LONGEST_NAME: Final = 100


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token. `expires_at` is None for one that holds until it is revoked."""

    principal: Principal
    made_at: datetime
    expires_at: datetime | None


class Tokens:
    """The tokens of a server, in the store of its runs: any process that has the store sees at once which hold."""

    def __init__(self, database: Database, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._database, self._clock = database, clock
        self.threads = database.threads

    def issue(
        self, name: str, scopes: Collection[str], tenant: str | None = None, lifetime: timedelta | None = None
    ) -> str:
        """Return a new token, as its bearer shows it. `name` is the bearer's name in records. DefinitionError for bad
        input."""
        unknown = [scope for scope in scopes if scope not in get_args(Scope)]
        if unknown or not scopes:
            raise DefinitionError(f"must be of {', '.join(get_args(Scope))}", where="scope", value=list(scopes))
        if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
            raise DefinitionError(f"must be a text of 1 to {LONGEST_NAME} characters", where="name", value=name)
        identity, secret, now = token_hex(6), token_urlsafe(32), self._clock()
        expires = None if lifetime is None else (now + lifetime).isoformat()
        row = (identity, name, tenant, " ".join(sorted(scopes)), _hash(secret), now.isoformat(), expires)
        with self._database.writing() as db:
            db.execute(f"INSERT INTO {TABLE} ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        return f"{PREFIX}_{identity}_{secret}"

    def find(self, text: str) -> Principal | None:
        """Return the principal of a token; None if unknown, expired or revoked."""
        prefix, _, rest = text.partition("_")
        identity, _, secret = rest.partition("_")
        rows = self._rows("WHERE id = ?", identity) if prefix == PREFIX and secret else []
        if not rows or not compare_digest(rows[0][4], _hash(secret)):
            return None
        token = _read(rows[0])
        is_over = token.expires_at is not None and token.expires_at <= self._clock()
        return None if is_over else token.principal

    def all(self) -> list[Token]:
        """Return all tokens that were not revoked, the oldest first."""
        return [_read(row) for row in self._rows("WHERE length(hash) > 0 ORDER BY made_at, id")]

    def find_over(self, identities: Collection[str]) -> set[str]:
        """Return those of these tokens, by id, that hold no longer: revoked or expired."""
        marks = ", ".join("?" * len(identities))
        rows = self._rows(f"WHERE length(hash) > 0 AND id IN ({marks})", *identities) if identities else []
        now = self._clock()
        held = {each.principal.id for each in map(_read, rows) if each.expires_at is None or each.expires_at > now}
        return set(identities) - held

    def revoke(self, identity: str) -> bool:
        """Let a token hold no longer; whether there was one of this id."""
        if not self._rows("WHERE id = ? AND length(hash) > 0", identity):
            return False
        with self._database.writing() as db:
            return db.execute(f"UPDATE {TABLE} SET hash = ? WHERE id = ?", (b"", identity)).rowcount > 0

    def any_existed(self) -> bool:
        """Return whether there is any token, or was one."""
        return bool(self._rows("LIMIT 1"))

    def _rows(self, clause: str, *values: str) -> list[Any]:
        return self._database.rows(TABLE, f"SELECT {COLUMNS} FROM {TABLE} {clause}", *values)


def _hash(secret: str) -> bytes:
    """Return what is stored: the secret has 256 random bits, so that no slower hash is needed."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _read(row: Any) -> Token:
    identity, name, tenant, scopes, _, made, expires = row
    principal = Principal(identity, name, tenant, frozenset(scopes.split()))
    return Token(principal, datetime.fromisoformat(made), None if expires is None else datetime.fromisoformat(expires))
