"""The node as a task of a real Airflow: its scheduler, triggerer and API, with tasks that are killed in the middle."""

import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve, Deny, SqliteJournal, verify
from agent_core.node import decide_sync, list_waiting_sync
from support.airflow_server import Airflow, until
from support.engine_env import needs_engine

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.xdist_group("airflow"),
    pytest.mark.timeout(900),
    needs_engine("airflow"),
]
REST_S = 3.0
"""How long a task rests, once its process is gone, before it is woken: Airflow fails one that goes on earlier."""
FIRST_RETRY = 2
"""The attempt after the first; on a busy machine Airflow gives one up itself now and then, and makes another."""
DAGS = ("plain", "deadly", "doubtful", "asking", "asking_twice", "watching", "limited", "mapped", "decorated")


@pytest.fixture(scope="module")
def runs(airflow: Airflow) -> dict[str, str]:
    """A run of each DAG, all at the same time."""
    return {name: airflow.begin(name) for name in DAGS}


def rest(airflow: Airflow, dag: str, run: str, state: str) -> dict[str, Any]:
    """Wait until a task is in a state in which it rests, and Airflow knows that its process is gone; gives the task."""
    found: dict[str, Any] = airflow.wait(dag, run, state)
    until(lambda: None if Path(f"/proc/{found['pid']}").exists() else True)
    time.sleep(REST_S)
    return found


def agent_runs(airflow: Airflow, dag: str) -> list[str]:
    return [run for run in SqliteJournal(airflow.store).runs() if run.startswith(f"{dag}.")]


def decide(airflow: Airflow, dag: str, decision: Any) -> None:
    """Decide in the store about the one call that waits."""
    [run] = agent_runs(airflow, dag)
    [call] = list_waiting_sync(run, journal=airflow.store)
    decide_sync(run, {(call["strand"], call["n"]): decision}, journal=airflow.store, by="ana")


def started(airflow: Airflow, run: str) -> Any:
    return SqliteJournal(airflow.store).load(run)["agent"][0].record()


def check_proof(airflow: Airflow, dag: str) -> None:
    [run] = agent_runs(airflow, dag)
    assert verify(SqliteJournal(airflow.store), run_id=run).ok


def test_outputs_are_in_xcom_by_name_and_the_task_links_to_its_run(airflow: Airflow, runs: dict[str, str]) -> None:
    run = runs["plain"]
    airflow.wait("plain", run, "success", task="tell")
    assert airflow.xcom("plain", run, "return_value", task="tell") == "done after 2 requests"
    found = {key: airflow.xcom("plain", run, key) for key in ("final_answer", "finish_reason", "run_id")}
    assert found == {"final_answer": "done", "finish_reason": "final", "run_id": agent_runs(airflow, "plain")[0]}
    links = airflow.call("GET", f"/api/v2/dags/plain/dagRuns/{run}/taskInstances/agent/links")["extra_links"]
    assert links == {"Run": f"http://page/ui/runs/{found['run_id']}"}


def test_retry_after_the_death_of_its_process_goes_on_with_the_run(airflow: Airflow, runs: dict[str, str]) -> None:
    assert airflow.wait("deadly", runs["deadly"], "success")["try_number"] >= FIRST_RETRY
    assert (airflow.count("look-first"), airflow.count("look-deadly")) == (1, 2)
    assert airflow.xcom("deadly", runs["deadly"], "usage")["requests"] == 3
    check_proof(airflow, "deadly")


def test_write_whose_answer_was_lost_waits_for_a_person_and_is_not_repeated(
    airflow: Airflow, runs: dict[str, str]
) -> None:
    run = runs["doubtful"]
    rest(airflow, "doubtful", run, "awaiting_input")
    assert airflow.question("doubtful", run)["options"] == ["Retry", "Skip", "Done", "Fail"]
    airflow.answer("doubtful", run, "Done", output='"shipped by hand"')
    airflow.wait("doubtful", run, "success")
    assert airflow.count("ship-doubt") == 1
    check_proof(airflow, "doubtful")


def test_decision_on_the_page_of_required_actions_wakes_the_task(airflow: Airflow, runs: dict[str, str]) -> None:
    run = runs["asking"]
    rest(airflow, "asking", run, "awaiting_input")
    question = airflow.question("asking", run)
    assert (question["subject"], question["options"]) == ("May it be made: ship?", ["Approve", "Deny"])
    assert airflow.count("ship-17") == 0
    airflow.answer("asking", run, "Approve", args={"q": "17"}, message="")
    airflow.wait("asking", run, "success")
    assert airflow.count("ship-17") == 1
    [strand] = SqliteJournal(airflow.store).load(agent_runs(airflow, "asking")[0]).values()
    [decided] = [row.record() for row in strand if row.kind == "resolved"]
    assert (decided["decision"], decided["by"].partition(":")[0]) == ("approve", "airflow")


def test_second_question_of_a_task_is_never_shown_as_the_first_one(airflow: Airflow, runs: dict[str, str]) -> None:
    run = runs["asking_twice"]
    rest(airflow, "asking_twice", run, "awaiting_input")
    airflow.answer("asking_twice", run, "Approve", args={"q": "1"}, message="")
    asked = airflow.wait("asking_twice", run, "deferred", "awaiting_input")
    until(lambda: airflow.count("ship-1") or None)
    if asked["state"] == "awaiting_input":
        assert '"q": "2"' in airflow.question("asking_twice", run)["body"]
    time.sleep(REST_S)
    decide(airflow, "asking_twice", Deny("not this one"))
    airflow.wait("asking_twice", run, "success")
    assert (airflow.count("ship-1"), airflow.count("ship-2")) == (1, 0)


def test_decision_in_the_store_wakes_a_task_that_holds_no_worker(airflow: Airflow, runs: dict[str, str]) -> None:
    airflow.wait("watching", runs["watching"], "deferred")
    decide(airflow, "watching", Approve())
    airflow.wait("watching", runs["watching"], "success")
    assert airflow.count("ship-18") == 1


def test_run_that_fails_is_not_tried_again_and_a_cleared_task_begins_another(
    airflow: Airflow, runs: dict[str, str]
) -> None:
    run = runs["limited"]
    assert airflow.wait("limited", run, "failed")["try_number"] == 1
    airflow.clear("limited", run)
    airflow.wait("limited", run, "failed", attempt=2)
    assert len(agent_runs(airflow, "limited")) == 2


def test_task_that_is_marked_as_failed_cancels_its_run(airflow: Airflow) -> None:
    run = airflow.begin("long")
    until(lambda: airflow.count("look-long") or None)
    airflow.call("PATCH", f"/api/v2/dags/long/dagRuns/{run}/taskInstances/agent", {"new_state": "failed"})
    [first] = agent_runs(airflow, "long")
    journal = SqliteJournal(airflow.store)
    last = until(lambda: row if (row := journal.load(first)["agent"][-1]).kind == "run_finished" else None)
    assert last.record()["finish_reason"] == "cancelled"
    time.sleep(REST_S)
    airflow.clear("long", run)
    airflow.wait("long", run, "success", attempt=2)
    assert airflow.xcom("long", run, "run_id") == agent_runs(airflow, "long")[1] != first


def test_task_whose_worker_is_told_to_end_lets_go_and_its_retry_goes_on(airflow: Airflow, runs: dict[str, str]) -> None:
    run = airflow.begin("let_go")
    until(lambda: airflow.count("look-slow") or None)
    os.kill(airflow.task("let_go", run)["pid"], signal.SIGTERM)
    assert airflow.wait("let_go", run, "success")["try_number"] >= FIRST_RETRY
    assert airflow.count("look-slow") == airflow.xcom("let_go", run, "usage")["tool_calls"] == 8
    check_proof(airflow, "let_go")


def test_backfill_runs_an_agent_for_each_day(airflow: Airflow) -> None:
    span = {"from_date": "2026-01-01T00:00:00Z", "to_date": "2026-01-03T00:00:00Z", "max_active_runs": 3}
    made = airflow.call(
        "POST", "/api/v2/backfills", {"dag_id": "daily", "run_backwards": False, "dag_run_conf": {}, **span}
    )
    until(lambda: airflow.call("GET", f"/api/v2/backfills/{made['id']}")["completed_at"])
    asked = {started(airflow, run)["config"]["prompt"] for run in agent_runs(airflow, "daily")}
    assert asked >= {f"What of 2026-01-{day:02}?" for day in range(1, 4)}
    assert airflow.count("look-daily") == len(asked)  # Airflow runs the day that is over, too
    assert all(verify(SqliteJournal(airflow.store), run_id=run).ok for run in agent_runs(airflow, "daily"))


def test_items_of_a_mapped_task_have_a_run_each_and_a_function_may_give_the_prompt(
    airflow: Airflow, runs: dict[str, str]
) -> None:
    def is_done(dag: str) -> bool | None:
        return airflow.call("GET", f"/api/v2/dags/{dag}/dagRuns/{runs[dag]}")["state"] == "success" or None

    for dag in ("mapped", "decorated"):
        until(partial(is_done, dag))
    found = [run for dag in ("mapped", "decorated") for run in agent_runs(airflow, dag)]
    assert sorted(started(airflow, run)["config"]["prompt"] for run in found) == ["Ann", "Bob", "Greet Ann."]
