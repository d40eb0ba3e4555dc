"""What lies beside the runs in a store, over both kinds of database: tokens, times, deliveries, search, the ledger."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from agent_core.audit.verify import verify
from engine_shim import Engine
from engine_shim.cli.records.ledger import find_damaged
from engine_shim.host.config import read_host_config
from engine_shim.service.deliveries import BACKOFF_S, CLAIM_S, Deliveries
from engine_shim.service.tenants import Tenant, open_tenant
from engine_shim.service.tokens import PREFIX, Tokens
from engine_shim.service.triggers import Triggers
from engine_shim.store.callbacks import HOOK, RunCallback, read_callback, replace_callback, save_callback
from engine_shim.store.copy import copy_runs
from engine_shim.store.entries import RunEntry, RunFilter
from engine_shim.store.ledger import GENESIS, read_ledger
from engine_shim.store.ledger_proof import prove_store
from engine_shim.store.open import open_store
from engine_shim.store.run_store import DatabaseRunStore
from engine_shim.store.search import RunQuery, RunSearch
from engine_shim.telemetry.telemetry import Telemetry
from support.optional import needs
from utools.databases.store_address import StoreAddress

pytestmark = needs("fastapi", extra="web")
POSTGRES = pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))
FLOW: dict[str, Any] = {"id": "f", "nodes": [{"id": "a", "tool": "echo", "config": {"text": "{{external.word}}"}}]}
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ODD = ["\0", "a\0b", "\ud800", "caf\udce9"]


@pytest.fixture(params=["sqlite", POSTGRES])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> StoreAddress:
    """Where a store is that nobody has made yet."""
    new_database = request.getfixturevalue("new_database") if request.param == "postgres" else None
    return tmp_path / "runs.db" if new_database is None else str(new_database())


@pytest.fixture
def store(address: StoreAddress) -> Iterator[DatabaseRunStore]:
    with closing(open_store(address)) as made:
        yield made


@pytest.fixture
def other(address: StoreAddress) -> Iterator[DatabaseRunStore]:
    """The same store, as another process has it."""
    with closing(open_store(address)) as made:
        yield made


@pytest.fixture
def run(store: DatabaseRunStore) -> Callable[..., list[str]]:
    """Runs the flow with each of some words, to its end; gives the ids."""

    def run_all(*words: str) -> list[str]:
        async def drive() -> list[str]:
            engine = Engine(store=store)
            return [(await engine.run(FLOW, external={"word": word})).run_id for word in words]

        return asyncio.run(drive())

    return run_all


def change(store: DatabaseRunStore, *statements: str) -> None:
    for statement in statements:
        with store.database.writing() as db:
            db.execute(statement)


# ── a text that no stored text is ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text", ODD)
def test_text_that_cannot_be_stored_is_looked_for_and_not_found(
    store: DatabaseRunStore, run: Callable[..., list[str]], text: str
) -> None:
    run("x")
    search = RunSearch(store)
    wanted = (RunFilter(workflow=text), RunFilter(statuses=(text,)))
    assert [store.entries(each) for each in wanted] == [[], []]
    assert (store.entry(text), store.find(text, limit=5), store.submitter(text), store.trace(text)) == (
        None,
        [],
        None,
        None,
    )
    assert (store.journal.load(text), store.tail(text), store.leases.holder(text)) == ({}, [], None)
    assert store.forget(text) is False
    queries = [RunQuery(each) for each in wanted]
    queries += [RunQuery(RunFilter(), **{name: text}) for name in ("reason", "tool", "text")]
    assert [search.find(each).entries for each in queries] == [[]] * 5
    tokens = Tokens(store.database)
    assert (tokens.find(f"{PREFIX}_{text}_secret"), tokens.revoke(text)) == (None, False)


def test_odd_text_among_others_hides_none_of_them(store: DatabaseRunStore, run: Callable[..., list[str]]) -> None:
    (done,) = run("x")
    query = f"SELECT run FROM workflow_runs WHERE run IN {store.database.dialect.values}"
    packed = store.database.dialect.pack([*ODD, done])
    assert store.database.rows("workflow_runs", query, packed) == [(done,)]


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────


def test_token_holds_for_every_server_of_the_store_until_it_expires_or_is_revoked(
    store: DatabaseRunStore, other: DatabaseRunStore
) -> None:
    now = [NOON]
    here, there = (Tokens(each.database, clock=lambda: now[0]) for each in (store, other))
    assert (here.any_existed(), here.all(), here.find(f"{PREFIX}_1_2"), here.revoke("1")) == (False, [], None, False)
    short = here.issue("ci", ["read"], lifetime=timedelta(days=1))
    now[0] += timedelta(seconds=1)
    long = here.issue("ops", ["admin", "run"], tenant="acme")
    found = [there.find(text) for text in (short, long, f"{long}x", long.removeprefix(PREFIX))]
    assert [each and (each.name, each.tenant, each.scopes) for each in found] == [
        ("ci", None, frozenset({"read"})),
        ("ops", "acme", frozenset({"admin", "run"})),
        None,
        None,
    ]
    now[0] += timedelta(days=1)
    assert (there.find(short), there.find(long) is None) == (None, False)
    first, second = there.all()
    assert (first.principal.name, first.expires_at) == ("ci", NOON + timedelta(days=1))
    assert (second.principal.name, second.expires_at, second.made_at) == ("ops", None, NOON + timedelta(seconds=1))
    assert there.revoke(second.principal.id)
    assert not here.revoke(second.principal.id)
    assert here.find(long) is None


def test_secret_of_a_token_is_stored_as_a_hash_alone(store: DatabaseRunStore) -> None:
    secret = Tokens(store.database).issue("ci", ["read"]).split("_", 2)[2]
    (row,) = store.database.rows("api_tokens", "SELECT * FROM api_tokens")
    assert isinstance(row[4], bytes)
    assert secret.encode() not in repr(row).encode()


# ── deliveries ───────────────────────────────────────────────────────────────────────────────────


class Post:
    """The deliveries to a webhook as some servers of one store have them, at a time that the test sets."""

    def __init__(self, *stores: DatabaseRunStore) -> None:
        self.now = 1000.0
        self.store = stores[0]
        self.servers = [Deliveries(each.database, "hook", lambda: self.now) for each in stores]
        for each in self.servers:
            each.begin()

    def note(self, run: str, status: str, records: int = 1) -> None:
        self.store.save(RunEntry(run, "w", "1", status, "2026-01-01T00:00:00Z", ".", records))

    def collect(self) -> list[int]:
        return [each.collect(lambda run, status: status != "cancelled") for each in self.servers]

    def claim(self, at: int = 0) -> list[tuple[str, str, int]]:
        return [(each.run, each.status, each.attempt) for each in self.servers[at].claim()]


def test_only_what_happens_after_a_webhook_began_is_told_and_once(
    store: DatabaseRunStore, other: DatabaseRunStore
) -> None:
    store.save(RunEntry("before", "w", "1", "completed", "2026-01-01T00:00:00Z", "."))
    post = Post(store, other)
    for run, status in (("a", "completed"), ("b", "running"), ("c", "cancelled"), ("d", "failed"), ("a", "completed")):
        post.note(run, status)
    assert post.collect() == [3, 0]
    assert [post.claim(0), post.claim(1)] == [[("a", "completed", 1), ("d", "failed", 1)], []]


def test_callback_of_a_run_is_due_with_each_event_and_once(store: DatabaseRunStore, other: DatabaseRunStore) -> None:
    post = Post(store, other)
    servers = [Deliveries(each.database, HOOK, lambda: post.now) for each in (store, other)]
    post.now = store.clock.read() + 1
    first, second = RunCallback("https://a.example/1", True), RunCallback("https://a.example/2", False)
    for callback in (first, second):
        save_callback(store.contents, "a", callback)  # the first one stays
    assert (read_callback(other.contents, "a"), read_callback(other.contents, "b")) == (first, None)
    for run, status in (("a", "running"), ("b", "waiting"), ("a", "waiting"), ("a", "waiting")):
        post.note(run, status)
    (event,) = servers[0].claim()
    assert ((event.run, event.status), servers[1].claim()) == (("a", "waiting"), [])
    servers[0].finish(event)
    post.note("a", "waiting")  # saved once more, it is no other event
    replace_callback(store.contents, "a", first, post.now)  # the same one is told nothing anew
    assert servers[1].claim() == []
    replace_callback(store.contents, "a", second, post.now)
    (again,) = servers[1].claim()
    assert (again.event, again.attempt, read_callback(store.contents, "a")) == (event.event, 1, second)
    servers[1].finish(again)
    post.note("a", "running", 2)
    replace_callback(store.contents, "a", first, post.now)  # it goes on, and there is nothing to tell yet
    assert servers[0].claim() == []
    post.note("a", "completed", 3)
    assert [each.status for each in servers[0].claim()] == ["completed"]
    assert store.forget("a")
    assert read_callback(other.contents, "a") is None


@pytest.mark.parametrize("is_told", [True, False])
def test_another_callback_that_comes_while_the_first_is_told_is_told_as_well(
    store: DatabaseRunStore, is_told: bool
) -> None:
    """The receiver has answered, and the attempt is not noted yet."""
    post = Post(store)
    server = Deliveries(store.database, HOOK, lambda: post.now)
    post.now = store.clock.read() + 1
    save_callback(store.contents, "a", RunCallback("https://a.example/1", False))
    post.note("a", "waiting")
    (event,) = server.claim()
    replace_callback(store.contents, "a", RunCallback("https://a.example/2", False), post.now)
    if is_told:
        server.finish(event)
    else:
        server.postpone(event)
    (again,) = server.claim()
    assert (again.event, again.attempt) == (event.event, 1)
    server.finish(again)
    assert server.claim() == []


def test_events_of_a_run_keep_their_order_and_wait_for_the_one_before(store: DatabaseRunStore) -> None:
    post = Post(store)
    (server,) = post.servers
    for records, status in enumerate(("waiting", "completed")):
        post.note("a", status, records)
    post.note("b", "waiting")
    post.collect()
    first, _ = server.claim()
    assert (first.run, first.status) == ("a", "waiting")
    assert server.claim() == []
    assert server.postpone(first)
    assert post.claim() == []
    post.now += BACKOFF_S[0]
    (again,) = server.claim()
    assert (again.event, again.attempt) == (first.event, 2)
    server.finish(again)
    assert post.claim() == [("a", "completed", 1)]


def test_claim_of_a_server_that_died_goes_over_after_a_while(store: DatabaseRunStore, other: DatabaseRunStore) -> None:
    post = Post(store, other)
    post.note("a", "completed")
    post.collect()
    assert post.claim(0) == [("a", "completed", 1)]
    post.now += CLAIM_S - 1
    assert post.claim(1) == []
    post.now += 1
    assert post.claim(1) == [("a", "completed", 2)]


def test_delivery_that_was_tried_often_enough_is_given_up_and_so_is_one_of_a_deleted_run(
    store: DatabaseRunStore,
) -> None:
    post = Post(store)
    (server,) = post.servers
    post.note("a", "completed")
    post.note("gone", "completed")
    post.collect()
    store.forget("gone")
    for wait in BACKOFF_S:
        (delivery,) = server.claim()
        assert server.postpone(delivery)
        post.now += wait
    (last,) = server.claim()
    assert not server.postpone(last)
    post.now += 10 * CLAIM_S
    assert server.claim() == []
    assert store.database.rows("webhook_deliveries", "SELECT * FROM webhook_deliveries") == []


# ── times of triggers ────────────────────────────────────────────────────────────────────────────


@pytest.mark.exhaustive
def test_time_of_a_trigger_is_dealt_with_once_by_whichever_server_and_across_restarts(
    address: StoreAddress, store: DatabaseRunStore, tmp_path: Path
) -> None:
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "f.yaml").write_text("id: f\nnodes: [{id: a, tool: echo, config: {text: hi}}]\n")
    (tmp_path / "triggers").mkdir()
    (tmp_path / "triggers" / "daily.yaml").write_text('workflow: f\ncron: "0 13 * * *"\n')
    (tmp_path / "agent-core.yaml").write_text("{}\n")
    config, now = read_host_config(tmp_path / "agent-core.yaml"), [NOON]

    def serve() -> tuple[Tenant, Triggers]:
        tenant = open_tenant(config, address, None, Telemetry())
        folder = tmp_path / "triggers"
        triggers = Triggers(folder, tenant.store.database, tenant.workflows, tenant.runs, clock=lambda: now[0])
        triggers.load()
        return tenant, triggers

    async def look(*times: datetime) -> list[Any]:
        servers = [serve() for _ in range(2)]
        for time in times:
            now[0] = time
            for _, triggers in servers:
                await triggers.start_due()
            for entry in store.entries():
                await servers[0][0].runs.wait(entry.run, 10)
        told = await servers[1][1].describe()
        for tenant, _ in servers:
            await tenant.close(0)
        return told

    hour = timedelta(hours=1)
    asyncio.run(look(NOON, NOON + hour, NOON + hour))
    (told,) = asyncio.run(look(NOON + hour, NOON + 2 * hour))
    assert [entry.status for entry in store.entries()] == ["completed"]
    assert (told["last_at"], told["last_run"]) == ((NOON + hour).isoformat(), store.entries()[0].run)
    asyncio.run(look(NOON + 26 * hour))
    assert len(store.entries()) == 2


# ── search ───────────────────────────────────────────────────────────────────────────────────────

SAID = 'a "quoted" \\ 100% _line_\nof Größe\tÜber 日本 <é> Sixteen'


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("SIXTEEN", 1),
        ("100%", 1),
        ("10_%", 0),
        ("_line_", 1),
        ("xline_", 0),
        ("\\ 100", 1),
        ('"quoted"', 1),
        ("line_\nof", 1),
        ("größe", 1),
        ("ÜBER", 1),
        ("日本", 1),
        ("<É>", 1),
        ("!", 0),
        ("nowhere", 0),
    ],
)
def test_text_is_found_as_it_was_written_in_either_case(
    store: DatabaseRunStore, run: Callable[..., list[str]], text: str, count: int
) -> None:
    run(SAID, "something else")
    assert len(RunSearch(store).find(RunQuery(RunFilter(), text=text)).entries) == count


def test_runs_are_found_by_tool_and_page_by_page(store: DatabaseRunStore, run: Callable[..., list[str]]) -> None:
    runs, search = run("one", "two", "three"), RunSearch(store)
    assert search.find(RunQuery(RunFilter(), tool="calculator")).entries == []
    page = search.find(RunQuery(RunFilter(limit=2), tool="echo"))
    assert [each.run for each in page.entries] == sorted(runs, key=_begun_of(store), reverse=True)[:2]
    assert page.digests[page.entries[0].run].tools == ["echo"]
    assert page.next is not None
    rest = search.find(RunQuery(RunFilter(limit=2, before=page.next), tool="echo"))
    assert ({each.run for each in (*page.entries, *rest.entries)}, rest.next) == (set(runs), None)


def _begun_of(store: DatabaseRunStore) -> Callable[[str], tuple[str, str]]:
    begun = {each.run: (each.started_at, each.run) for each in store.entries()}
    return lambda run: begun[run]


# ── the ledger ───────────────────────────────────────────────────────────────────────────────────


def test_each_run_that_ends_is_entered_with_the_head_that_verify_gives(
    store: DatabaseRunStore, run: Callable[..., list[str]]
) -> None:
    assert read_ledger(store.database) == (GENESIS.hex(), 0)
    runs = run("x", "y", "z")
    proof = prove_store(store.database)
    assert (proof.ok, proof.ended, proof.count) == (True, 3, 4)
    entries = store.database.rows("ledger", "SELECT run, data FROM ledger WHERE run != '' ORDER BY seq")
    assert [each for each, _ in entries] == runs
    for each, data in entries:
        verdict = verify(store.journal, run_id=each)
        assert f'"head":"{verdict.head}","count":{verdict.count}'.encode() in data


DAMAGES = {
    "gone": ("DELETE FROM rows WHERE run = '{0}'", "it ended at .*, and is gone"),
    "shortened": ("DELETE FROM rows WHERE run = '{0}' AND strand = 'flow' AND n = 1", "another head and count"),
    "exchanged": ("UPDATE rows SET run = CASE run WHEN 'y' THEN '{1}' ELSE run END", "another head"),
    "entry gone": ("DELETE FROM ledger WHERE run = '{0}'", "entry 2 of the ledger does not follow"),
    "entry changed": ("UPDATE ledger SET run = '{1}', hash = data WHERE run = '{0}'", "entry 2 of the ledger does not"),
}


@pytest.mark.parametrize(("damage", "why"), DAMAGES.values(), ids=DAMAGES)
def test_store_that_is_not_what_its_ledger_says_is_found(
    store: DatabaseRunStore, run: Callable[..., list[str]], damage: str, why: str
) -> None:
    first, second = run("x", "y")
    if "CASE" in damage:  # no two rows may have one name, even for a moment
        change(store, f"UPDATE rows SET run = 'y' WHERE run = '{first}'")
        change(store, f"UPDATE rows SET run = '{first}' WHERE run = '{second}'")
    change(store, damage.format(first, second))
    import re

    faults = prove_store(store.database).faults
    assert faults
    assert re.search(why, faults[0]["why"])


def test_ledger_that_was_cut_off_lacks_the_head_that_was_kept(
    store: DatabaseRunStore, run: Callable[..., list[str]]
) -> None:
    run("x", "y")
    head, _ = read_ledger(store.database)
    run("z")
    assert prove_store(store.database, head).ok
    change(store, "DELETE FROM ledger WHERE seq >= 3")
    assert "no entry of the ledger has the head" in prove_store(store.database, head).faults[0]["why"]


def test_deleted_run_leaves_a_tombstone_and_must_not_come_again(
    store: DatabaseRunStore, run: Callable[..., list[str]]
) -> None:
    first, _ = run("x", "y")
    rows = [row for _, row in store.tail(first)]
    assert store.forget(first)
    proof = prove_store(store.database)
    assert (proof.ok, proof.ended, proof.deleted) == (True, 1, 1)
    with store.database.writing() as db:  # past the journal, as an intruder would
        for row in rows:
            values = (first, row.path, row.n, row.hash, row.data)
            db.execute("INSERT INTO rows (run, strand, n, hash, data) VALUES (?, ?, ?, ?, ?)", values)
    assert "and is there again" in prove_store(store.database).faults[0]["why"]


def test_runs_from_before_the_ledger_and_of_other_programs_are_counted_apart(
    store: DatabaseRunStore, run: Callable[..., list[str]]
) -> None:
    older = run("x", "y")
    change(store, "DELETE FROM ledger")
    run("z")
    proof = prove_store(store.database)
    assert (proof.ok, proof.older, proof.ended, proof.others) == (True, len(older), 1, 0)
    rows = [row for _, row in store.tail(older[0])]
    with store.database.writing() as db:
        for row in rows:
            values = ("foreign", row.path, row.n, row.hash, row.data)
            db.execute("INSERT INTO rows (run, strand, n, hash, data) VALUES (?, ?, ?, ?, ?)", values)
    assert prove_store(store.database).others == 1


class Busy:
    """A database in which something else happens before each of a reader's queries."""

    def __init__(self, database: Any, meanwhile: Callable[[], object]) -> None:
        self._database, self._meanwhile = database, meanwhile

    def rows(self, *query: Any) -> list[Any]:
        self._meanwhile()
        found: list[Any] = self._database.rows(*query)
        return found

    @contextmanager
    def open_snapshot(self) -> Iterator["Busy"]:
        with self._database.open_snapshot() as reader:
            yield Busy(reader, self._meanwhile)


def test_runs_that_end_and_are_deleted_meanwhile_are_no_faults(
    store: DatabaseRunStore, other: DatabaseRunStore, run: Callable[..., list[str]]
) -> None:
    left = run(*"abcdefgh")

    def change_much() -> None:
        run("more")
        if left:
            other.forget(left.pop())

    busy: Any = Busy(other.database, change_much)
    for _ in range(2):
        head, count = read_ledger(store.database)
        proof = prove_store(busy, head)
        assert (proof.faults, proof.count >= count) == ([], True)
    assert prove_store(store.database).ok


def test_store_is_verified_while_its_runs_are_deleted(
    address: StoreAddress, store: DatabaseRunStore, run: Callable[..., list[str]]
) -> None:
    runs = run(*"abcdef")
    deleting = Thread(target=lambda: [store.forget(each) for each in runs])
    deleting.start()
    found = [find_damaged(store) for _ in range(5)]
    deleting.join()
    assert found == [[]] * 5


def test_run_that_is_listed_and_has_no_record_is_damaged(
    store: DatabaseRunStore, run: Callable[..., list[str]]
) -> None:
    gone, _ = run("x", "y")
    change(store, f"DELETE FROM rows WHERE run = '{gone}'")
    assert [each["run"] for each in find_damaged(store)] == [gone]


def test_a_missing_store_is_proven_and_not_made(address: StoreAddress, store: DatabaseRunStore) -> None:
    assert prove_store(store.database).count == 0
    assert isinstance(address, str) or not address.exists()


# ── a copy ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=["into a file", pytest.param("into postgres", marks=pytest.mark.xdist_group("postgres"))])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DatabaseRunStore]:
    """A new store, to copy to."""
    into_file = request.param == "into a file"
    with closing(open_store(tmp_path / "copy.db" if into_file else request.getfixturevalue("new_database")())) as made:
        yield made


def test_copy_into_a_new_store_is_proven_by_each_head_that_was_kept_of_the_old_one(
    store: DatabaseRunStore, target: DatabaseRunStore, run: Callable[..., list[str]]
) -> None:
    run("x", "y")
    early, _ = read_ledger(store.database)
    (deleted,) = run("z")
    store.forget(deleted)
    late, count = read_ledger(store.database)
    assert copy_runs(store, target).ledger == "carried"
    for head in (early, late):
        proof = prove_store(target.database, head)
        assert (proof.faults, proof.ended, proof.deleted) == ([], 2, 1)
    target.forget(copy_runs(store, target).known[0])
    proof = prove_store(target.database, late)
    assert (proof.faults, proof.ended, proof.deleted) == ([], 1, 2)
    assert read_ledger(target.database)[1] == count + 1 + 2 + 1, "its own entries: copied, two that came, one deleted"


def test_run_that_the_old_ledger_tells_of_and_the_copy_lacks_is_found(
    store: DatabaseRunStore, target: DatabaseRunStore, run: Callable[..., list[str]]
) -> None:
    lost, _ = run("x", "y")
    change(store, f"DELETE FROM rows WHERE run = '{lost}'", f"DELETE FROM workflow_runs WHERE run = '{lost}'")
    copy_runs(store, target)
    (fault,) = prove_store(target.database).faults
    assert (fault["run"], fault["why"].endswith("and is gone")) == (lost, True)


def test_copy_into_a_store_with_a_ledger_keeps_the_other_and_takes_the_tombstones_over(
    store: DatabaseRunStore, target: DatabaseRunStore, run: Callable[..., list[str]]
) -> None:
    Engine(store=target).run_sync(FLOW, external={"word": "own"}, run_id="own")
    kept, deleted = run("x", "y")
    copy_runs(store, target, [deleted])
    store.forget(deleted)
    (gone,) = run("z")
    store.forget(gone)
    head, count = read_ledger(store.database)
    assert copy_runs(store, target).ledger == "kept"
    entries = target.database.rows("ledger", "SELECT run, data FROM ledger ORDER BY seq")
    told = [(each, json.loads(data)) for each, data in entries]
    assert [(entry["head"], entry["count"]) for _, entry in told if entry["kind"] == "copied"] == [(head, count)]
    assert [each for each, entry in told if entry["kind"] == "deleted"] == [gone], "the other one was copied before"
    proof = prove_store(target.database)
    assert (proof.faults, proof.ended, proof.deleted) == ([], 3, 1)
    assert prove_store(target.database, head).faults == []
    assert copy_runs(store, target).ledger is None, "it was kept"
    assert {each.run for each in target.entries()} == {"own", kept, deleted}


def test_older_runs_of_the_old_store_are_entered_and_strange_ones_in_the_copy_are_faults(
    store: DatabaseRunStore, target: DatabaseRunStore, run: Callable[..., list[str]]
) -> None:
    older, *_ = run("x", "y")
    change(store, "DELETE FROM ledger")
    run("z")
    copy_runs(store, target)
    assert prove_store(target.database).ended == 3
    change(target, f"UPDATE rows SET run = 'strange' WHERE run = '{older}'")
    change(target, f"UPDATE workflow_runs SET run = 'strange' WHERE run = '{older}'")
    found = {each["run"]: each["why"] for each in prove_store(target.database).faults}
    assert found.keys() == {older, "strange"}
    assert found["strange"] == "it ended, and is not in the ledger"
