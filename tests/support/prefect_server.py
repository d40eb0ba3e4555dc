"""A real Prefect with a deployment of one flow, which our tools start over HTTP."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2

from support.engine_env import engine_bin
from support.engine_process import free_port, running, until

FLOW = Path(__file__).parents[1] / "plugins" / "prefect_load.py"


@contextmanager
def real_prefect(home: Path) -> Iterator[tuple[httpx2.Client, str]]:
    """A client of the API of a Prefect with a deployment of a flow `load`, and the id of that."""
    port, programs, log = free_port(), engine_bin("prefect"), home / "log"
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
    server = [programs / "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port), "--no-services"]
    with ExitStack() as stack:
        stack.enter_context(running(server, log=log, cwd=home, env=environment))
        client = stack.enter_context(httpx2.Client(base_url=url, timeout=30))
        until(lambda: answers(client, "/health"), log)
        stack.enter_context(running([programs / "python", FLOW], log=log, cwd=home, env=environment))
        until(lambda: answers(client, "/deployments/name/load/test"), log)
        yield client, client.get("/deployments/name/load/test").json()["id"]


def answers(client: httpx2.Client, path: str) -> bool:
    """Return whether something is there."""
    try:
        return client.get(path).status_code == 200
    except httpx2.HTTPError:
        return False
