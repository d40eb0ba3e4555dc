"""Runs of tenants are driven in turn: a flood of one keeps no other waiting."""

import json
from pathlib import Path

import pytest

from engine_shim.service import tenants
from support.served_host import served

FLOOD = 100
NOTE = {"id": "note", "nodes": [{"tool": "order", "config": {"article": "{{external.article}}", "pieces": 1}}]}


@pytest.mark.exhaustive
def test_single_run_of_a_tenant_is_driven_in_the_next_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted by the order in which runs are driven, one at a time."""
    monkeypatch.setattr(tenants, "MAX_RUNNING", 1)
    with served(tmp_path, is_open=False, tenants={"acme": {}, "globex": {}}) as host:
        (tmp_path / "workflows" / "note.json").write_text(json.dumps(NOTE))
        headers = {name: host.issue(name, "admin", tenant=name) for name in ("acme", "globex")}

        def submit(name: str, workflow: str, **external: str) -> str:
            path = f"/workflows/{workflow}/runs?wait=false"
            answer = host.client.post(path, json={"external": external}, headers=headers[name])
            assert answer.status_code == 202, answer.text
            return str(answer.json()["run_id"])

        submit("acme", "wait", until="go")  # it has the only slot
        host.await_file("go.begun")
        last = [submit("acme", "note", article="a") for _ in range(FLOOD)][-1]
        submit("globex", "note", article="g")
        (tmp_path / "go").touch()
        while host.client.get(f"/runs/{last}", headers=headers["acme"]).json()["status"] != "completed":
            pass
    driven = [line.split()[0] for line in (tmp_path / "orders.txt").read_text().splitlines()]
    assert len(driven) == FLOOD + 1
    assert driven.index("g") < len(headers) + 1
