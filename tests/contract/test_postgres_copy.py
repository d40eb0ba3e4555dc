"""Runs go from a file to PostgreSQL and back, and every command finds them there."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from agent_core.audit.verify import verify
from agent_core.errors import JournalError
from engine_shim import Engine
from engine_shim.cli.records.store_copy import copy_conversations_of
from engine_shim.store.copy import copy_runs
from engine_shim.store.open import open_store
from utools.context.open_store import open_context_store

pytestmark = [pytest.mark.exhaustive, pytest.mark.xdist_group("postgres")]
AGENT_CORE = Path(sys.executable).with_name("agent-core")
FLOW = {"id": "w", "nodes": [{"id": "a", "tool": "echo", "config": {"text": "hi"}}]}


async def test_runs_go_to_postgres_and_back_with_their_heads(tmp_path: Path, new_database: Callable[[], str]) -> None:
    first, url = tmp_path / "first.db", new_database()
    engine = Engine(store=first)
    results = [await engine.run(FLOW, run_id=f"run-{number}") for number in range(3)]
    await engine.close()
    with closing(open_store(first)) as source, closing(open_store(url)) as there:
        assert copy_runs(source, there).new == [result.run_id for result in results]
        with closing(open_store(tmp_path / "back.db")) as back:
            assert len(copy_runs(there, back).new) == 3
            for result in results:
                journals = (source.journal, there.journal, back.journal)
                heads = {verify(each, run_id=result.run_id).head for each in journals}
                assert heads == {result.journal["head"]} or len(heads) == 1
                assert all(verify(each, run_id=result.run_id).ok for each in journals)
                assert there.entry(result.run_id) == source.entry(result.run_id) == back.entry(result.run_id)


def test_the_line_of_a_trigger_comes_along_with_its_newer_time(tmp_path: Path, new_database: Callable[[], str]) -> None:
    with closing(open_store(tmp_path / "first.db")) as source, closing(open_store(new_database())) as there:
        for day, line, copied in (("02", "first", "first"), ("01", "older", "first"), ("03", "newer", "newer")):
            with source.database.writing() as db:
                db.execute("REPLACE INTO trigger_times VALUES ('t', ?, NULL)", (f"2026-01-{day}T00:00:00+00:00",))
                db.execute("REPLACE INTO trigger_crons VALUES ('t', ?)", (line,))
            copy_runs(source, there)
            (found,) = there.database.rows("trigger_crons", "SELECT cron FROM trigger_crons")
            assert tuple(found) == (copied,)


def test_commands_work_on_a_store_in_postgres(tmp_path: Path, new_database: Callable[[], str]) -> None:
    url = new_database()
    (tmp_path / "flow.yaml").write_text("id: w\nnodes: [{id: a, tool: echo, config: {text: hi}}]\n")

    def agent_core(*words: str) -> str:
        done = subprocess.run(
            [AGENT_CORE, *words, "--store", url], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done
        assert "hunter22" not in done.stdout + done.stderr, "no password is shown"
        return done.stdout

    agent_core("run", "flow.yaml")
    assert "completed" in agent_core("runs")
    for words in (
        ("show", "last"),
        ("verify", "last"),
        ("verify", "--all"),
        ("replay", "last"),
        ("ledger",),
        ("stats",),
        ("report",),
    ):
        assert agent_core(*words)
    assert "hi" in agent_core("export", "last", "--jsonl", "--to", "-")


def test_user_who_may_only_read_sees_and_proves_the_runs(
    tmp_path: Path, new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    url = new_database()
    monkeypatch.chdir(tmp_path)
    with closing(open_store(url)) as store:
        Engine(store=store).run_sync(FLOW, run_id="r")
    with psycopg.connect(url, autocommit=True) as db:
        role = f"reader_of_{db.info.dbname}"
        db.execute(f"CREATE ROLE {role} LOGIN")
        db.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
    reader = url.replace("postgres:", f"{role}:")

    def agent_core(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [AGENT_CORE, *words, "--store", reader]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    for words in (("runs",), ("show", "r"), ("verify", "r"), ("verify", "--all"), ("ledger",), ("stats",), ("report",)):
        done = agent_core(*words)
        assert (done.returncode, done.stderr) == (0, ""), done
    assert "r" in agent_core("runs").stdout
    assert agent_core("replay", "r").returncode == 0
    with closing(open_store(reader)) as store, pytest.raises(JournalError, match="permission denied"):
        store.forget("r")


def test_conversations_move_with_the_runs(
    tmp_path: Path, new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AGENT_CORE_CONTEXT_DB", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    url = new_database()
    turn = {"op": "persist", "session_id": "s", "user_message": "{{external.m}}", "final_answer": "Hello."}
    read = {"op": "load", "session_id": "s"}
    for name, config in (("tell", turn), ("read", read)):
        node = {"id": "a", "tool": "context_manager", "config": config}
        (tmp_path / f"{name}.json").write_text(json.dumps({"id": name, "nodes": [node]}))

    def agent_core(*words: str) -> str:
        done = subprocess.run([AGENT_CORE, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done
        return done.stdout

    for message in ("I am Zara.", "I own a kite."):
        agent_core("run", "tell.json", "--input", f"m={message}", "--store", "runs.db")
    told = agent_core("store", "copy", "runs.db", url)
    assert "copied: 1 conversation of these runs\n" in told
    there = agent_core("run", "read.json", "--json", "--store", url)
    assert "I am Zara." in there
    assert "I own a kite." in there
    assert "conversation" not in agent_core("store", "copy", "runs.db", url)
    agent_core("run", "tell.json", "--input", "m=Only here.", "--store", "runs.db")
    assert json.loads(agent_core("store", "copy", "runs.db", url, "--json"))["conversations"]["new"] == ["s"]
    assert "Only here." in agent_core("run", "read.json", "--json", "--store", url)
    agent_core("run", "tell.json", "--input", "m=Only there.", "--store", url)
    asyncio.run(open_context_store().append("nobody's", "t", [{"role": "user", "content": "Of another project."}]))
    agent_core("run", "tell.json", "--input", "m=And here.", "--store", "runs.db")
    told = agent_core("store", "copy", "runs.db", url)
    assert "left out: the conversation s, which has continued in the store to copy to" in told
    assert "nobody" not in told
    compared = agent_core("doctor", "--store", url, "--copied-from", "runs.db")
    assert "s has continued in both stores: both keep what they have; new turns belong here" in compared
    assert "Only there." in agent_core("run", "read.json", "--json", "--store", url)


def test_doctor_leaves_a_database_without_tables_as_it_is(
    tmp_path: Path, new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    url = new_database()
    monkeypatch.chdir(tmp_path)
    with closing(open_store(tmp_path / "runs.db")) as store:
        Engine(store=store).run_sync(FLOW, run_id="r")
    command = [AGENT_CORE, "doctor", "--store", url, "--copied-from", "runs.db"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "has no tables yet: nothing was copied" in done.stdout) == (1, True)
    with psycopg.connect(url) as db:
        assert db.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)


def test_conversations_of_the_host_are_not_given_to_a_tenant(
    tmp_path: Path, new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENT_CORE_CONTEXT_DB", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    asyncio.run(open_context_store().append("s", "t", [{"role": "user", "content": "Of the host."}]))
    node = {"id": "a", "tool": "context_manager", "config": {"op": "load", "session_id": "s"}}
    for tenant, expected in (("acme", list[str]()), (None, ["s"])):
        with closing(open_store(tmp_path / "runs.db", tenant=tenant)) as source:
            if tenant is not None:
                source.note_tenant(tenant)
            run = Engine(store=source).run_sync({"id": "w", "nodes": [node]}).run_id
            with closing(open_store(new_database())) as target:
                assert copy_conversations_of(source, target, [run]).new == expected
