"""A run killed at any point goes on, and its journal is that of a run that nobody disturbed."""

import pytest

from support.programs import json_lines


@pytest.mark.parametrize(
    ("suffix", "step", "least"),
    [
        (".db", 7, 13),
        (".jsonl", 11, 8),
        pytest.param(".db", 1, 90, marks=pytest.mark.exhaustive),
        pytest.param(".jsonl", 1, 90, marks=pytest.mark.exhaustive),
    ],
)
def test_a_run_killed_at_any_point_ends_as_if_undisturbed(suffix: str, step: int, least: int) -> None:
    """Every `step`-th point is tried."""
    undisturbed, *trials = json_lines("crash.victim", suffix, str(step))
    assert undisturbed["finish_reason"] == "final"
    assert "agent/7.1/agent_core.0" in undisturbed["strands"]
    assert undisturbed["acts"] == 12
    assert len(trials) >= least
    for trial in trials:
        assert trial["killed"], trial
        assert trial["resumed"], trial
        assert trial["verified"], trial
        assert trial["writes_repeated"] == 0, trial
        assert trial["answered_repeated"] == 0, trial
        assert trial["same"] != trial["in_doubt"], trial
    assert {trial["in_doubt"] for trial in trials} == {True, False}
