"""Two drivers meet on one interrupted run: one drives; and where neither heeds claims, the journal stays right."""

from typing import Any

import pytest

from support.programs import json_lines

pytestmark = pytest.mark.exhaustive

EVERY = 0
"""A step that is small enough to meet at most points of a run."""


def rounds(how: str, workflow: str, step: int) -> list[dict[str, Any]]:
    """What came of each round: in each, the run had been killed at another point, and was driven to its end at last."""
    found = json_lines("crash.rivals", how, workflow, str(step))
    assert len(found) >= (3 if step else 5)
    for each in found:
        assert each["killed"], each
        assert each["wrong"] == [], each
    return found


def often(*workflows: str) -> list[Any]:
    """Cases that meet at most points of these workflows."""
    return [pytest.param(workflow, EVERY, marks=pytest.mark.exhaustive) for workflow in workflows]


@pytest.mark.parametrize(("workflow", "step"), [("agent", 15), *often("agent", "loop")])
def test_of_two_processes_that_resume_a_run_one_drives_and_the_other_is_told_so(workflow: str, step: int) -> None:
    for each in rounds("claimed", workflow, step):
        busy, status = sorted(each["came"])
        assert busy.startswith("busy: run 'run-1' is being driven by process "), each
        assert status in ("completed", "waiting"), each


@pytest.mark.exhaustive
@pytest.mark.parametrize(("workflow", "step"), [("write", 5), *often("write", "loop", "parallel", "nested agent")])
def test_two_drivers_without_claims_do_no_write_twice_and_leave_one_journal(workflow: str, step: int) -> None:
    found = rounds("unclaimed", workflow, step)
    for each in found:
        assert set(each["came"]) <= {"completed", "waiting"}, each
    assert step or max(each["drivers"] for each in found) >= 3, "the two never acted in the same round"


@pytest.mark.exhaustive
@pytest.mark.parametrize(("workflow", "step"), [("agent", 15), *often("agent")])
def test_claim_of_a_driver_that_was_killed_goes_over_at_once(workflow: str, step: int) -> None:
    for each in rounds("orphaned", workflow, step):
        assert each["held_by"] == each["killed"], each
        assert each["came"][0] in ("completed", "waiting"), each
