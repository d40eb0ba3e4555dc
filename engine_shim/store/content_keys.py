"""ContentKeys: the keys of an encrypted store: one for the records of each run, wrapped by that of the store.

The key of the store is wrapped by the operator's. What is erased loses its key; then the key of the store is replaced,
and the operator's too, so that copies of older wrapped keys, as in a backup, open nothing.
"""

import logging
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from agent_core.encryption.record_cipher import (
    KEY_BYTES,
    Encrypt,
    decrypt,
    decrypt_record,
    derive_salt,
    encrypt,
    encrypter,
)
from agent_core.errors import DefinitionError, JournalAway, JournalError, Unreadable
from agent_core.journal.jsonl_format import write_line
from agent_core.journal.path import SEAL
from agent_core.journal.record import CLOSED, ERASED, Row
from engine_shim.store.database import Database, Reader
from utools.databases.transaction import Transaction

if TYPE_CHECKING:
    from agent_core.encryption.operator_key import OperatorKey

log = logging.getLogger("engine_shim")
SUBJECT: Final = "keys"
_STATE: Final = "SELECT EXISTS (SELECT 1 FROM store_keys), EXISTS (SELECT 1 FROM rows)"
_CURRENT: Final = "SELECT n, wrapped FROM store_keys ORDER BY n DESC LIMIT 1"
_FIND: Final = """SELECT content_keys.wrapped, store_keys.wrapped FROM content_keys
    LEFT JOIN store_keys ON store_keys.n = content_keys.store_key WHERE subject = ?"""
_FIND_MANY: Final = """SELECT subject, content_keys.wrapped, store_keys.wrapped FROM content_keys
    LEFT JOIN store_keys ON store_keys.n = content_keys.store_key WHERE subject IN {values}"""
_IS_THERE: Final = "SELECT 1 FROM content_keys WHERE subject = ?"
_STORE: Final = "SELECT store FROM store_identity"
_ADD_STORE_KEY: Final = "INSERT INTO store_keys (n, wrapped) VALUES (?, ?)"
_ADD: Final = "INSERT INTO content_keys (subject, store_key, wrapped) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"


@dataclass(slots=True)
class ContentKeys:
    """The keys of one store, whose operator's key a `variable` names. Any number of threads and processes may share it.
    Raises JournalError.

    In a store that is not encrypted, nothing is made and nothing is asked of the operator's key.
    """

    database: Database
    variable: str
    wanted: bool = False
    is_plain: bool = False
    """Whether it is known that nothing is encrypted here: the store has plain runs."""
    _has_key: bool = False

    # ── records ───────────────────────────────────────────────────────────────────────────────────

    @property
    def is_encrypted(self) -> bool:
        """Whether the store is encrypted, or will be with its first run. DefinitionError where that is wanted of one
        with plain runs."""
        if self._has_key or (self.is_plain and not self.wanted):
            return self._has_key
        has_key, has_rows = (self.database.rows("store_keys", _STATE) or [(False, False)])[0]
        self._has_key, self.is_plain = bool(has_key), bool(has_rows and not has_key)
        if self.wanted and self.is_plain:
            message = f"{self.database.name} has runs that are not encrypted; give the encrypted ones another store"
            raise DefinitionError(message, where="encrypt")
        return self._has_key or self.wanted

    def want(self) -> None:
        """From now on the store is to be encrypted. DefinitionError where it has plain runs, or its key is not here."""
        self.wanted = True
        if self.is_encrypted:
            self.operator_key()

    def check_key(self) -> None:
        """DefinitionError or JournalError where the operator's key is not one that opens this store."""
        key = self.operator_key()
        if found := self.database.rows("store_keys", _CURRENT):
            key.unwrap(bytes(found[0][1]))

    def check_open(self) -> None:
        """Unreadable for a store that is encrypted by a key which is not named here."""
        if self.is_encrypted and not self.has_key:
            raise Unreadable(self.database.name, erased=False, kind="the store", variable=self.variable)

    @property
    def has_key(self) -> bool:
        """Whether the operator's key of the store is named."""
        return bool(os.environ.get(self.variable, "").strip())

    def find_encrypter(self, run: str) -> Encrypt | None:
        """Return what encrypts the records of a run, whose key is made if it has none; None where the store is not
        encrypted. Unreadable for a run that was erased."""
        return encrypter(self.make(run)) if self.is_encrypted else None

    def find_salt(self, run: str) -> bytes | None:
        """Return the secret by which single records of a run are shown to others; None where the store is not
        encrypted. Unreadable for a run that was erased."""
        return derive_salt(self.make(run)) if self.is_encrypted else None

    def check_rows(self, rows: Sequence[Row]) -> None:
        """JournalError for rows that would be written in the clear, though the store is encrypted; seals are."""
        if not (self._has_key or self.is_encrypted):
            self.is_plain = True
            return
        for row in rows:
            if row.stored is None and row.path != SEAL:
                raise JournalError(
                    f"{self.database.name} is encrypted, and these records are not: see `find_encrypter`"
                )

    def open_rows(self, run: str, rows: Sequence[Row]) -> list[Row]:
        """Return rows with their records, as far as they can be read here."""
        return list(_open(self._find_many(self.database, [run]).get(run, CLOSED), rows))

    def check_readable(self, run: str) -> None:
        """Unreadable for a run whose records were erased, or are encrypted by a key that is not here."""
        if self.is_encrypted and self.database.rows("content_keys", _IS_THERE, run):
            key = self._find_many(self.database, [run]).get(run, CLOSED)
            if key in (CLOSED, ERASED):
                raise Unreadable(run, erased=key == ERASED)

    def write_lines(self, run: str, rows: Iterable[Row]) -> bytes:
        """Return the lines of rows in a journal's file, with the key of encrypted records. Unreadable for those of a
        run that cannot be read here."""
        rows = list(rows)
        key = self.find(run) if any(row.stored is not None for row in rows) else CLOSED
        return b"".join(write_line(run, row, None if key in (CLOSED, ERASED) else key) for row in rows)

    def open_many(self, database: Reader, rows: Iterable[tuple[str, Row]]) -> Iterator[tuple[str, Row]]:
        """Yield rows of several runs with their records, as far as they can be read here."""
        rows = list(rows)
        keys = self._find_many(database, list(dict.fromkeys(run for run, row in rows if row.stored is not None)))
        for run, row in rows:
            yield run, row if row.stored is None else next(_open(keys.get(run, CLOSED), [row]))

    # ── other contents ────────────────────────────────────────────────────────────────────────────

    def encrypt_text(self, subject: str, label: str, text: str) -> str:
        """Return a text as the store may hold it: as it is in one that is not encrypted."""
        if not self.is_encrypted:
            return text
        return _ENCRYPTED + encrypt(self.make(subject), label.encode(), text.encode()).hex()

    def decrypt_text(self, subject: str, label: str, text: str) -> str | None:
        """Return the text again; None where its key was destroyed, whether the subject has a newer one by now or not.
        Unreadable where its key is not here."""
        if not text.startswith(_ENCRYPTED):
            return text
        key = self.find(subject)
        if key == CLOSED and (not self.has_key or self.database.rows("content_keys", _IS_THERE, subject)):
            raise Unreadable(subject, erased=False, variable=self.variable)
        if key in (CLOSED, ERASED):
            return None
        try:
            return decrypt(key, label.encode(), bytes.fromhex(text.removeprefix(_ENCRYPTED))).decode()
        except JournalError:
            return None

    # ── keys ──────────────────────────────────────────────────────────────────────────────────────

    def find(self, subject: str) -> bytes:
        """Return the key of a run or another subject; ERASED where it was destroyed, CLOSED where it cannot be had
        here."""
        found = self.database.rows("content_keys", _FIND, subject)
        try:
            return self._unwrap(subject, *found[0]) if found else CLOSED
        except JournalError:  # the keys may have been replaced since
            if (again := self.database.rows("content_keys", _FIND, subject)) in (found, []):
                raise
            return self._unwrap(subject, *again[0])

    def make(self, subject: str) -> bytes:
        """Return the key of a subject, made if there is none. Unreadable where it was erased."""
        key = self.find(subject)
        if key == CLOSED and not self.has_key:
            self.operator_key()  # says what is missing
        if key == CLOSED and not self.database.rows("content_keys", _IS_THERE, subject):
            with self.database.writing() as db:
                self.database.lock(db, SUBJECT)
                n, store_key = self.read_store_key(db)
                wrapped = wrap(store_key, subject, secrets.token_bytes(KEY_BYTES))
                db.execute(_ADD, (subject, n, wrapped))
            self._has_key = True
            key = self.find(subject)
        if key in (CLOSED, ERASED):
            raise Unreadable(subject, erased=key == ERASED)
        return key

    def read_store_key(self, db: Transaction) -> tuple[int, bytes]:
        """Return the number and the key of the store, made with its first run; the caller has the lock."""
        found = db.execute(_CURRENT).fetchone()
        if found is not None:
            return found[0], self._open_store_key(bytes(found[1]), db)
        key = secrets.token_bytes(KEY_BYTES)
        db.execute(_ADD_STORE_KEY, (1, self.operator_key(db).wrap(key)))
        return 1, key

    def operator_key(self, db: Transaction | None = None) -> "OperatorKey":
        """Return the operator's key of this store, whose id is read in a transaction, if there is one. DefinitionError
        where the key is not set, or cannot be used."""
        from agent_core.encryption.operator_key import read_operator_key

        given = os.environ.get(self.variable, "").strip()
        if not given:
            own = "that with which it was made" if self._has_key else "`agent-core key new FILE --encryption` makes one"
            message = f"{self.database.name} is encrypted, and needs the operator's key: {own}"
            raise DefinitionError(message, where=self.variable)
        found = self.database.rows("store_identity", _STORE) if db is None else db.execute(_STORE).fetchall()
        store = found[0][0] if found else ""
        return read_operator_key(given, store, self.variable)

    def _find_many(self, database: Reader, subjects: Sequence[str]) -> dict[str, bytes]:
        """Return the keys of some subjects, for reading: where the operator's key opens nothing, all is closed, and can
        be verified."""
        if not subjects:
            return {}
        dialect = self.database.dialect
        query, chosen = _FIND_MANY.format(values=dialect.values), dialect.pack(subjects)
        for reader in (database, self.database):  # keys that are replaced meanwhile are found at the second time
            try:
                return {each[0]: self._unwrap(*each) for each in reader.rows("content_keys", query, chosen)}
            except JournalAway:
                raise
            except (DefinitionError, JournalError) as error:
                refused = error
        log.warning("%s", refused)
        return {}

    def _unwrap(self, subject: str, wrapped: Any, by: Any) -> bytes:
        if wrapped is None:
            return ERASED
        if by is None or not self.has_key:
            return CLOSED
        return _unwrap_content(self._open_store_key(bytes(by)), subject, bytes(wrapped))

    def _open_store_key(self, wrapped: bytes, db: Transaction | None = None) -> bytes:
        known = _OPENED.get(wrapped)
        if known is None:
            if len(_OPENED) >= _MOST_OPENED:
                _OPENED.clear()
            known = _OPENED[wrapped] = self.operator_key(db).unwrap(wrapped)
        return known


def wrap(store_key: bytes, subject: str, key: bytes) -> bytes:
    """Return the key of a subject as the store holds it."""
    return encrypt(store_key, subject.encode(), key)


def unwrap(store_key: bytes, subject: str, wrapped: bytes) -> bytes:
    """Return the key of a subject again."""
    return decrypt(store_key, subject.encode(), wrapped)


_unwrap_content = lru_cache(maxsize=4096)(unwrap)


def _open(key: bytes, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows with their records; closed, where there is no key."""
    for row in rows:
        if row.stored is None:
            yield row
        elif key in (CLOSED, ERASED):
            yield row._replace(data=key)
        else:
            yield row._replace(data=_decrypt(key, row))


def _decrypt(key: bytes, row: Row) -> bytes:
    """Return the record of a row; what is no ciphertext of this record stays closed: its chain tells of the damage."""
    try:
        return decrypt_record(key, row.path, row.n, row.stored or b"")
    except JournalError:
        return CLOSED


_ENCRYPTED: Final = "encrypted:"
_OPENED: dict[bytes, bytes] = {}
"""Keys of stores by what the operator's key has wrapped: to unwrap one may take a program."""
_MOST_OPENED: Final = 256
