"""A sealed run of one tenant in the store of another, over HTTP: it is shown as what it is, and not driven."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_core.journal.signature import VARIABLE
from support.served_host import served

TENANTS: dict[str, Any] = {"acme": {}, "globex": {"workflows": "globex", "agents": "globex-agents"}}
TABLES = {"rows": "run, strand, n, hash, data", "workflow_runs": "*", "run_hosts": "*", "run_submissions": "*"}


def put(run: str, source: Path, target: Path) -> None:
    """Put a run into another file, with all that lists say of it."""
    with (
        closing(sqlite3.connect(source, isolation_level=None)) as db,
        closing(sqlite3.connect(target, isolation_level=None)) as other,
    ):
        for table, columns in TABLES.items():
            rows = db.execute(f"SELECT {columns} FROM {table} WHERE run = ?", (run,)).fetchall()
            names = "" if columns == "*" else f" ({columns})"
            other.executemany(f"INSERT INTO {table}{names} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def test_a_run_that_was_put_into_another_tenants_store_is_not_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "k1:a-key-of-this-host-alone")
    for name in ("globex", "globex-agents"):
        (tmp_path / name).mkdir()
    with served(tmp_path, is_open=False, tenants=TENANTS) as host:
        headers = {name: host.issue(name, "admin", tenant=name) for name in TENANTS}

        def ask(who: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
            answer = host.client.request(method, path, json=body, headers=headers[who])
            return answer.status_code, answer.json()

        _, waiting = ask("acme", "POST", "/workflows/buy/runs", {"external": {"article": "x"}})
        run = waiting["run_id"]
        put(run, tmp_path / "runs.acme.db", tmp_path / "runs.globex.db")
        assert ask("acme", "GET", f"/runs/{run}/verify")[1]["ok"] is True
        _, verdict = ask("globex", "GET", f"/runs/{run}/verify")
        assert verdict["why"] == "it was sealed as a run of the tenant acme, and this is the store of globex"
        status, told = ask("globex", "POST", f"/runs/{run}/decide", {"decision": "approve"})
        assert (status, "sealed as a run of the tenant acme" in str(told)) == (409, True), told
        assert not (tmp_path / "orders.txt").exists()
