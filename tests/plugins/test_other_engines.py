"""The tools of the example `other-engines` at a real Airflow and a real Prefect: started once, awaited, cancelled."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

import engine_shim
from support.airflow_server import Airflow
from support.engine_env import needs_engine
from support.engine_process import SECONDS, until
from support.prefect_server import real_prefect
from utools import ToolContext, ToolRegistry, ToolResult
from utools.sources.manifest import manifest_tools

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(900)]
EXAMPLE = Path(engine_shim.__file__).parent / "examples" / "other-engines"
COMMAND = str(Path(sys.executable).with_name("agent-core"))


@dataclass
class Engine:
    """A running engine, and our tool for it."""

    api: httpx2.Client
    home: Path
    manifest: Path
    token: str = ""
    deployment: str = ""

    def tools(self) -> ToolRegistry:
        return ToolRegistry(manifest_tools(self.manifest, trusted=True))

    async def call(self, key: str, **args: Any) -> ToolResult:
        (tool,) = self.tools().all()
        context = ToolContext(idempotency_key=key, secret=lambda name: self.token)
        return await asyncio.wait_for(self.tools().execute(tool.code, args, context), SECONDS)


def write_manifest(home: Path, name: str, origin: str, *, has_token: bool) -> Path:
    """The manifest of the example, for an engine at another address, which is asked more often."""
    text = (EXAMPLE / name).read_text()
    manifest = yaml.safe_load(text.replace(f"https://{name.partition('_')[0]}.example.com", origin))
    manifest["http"]["allow_cidrs"] = ["127.0.0.1/32"]
    manifest["http"]["poll"] |= {"interval": 0.2, "longest": 0.5}
    if not has_token:
        del manifest["http"]["token_env"]
    path = home / name
    path.write_text(yaml.safe_dump(manifest))
    return path


@pytest.fixture(scope="module")
def loads(airflow: Airflow) -> Iterator[Engine]:
    """The DAG `load`, which waits for a file beside the agents."""
    with httpx2.Client(base_url=airflow.url, timeout=30) as api:
        api.headers["authorization"] = f"Bearer {airflow.token}"
        home = airflow.folder.parent
        yield Engine(api, home, write_manifest(home, "airflow_dag.yaml", airflow.url, has_token=True), airflow.token)


@pytest.fixture(scope="module")
def prefect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    home = tmp_path_factory.mktemp("prefect")
    with real_prefect(home) as (api, deployment):
        origin = str(api.base_url).rstrip("/").removesuffix("/api")
        manifest = write_manifest(home, "prefect_deployment.yaml", origin, has_token=False)
        yield Engine(api, home, manifest, deployment=deployment)


def dag_runs(loads: Engine, **conf: Any) -> list[Any]:
    """The runs of the DAG with this configuration."""
    found = loads.api.get("/api/v2/dags/load/dagRuns").raise_for_status().json()["dag_runs"]
    return [each for each in found if each["conf"] == conf]


def is_at_work(loads: Engine, **conf: Any) -> bool:
    """Return whether the task of the DAG run is running: of one that is failed before, Airflow may say `success`."""
    place = "/api/v2/dags/load/dagRuns/{}/taskInstances/work"
    found = [loads.api.get(place.format(each["dag_run_id"])) for each in dag_runs(loads, **conf)]
    return any(each.raise_for_status().json()["state"] == "running" for each in found)


def flow_runs(prefect: Engine, **parameters: Any) -> list[Any]:
    """The flow runs with these parameters."""
    found = prefect.api.post("/flow_runs/filter", json={}).raise_for_status().json()
    return [each for each in found if parameters.items() <= each["parameters"].items()]


# ── Airflow ───────────────────────────────────────────────────────────────────────────────────────


@needs_engine("airflow")
@pytest.mark.xdist_group("airflow")
async def test_dag_that_fails_is_a_failure_and_the_same_call_starts_no_other(loads: Engine) -> None:
    for _ in range(2):
        result = await loads.call("r/flow/load.1:1", dag="load", conf={"fails": True})
        assert not result.success
        assert "failed; its log in Airflow says why" in str(result.error)
    assert [each["state"] for each in dag_runs(loads, fails=True)] == ["failed"]


@needs_engine("airflow")
@pytest.mark.xdist_group("airflow")
async def test_cancelled_call_ends_the_dag_run(loads: Engine) -> None:
    conf = {"until": "never"}
    calling = asyncio.create_task(loads.call("r/flow/load.1:2", dag="load", conf=conf))
    await asyncio.to_thread(until, lambda: is_at_work(loads, **conf), loads.home / "log")
    calling.cancel()
    with suppress(asyncio.CancelledError):
        await calling
    assert [each["state"] for each in dag_runs(loads, **conf)] == ["failed"]


@needs_engine("airflow")
@pytest.mark.xdist_group("airflow")
def test_dag_is_started_once_though_our_process_dies_while_it_waits(loads: Engine, tmp_path: Path) -> None:
    conf = {"until": "go", "day": "2026-03-02"}
    node = {"id": "load", "tool": "airflow_dag", "config": {"dag": "load", "conf": conf}, "timeout": SECONDS}
    (tmp_path / "flow.yaml").write_text(yaml.safe_dump({"id": "reload", "nodes": [node]}))
    host = {"manifests": [str(loads.manifest)], "secret_env": ["AIRFLOW_TOKEN"], "store": "runs.db"}
    (tmp_path / "agent-core.yaml").write_text(yaml.safe_dump(host))
    environment = {**os.environ, "AIRFLOW_TOKEN": loads.token}

    def start(*words: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([COMMAND, *words, "--json"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE)

    first = start("run", "flow.yaml")
    until(lambda: dag_runs(loads, **conf), loads.home / "log")
    first.kill()
    first.communicate()
    second = start("resume", "last")
    (loads.home / "agents" / "go").touch()
    out, _ = second.communicate(timeout=SECONDS)
    (run,) = dag_runs(loads, **conf)
    assert (second.returncode, run["state"]) == (0, "success")
    assert f'"{run["dag_run_id"]}"' in out.decode()


# ── Prefect ───────────────────────────────────────────────────────────────────────────────────────


@needs_engine("prefect")
@pytest.mark.xdist_group("prefect")
async def test_deployment_is_run_once_by_all_attempts_of_a_call(prefect: Engine) -> None:
    (prefect.home / "there").touch()
    args = {"deployment": prefect.deployment, "parameters": {"until": "there"}}
    first, second = [await prefect.call("r/flow/load.1:1", **args) for _ in range(2)]
    assert first.success, first.error
    assert first.output["state"] == "Completed"
    assert first.output == second.output
    assert [each["id"] for each in flow_runs(prefect, until="there")] == [first.output["id"]]


@needs_engine("prefect")
@pytest.mark.xdist_group("prefect")
async def test_flow_that_fails_is_a_failure_in_its_own_words(prefect: Engine) -> None:
    args = {"deployment": prefect.deployment, "parameters": {"fails": True}}
    result = await prefect.call("r/flow/load.1:2", **args)
    assert (result.success, "no disk" in str(result.error)) == (False, True), result


@needs_engine("prefect")
@pytest.mark.xdist_group("prefect")
async def test_cancelled_call_cancels_the_flow_run(prefect: Engine) -> None:
    args = {"deployment": prefect.deployment, "parameters": {"until": "never"}}
    calling = asyncio.create_task(prefect.call("r/flow/load.1:3", **args))
    await asyncio.to_thread(until, lambda: flow_runs(prefect, until="never"), prefect.home / "log")
    calling.cancel()
    with suppress(asyncio.CancelledError):
        await calling
    (run,) = flow_runs(prefect, until="never")
    assert run["state"]["type"] in ("CANCELLING", "CANCELLED")
