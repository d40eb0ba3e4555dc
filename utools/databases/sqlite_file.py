"""SqliteFile: opens an SQLite file that holds tables of ours, makes or migrates them, and refuses newer ones.

Several layouts, and tables of somebody else, may share a file. The table `layouts` says for each layout how many of its
steps were taken. A layout that it does not name is recognised by its tables, which are then those of the first step, or
by the file's `user_version`, where older files have the version of a journal.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any, Final, Literal

from utools.databases.store_address import StoreAddress, check_file
from utools.errors import DefinitionError
from utools.files.protected_paths import protect_store
from utools.forks import close_before_forks
from utools.lazy_pattern import lazy_compile

TABLES_NAMED: Final = 5
OURS: Final = frozenset({"layouts", "rows", "workflow_runs", "turns"})
"""Each file of ours has one of these at least, those of older releases as well."""
BUSY_RETRY_S: Final = 0.005
FORK_S: Final = 1.0
"""How long a fork waits for a thread that uses the file."""
_HALF_SURROGATE: Final = lazy_compile("[\ud800-\udfff]")
LAYOUTS: Final = "CREATE TABLE IF NOT EXISTS layouts (name TEXT PRIMARY KEY, version INTEGER NOT NULL)"
Statements = tuple[str, ...]


class LayoutError(sqlite3.DatabaseError):
    """The file is of a newer version, or another program's; the message says which, and what to do."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Tables that belong together. `steps` bring them from each version to the next; `tables` are those of the first.

    `extra` are statements that this program needs on top, safe to repeat. `in_header`: the version is kept in the
    file's `user_version` as well.
    """

    name: str
    steps: tuple[Statements, ...]
    tables: frozenset[str]
    extra: Statements = ()
    in_header: bool = False

    @property
    def version(self) -> int:
        return len(self.steps)


class SqliteFile:
    """One connection to a file, opened at its first use and shared by threads. It is closed before a fork: SQLite
    remembers its locks for the whole process, and a child that inherits them loses what it writes.

    A new file is the owner's alone (0600); the mode of one that exists is left as its owner set it.

    Any number of processes may use the file. Raises sqlite3.Error, of which LayoutError is one, and OSError.
    """

    def __init__(
        self,
        path: Path,
        layout: Layout,
        *,
        busy_seconds: float,
        synchronous: Literal["NORMAL", "FULL"] = "NORMAL",
    ) -> None:
        self.path, self.layout = path, layout
        self._busy_seconds, self._synchronous = busy_seconds, synchronous
        self._db: sqlite3.Connection | None = None
        self._is_current = False
        self._known_tables: tuple[int, set[str]] | None = None
        """The number that SQLite gives to a state of the tables, and their names then."""
        self._lock = Lock()
        check_file(path)
        protect_store(path)
        close_before_forks(self)

    def __del__(self) -> None:
        if (db := getattr(self, "_db", None)) is not None:  # else Python warns, from 3.13 on, of what nobody has closed
            db.close()

    @property
    def is_open(self) -> bool:
        """Whether there is a connection, so that the file exists."""
        return self._db is not None

    def select(self, table: str, query: str, *values: Any) -> list[Any]:
        """Return what `query` finds in `table`; nothing where the file or the table does not exist, or for a half
        surrogate, which no text of SQLite has."""
        if self._db is None and not self.path.exists():
            return []
        for each in values:
            if isinstance(each, str) and _HALF_SURROGATE.search(each):
                return []
        with self._lock:
            db = self._connected()
            return db.execute(query, values).fetchall() if table in self._current_tables(db) else []

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """In this time `select` finds all as it was at its beginning, whatever others write meanwhile."""
        if self._db is None and not self.path.exists():
            yield
            return
        with self._lock:
            db = self._connected()
            self._current_tables(db)
            db.execute("BEGIN")
            _tables(db)  # the moment is that of the first read
        try:
            yield
        finally:
            with self._lock:
                self._connected().execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that no other writer shares. The first one makes the file, or migrates it."""
        with self._lock:
            db = self._connected()
            if not self._is_current:
                self._lay_out(db)
            with transaction(db):
                yield db

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self._lock:
            if self._db is not None:
                self._forget().close()

    def close_before_fork(self) -> None:
        """Close the connection, unless a snapshot or another thread uses it."""
        if not self._lock.acquire(timeout=FORK_S):
            return
        try:
            if self._db is not None and not self._db.in_transaction:
                self._forget().close()
        finally:
            self._lock.release()

    def begin_anew(self) -> object:
        """Forget the parent's connection."""
        self._lock = Lock()
        return self._forget()

    def _forget(self) -> Any:
        db, self._db, self._is_current, self._known_tables = self._db, None, False, None
        return db

    def _current_tables(self, db: sqlite3.Connection) -> set[str]:
        """Return the tables of the file, once they have this version; looked up when another process has changed
        them."""
        schema = int(db.execute("PRAGMA schema_version").fetchone()[0])
        if self._known_tables is not None and self._known_tables[0] == schema:
            return self._known_tables[1]
        is_old = version_of(db, self.path, self.layout) < self.layout.version and is_writable(self.path)
        if is_old and _tables(db):
            self._lay_out(db)
        tables = _tables(db)
        if not is_old:
            self._known_tables = schema, tables
        return tables

    def _connected(self) -> sqlite3.Connection:
        """Return the connection, for who holds the lock."""
        if self._db is None:
            self._db = self._connect()
        return self._db

    def _connect(self) -> sqlite3.Connection:
        new = not self.path.exists()
        if new:
            with suppress(OSError):  # SQLite says why
                self.path.touch(0o600)  # before SQLite makes it; what it puts beside the file gets the file's mode
        where = address(self.path, new)
        timeout = self._busy_seconds
        db = sqlite3.connect(where, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False)
        try:
            db.execute(f"PRAGMA synchronous = {self._synchronous}")
            if self._synchronous == "FULL":
                db.execute("PRAGMA fullfsync = 1")  # macOS keeps what is synced in the disk's cache without it
            version_of(db, self.path, self.layout)
        except BaseException:
            db.close()
            raise
        return db

    def _lay_out(self, db: sqlite3.Connection) -> None:
        """Bring the file to the version of the layout, all of it or nothing."""
        layout = self.layout
        if version_of(db, self.path, layout) < layout.version:
            _switch_to_wal(db, monotonic() + self._busy_seconds)
            with transaction(db):
                for statements in layout.steps[version_of(db, self.path, layout) :]:
                    for statement in statements:
                        db.execute(statement)
                db.execute(LAYOUTS)
                db.execute("REPLACE INTO layouts VALUES (?, ?)", (layout.name, layout.version))
                if layout.in_header:
                    db.execute(f"PRAGMA user_version = {layout.version}")
        if layout.extra:
            with transaction(db):
                for statement in layout.extra:
                    db.execute(statement)
        self._is_current = True


def version_of(db: sqlite3.Connection, path: Path, layout: Layout) -> int:
    """Return how many steps of the layout were taken. LayoutError for a newer file, and for another program's."""
    header = int(db.execute("PRAGMA user_version").fetchone()[0]) if layout.in_header else 0
    tables = _tables(db)  # at each look: it makes SQLite see what another process has migrated just now
    version = _written_version(db, layout) if "layouts" in tables else None
    if version is None:
        version = 1 if tables & layout.tables else 0
    if header and tables and not version:  # ours comes with its tables, which are looked up after it
        raise LayoutError(f"{path} is another program's: it has {list_tables(tables)}; name another file")
    version = max(version, header)
    if version > layout.version:
        message = f"{path} has layout {version}, this agent_core knows {layout.version}"
        raise LayoutError(f"{message}: use a newer version")
    return version


def find_foreign(path: Path) -> set[str]:
    """Return the tables of a file in which there are no tables of ours; nothing for any other file.

    Nothing is left beside it: a connection that only reads makes SQLite's files there, and does not remove them.
    """
    try:
        if not path.is_file():  # such as a pipe, whose opening would wait
            return set()
        how = "" if path.with_name(f"{path.name}-wal").exists() else "&immutable=1"
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro{how}", uri=True)) as db:
            tables = _tables(db)
    except (sqlite3.Error, OSError):  # who opens it says why that is not possible
        return set()
    return tables if not tables & OURS else set()


def refuse_foreign(address: StoreAddress, *, where: str) -> None:
    """DefinitionError for the file of another program, which what is kept here would be mixed up with."""
    if isinstance(address, Path) and (tables := find_foreign(address)):
        why = f"is another program's: it has {list_tables(tables)}, and none of ours; name another file"
        raise DefinitionError(f"{address} {why}", where=where)


def list_tables(tables: set[str]) -> str:
    """Return the names of tables in words, of many the first."""
    more = ", …" if len(tables) > TABLES_NAMED else ""
    return f"the {'table' if len(tables) == 1 else 'tables'} {', '.join(sorted(tables)[:TABLES_NAMED])}{more}"


def _written_version(db: sqlite3.Connection, layout: Layout) -> int | None:
    row = db.execute("SELECT version FROM layouts WHERE name = ?", (layout.name,)).fetchone()
    return None if row is None else int(row[0])


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Hold the write lock; commit at the end, or undo everything."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def address(path: Path, new: bool) -> str:
    """Return the URI of the file for SQLite; a read-only file, such as an archived one, needs no locks."""
    sealed = not new and not is_writable(path) and not path.with_name(path.name + "-wal").exists()
    return path.absolute().as_uri() + ("?immutable=1" if sealed else "")


def is_writable(path: Path) -> bool:
    """Return whether this process can write a file and what SQLite puts next to it."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def data_file(name: str, variable: str) -> Path:
    """Return the file that an environment variable names, or one in the user's data directory. DefinitionError where
    the user has none."""
    if chosen := os.environ.get(variable):
        return Path(chosen)
    from platformdirs import user_data_path  # not needed where a file is named

    try:
        directory = user_data_path("agent-core", appauthor=False)
        if directory.parts[0] == "~":
            raise RuntimeError  # as newer releases do
    except RuntimeError:
        message = f"this user has no home directory, where {name} would be; name a file, or set HOME"
        raise DefinitionError(message, where=variable) from None
    return directory / name


def _tables(db: sqlite3.Connection) -> set[str]:
    found = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return {name for (name,) in found}


def _switch_to_wal(db: sqlite3.Connection, until: float) -> None:
    """SQLite does not wait here by itself when several processes make the same new file."""
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or monotonic() > until:
                raise
            sleep(BUSY_RETRY_S)
