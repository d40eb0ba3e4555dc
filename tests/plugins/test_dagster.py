"""The node as an op and an asset of Dagster: real runs, whose steps are killed in the middle, and a real daemon."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve, Done, SqliteJournal, verify
from agent_core.node import decide_sync, list_waiting_sync
from support.engine_env import engine_bin, needs_engine
from support.engine_process import running, until

pytestmark = [pytest.mark.exhaustive, pytest.mark.xdist_group("dagster"), needs_engine("dagster")]
PROGRAM = Path(__file__).with_name("dagster_app.py")


@dataclass
class Desk:
    """An instance of Dagster, and the journal of its agents."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        home = {"DAGSTER_HOME": str(self.folder / "home"), "DAGSTER_DISABLE_TELEMETRY": "1"}
        return {**home, "AGENT_FOLDER": str(self.folder), "PYTHONPATH": str(PROGRAM.parent)}

    def play(self, *scenes: str) -> Any:
        """Run scenes of the program; gives what came of each."""
        words = [engine_bin("dagster") / "python", PROGRAM, *scenes]
        environment = {**os.environ, **self.environment}
        done = subprocess.run(words, cwd=self.folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def run_of(self, agent: str, journal: str = "runs.db") -> str:
        """Return the id of the one run of an agent."""
        (run,) = [each for each in SqliteJournal(self.folder / journal).runs() if each.startswith(f"{agent}.")]
        return run

    def end_of(self, agent: str, journal: str = "runs.db") -> Any:
        """Return the last record of an agent's run, which is as it was written."""
        run, kept = self.run_of(agent, journal), SqliteJournal(self.folder / journal)
        assert verify(kept, run_id=run).ok
        return kept.load(run)["agent"][-1].record()

    def decide(self, agent: str, decision: Any) -> None:
        """Decide about the one call that waits."""
        run, journal = self.run_of(agent), self.folder / "runs.db"
        (call,) = list_waiting_sync(run, journal=journal)
        decide_sync(run, {(call["strand"], call["n"]): decision}, journal=journal, by="ana")

    def count(self, name: str) -> int:
        file = self.folder / name
        return file.stat().st_size if file.exists() else 0


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """An instance with its daemon, which sees to sensors and to runs that they request."""
    made = Desk(tmp_path_factory.mktemp("dagster"))
    (made.folder / "home").mkdir()
    (made.folder / "home" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    made.play()  # makes the tables, which the daemon and a scene must not do at the same time
    words = [engine_bin("dagster") / "dagster-daemon", "run", "-m", "dagster_app"]
    with running(words, log=made.folder / "log", cwd=made.folder, env=made.environment):
        yield made


@pytest.fixture(scope="module")
def deaths(desk: Desk) -> Any:
    """A run whose three agents' processes died once, each."""
    return desk.play("deaths")["deaths"]


@pytest.fixture(scope="module")
def scenes(desk: Desk) -> Any:
    """Runs in one process."""
    return desk.play("refunds", "failing", "seasonal", "cancelled")


def test_step_goes_on_in_another_process_after_the_death_of_its_own(desk: Desk, deaths: Any) -> None:
    end, proof = desk.end_of("deadly"), deaths["proofs"]["deadly"]
    assert (end["finish_reason"], end["usage"]["requests"]) == ("final", 3)
    assert (desk.count("look-first"), desk.count("look-deadly")) == (1, 2)
    assert (proof["agent_run_id"], proof["verified"]) == (desk.run_of("deadly"), True)
    held = verify(SqliteJournal(desk.folder / "runs.db"), run_id=proof["agent_run_id"], head=proof["journal_head"])
    assert held.ok


def test_budget_is_that_of_all_attempts_and_a_run_that_failed_is_not_tried_again(desk: Desk, deaths: Any) -> None:
    tried = [each for each in deaths["steps"]["limited"] if each in ("STEP_UP_FOR_RETRY", "STEP_FAILURE")]
    assert tried == ["STEP_UP_FOR_RETRY", "STEP_FAILURE"]
    end = desk.end_of("limited")
    assert (end["finish_reason"], end["usage"]["requests"], desk.count("look-three")) == ("max_steps", 3, 0)


def test_write_whose_answer_was_lost_waits_and_a_re_execution_goes_on_once_it_is_decided(
    desk: Desk, deaths: Any
) -> None:
    assert deaths["steps"]["lost"][-1] == "STEP_FAILURE"
    desk.decide("lost", Done("shipped"))
    again = desk.play("decided")["decided"]
    assert set(again["steps"]) == {"lost", "limited"}
    assert again["proofs"]["lost"]["agent_run_id"] == desk.run_of("lost")
    assert (desk.end_of("lost")["finish_reason"], desk.count("ship-deadly")) == ("final", 1)


def test_sensor_goes_on_with_the_assets_that_are_left_once_it_is_decided(desk: Desk, scenes: Any) -> None:
    assert scenes["refunds"]["status"] == "FAILURE"
    assert (desk.count("made-order"), desk.count("ship-17"), desk.count("report")) == (1, 0, 0)
    desk.decide("refund", Approve())
    until(lambda: desk.count("report"), desk.folder / "log")
    assert json.loads((desk.folder / "report").read_text("utf-8"))["run_id"] == desk.run_of("refund")
    assert (desk.count("made-order"), desk.count("ship-17")) == (1, 1)


def test_prompt_of_an_asset_is_made_of_its_partition_too(desk: Desk, scenes: Any) -> None:
    assert scenes["seasonal"]["status"] == "SUCCESS"
    begun = SqliteJournal(desk.folder / "runs.db").load(desk.run_of("seasonal"))["agent"][0].record()
    assert begun["config"]["prompt"] == "Look at the lamps of autumn."


def test_journal_that_was_away_is_tried_again_and_a_wrong_config_is_not(desk: Desk, scenes: Any) -> None:
    steps = scenes["failing"]["steps"]
    assert (steps["flaky"].count("STEP_UP_FOR_RETRY"), steps["flaky"][-1]) == (1, "STEP_SUCCESS")
    assert (steps["broken"].count("STEP_UP_FOR_RETRY"), steps["broken"][-1]) == (0, "STEP_FAILURE")
    assert (desk.end_of("flaky", "flaky.db")["finish_reason"], desk.count("look-flaky")) == ("final", 1)


def test_terminated_run_cancels_the_run_of_its_agent(desk: Desk, scenes: Any) -> None:
    assert scenes["cancelled"]["status"] == "CANCELED"
    assert desk.end_of("endless")["finish_reason"] == "cancelled"
