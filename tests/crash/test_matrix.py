"""Workflows killed at any point go on, repeat nothing that was answered, and end as if nobody had disturbed them.

A workflow is killed at each of its points, or, where it has more than 13 (33 in the tier `long`), at every third or
fifth or so, so that points before and after a deed take turns; one run in three is killed once more while it goes on.

    PYTHONPATH=tests python -m support.crash.matrix     a table of them all
"""

from typing import Any

import pytest

from support.crash.matrix_workflows import CASES
from support.programs import json_lines


@pytest.mark.exhaustive
@pytest.mark.parametrize("most", [13, pytest.param(33, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", CASES)
def test_workflow_killed_at_any_point_ends_as_if_undisturbed(name: str, most: int) -> None:
    (found,) = json_lines("crash.matrix", "--json", name, str(most))
    assert found["problems"] == []
    assert found["repeats"] == 0
    assert found["status"] == CASES[name].ends
    assert found["kills"] == found["tried"] >= min(found["points"], 8)
    assert found["second_kills"] > 0
    if found["tried"] == found["points"] or most > 30:
        assert (found["in_doubt"] > 0) is CASES[name].doubtful
    else:
        assert CASES[name].doubtful or not found["in_doubt"]


FORKS = [
    ("chain", ("flow/b.1", "0")),
    ("agent", ("flow/asks.1", "6")),
    ("batch", ("flow/asks.1/4.1", "0")),
    ("batch", ("flow/asks.1", "12")),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "at"), FORKS)
def test_fork_whose_process_is_killed_at_any_point_is_there_to_go_on_with_or_to_make_again(name: str, at: Any) -> None:
    undisturbed, *forks = json_lines("crash.forks", name, *at)
    assert len(forks) >= min(undisturbed["passed"], 14)
    for each in forks:
        assert each["killed"], each
        assert each["same"] or each["skipped"], each
        assert (each["twice"], each["statuses"]) == ([], ["completed", "completed"]), each
        assert (each["verified"], each["replayed"], each["driver"]) == (True, True, None), each
