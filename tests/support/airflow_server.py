"""A real Airflow with SQLite and the LocalExecutor, for tests."""

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Any

from support.engine_env import engine_bin
from support.engine_process import free_port, running

SECONDS = 280.0
"""How long anything may take on a machine that has other work."""
BUSY_S = 10
"""How long a part waits for the database: two requests of its server now and then wait for each other that long."""
DAGS = Path(__file__).parent.parent / "plugins" / "airflow_dags"
ENDED = ("success", "failed", "upstream_failed", "skipped", "removed")


class Airflow:
    """A client of the running server. `folder` has what the agents do, and the store `runs.db`."""

    def __init__(self, url: str, folder: Path, environment: dict[str, str]) -> None:
        self.url, self.folder, self.store = url, folder, folder / "runs.db"
        self.environment = environment

    @cached_property
    def token(self) -> str:
        """A token of the server, at which all are admins."""
        with urllib.request.urlopen(f"{self.url}/auth/token", timeout=180) as answer:
            return str(json.loads(answer.read())["access_token"])

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Return what the API answers; urllib's HTTPError for a refusal.

        Asks again while its answer is 503: SQLite was locked by another part, and nothing was done.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        end = time.monotonic() + SECONDS
        while True:
            try:
                with urllib.request.urlopen(request, timeout=180) as answer:
                    text = answer.read()
                return json.loads(text) if text else None
            except urllib.error.HTTPError as error:
                if error.code != HTTPStatus.SERVICE_UNAVAILABLE or time.monotonic() > end:
                    raise
            time.sleep(1)

    def begin(self, dag: str, **conf: Any) -> str:
        """Begin a run of a DAG; gives its id."""
        place = f"/api/v2/dags/{dag}/dagRuns"
        run = until(lambda: self.call("POST", place, {"logical_date": None, "conf": conf}))  # its database may be busy
        return str(run["dag_run_id"])

    def task(self, dag: str, run: str, task: str = "agent") -> Any:
        return self.call("GET", f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}")

    def wait(self, dag: str, run: str, *states: str, task: str = "agent", attempt: int = 0) -> Any:
        """Return a task instance once it is in one of these states, from its nth attempt on."""

        def find() -> Any:
            found = self.task(dag, run, task)
            assert found["state"] in states or found["state"] not in ENDED or found["try_number"] < attempt, found
            return found if found["state"] in states and found["try_number"] >= attempt else None

        return until(find)

    def xcom(self, dag: str, run: str, key: str, task: str = "agent") -> Any:
        place = f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/{key}"
        return self.call("GET", place)["value"]

    def question(self, dag: str, run: str) -> Any:
        """Return what Airflow asks people about a task."""
        return self.call("GET", f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/agent/-1/hitlDetails")

    def answer(self, dag: str, run: str, option: str, **values: Any) -> None:
        """Answer what Airflow asks about a task."""
        place = f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/agent/-1/hitlDetails"
        self.call("PATCH", place, {"chosen_options": [option], "params_input": values})

    def clear(self, dag: str, run: str) -> None:
        """Clear a task, so that Airflow runs it anew."""
        body = {"dry_run": False, "task_ids": ["agent"], "dag_run_id": run, "only_failed": False}
        self.call("POST", f"/api/v2/dags/{dag}/clearTaskInstances", body)

    def count(self, name: str) -> int:
        """Return how often the tools noted this."""
        file = self.folder / name
        return file.stat().st_size if file.exists() else 0


def until(find: Callable[[], Any]) -> Any:
    """Return what `find` gives once that is something."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        with suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            if (found := find()) is not None:
                return found
        time.sleep(0.3)
    raise TimeoutError(f"not within {SECONDS} s")


@contextmanager
def real_airflow(home: Path) -> Iterator[Airflow]:
    """Run Airflow with the DAGs of the tests, below a folder of its own."""
    (home / "agents").mkdir()
    shutil.copytree(DAGS, home / "dags")
    url, log = f"http://127.0.0.1:{free_port()}", home / "log"
    airflow = Airflow(url, home / "agents", _environment(home, url))
    program = engine_bin("airflow") / "airflow"
    with log.open("ab") as file:
        subprocess.run([program, "db", "migrate"], env=airflow.environment, stdout=file, stderr=file, check=True)
    with ExitStack() as stack:
        for part in (["api-server"], ["scheduler", "--skip-serve-logs"], ["dag-processor"], ["triggerer"]):
            stack.enter_context(running([program, *part], log=log, cwd=home, env=airflow.environment))
        until(lambda: _is_ready(airflow) or None)
        yield airflow


def _is_ready(airflow: Airflow) -> bool:
    """Return whether all parts are there, and all DAGs are read."""
    health = airflow.call("GET", "/api/v2/monitor/health")
    parts = ("metadatabase", "scheduler", "triggerer", "dag_processor")
    files = {each["relative_fileloc"] for each in airflow.call("GET", "/api/v2/dags")["dags"]}
    return all(health[part]["status"] == "healthy" for part in parts) and len(files) == len(list(DAGS.glob("*.py")))


def _environment(home: Path, url: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR", "TZ") if name in os.environ}
    connection = {
        "conn_type": "agent_core_store",
        "extra": {"file": str(home / "agents" / "runs.db"), "page": "http://page"},
    }
    options = {
        "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}?timeout={BUSY_S}",
        "CORE__DAGS_FOLDER": str(home / "dags"),
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "CORE__PARALLELISM": "4",
        "API__HOST": "127.0.0.1",
        "API__PORT": url.rpartition(":")[2],
        "API__WORKERS": "1",
        "API__BASE_URL": url,
        "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
        "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "3",
        "WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
        "USAGE_DATA_COLLECTION__ENABLED": "False",
    }
    return {
        **kept,
        **{f"AIRFLOW__{name}": value for name, value in options.items()},
        "PATH": f"{engine_bin('airflow')}:{os.environ['PATH']}",
        "AIRFLOW_HOME": str(home),
        "AIRFLOW_CONN_AGENT_CORE_DEFAULT": json.dumps(connection),
        "AGENT_FOLDER": str(home / "agents"),
    }
