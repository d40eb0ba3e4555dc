"""All that a user has, with `store: postgresql://…` in agent-core.yaml: each command, the page, conversations, MCP."""

import asyncio
import io
import json
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psycopg_pool", reason="needs psycopg with its pool (extra `postgres`)")

from engine_shim.store.open import open_store
from support.cluster import cluster
from support.command import Cli, Ran, run_here
from support.optional import needs
from support.postgres_server import PASSWORD, Postgres
from support.served_host import Served, served, write_host

pytestmark = [pytest.mark.exhaustive, pytest.mark.xdist_group("postgres"), needs("fastapi")]
OK, FAILED, USAGE, DEFINITION, LIMIT, AUDIT, WAITING = range(7)


@pytest.fixture
def home(postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a host whose store is a database of its own."""
    write_host(tmp_path, store=postgres.make_database())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(home: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    """Runs `agent-core WORD…` in this process; no file of a store may be made by it, and no password shown."""

    def run(*words: str) -> Ran:
        ran = run_here(words, capsys)
        assert PASSWORD not in ran.out + ran.err
        return ran

    yield run
    assert not list(home.glob("*.db"))


def run(cli: Cli, workflow: str, *inputs: str) -> Any:
    given = [word for each in inputs for word in ("--input", each)]
    ran = cli("run", f"workflows/{workflow}.json", *given, "--json")
    assert ran.code in (OK, WAITING), ran.err
    return ran.json


def store_of(home: Path) -> str:
    return str(json.loads((home / "agent-core.yaml").read_text())["store"])


# ── commands ─────────────────────────────────────────────────────────────────────────────────────


def test_project_that_init_wrote_runs_on_a_database(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("init", "new").code == OK
    config = home / "new" / "agent-core.yaml"
    config.write_text(re.sub(r"^store: runs.db.*$", f"store: {store_of(home)}", config.read_text(), flags=re.MULTILINE))
    monkeypatch.chdir(home / "new")
    ran = cli("run", "flow.yaml", "--input", "question=Where is order 17?")
    assert "answer: Order 17, a lamp, was sent on Monday." in ran.out
    assert cli("eval", "add", "last", "--to", "cases.yaml").code == OK
    assert "order 17" in Path("cases.yaml").read_text()
    assert "flow.test.yaml" in {each.name for each in Path().iterdir()}


def test_run_is_listed_shown_counted_proven_and_written_out(cli: Cli, home: Path) -> None:
    found = run(cli, "desk", "message=How many?")
    run_id = found["run_id"]
    assert [each["run_id"] for each in cli("runs", "--json").json] == [run_id]
    assert "There are 12." in cli("show", run_id[:12]).out
    assert "1 completed" in cli("stats").out
    assert cli("replay", "last").code == OK
    for words in (["verify", "last"], ["export", "last", "--jsonl", "--to", "run.jsonl"], ["verify", "run.jsonl"]):
        assert cli(*words).code == OK, words
    assert cli("verify", "run.jsonl").out == cli("verify", "last").out
    assert cli("export", "last", "--to", "run.html").code == OK
    assert run_id in (home / "run.html").read_text()
    ledger = cli("ledger", "--json").json
    assert cli("verify", "--all", "--ledger", ledger["head"]).code == OK
    other = run(cli, "desk", "message=How many?")["run_id"]
    assert cli("diff", run_id, other).code in (OK, AUDIT)
    assert cli("verify", "--all", "--ledger", ledger["head"]).code == OK


def test_run_is_decided_forked_cancelled_and_its_write_made_once(cli: Cli, home: Path) -> None:
    waits = run(cli, "buy", "article=U-1")["run_id"]
    assert cli("decide", "last", "approve", "--json").json["outputs"] == {"order": "ordered 3 of U-1"}
    assert (home / "orders.txt").read_text() == "U-1 3\n"
    desk = run(cli, "desk", "message=How many?")["run_id"]
    forked = cli("fork", desk, "--at", "flow/agent_core.1:2", "--json").json
    assert (forked["status"], forked["run_id"] != desk) == ("completed", True)
    cancelled = run(cli, "buy", "article=U-2")["run_id"]
    assert cli("pause", cancelled, "--json").code in (OK, WAITING)
    assert cli("cancel", cancelled, "--json").json["status"] == "cancelled"
    assert cli("resume", waits, "--json").json["status"] == "completed"
    assert {each["status"] for each in cli("runs", "--json").json} == {"completed", "cancelled"}


def test_old_runs_are_deleted_and_the_ledger_says_so(cli: Cli, home: Path) -> None:
    runs = [run(cli, "count", f"sum={n} + 1")["run_id"] for n in range(3)]
    head = cli("ledger", "--json").json["head"]
    waits = run(cli, "buy", "article=U-3")["run_id"]
    assert cli("retention", "--older-than", "0m", "--dry-run").code == OK
    assert len(cli("runs", "--json").json) == 4
    assert cli("retention", "--older-than", "0m").code == OK
    assert [each["run_id"] for each in cli("runs", "--json").json] == [waits]
    with closing(open_store(store_of(home))) as store:
        assert store.journal.load(runs[0]) == {}
    assert cli("verify", "--all", "--ledger", head).code == OK


def test_run_that_was_deleted_past_the_ledger_is_missed(cli: Cli, home: Path) -> None:
    run_id, _ = (run(cli, "count", f"sum={n} + 1")["run_id"] for n in range(2))
    with closing(open_store(store_of(home))) as store, store.database.writing() as db:
        for table in ("rows", "workflow_runs"):
            db.execute(f"DELETE FROM {table} WHERE run = ?", (run_id,))
    missed = cli("verify", "--all")
    assert (missed.code, run_id in missed.out + missed.err) == (AUDIT, True), missed


def test_token_is_made_listed_and_revoked(cli: Cli) -> None:
    made = cli("token", "new", "--name", "ci", "--scope", "read", "--json").json
    assert [each["name"] for each in cli("token", "list", "--json").json] == ["ci"]
    assert cli("token", "revoke", made["id"]).code == OK
    assert "revoked" in cli("token", "list").out or cli("token", "list", "--json").json == []


def test_doctor_looks_at_the_database(cli: Cli, home: Path) -> None:
    run(cli, "count", "sum=1 + 1")
    found = cli("doctor")
    assert re.search(r"ok +store +postgresql://127\.0\.0\.1:\d+/test_\d+", found.out), found.out
    write_host(home, store=f"postgresql://postgres:{PASSWORD}@127.0.0.1:1/nowhere")
    away = cli("doctor")
    assert re.search(r"problem +store +cannot read postgresql://127\.0\.0\.1:1/", away.out), away.out
    assert away.code == FAILED
    assert cli("runs").code == FAILED


def test_conversation_goes_on_in_another_process(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch, postgres: Postgres
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("How many?\n"))
    ran = cli("chat", "--agent", "clerk", "--conversation", "c1")
    assert (ran.code, "There are 12." in ran.out) == (OK, True), ran.err
    with cluster(home, store_of(home)) as made:
        host = made.serve()
        listed = host.client.get("/agent/conversations").json()["conversations"]
        assert [each["conversation_id"] for each in listed] == ["c1"]
        told = host.client.get("/agent/conversations/c1").json()
        assert "There are 12." in json.dumps(told)
        message = {"agent": "clerk", "message": "And now?", "conversation_id": "c1"}
        answer = host.client.post("/agent/chat", json=message)
        assert "There are 12." in answer.text
        told = host.client.get("/agent/conversations/c1").text
        assert told.count("There are 12.") >= 2


@needs("mcp")
def test_workflow_is_called_over_mcp_and_its_run_is_in_the_database(cli: Cli, home: Path) -> None:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    from support.temporal_project import COMMAND

    server = StdioServerParameters(command=COMMAND, args=["mcp"], cwd=home)

    async def call() -> Any:
        async with Client(stdio_client(server, errlog=sys.__stderr__)) as client:
            return await client.call_tool("run_count", {"sum": "20 + 3"})

    assert "23" in str(asyncio.run(call()).content)
    (listed,) = cli("runs", "--json").json
    assert (listed["workflow"], listed["status"]) == ("count", "completed")


# ── served ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def host(home: Path) -> Iterator[Served]:
    with served(home, store=store_of(home), with_page=True) as made:
        yield made


def test_page_shows_a_run_and_gives_it_as_a_file(host: Served) -> None:
    run_id = host.submit("desk", message="How many?")["run_id"]
    assert host.client.get("/ui/").status_code == 200
    page = host.client.get(f"/runs/{run_id}/page")
    assert (page.status_code, run_id in page.text, "There are 12." in page.text) == (200, True, True)
    journal = host.client.get(f"/runs/{run_id}/journal")
    assert (journal.status_code, int(journal.headers["journal-position"]) > 0) == (200, True)
    assert host.client.post(f"/runs/{run_id}/replay", json={}).json()["identical"]


@pytest.mark.parametrize(
    ("query", "found"),
    [("text=A-17", 1), ("text=a_17", 0), ("tool=stock", 1), ("reason=final", 1), ("status=waiting", 1), ("limit=1", 1)],
)
def test_runs_are_found_by_what_they_recorded(host: Served, query: str, found: int) -> None:
    host.submit("desk", message="How many?")
    host.submit("buy", article="B-1")
    assert len(host.client.get(f"/runs?{query}").json()["runs"]) == found


def test_metrics_count_the_runs(host: Served) -> None:
    host.submit("buy", article="B-1")
    assert 'agent_core_waiting_runs{tenant=""} 1.0' in host.client.get("/metrics").text
