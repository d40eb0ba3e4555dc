"""Two drivers meet on one interrupted run: one drives; and where neither heeds claims, the journal stays right."""

from typing import Any

import pytest

from support.programs import json_lines

pytestmark = pytest.mark.exhaustive


def rounds(how: str, workflow: str) -> list[dict[str, Any]]:
    """What came of each round: in each, the run had been killed at another point, and was driven to its end at last."""
    found = json_lines("crash.rivals", how, workflow)
    assert len(found) >= 5
    for each in found:
        assert each["killed"], each
        assert each["wrong"] == [], each
    return found


@pytest.mark.parametrize("workflow", ["agent", "loop"])
def test_of_two_processes_that_resume_a_run_one_drives_and_the_other_is_told_so(workflow: str) -> None:
    for each in rounds("claimed", workflow):
        busy, status = sorted(each["came"])
        assert busy.startswith("busy: run 'run-1' is being driven by process "), each
        assert status in ("completed", "waiting"), each


@pytest.mark.parametrize("workflow", ["write", "loop", "parallel", "nested agent"])
def test_two_drivers_without_claims_do_no_write_twice_and_leave_one_journal(workflow: str) -> None:
    found = rounds("unclaimed", workflow)
    for each in found:
        assert set(each["came"]) <= {"completed", "waiting"}, each
    assert max(each["drivers"] for each in found) >= 3, "the two never acted in the same round"


def test_claim_of_a_driver_that_was_killed_goes_over_at_once() -> None:
    for each in rounds("orphaned", "agent"):
        assert each["held_by"] == each["killed"], each
        assert each["came"][0] in ("completed", "waiting"), each
