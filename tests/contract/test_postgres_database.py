"""What a PostgreSQL database of ours does for everything that is kept in it: schemas, values, and its layouts."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import pytest

from support.pooler import pooler_before
from support.postgres_server import Postgres, real_postgres
from utools.errors import DatabaseAway, DatabaseError

if TYPE_CHECKING:
    from utools.databases.postgres_database import PostgresDatabase
    from utools.databases.postgres_transaction import PostgresTransaction

pytestmark = pytest.mark.xdist_group("postgres")
NewDatabase = Callable[[], str]


def open_database(url: str, schema: str | None = None) -> Any:
    from utools.databases.postgres_database import PostgresDatabase
    from utools.databases.postgres_layout import PostgresLayout

    layout = PostgresLayout("words", ("CREATE TABLE words (word TEXT PRIMARY KEY)",))
    return closing(PostgresDatabase(url, (layout,), patience=0.3, schema=schema))


def add_word(database: "PostgresDatabase", word: str) -> None:
    with database.writing("words") as db:
        db.execute("INSERT INTO words VALUES (?)", (word,))


def test_schemas_of_one_database_share_neither_tables_nor_locks(new_database: NewDatabase) -> None:
    url, strange = new_database(), 'a "strange" \\ name'
    with open_database(url) as plain, open_database(url, "one") as one, open_database(url, strange) as other:
        for each in (plain, one, other):
            add_word(each, each.schema or "none")
        assert [each.select("SELECT word FROM words") for each in (plain, one, other)] == [
            [("none",)], [("one",)], [(strange,)]
        ]  # fmt: skip
        with one.writing("words"):
            add_word(other, "meanwhile")
            with open_database(url, "one") as rival, pytest.raises(DatabaseError, match="others have kept it busy"):
                add_word(rival, "late")


def test_text_of_a_query_may_have_percent_signs(new_database: NewDatabase) -> None:
    with open_database(new_database()) as database:
        add_word(database, "100%")
        assert database.select("SELECT word FROM words WHERE word LIKE '1%' AND word <> ?", "%s") == [("100%",)]


ENDING = """
import atexit, os, sys
pools = []
atexit.register(lambda: print(os.getpid() == parent, pools[0].closed, flush=True))
parent = os.getpid()
from utools.databases.postgres_database import PostgresDatabase
from utools.databases.postgres_layout import PostgresLayout
layout = PostgresLayout("words", ("CREATE TABLE words (word TEXT)",))
database = PostgresDatabase(sys.argv[1], (layout,), patience=3)
database.select("SELECT word FROM words")
pools.append(database._pool)
if os.fork():
    os.wait()
"""


def test_a_database_that_nobody_closed_is_closed_when_its_own_process_ends(new_database: NewDatabase) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", ENDING, new_database()],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout.split(), done.stderr) == (["False", "False", "True", "True"], "")


def read_snapshot(database: "PostgresDatabase") -> None:
    with database.snapshot() as select:
        select("SELECT word FROM words")


def write_freely(database: "PostgresDatabase") -> None:
    with database.writing() as db:
        db.execute("DELETE FROM words")


USES: dict[str, Callable[["PostgresDatabase"], Any]] = {
    "a read": lambda database: database.select("SELECT word FROM words"),
    "a snapshot": read_snapshot,
    "a write": write_freely,
    "a write of a subject": lambda database: add_word(database, "new"),
}


@pytest.mark.parametrize("use", USES)
def test_connection_that_was_lost_a_moment_ago_is_changed_for_another(new_database: NewDatabase, use: str) -> None:
    import psycopg

    url = new_database()
    with open_database(url) as database, psycopg.connect(url, autocommit=True) as killer:
        add_word(database, "old")
        pids = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        killer.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM ({pids}) AS others")
        USES[use](database)


def test_connection_to_a_server_that_took_no_writes_is_not_kept(new_database: NewDatabase) -> None:
    """As after a failover, where a name still led to the replica for a while."""
    import psycopg

    url = new_database()
    setting = f"ALTER DATABASE {url.rpartition('/')[2]} {{}} default_transaction_read_only {{}}"
    with open_database(url) as database, psycopg.connect(url, autocommit=True) as admin:
        admin.execute(setting.format("SET", "= on"))
        with open_database(url) as others, pytest.raises(DatabaseError, match="open it once"):
            add_word(others, "no table")
        admin.execute(setting.format("RESET", ""))
        add_word(database, "old")
        database.close()
        admin.execute(setting.format("SET", "= on"))
        with pytest.raises(DatabaseAway, match="use the address of the server that takes writes"):
            add_word(database, "new")
        admin.execute(setting.format("RESET", ""))
        with suppress(DatabaseAway):
            add_word(database, "by a connection that the pool made meanwhile")
        add_word(database, "new")
        assert ("new",) in database.select("SELECT word FROM words")


def test_role_that_has_all_its_connections_is_waited_for(new_database: NewDatabase) -> None:
    import psycopg

    url = new_database()
    role = f"few_{url.rpartition('/')[2]}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 0")
        refused = pytest.raises(DatabaseAway, match="too many connections for role")
        with open_database(url.replace("//postgres:", f"//{role}:")) as database, refused:
            add_word(database, "new")
        admin.execute(f"DROP ROLE {role}")


def write_and_fail(db: "PostgresTransaction") -> None:
    db.execute("INSERT INTO words VALUES (?)", ("second",))
    raise ZeroDivisionError


def test_transaction_that_fails_in_the_middle_or_at_its_end_leaves_nothing(new_database: NewDatabase) -> None:
    with open_database(new_database()) as database:
        add_word(database, "there")
        with pytest.raises(DatabaseError, match="duplicate key"), database.writing("words") as db:
            db.executemany("INSERT INTO words VALUES (?)", [("first",), ("there",)])
        with pytest.raises(ZeroDivisionError), database.writing("words") as db:
            write_and_fail(db)
        add_word(database, "third")
        assert database.select("SELECT word FROM words ORDER BY word") == [("there",), ("third",)]


@pytest.mark.exhaustive
def test_transaction_that_a_crash_undid_is_not_taken_for_the_one_that_gets_its_id() -> None:
    """Of what was not yet written the server gives the ids out again: one would look committed that was lost."""
    with real_postgres() as server:
        url, ids = server.make_database(), list[str]()
        with open_database(url) as ours, open_database(url) as others:
            add_word(others, "first")
            with pytest.raises(DatabaseAway) as lost:
                write_over_a_crash(server, ours, others, ids)
            assert ids[0] in ids[1:], "else nothing is shown"
            assert lost.value.in_doubt is None, "it is known that it was not committed"
            assert ("ours",) not in others.select("SELECT word FROM words")


def write_over_a_crash(server: Postgres, ours: "PostgresDatabase", others: "PostgresDatabase", ids: list[str]) -> None:
    """Write by `ours`, over a crash after which `others` write; notes the ids of the transactions."""
    with ours.writing("words") as db:
        ids.append(read_id(db))
        db.execute("INSERT INTO words VALUES ('ours')")
        server.crash()
        server.start_again()
        for n in range(5):
            with others.writing("words") as theirs:
                theirs.execute("INSERT INTO words VALUES (?)", (f"theirs {n}",))
                ids.append(read_id(theirs))


def read_id(db: "PostgresTransaction") -> str:
    return str(db.execute("SELECT pg_current_xact_id()::text").fetchone()[0])


def test_a_forked_process_has_connections_of_its_own(new_database: NewDatabase) -> None:
    url = new_database()
    forks = ["-W", "ignore:This process"]  # from Python 3.12 on it warns of any thread that is there
    done = subprocess.run([sys.executable, *forks, "-c", FORKING, url], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"[('child',), ('parent',), ('parent again',)]\n"


FORKING = """
import os, sys
from utools.databases.postgres_database import PostgresDatabase
from utools.databases.postgres_layout import PostgresLayout
from utools.databases.postgres_layout import PostgresLayout

layout = PostgresLayout("words", ("CREATE TABLE words (word TEXT PRIMARY KEY)",))
database = PostgresDatabase(sys.argv[1], (layout,), patience=5)

def add(word):
    with database.writing("words") as db:
        db.execute("INSERT INTO words VALUES (?)", (word,))

add("parent")
child = os.fork()
if not child:
    add("child")
    database.close()
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
add("parent again")
print(database.select("SELECT word FROM words ORDER BY word"))
database.close()
"""


def test_options_of_the_environment_count_as_those_of_the_url(
    new_database: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_database()
    with open_database(url, "one") as database:
        add_word(database, "one")
    monkeypatch.setenv("PGOPTIONS", "-c search_path=one")
    with open_database(url) as database:
        assert database.select("SELECT word FROM words") == [("one",)]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("-crole%3Dpg_read_all_data", "permission denied for schema public"),
        ("-csearch_path%3Dnone", "no schema has been selected to create in"),
        ("-cdefault_transaction_read_only%3Don", "cannot execute CREATE TABLE in a read-only transaction"),
    ],
)
def test_who_may_make_no_tables_is_told_what_to_do(new_database: NewDatabase, options: str, why: str) -> None:
    with open_database(f"{new_database()}?options={options}") as database, pytest.raises(DatabaseError) as refused:
        add_word(database, "late")
    assert str(refused.value).startswith("cannot make the tables in postgresql://127.0.0.1:")
    assert str(refused.value).endswith(f": {why}; open it once as a user who may make tables in its schema")


@pytest.mark.parametrize(
    ("refuses", "what"), [(True, "unsupported startup parameter: options"), (False, "our settings .* were dropped")]
)
def test_pooler_that_keeps_no_settings_of_a_session_is_named_at_once(
    postgres: Postgres, new_database: NewDatabase, *, refuses: bool, what: str
) -> None:
    url = new_database()
    with open_database(url, "tenant") as tenant, open_database(url) as host:
        add_word(tenant, "theirs")
        add_word(host, "ours")
    with pooler_before(postgres.port, refuses=refuses) as port:
        pooled = url.replace(f":{postgres.port}/", f":{port}/")
        with open_database(pooled, "tenant") as tenant:
            for use in (tenant.find_versions, lambda: tenant.select("SELECT word FROM words")):
                with pytest.raises(DatabaseError, match=rf"{what}.*; use the address of the server itself") as refusal:
                    use()
                assert not isinstance(refusal.value, DatabaseAway)  # nobody waits for it
