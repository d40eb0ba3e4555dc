"""Turns with agents on Temporal: workers drive them, over HTTP and from the command line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("temporalio", reason="needs temporalio (extra `temporal`)")

from support.optional import needs
from support.served_host import served
from support.temporal_project import Project
from support.temporal_server import temporal_server

pytestmark = [pytest.mark.exhaustive, pytest.mark.xdist_group("temporal"), needs("fastapi")]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("turns")
    with pytest.MonkeyPatch.context() as patch, temporal_server(folder / "log") as address:
        patch.setenv("AGENT_CORE_CONTEXT_DB", str(folder / "conversations.db"))
        project = Project(folder, address, engine="temporal")
        with project.worker():
            yield project


def test_turns_are_driven_by_workers_decided_and_stored(project: Project) -> None:
    with served(project.folder) as host:
        asked = {"message": "How many A-17?", "agent": "clerk", "conversation_id": "c"}
        reply = host.client.post("/agent/chat", json=asked).json()
        assert (reply["success"], reply["response"]) == (True, "There are 12."), reply
        ordered = {"message": "Order three.", "agent": "buyer", "conversation_id": "c"}
        waiting = host.client.post("/agent/chat", json=ordered).json()
        assert waiting["finish_reason"] == "awaiting_approval"
        done = host.client.post(f"/runs/{waiting['trace_id']}/decide", json={"decision": "approve"}).json()
        assert (done["status"], done["agent"], done["conversation"]) == ("completed", "buyer", "c")
        messages = host.client.get("/agent/conversations/c").json()["messages"]
        assert [each["content"] for each in messages if each["role"] == "user"] == ["How many A-17?", "Order three."]
        assert {each["trace_id"] for each in messages} == {reply["trace_id"], waiting["trace_id"]}
        steps = [each["event"] for each in host.events(reply["trace_id"])]
        assert {"step_started", "observation"} <= set(steps)
        assert host.client.get(f"/runs/{reply['trace_id']}/verify").json()["ok"]


def test_turn_is_paused_and_cancelled_in_its_worker(project: Project) -> None:
    folder: Path = project.folder
    (folder / "agents" / "waiter.yaml").write_text(
        "{name: waiter, model: 'scripted:waiter.json', skill_policy: {allow: [linger]}}"
    )
    (folder / "waiter.json").write_text(
        '[{"type": "action", "tool": "linger", "args": {"until": "go"}}, {"type": "final", "answer": "There."}]'
    )
    with project.worker(), served(folder) as host:
        body = {"message": "Wait.", "agent": "waiter", "conversation_id": "d"}
        run = host.client.post("/agent/chat?wait=false", json=body).json()["trace_id"]
        host.await_file("go.begun")
        assert host.client.post(f"/runs/{run}/cancel").json()["status"] == "cancelled"
        assert host.client.get("/agent/conversations/d").status_code == 404
