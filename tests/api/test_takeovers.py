"""A run that ends whatever server drives it: it is paused, and those beside it end without a person."""

import json
import os
import subprocess
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from engine_shim.cli.doctor.command import examine
from engine_shim.cli.output import Options
from engine_shim.service.run_service import key_to_id
from engine_shim.store.open import open_store
from engine_shim.store.takeovers import MOST, describe_takeovers
from support.served_host import write_host
from support.served_process import serving

TOOLS = """
import asyncio
import os
import signal
import time
from pathlib import Path

from utools import tool

HERE = Path(__file__).parent


@tool(effect="read")
async def nap(seconds: float) -> str:
    \"\"\"Sleep.\"\"\"
    await asyncio.sleep(seconds)
    return "slept"


@tool(effect="read")
async def end_server(how: str) -> str:
    \"\"\"End the server, unless it is mended.\"\"\"
    if (HERE / "mended").exists():
        return "mended"
    with (HERE / "tries.txt").open("a") as book:
        book.write("x")
    if how == "block":
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGKILL)


TOOLS = [nap, end_server]
"""
NAPS = {"id": "naps", "nodes": [{"id": f"n{n}", "tool": "nap", "config": {"seconds": 0.5}} for n in range(3)]}
NAPS["edges"] = [{"from": "n0", "to": "n1"}, {"from": "n1", "to": "n2"}]
EVIL = {"id": "evil", "nodes": [{"tool": "end_server", "config": {"how": "{{external.how}}"}}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_host(tmp_path, tools=["evil.py:TOOLS", "shop.py:TOOLS"])
    (tmp_path / "evil.py").write_text(TOOLS)
    for flow in (NAPS, EVIL):
        (tmp_path / "workflows" / f"{flow['id']}.json").write_text(json.dumps(flow))
    return tmp_path


def submit(client: httpx2.Client, workflow: str, **external: Any) -> str:
    answer = client.post(f"/workflows/{workflow}/runs?wait=false", json={"external": external})
    return str(answer.json()["run_id"])


def statuses(client: httpx2.Client) -> dict[str, str]:
    return {each["run_id"]: each["status"] for each in client.get("/runs?limit=100").json()["runs"]}


def supervise(folder: Path, runs: set[str], starts: int) -> dict[str, str]:
    """Start the server again whenever it has ended, until these runs rest; gives their statuses."""
    for _ in range(starts):
        with serving(folder) as (process, client), suppress(httpx2.HTTPError):
            while process.poll() is None:
                found = {run: status for run, status in statuses(client).items() if run in runs}
                if not {"pending", "running"} & set(found.values()):
                    return found
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.2)
    raise AssertionError("the server ended too often")


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", ["kill", pytest.param("block", marks=pytest.mark.long)])
def test_run_that_ends_servers_is_paused_and_the_others_end(folder: Path, how: str) -> None:
    with serving(folder) as (process, client):
        innocent = {submit(client, "naps") for _ in range(20)}
        evil = key_to_id("evil", "k")
        with suppress(httpx2.HTTPError):  # it may be gone before it answers
            body, key = {"external": {"how": how}}, {"Idempotency-Key": "k"}
            client.post("/workflows/evil/runs?wait=false", json=body, headers=key)
        process.wait(30)
    found = supervise(folder, {*innocent, evil}, starts=10)
    assert found.pop(evil) == "paused"
    assert set(found.values()) == {"completed"}
    assert len((folder / "tries.txt").read_text()) == 1 + MOST
    told = describe_takeovers(MOST)
    options = Options(folder / "runs.db", folder / "agent-core.yaml", False)
    assert [each.status for each in examine(options, quick=True) if told in each.message] == ["warning"]
    (folder / "mended").touch()
    with serving(folder) as (_, client):
        assert client.get(f"/runs/{evil}").json()["why_paused"] == told
        assert client.post(f"/runs/{evil}/resume").json()["status"] == "completed"
        assert client.get(f"/runs/{evil}").json()["why_paused"] is None


def test_takeovers_count_until_there_is_a_new_record(folder: Path) -> None:
    with closing(open_store(folder / "runs.db")) as store:
        store.database.prepare()
        assert [store.takeovers("a"), store.add_takeover("a"), store.add_takeover("a")] == [0, None, None]
        assert (store.takeovers("a"), store.takeovers("b")) == (2, 0)
        from agent_core.journal.record import chain_row, genesis

        store.journal.append("a", [chain_row("flow", 0, genesis("a", "flow"), {"kind": "run_started"})])
        assert store.takeovers("a") == 0
        store.add_takeover("a")
        assert store.takeovers("a") == 1
        store.forget_takeovers("a")
        assert store.takeovers("a") == 0
    assert os.path.exists(folder / "runs.db")
