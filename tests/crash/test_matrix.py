"""Workflows killed at any point go on, repeat nothing that was answered, and end as if nobody had disturbed them.

A workflow of up to 30 points is killed at each of them, a larger one at every third or fifth, so that points before and
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

HERE = Path(__file__).parent


def told(script: str, *words: str) -> list[dict[str, Any]]:
    """The JSON lines that a script prints."""
    done = subprocess.run(
        [sys.executable, str(HERE / script), *words], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", CASES)
def test_workflow_killed_at_any_point_ends_as_if_undisturbed(name: str) -> None:
    (found,) = told("matrix.py", "--json", name)
    assert found["problems"] == []
    assert found["repeats"] == 0
    assert found["status"] == CASES[name].ends
    assert found["kills"] == found["tried"] >= min(found["points"], 12)
    assert found["second_kills"] > 0
    assert (found["in_doubt"] > 0) is CASES[name].doubtful


FORKS = [
    ("chain", ("flow/b.1", "0")),
    ("agent", ("flow/asks.1", "6")),
    ("batch", ("flow/asks.1/4.1", "0")),
    ("batch", ("flow/asks.1", "12")),
]


@pytest.mark.parametrize(("name", "at"), FORKS)
def test_fork_whose_process_is_killed_at_any_point_is_there_to_go_on_with_or_to_make_again(name: str, at: Any) -> None:
    undisturbed, *forks = told("forks.py", name, *at)
    assert len(forks) >= min(undisturbed["passed"], 14)
    for each in forks:
        assert each["killed"], each
        assert each["same"] or each["skipped"], each
        assert (each["twice"], each["statuses"]) == ([], ["completed", "completed"]), each
        assert (each["verified"], each["replayed"], each["driver"]) == (True, True, None), each
