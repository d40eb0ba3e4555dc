"""Turns with agents as runs: taken up after a kill, in the order of their conversation, paused, cancelled, forked."""

import asyncio
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import httpx2
import pytest

from agent_core.agents import AgentCatalog, AgentExecutor, ConversationOptions
from agent_core.models import ScriptedModel
from agent_core.records import TURN_TOOL
from engine_shim.host.find import load_host_config
from engine_shim.host.registry import build_registry
from engine_shim.runs.conversations import AGENT_STRAND
from engine_shim.store.open import open_store
from support.by_hand import action, final
from support.served_host import Asked, Served, served, write_host
from support.served_process import serving

WAITER = """
name: waiter
description: Waits until a file is there.
system_prompt: "You wait for {{external.message}} and {{nothing}}."
model: scripted:waiter-replies.json
skill_policy: {allow: [linger, stock]}
runtime_policy: {max_steps: 4}
"""
REPLIES = [action("linger", until="go"), final("It is there.")]


@pytest.fixture(autouse=True)
def own_conversations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_CORE_CONTEXT_DB", str(tmp_path / "conversations.db"))


def write_waiter(folder: Path, replies: Any = REPLIES) -> Path:
    write_host(folder)
    (folder / "agents" / "waiter.yaml").write_text(WAITER)
    (folder / "waiter-replies.json").write_text(json.dumps(replies))
    return folder


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Served]:
    with served(write_waiter(tmp_path)) as found:
        yield found


def begin(client: httpx2.Client, message: str, conversation: str = "c", agent: str = "waiter") -> str:
    body = {"message": message, "agent": agent, "conversation_id": conversation}
    answer = client.post("/agent/chat?wait=false", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["trace_id"])


def status_of(client: httpx2.Client, run: str) -> str:
    return str(client.get(f"/runs/{run}").json()["status"])


def questions(client: httpx2.Client, conversation: str = "c") -> list[str]:
    messages = client.get(f"/agent/conversations/{conversation}").json().get("messages", [])
    return [each["content"] for each in messages if each["role"] == "user"]


def history_of(host: Served, run: str) -> list[str]:
    """What the agent of a turn was told before it was asked."""
    started = host.store.journal.load(run)[AGENT_STRAND][0].record()
    return [each["content"] for each in started["messages"] if each["role"] != "system"]


@pytest.mark.exhaustive
def test_turn_goes_on_after_its_server_was_killed_and_is_stored_once(tmp_path: Path) -> None:
    write_waiter(tmp_path)
    with serving(tmp_path) as (process, client):
        run = begin(client, "First.")
        Asked(tmp_path, "", client).await_file("go.begun")
        later = begin(client, "Second.")
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    (tmp_path / "go").touch()
    with serving(tmp_path) as (_, client):
        again = Asked(tmp_path, "", client)
        for each in (run, later):
            assert again.await_status(each, "completed")["agent"] == "waiter"
            assert client.get(f"/runs/{each}/verify").json()["ok"]
        assert questions(client) == ["First.", "Second."]
        replayed = client.post(f"/runs/{run}/replay", json={}).json()
        assert replayed["identical"], replayed


def test_turns_of_a_conversation_are_driven_one_after_another(host: Served) -> None:
    first = begin(host.client, "First.")
    host.await_file("go.begun")
    second, elsewhere = begin(host.client, "Second."), begin(host.client, "Elsewhere.", "d")
    host.await_status(elsewhere, "running")
    assert (status_of(host.client, first), status_of(host.client, second)) == ("running", "pending")
    (host.folder / "go").touch()
    host.await_status(second, "completed")
    assert history_of(host, second)[0] == "First."
    assert history_of(host, second)[-1] == "Second."
    assert questions(host.client) == ["First.", "Second."]


@pytest.mark.parametrize("how", ["cancel", "pause"])
def test_turn_that_waits_for_another_one_is_stopped_at_once(host: Served, how: str) -> None:
    first = begin(host.client, "First.")
    host.await_file("go.begun")
    second, third = begin(host.client, "Second."), begin(host.client, "Third.")
    stopped = host.client.post(f"/runs/{second}/{how}").json()["status"]
    assert stopped == {"cancel": "cancelled", "pause": "paused"}[how]
    assert (status_of(host.client, first), status_of(host.client, third)) == ("running", "pending")
    (host.folder / "go").touch()
    host.await_status(third, "completed")
    if how == "pause":
        assert host.client.post(f"/runs/{second}/resume").json()["status"] == "completed"
    assert questions(host.client) == ["First.", "Third.", *(["Second."] if how == "pause" else [])]


@pytest.mark.exhaustive
def test_turn_is_paused_resumed_and_told_something(host: Served) -> None:
    run = begin(host.client, "First.")
    host.await_file("go.begun")
    assert host.client.post(f"/runs/{run}/messages", json={"content": "Be quick."}).status_code == 200
    Timer(0.3, (host.folder / "go").touch).start()  # the pause waits for the call that is under way
    host.client.post(f"/runs/{run}/pause")
    host.await_status(run, "paused")
    resumed = host.client.post(f"/runs/{run}/resume").json()
    assert (resumed["status"], resumed["outputs"]["agent_core"]["final_answer"]) == ("completed", "It is there.")
    assert questions(host.client) == ["First.", "Be quick."]


def test_cancelled_turn_is_not_stored(host: Served) -> None:
    run = begin(host.client, "First.")
    host.await_file("go.begun")
    assert host.client.post(f"/runs/{run}/cancel").json()["status"] == "cancelled"
    assert host.client.get("/agent/conversations/c").status_code == 404
    assert begin(host.client, "Next.") != run  # and holds nobody up


@pytest.mark.exhaustive
def test_turn_is_forked_where_its_agent_was_asked(host: Served) -> None:
    (host.folder / "go").touch()
    run = begin(host.client, "First.")
    host.await_status(run, "completed")
    at = {"at": {"strand": AGENT_STRAND, "n": 1}}
    refused = host.client.post(f"/runs/{run}/fork", json=at)
    assert refused.status_code == 409  # it stores its turn anew
    forked = host.client.post(f"/runs/{run}/fork", json={**at, "repeat_writes": True}).json()
    assert (forked["status"], forked["agent"], forked["conversation"]) == ("completed", "waiter", "c")
    assert questions(host.client) == ["First.", "First."]


@pytest.mark.exhaustive
def test_turns_are_listed_under_the_name_of_their_agent(host: Served) -> None:
    (host.folder / "go").touch()
    run = begin(host.client, "First.")
    host.await_status(run, "completed")
    host.submit("count", sum="1 + 1")
    listed = host.client.get("/runs", params={"workflow": "waiter"}).json()["runs"]
    assert [(each["run_id"], each["agent"], each["asked"]) for each in listed] == [(run, "waiter", "First.")]


@pytest.mark.exhaustive
def test_texts_of_an_agent_are_its_own_whatever_they_look_like(host: Served) -> None:
    (host.folder / "go").touch()
    run = begin(host.client, "First.")
    host.await_status(run, "completed")
    started = host.store.journal.load(run)[AGENT_STRAND][0].record()
    assert "You wait for {{external.message}} and {{nothing}}." in started["messages"][0]["content"]


def test_turn_that_failed_is_a_failed_run_and_stored(tmp_path: Path) -> None:
    write_waiter(tmp_path, [action("stock", article="A-17")] * 9)
    with served(tmp_path) as host:
        body = {"message": "First.", "agent": "waiter", "conversation_id": "c"}
        reply = host.client.post("/agent/chat", json=body).json()
        assert (reply["success"], reply["finish_reason"], len(reply["tool_calls"])) == (False, "max_steps", 4)
        run = host.client.get(f"/runs/{reply['trace_id']}").json()
        assert (run["status"], run["error"]["kind"]) == ("failed", "max_steps")
        assert questions(host.client) == ["First."]


def test_tool_of_a_turn_is_no_tool_of_the_host(host: Served) -> None:
    tools = [each["code"] for each in host.client.get("/tools").json()["tools"]]
    assert "context_manager" in tools
    assert TURN_TOOL not in tools
    definition = {
        "id": "x",
        "nodes": [{"id": "x", "tool": TURN_TOOL, "config": {"op": "prepare", "conversation_id": "c"}}],
    }
    body = {"text": json.dumps(definition), "format": "json"}
    found = host.client.post("/drafts/check", json=body).json()
    assert [each["message"].partition(";")[0] for each in found["problems"]] == [f"no tool is called {TURN_TOOL!r}"]


@pytest.mark.exhaustive
def test_turn_that_an_older_version_recorded_is_read_and_replayed(tmp_path: Path) -> None:
    write_waiter(tmp_path)
    config = load_host_config(tmp_path / "agent-core.yaml")
    registry = build_registry(config)
    store = open_store(tmp_path / "runs.db")
    catalog = AgentCatalog.from_directory(tmp_path / "agents", registry)
    executor = AgentExecutor(
        catalog,
        tools_at=lambda _: registry,
        model=ScriptedModel([action("order", article="A-17", pieces=3), final("There are 12.")]),
        journal=store.journal,
    )
    options = ConversationOptions(conversation="old")
    turn = asyncio.run(executor.execute_conversation("buyer", "Order.", options, run_id="old-turn"))
    assert turn.output.waiting
    asyncio.run(executor.execute_conversation("clerk", "Order.", options, run_id="old-done"))
    store.close()
    with served(tmp_path) as host:
        view = host.client.get("/runs/old-turn").json()
        assert (view["status"], view["agent"], view["conversation"]) == ("waiting", "buyer", "old")
        assert {each["run_id"] for each in host.client.get("/runs").json()["runs"]} == {"old-turn", "old-done"}
        assert host.client.get("/runs/old-done").json()["outputs"]["agent_core"]["final_answer"] == "There are 12."
        assert host.client.get("/runs/old-done/verify").json()["ok"]
        assert host.client.post("/runs/old-done/replay", json={}).json()["identical"]
        decided = host.client.post("/runs/old-turn/decide", json={"decision": "approve"})
        assert (decided.status_code, decided.json()["waiting"]) == (202, []), decided.text
        assert host.client.post("/runs/old-turn/decide", json={"decision": "deny"}).status_code == 409
        for path in ("cancel", "resume"):
            refused = host.client.post(f"/runs/old-turn/{path}")
            assert refused.status_code == 409, refused.text
            assert "was recorded without an engine" in refused.json()["detail"]


@pytest.mark.exhaustive
def test_deleting_a_conversation_waits_for_the_turn_that_is_driven(host: Served) -> None:
    (host.folder / "go").touch()
    host.await_status(begin(host.client, "First."), "completed")
    (host.folder / "go").unlink()
    second = begin(host.client, "Second.")
    deadline = time.monotonic() + 10
    while AGENT_STRAND not in host.store.journal.load(second):
        assert time.monotonic() < deadline
        time.sleep(0.01)

    async def delete() -> int:
        async with httpx2.AsyncClient(base_url=host.url, timeout=30) as client:
            deleting = asyncio.create_task(client.delete("/agent/conversations/c"))
            await asyncio.sleep(0.1)
            (host.folder / "go").touch()
            return int((await deleting).status_code)

    assert asyncio.run(delete()) == 204
    assert status_of(host.client, second) == "completed"
    assert host.client.get("/agent/conversations/c").status_code == 404
