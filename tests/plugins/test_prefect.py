"""The node as a task of Prefect: a real server and what serves its flows, whose processes are killed in the middle."""

import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent_core import SqliteJournal, verify
from agent_core.journal.chain import is_finished
from support.engine_env import engine_bin, needs_engine
from support.engine_process import free_port, running, until

pytestmark = [pytest.mark.exhaustive, pytest.mark.xdist_group("prefect"), needs_engine("prefect")]
PROGRAM = Path(__file__).with_name("prefect_app.py")
QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_ENABLED": "false",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_RUNNER_POLL_FREQUENCY": "1",
    "PREFECT_SERVER_DATABASE_TIMEOUT": "60",
    "PREFECT_SERVER_DATABASE_CONNECTION_TIMEOUT": "60",
}
FLOWS = {
    "deadly": ("desk", {"name": "deadly"}),
    "lost": ("desk", {"name": "lost"}),
    "waits": ("desk", {"name": "waits"}),
    "awaited": ("evening", {"name": "awaited"}),
    "endless": ("desk", {"name": "endless"}),
    "failures": ("failures", {}),
    "beside": ("beside", {}),
}


@dataclass
class Desk:
    """A server whose flows are served, with one run of each, by name."""

    api: httpx2.Client
    folder: Path
    runs: dict[str, str] = field(default_factory=dict)

    def begin(self) -> None:
        for name, (flow, parameters) in FLOWS.items():
            deployment = self.api.get(f"/deployments/name/{flow}/test").raise_for_status().json()["id"]
            self.runs[name] = self._post(f"/deployments/{deployment}/create_flow_run", parameters=parameters)["id"]

    def wait(self, name: str, state: str) -> None:
        """Wait until a flow run is in a state."""

        def is_there() -> bool:
            told = self.api.get(f"/flow_runs/{self.runs[name]}").raise_for_status().json()
            return bool(told["state"]["type"] == state)

        until(is_there, self.folder / "log")

    def set_state(self, name: str, state: str) -> None:
        """Schedule a flow run, as `prefect flow-run retry` does, or cancel it."""
        self._post(f"/flow_runs/{self.runs[name]}/set_state", state={"type": state}, force=state == "SCHEDULED")

    def resume(self, name: str, decision: dict[str, Any]) -> None:
        """Decide about the one call that waits, as the page of a flow run does, until Prefect takes it.

        It writes what a decision must look like only after the state, and refuses decisions in between.
        """
        self.wait(name, "PAUSED")
        told = {"decisions": [decision], "by": "ana"}
        place = f"/flow_runs/{self.runs[name]}/resume"
        until(lambda: self._post(place, run_input=told)["status"] == "ACCEPT", self.folder / "log")

    def run_of(self, agent: str, journal: str = "runs.db") -> str:
        """Return the id of the one run of an agent."""
        (run,) = [each for each in SqliteJournal(self.folder / journal).runs() if each.startswith(f"{agent}.")]
        return run

    def end_of(self, agent: str, journal: str = "runs.db") -> Any:
        """Return the last record of an agent's run, which is as it was written."""
        kept = SqliteJournal(self.folder / journal)
        run = self.run_of(agent, journal)
        until(lambda: is_finished(kept.load(run), "agent"), self.folder / "log")
        assert verify(kept, run_id=run).ok
        return kept.load(run)["agent"][-1].record()

    def count(self, name: str) -> int:
        file = self.folder / name
        return file.stat().st_size if file.exists() else 0

    def _post(self, path: str, **told: Any) -> Any:
        """Post, again where the server fails, whose own database may be busy."""
        for _ in range(50):
            answer = self.api.post(path, json=told)
            if not answer.is_server_error:
                break
            time.sleep(0.2)
        return answer.raise_for_status().json()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder, programs, port = tmp_path_factory.mktemp("prefect"), engine_bin("prefect"), str(free_port())
    url = f"http://127.0.0.1:{port}/api"
    own = {"PREFECT_HOME": str(folder / "home"), "PREFECT_API_URL": url, "AGENT_FOLDER": str(folder)}
    place: Any = {"log": folder / "log", "cwd": folder, "env": {**QUIET, **own}}
    server = [programs / "prefect", "server", "start", "--host", "127.0.0.1", "--port", port, "--no-services"]
    with httpx2.Client(base_url=url, timeout=60, trust_env=False) as api, running(server, **place):
        until(lambda: _answers(api), place["log"])
        with running([programs / "python", PROGRAM], **place):
            until(lambda: api.post("/deployments/count", json={}).json() == 4, place["log"])
            made = Desk(api, folder)
            made.begin()
            yield made


def _answers(api: httpx2.Client) -> bool:
    try:
        return api.get("/health").status_code == 200
    except httpx2.TransportError:
        return False


def test_flow_run_goes_on_in_another_process_after_the_death_of_its_own(desk: Desk) -> None:
    desk.wait("deadly", "CRASHED")
    desk.set_state("deadly", "SCHEDULED")
    desk.wait("deadly", "COMPLETED")
    end = desk.end_of("deadly")
    assert (end["finish_reason"], end["usage"]["requests"]) == ("final", 3)
    assert (desk.count("look-first"), desk.count("look-deadly")) == (1, 2)


def test_write_whose_answer_was_lost_waits_for_a_person(desk: Desk) -> None:
    desk.wait("lost", "CRASHED")
    desk.set_state("lost", "SCHEDULED")
    desk.resume("lost", {"decision": "done", "output": "shipped"})
    desk.wait("lost", "COMPLETED")
    assert (desk.end_of("lost")["finish_reason"], desk.count("ship-deadly")) == ("final", 1)


def test_flow_run_is_suspended_for_each_decision_and_goes_on_with_it(desk: Desk) -> None:
    desk.wait("waits", "PAUSED")
    assert desk.count("ship-17") == 0
    desk.resume("waits", {"decision": "approve"})
    until(lambda: desk.count("ship-17"), desk.folder / "log")
    desk.resume("waits", {"decision": "deny", "message": "No more."})
    desk.wait("waits", "COMPLETED")
    assert (desk.count("ship-17"), desk.count("ship-18")) == (1, 0)
    assert desk.end_of("waits")["finish_reason"] == "final"


def test_async_flow_is_suspended_too_and_awaits_what_comes_of_a_decision(desk: Desk) -> None:
    desk.resume("awaited", {"decision": "approve"})
    desk.wait("awaited", "COMPLETED")
    assert (desk.end_of("awaited")["finish_reason"], desk.count("ship-19")) == ("final", 1)


def test_budget_is_that_of_all_attempts_and_what_no_retry_mends_is_not_tried_again(desk: Desk) -> None:
    desk.wait("failures", "CRASHED")
    desk.set_state("failures", "SCHEDULED")
    desk.wait("failures", "COMPLETED")
    limited, broken = (desk.folder / "failures").read_text("utf-8").splitlines()
    assert limited.startswith(f"run {desk.run_of('limited')} ended by max_steps")
    assert (desk.end_of("limited")["usage"]["requests"], desk.count("look-three")) == (3, 0)
    assert "'lok'" in broken


def test_cancelled_flow_run_cancels_the_run(desk: Desk) -> None:
    until(lambda: desk.count("look-endless"), desk.folder / "log")
    desk.set_state("endless", "CANCELLING")
    desk.wait("endless", "CANCELLED")
    assert desk.end_of("endless")["finish_reason"] == "cancelled"


def test_in_threads_a_journal_that_was_away_is_tried_again_and_a_cancelled_flow_run_cancels_the_run(desk: Desk) -> None:
    until(lambda: desk.count("look-endless-aside"), desk.folder / "log")
    assert (desk.end_of("flaky", "flaky.db")["finish_reason"], desk.count("look-flaky")) == ("final", 1)
    desk.set_state("beside", "CANCELLING")
    assert desk.end_of("aside")["finish_reason"] == "cancelled"


BY_ITSELF = """
from prefect_app import agent
task = agent("tried", journal="tried.db")
print(task.fn("Go.")["status"], task.fn("Go.")["status"])
"""


def test_function_of_a_task_is_called_without_prefect_and_begins_a_run_each_time(tmp_path: Path) -> None:
    """As Prefect says that tasks are tested."""
    own = {"PREFECT_HOME": str(tmp_path), "AGENT_FOLDER": str(tmp_path), "PYTHONPATH": str(PROGRAM.parent)}
    ran = subprocess.run(
        [engine_bin("prefect") / "python", "-c", BY_ITSELF],
        env={**os.environ, **QUIET, **own},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "completed completed\n", ran.stderr
    assert len(SqliteJournal(tmp_path / "tried.db").runs()) == 2
