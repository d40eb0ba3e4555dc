"""The bench runs: one round, one short run of each loop. What it measures is for people to read."""

import subprocess
import sys
from pathlib import Path


def test_the_bench_prints_a_row_for_each_loop_and_ratio() -> None:
    command = [sys.executable, str(Path(__file__).with_name("bench.py")), "--rounds", "1", "--calls", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()
    names = [
        "raw asyncio",
        "openai SDK, own bytes",
        "openai SDK as everybody",
        "ours, journal in memory",
        "ours, journal",
    ]
    assert [row.startswith(name) for row, name in zip(rows[1:], names, strict=False)] == [True] * 5
    assert sum(" : openai SDK" in row for row in rows) == 3
