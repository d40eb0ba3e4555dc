"""A real Airflow and a real Prefect with one task each, which our tools start over HTTP."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2

from support.engine_env import engine_bin

SECONDS = 150.0
"""How long anything may take on a machine that has other work."""
HERE = Path(__file__).parents[1] / "plugins" / "other_engines"


@contextmanager
def real_airflow(home: Path) -> Iterator[httpx2.Client]:
    """A client of the API of an Airflow with a DAG `load`, whose headers have a token; its files are below `home`."""
    dags = home / "dags"
    dags.mkdir()
    shutil.copy(HERE / "airflow_load.py", dags)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    options = {
        "CORE__DAGS_FOLDER": str(dags),
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "CORE__PARALLELISM": "4",
        "API__HOST": "127.0.0.1",
        "API__PORT": str(port),
        "API__WORKERS": "1",
        "API__BASE_URL": url,
        "USAGE_DATA_COLLECTION__ENABLED": "False",
    }
    environment = {f"AIRFLOW__{name}": value for name, value in options.items()} | {"AIRFLOW_HOME": str(home)}
    parts = (["db", "migrate"], ["scheduler", "--skip-serve-logs"], ["dag-processor"], ["api-server"])
    with ExitStack() as stack:
        for part in parts:
            process = stack.enter_context(running("airflow", ["airflow", *part], environment, home))
            if part[0] == "db":
                assert process.wait(SECONDS) == 0, (home / "log").read_text(errors="replace")[-3000:]
        client = stack.enter_context(httpx2.Client(base_url=url, timeout=30))
        until(lambda: client.get("/api/v2/dags/load").status_code == 200, home)
        token = client.get("/auth/token").raise_for_status().json()["access_token"]
        client.headers["authorization"] = f"Bearer {token}"
        yield client


@contextmanager
def real_prefect(home: Path) -> Iterator[tuple[httpx2.Client, str]]:
    """A client of the API of a Prefect with a deployment of a flow `load`, and the id of that."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/api"
    environment = {
        "PREFECT_HOME": str(home / "prefect"),
        "PREFECT_API_URL": url,
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_ENABLED": "false",
        "PREFECT_RUNNER_POLL_FREQUENCY": "1",
        "FLOW_FOLDER": str(home),
    }
    words = ["prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port), "--no-services"]
    with ExitStack() as stack:
        stack.enter_context(running("prefect", words, environment, home))
        client = stack.enter_context(httpx2.Client(base_url=url, timeout=30))
        until(lambda: client.get("/health").status_code == 200, home)
        stack.enter_context(running("prefect", ["python", str(HERE / "prefect_load.py")], environment, home))
        until(lambda: client.get("/deployments/name/load/test").status_code == 200, home)
        yield client, client.get("/deployments/name/load/test").json()["id"]


@contextmanager
def running(
    engine: str, words: Sequence[str], environment: Mapping[str, str], home: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    """A program of an engine's environment, with all that it starts, until the end of the block."""
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR", "TZ") if name in os.environ}
    path = f"{engine_bin(engine)}:{os.environ['PATH']}"
    with (home / "log").open("ab") as log:
        command = [str(engine_bin(engine) / words[0]), *words[1:]]
        process = subprocess.Popen(
            command, env={**kept, **environment, "PATH": path}, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(3)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def until(true: Callable[[], Any], home: Path) -> None:
    """Wait for something that will be so; what cannot be reached is not so yet."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        with suppress(httpx2.HTTPError):
            if true():
                return
        time.sleep(0.2)
    raise TimeoutError(f"not within {SECONDS:g} s: {(home / 'log').read_text(errors='replace')[-3000:]}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
