"""A run killed at any point goes on, and its journal is that of a run that nobody disturbed."""

import subprocess
from pathlib import Path

import pytest

from agent_core import SqliteJournal, replay, verify
from support.programs import PATIENCE_S, command, environment, json_lines


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


@pytest.mark.exhaustive
def test_a_write_killed_while_it_waits_for_its_rate_limit_was_never_asked_and_is_made_once(tmp_path: Path) -> None:
    waiting = command("crash.limited", str(tmp_path), "3600")
    with subprocess.Popen(waiting, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.kill()
    assert process.returncode == -9
    assert not (tmp_path / "paid").exists()
    again = command("crash.limited", str(tmp_path), "0")
    done = subprocess.run(again, env=environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert done.stdout == "waiting\nfinal\n"
    assert len((tmp_path / "paid").read_text().splitlines()) == 1
    assert len((tmp_path / "asked").read_text().splitlines()) == 2  # no question is asked again
    journal = SqliteJournal(tmp_path / "run.db")
    kinds = [row.record()["kind"] for row in journal.load("r")["agent"]]
    assert (kinds.count("waiting"), kinds.count("asked")) == (0, 3)
    assert verify(journal, run_id="r").ok
    assert replay(journal, run_id="r").identical
    journal.close()
