"""The command line on runs that workers drive: every command that drives or stops a run, and what goes wrong."""

import asyncio
import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest

pytest.importorskip("temporalio", reason="needs temporalio (extra `temporal`)")

from temporalio.client import Client

from agent_core.journal.record import Tape
from engine_shim.runs.temporal.driver import TemporalDriver
from engine_shim.store.run_store import SqliteRunStore
from support.command import Cli, Ran, run_here
from support.optional import needs
from support.temporal_project import Command, Project, until
from support.temporal_server import temporal_server

pytestmark = [pytest.mark.exhaustive, pytest.mark.xdist_group("temporal"), needs("fastapi")]
OK, FAILED, USAGE, DEFINITION, LIMIT, AUDIT, WAITING = range(7)
NOWHERE = "127.0.0.1:1"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with temporal_server(tmp_path_factory.mktemp("temporal") / "log") as address:
        yield address


@pytest.fixture(scope="module", autouse=True)
def data_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A data directory, and no setting from outside."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("AGENT_CORE_", "OPENAI_"))]:
            patch.delenv(name)
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="module")
def shop(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project with a worker."""
    project = Project(tmp_path_factory.mktemp("shop"), server)
    with project.worker():
        yield project


@pytest.fixture
def alone(server: str, tmp_path: Path) -> Project:
    """A project that nobody works for yet."""
    return Project(tmp_path, server)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs `agent-core WORD…` in this process."""

    return lambda *words: run_here(words, capsys)


def driving(project: Project, address: str | None = None) -> list[str]:
    return ["--engine", "temporal", "--temporal", address or project.address, *project.where()]


def run(cli: Cli, project: Project, workflow: str, *inputs: str, address: str | None = None) -> Ran:
    file = str(project.folder / "workflows" / f"{workflow}.json")
    given = [word for each in inputs for word in ("--input", each)]
    return cli("run", file, *given, "--json", *driving(project, address))


def start_waiting(project: Project, name: str) -> tuple[Command, str]:
    """A command that follows a run whose tool waits for a file of this name; and the run's id."""
    following = project.start("run", "workflows/wait.json", "--input", f"until={name}", "--engine", "temporal")
    project.await_file(f"{name}.begun")
    return following, project.last_run()


def status(cli: Cli, project: Project, run_id: str) -> str:
    listed = cli("runs", "--json", "--store", str(project.store)).json
    return next(str(each["status"]) for each in listed if each["run_id"] == run_id)


def tape_of(project: Project, run_id: str) -> Tape:
    with closing(SqliteRunStore(project.store)) as store:
        return store.journal.load(run_id)


def await_signal(project: Project, run_id: str, word: str) -> None:
    """Wait until the run's workflow is told to stop."""

    async def look() -> bool:
        client = await Client.connect(project.address)
        history = await client.get_workflow_handle(f"{project.queue}/{run_id}").fetch_history()
        signals = [event.workflow_execution_signaled_event_attributes for event in history.events]
        return any(word.encode() in each.input.SerializeToString() for each in signals)

    until(lambda: asyncio.run(look()), f"run {run_id} is told to {word}")


def assert_proven(cli: Cli, project: Project, run_id: str) -> None:
    """It verifies, and replays to the same records."""
    for command in ("verify", "replay"):
        ran = cli(command, run_id, "--store", str(project.store))
        assert ran.code == OK, ran


_wake: Any = TemporalDriver._wake


async def _wake_slowly(driver: TemporalDriver, run: str, word: Any) -> Any:
    """As on a busy machine: the run has ended before who hands it in hears that it was taken."""
    handle = await _wake(driver, run, word)
    while driver._index.status(run) != "completed":
        await asyncio.sleep(0.05)
    return handle


# ── a run from its beginning to its end ──────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_slow", [False, True], ids=["", "who hands it in hears late that it was taken"])
def test_new_project_runs_by_a_worker(
    server: str, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, is_slow: bool
) -> None:
    if is_slow:
        monkeypatch.setattr(TemporalDriver, "_wake", _wake_slowly)
    folder = tmp_path / "new"
    assert cli("init", str(folder)).code == OK
    with (folder / "agent-core.yaml").open("a") as config:
        config.write(f"engine: temporal\ntemporal: {{address: '{server}', queue: new-project}}\n")
    project = Project(folder, server)
    with project.worker():
        ran = cli("run", str(folder / "flow.yaml"), "--input", "question=Where is order 17?", *project.where())
    assert ran.code == OK, ran.err
    assert "answer: Order 17, a lamp, was sent on Monday." in ran.out
    assert "find_order" in ran.err, "its steps are shown as they come"
    shown = cli("show", "last", "--store", str(project.store))
    assert "Order 17, a lamp, was sent on Monday." in shown.out
    assert_proven(cli, project, project.last_run())


def test_write_waits_for_its_approval_and_is_made_once(shop: Project, cli: Cli) -> None:
    waits = run(cli, shop, "buy", "article=lamp")
    assert (waits.code, waits.json["status"]) == (WAITING, "waiting")
    run_id = waits.json["run_id"]
    decided = cli("decide", run_id, "approve", "--json", *driving(shop))
    assert (decided.code, decided.json["outputs"]) == (OK, {"order": "ordered 3 of lamp"})
    assert (shop.folder / "orders.txt").read_text().count("lamp") == 1
    again = cli("resume", run_id, "--json", *driving(shop))
    assert again.json == decided.json, "a run that has ended gives its result again"
    assert cli("decide", run_id, "deny", *driving(shop)).code != OK
    assert_proven(cli, shop, run_id)


def test_decision_that_fits_nothing_is_refused_and_the_run_waits_on(shop: Project, cli: Cli) -> None:
    run_id = run(cli, shop, "buy", "article=chair").json["run_id"]
    refused = cli("decide", run_id, "approve", "--at", "flow/order.1:7", *driving(shop))
    assert (refused.code, "flow/order.1:7" in refused.err) == (USAGE, True), refused
    denied = cli("decide", run_id, "deny", "--message", "Too dear.", "--json", *driving(shop))
    assert denied.json["status"] == "failed"
    assert "chair" not in (shop.folder / "orders.txt").read_text()


def test_fork_goes_on_from_a_record_in_a_run_of_its_own(shop: Project, cli: Cli) -> None:
    first = run(cli, shop, "desk", "message=How many?").json
    forked = cli("fork", first["run_id"], "--at", "flow/agent_core.1:2", "--json", *driving(shop))
    assert (forked.code, forked.json["status"]) == (OK, "completed"), forked
    assert forked.json["run_id"] != first["run_id"]
    assert forked.json["outputs"]["agent_core"]["final_answer"] == "There are 12."
    assert_proven(cli, shop, forked.json["run_id"])


# ── waiting for a time or a signal ───────────────────────────────────────────────────────────────


def write_flow(project: Project, name: str, *nodes: dict[str, Any]) -> None:
    edges = [{"from": a["id"], "to": b["id"]} for a, b in pairwise(nodes)]
    flow = {"id": name, "nodes": nodes, "edges": edges}
    (project.folder / "workflows" / f"{name}.json").write_text(json.dumps(flow))


def test_signal_reaches_a_run_that_rests_and_the_worker_continues_it(shop: Project, cli: Cli) -> None:
    paid = {"id": "paid", "tool": "wait", "config": {"signal": "paid"}}
    write_flow(shop, "pay", paid, {"id": "end", "tool": "echo", "config": {"text": "{{nodes.paid.by}} paid"}})
    waits = run(cli, shop, "pay").json
    assert (waits["status"], waits["waiting"][0]["signal"]) == ("waiting", "paid")
    sent = cli("signal", waits["run_id"], "paid", "--data", "5", "--json", *driving(shop))
    assert (sent.code, sent.json["outputs"]["paid"]["data"]) == (OK, 5), sent
    assert_proven(cli, shop, waits["run_id"])


def test_signal_before_its_node_waits_is_taken_and_one_beside_a_call_is_heard(shop: Project, cli: Cli) -> None:
    linger = {"id": "linger", "tool": "linger", "config": {"until": "gate"}, "timeout": 60}
    beside = {"id": "beside", "tool": "wait", "config": {"signal": "beside"}}
    later = {"id": "later", "tool": "wait", "config": {"signal": "later"}}
    noted = {"id": "noted", "tool": "order", "config": {"article": "noted", "pieces": 1}}
    flow: dict[str, Any] = {"id": "hear", "nodes": [linger, beside, later, noted]}
    flow["edges"] = [{"from": "linger", "to": "later"}, {"from": "beside", "to": "noted"}]
    (shop.folder / "workflows" / "hear.json").write_text(json.dumps(flow))
    following = shop.start("run", "workflows/hear.json", "--engine", "temporal", "--json")
    shop.await_file("gate.begun")
    run_id = shop.last_run()
    for name in ("later", "beside"):
        assert cli("signal", run_id, name, *driving(shop)).code == OK
    book = shop.folder / "orders.txt"
    until(lambda: book.exists() and "noted" in book.read_text(), "the node after the signal runs")
    (shop.folder / "gate").touch()
    assert following.end() == OK, following.err
    assert_proven(cli, shop, run_id)


def start_later(project: Project, cli: Cli, name: str) -> str:
    """The id of a run that waits for a time, and that no command follows."""
    write_flow(project, name, {"id": "later", "tool": "wait", "config": {"seconds": 6}})
    following = project.start("run", f"workflows/{name}.json", "--engine", "temporal", "--json")
    listed = ("runs", "--json", "--store", str(project.store), "--workflow", name, "--status", "waiting")
    until(lambda: cli(*listed).json, "it rests")
    following.kill()
    return str(cli(*listed).json[0]["run_id"])


def test_worker_continues_a_run_whose_time_has_come(shop: Project, cli: Cli) -> None:
    run_id = start_later(shop, cli, "later")
    until(lambda: status(cli, shop, run_id) == "completed", "the worker continues it by itself")
    assert_proven(cli, shop, run_id)


def test_paused_run_is_not_continued_by_its_time(shop: Project, cli: Cli) -> None:
    run_id = start_later(shop, cli, "paused")
    assert cli("pause", run_id, *driving(shop)).code == OK
    with closing(SqliteRunStore(shop.store)) as store:
        due = datetime.fromisoformat(str(store.due(run_id)))
    until(lambda: datetime.now(UTC) > due + timedelta(seconds=1), "its time is over")
    assert "resolved" not in [row.kind for row in tape_of(shop, run_id)["flow/later.1"]]
    resumed = cli("resume", run_id, "--json", *driving(shop))
    assert (resumed.code, resumed.json["status"]) == (OK, "completed")


# ── stopping ─────────────────────────────────────────────────────────────────────────────────────


def test_paused_run_lets_the_call_answer_and_resume_goes_on(shop: Project, cli: Cli) -> None:
    following, run_id = start_waiting(shop, "pause")
    pausing = shop.start("pause", run_id, "--engine", "temporal")
    await_signal(shop, run_id, "pause")
    (shop.folder / "pause").touch()
    assert pausing.end() == OK
    assert following.end() == WAITING, following.err
    assert "paused" in pausing.out
    assert status(cli, shop, run_id) == "paused"
    resumed = cli("resume", run_id, "--json", *driving(shop))
    assert (resumed.code, resumed.json["outputs"]) == (OK, {"linger": "pause", "after": "pause"})
    assert_proven(cli, shop, run_id)


def test_cancelled_run_aborts_the_call_that_is_under_way(shop: Project, cli: Cli) -> None:
    following, run_id = start_waiting(shop, "never")
    cancelled = cli("cancel", run_id, "--json", *driving(shop))
    assert (cancelled.code, cancelled.json["status"]) == (OK, "cancelled")
    assert following.end() == FAILED, following.err
    assert status(cli, shop, run_id) == "cancelled"
    assert_proven(cli, shop, run_id)


def test_cancelled_run_withdraws_what_waits(shop: Project, cli: Cli) -> None:
    run_id = run(cli, shop, "buy", "article=sofa").json["run_id"]
    cancelled = cli("cancel", run_id, "--json", *driving(shop))
    assert (cancelled.code, cancelled.json["status"]) == (OK, "cancelled")
    assert cli("decide", run_id, "approve", *driving(shop)).code == USAGE
    assert_proven(cli, shop, run_id)


# ── what is not there, or goes away ──────────────────────────────────────────────────────────────


def test_run_without_a_server_is_kept_and_resumed_later(shop: Project, cli: Cli) -> None:
    refused = run(cli, shop, "desk", "message=How many?", address=NOWHERE)
    run_id = shop.last_run()
    for part in (NOWHERE, "temporal server start-dev", repr(run_id), "`resume` goes on with it"):
        assert part in refused.json["error"]["message"]
    assert refused.code == FAILED
    for command in ("pause", "cancel"):
        assert cli(command, run_id, *driving(shop, NOWHERE)).code == FAILED
    resumed = cli("resume", run_id, "--json", *driving(shop))
    assert (resumed.json["run_id"], resumed.json["status"]) == (run_id, "cancelled")


def test_run_waits_for_a_worker_and_says_so(alone: Project, cli: Cli) -> None:
    following = alone.start("run", "workflows/count.json", "--input", "sum=1 + 1", "--engine", "temporal")
    following.await_error("waits for a worker")
    assert f"on queue {alone.queue}; start one: agent-core worker" in following.err
    with alone.worker():
        assert following.end() == OK, following.err
    assert_proven(cli, alone, alone.last_run())


def test_worker_whose_host_lacks_a_tool_drives_nothing_on(alone: Project, cli: Cli) -> None:
    poor = alone.folder / "poor.yaml"
    (alone.folder / "nobody").mkdir()
    poor.write_text(json.dumps({"temporal": {"address": alone.address, "queue": alone.queue}, "agents": "nobody"}))
    with alone.worker(config=poor):
        refused = run(cli, alone, "buy", "article=lamp")
    run_id = alone.last_run()
    told = refused.json["error"]["message"]
    assert refused.code == FAILED
    assert told.startswith(f"run {run_id!r} cannot be driven on by its worker: host")
    assert "this host has no tool 'order', which the run needs" in told
    assert [row.record()["kind"] for rows in tape_of(alone, run_id).values() for row in rows] == ["run_started"]
    with alone.worker():
        assert cli("resume", run_id, "--json", *driving(alone)).json["status"] == "waiting"


def test_interrupted_command_lets_the_run_go_on(shop: Project, cli: Cli) -> None:
    following, run_id = start_waiting(shop, "interrupted")
    following.process.send_signal(signal.SIGINT)
    assert following.end() == 130
    assert "its workers continue the run; to follow it: agent-core resume" in following.err
    (shop.folder / "interrupted").touch()
    resumed = cli("resume", run_id, "--json", *driving(shop))
    assert (resumed.code, resumed.json["outputs"]["after"]) == (OK, "interrupted")
    assert_proven(cli, shop, run_id)


def test_worker_that_is_told_to_end_lets_what_is_under_way_answer(alone: Project, cli: Cli) -> None:
    with alone.worker() as worker:
        following, run_id = start_waiting(alone, "ends")
        worker.process.send_signal(signal.SIGTERM)
        (alone.folder / "ends").touch()
        assert worker.end() == OK, worker.err
    with alone.worker():
        assert following.end() == OK, following.err
    assert_proven(cli, alone, run_id)


def test_demo_shows_the_proof_of_a_run_at_a_development_server(tmp_path: Path, cli: Cli) -> None:
    shown = cli("demo", "--engine", "temporal", "--json", "--store", str(tmp_path / "runs.db"))
    assert shown.code == OK, shown.err
    assert (shown.json["status"], shown.json["verified"], shown.json["replay_identical"]) == ("completed", True, True)


# ── what a worker counts ─────────────────────────────────────────────────────────────────────────


@needs("prometheus_client")
def test_worker_serves_the_metrics_of_what_it_drives(cli: Cli, alone: Project) -> None:
    worker = alone.start("worker", "--metrics", "127.0.0.1:0")
    try:
        worker.await_error("worker on")
        (url,) = re.findall(r"metrics at (http://\S+)", worker.err)
        assert run(cli, alone, "count", "sum=1 + 1").code == OK
        counted = 'agent_core_runs_total{agent="",status="completed",tenant="",workflow="count"} 1.0'
        until(lambda: counted in httpx2.get(url).text, "the run is counted")
    finally:
        worker.kill()


def test_address_of_metrics_that_is_none_is_said(cli: Cli, alone: Project) -> None:
    ran = cli("worker", "--metrics", "nowhere", *alone.where())
    assert (ran.code, "name it as HOST:PORT, such as 127.0.0.1:9464" in ran.err) == (DEFINITION, True), ran
