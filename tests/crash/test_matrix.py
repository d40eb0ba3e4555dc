"""Workflows killed at any point go on, repeat nothing that was answered, and end as if nobody had disturbed them.

A workflow of up to 40 points is killed at each of them, a larger one at every third or fifth, so that points before and
after a deed take turns; one run in three is killed once more while it goes on. `python tests/crash/matrix.py` prints a
table of them all.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from matrix_workflows import CASES

MATRIX = Path(__file__).with_name("matrix.py")


@pytest.mark.parametrize("name", CASES)
def test_workflow_killed_at_any_point_ends_as_if_undisturbed(name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(MATRIX), "--json", name], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["problems"] == []
    assert found["repeats"] == 0
    assert found["status"] == CASES[name].ends
    assert found["kills"] == found["tried"] >= min(found["points"], 14)
    assert found["second_kills"] > 0
    assert (found["in_doubt"] > 0) is CASES[name].doubtful
