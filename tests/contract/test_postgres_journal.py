"""What is special to a journal in PostgreSQL: processes that share it, and a server that is away, busy or newer."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import replay, run_agent, verify
from agent_core.errors import JournalError
from agent_core.journal.record import chain_row, genesis
from agent_core.models import ScriptedModel
from support.by_hand import final
from support.postgres_server import PASSWORD, Postgres
from utools import ToolRegistry

if TYPE_CHECKING:
    from agent_core.journal.postgres import PostgresJournal

pytestmark = pytest.mark.xdist_group("postgres")
NewDatabase = Callable[[], str]
WRITER = """
import sys
from agent_core.errors import Lost
from agent_core.journal.postgres import PostgresJournal
from agent_core.journal.record import chain_row, genesis

journal, who = PostgresJournal(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
won = 0
while (n := sum(map(len, journal.load("r").values()))) < 200:
    rows = journal.load("r").get("agent", [])
    row = chain_row("agent", len(rows), rows[-1].hash if rows else genesis("r", "agent"), {"kind": "asked", "by": who})
    try:
        won += journal.append("r", [row])
    except Lost:
        pass
print(won, flush=True)
"""


def open_journal(url: str, **options: Any) -> "PostgresJournal":
    from agent_core.journal.postgres import PostgresJournal

    return PostgresJournal(url, **options)


async def test_a_run_in_it_is_proved_and_replayed(postgres_journal: "PostgresJournal") -> None:
    config = {"model": "scripted", "max_steps": 2, "allowed_tools": [], "prompt": "Say it."}
    output = await run_agent(
        config, registry=ToolRegistry(), model=ScriptedModel([final("It.")]), journal=postgres_journal, run_id="r"
    )
    assert output.final_answer == "It."
    assert verify(postgres_journal, run_id="r").ok
    assert replay(postgres_journal, run_id="r").identical


def test_processes_share_a_strand_and_one_that_is_killed_leaves_it_whole(new_database: NewDatabase) -> None:
    url = new_database()
    open_journal(url).runs()
    command = [sys.executable, "-c", WRITER, url]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen([*command, str(n)], **pipes) for n in range(3)]
    for each in writers:
        assert each.stdout.readline() == "ready\n"
    for each in writers:
        each.stdin.write("\n")
        each.stdin.flush()
    with closing(open_journal(url)) as journal:
        while sum(map(len, journal.load("r").values())) < 40:
            time.sleep(0.005)
        os.kill(writers[0].pid, signal.SIGKILL)
        writers[0].communicate()
        won = [int(each.communicate(timeout=60)[0]) for each in writers[1:]]
        rows = journal.load("r")["agent"]
    assert len(rows) >= 200
    assert [row.n for row in rows] == list(range(len(rows)))
    assert sum(won) == sum(row.record()["by"] != "0" for row in rows)


def test_server_that_is_away_is_an_error_without_the_password() -> None:
    pytest.importorskip("psycopg_pool", reason="needs psycopg with its pool (extra `postgres`)")
    wrong = f"postgresql://ada:{PASSWORD}@127.0.0.1:1/none"
    with closing(open_journal(wrong, patience=0.2)) as away, pytest.raises(JournalError) as told:
        away.runs()
    assert PASSWORD not in str(told.value)
    assert "postgresql://127.0.0.1:1/none" in str(told.value)


def test_connections_that_are_cut_are_made_anew(postgres: Postgres, new_database: NewDatabase) -> None:
    import psycopg

    row = chain_row("agent", 0, genesis("r", "agent"), {"kind": "asked"})
    with closing(open_journal(new_database())) as journal:
        journal.append("r", [row])
        with psycopg.connect(postgres.url(), autocommit=True) as db:
            db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        assert journal.load("r") == {"agent": [row]}


def test_run_that_another_keeps_busy_is_waited_for_so_long(new_database: NewDatabase) -> None:
    import psycopg

    url, row = new_database(), chain_row("agent", 0, genesis("r", "agent"), {"kind": "asked"})
    with closing(open_journal(url, patience=0.3)) as journal, psycopg.connect(url) as db:
        db.execute("SELECT pg_advisory_xact_lock(hashtextextended('r', 0))")
        with pytest.raises(JournalError, match=r"others have kept it busy for 0\.3 s"):
            journal.append("r", [row])
        db.commit()
        assert journal.append("r", [row])


def test_journal_of_a_newer_version_is_refused(new_database: NewDatabase) -> None:
    import psycopg

    url = new_database()
    open_journal(url).runs()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("UPDATE agent_core_layouts SET version = 99")
    with closing(open_journal(url)) as journal, pytest.raises(JournalError, match=r"version 99.*upgrade agent-core"):
        journal.runs()


def test_run_whose_id_it_cannot_hold_is_an_error(postgres_journal: "PostgresJournal") -> None:
    row = chain_row("agent", 0, genesis("a\0b", "agent"), {"kind": "asked"})
    with pytest.raises(JournalError, match="cannot write to postgresql://"):
        postgres_journal.append("a\0b", [row])
