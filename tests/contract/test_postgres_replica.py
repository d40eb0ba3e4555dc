"""A real replica of PostgreSQL: whoever only reads may use it, and runs go on where it takes over."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent_core.audit.verify import verify
from engine_shim import Engine
from engine_shim.store.open import open_store
from support.postgres_replica import REPLICATES, promote, replica_of
from support.postgres_server import Postgres, real_postgres
from utools import ToolRegistry, tool

pytestmark = [pytest.mark.exhaustive, pytest.mark.xdist_group("postgres replica")]
AGENT_CORE = Path(sys.executable).with_name("agent-core")
FLOW = {"id": "w", "nodes": [{"id": each, "tool": "note", "config": {"text": each}} for each in ("a", "b", "c")]}
ADVICE = "use the address of the server that takes writes"
Pair = tuple[Postgres, Postgres, str]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """A server with a run in a store of it, its replica, and the URL of the store."""
    with real_postgres(**REPLICATES) as server:
        url = server.new_database("desk")
        asyncio.run(run(url, "before", noting([])))
        with replica_of(server) as replica:
            yield server, replica, url


def noting(seen: list[str], *, failing_over: Pair | None = None) -> ToolRegistry:
    """The tool `note`, in whose second call a replica takes over."""

    @tool(effect="write")
    def note(text: str) -> str:
        """Note a text."""
        seen.append(text)
        if failing_over is not None and text == "b":
            promote(*failing_over[:2])
        return text

    return ToolRegistry([note])


async def run(store: str, run_id: str, registry: ToolRegistry) -> str:
    engine = Engine(store=store, registry=registry)
    try:
        return (await engine.run(FLOW, run_id=run_id)).status
    finally:
        await engine.close()


def test_replica_serves_whoever_reads_and_says_where_writes_go(pair: Pair, tmp_path: Path) -> None:
    server, replica, url = pair
    store = url.replace(f":{server.port}/", f":{replica.port}/")

    def agent_core(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [AGENT_CORE, *words, "--store", store]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    reading = ("runs", "show before", "verify --all", "replay --all", "report", "stats", "ledger")
    for words in reading:
        done = agent_core(*words.split())
        assert (done.returncode, done.stderr) == (0, ""), words
    (tmp_path / "flow.yaml").write_text("id: w\nnodes: [{id: a, tool: echo, config: {text: hi}}]\n")
    refused = agent_core("run", "flow.yaml")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("agent-core: cannot write to postgresql://")
    assert refused.stderr.endswith(f"{ADVICE}\n")
    findings = json.loads(agent_core("doctor", "--json").stdout)["findings"]
    told = [each for each in findings if "takes no writes" in each["message"]]
    assert [each["name"] for each in told] == ["store", "conversations"]
    assert all((each["status"], each["advice"].endswith(ADVICE)) == ("problem", True) for each in told)


def test_run_goes_on_where_a_replica_takes_over_in_the_middle_of_it(pair: Pair) -> None:
    server, replica, url = pair
    both = url.replace(f"127.0.0.1:{server.port}", f"127.0.0.1:{server.port},127.0.0.1:{replica.port}")
    seen: list[str] = []
    store = f"{both}?target_session_attrs=read-write"
    assert asyncio.run(run(store, "over", noting(seen, failing_over=pair))) == "completed"
    assert seen == ["a", "b", "c"]
    with closing(open_store(store)) as kept:
        assert all(verify(kept.journal, run_id=each).ok for each in ("before", "over"))
