"""Conversations with agents over HTTP: turns, what a turn may cost, decisions, history, deletion."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from engine_shim.api import create_router
from engine_shim.host.find import load_host_config
from engine_shim.service.service import Service
from support.served_host import Served, served


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("host")) as found:
        yield found


def chat(host: Served, message: str = "How many A-17?", agent: str = "clerk", **keys: Any) -> Any:
    answer = host.client.post("/agent/chat", json={"message": message, "agent": agent, **keys})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_agents_are_listed_with_the_tools_that_they_have(host: Served) -> None:
    agents = {agent["name"]: agent for agent in host.client.get("/agents").json()["agents"]}
    assert agents["clerk"]["tools"] == ["stock"]
    assert agents["buyer"]["description"] == "Orders what is asked for."


def test_turn_answers_and_says_what_was_called_and_what_it_cost(host: Served) -> None:
    turn = chat(host)
    assert (turn["success"], turn["response"], turn["finish_reason"]) == (True, "There are 12.", "final")
    assert turn["tool_calls"] == [
        {"tool": "stock", "arguments": {"article": "A-17"}, "result": {"article": "A-17", "pieces": 12}}
    ]
    assert turn["meta"]["tool_calls_count"] == 1
    assert turn["meta"]["total_tokens"] > 0
    assert turn["conversation_id"]


def test_turn_is_a_run_that_verifies(host: Served) -> None:
    turn = chat(host)
    run = host.client.get(f"/runs/{turn['trace_id']}").json()
    assert (run["status"], run["agent"], run["conversation"]) == ("completed", "clerk", turn["conversation_id"])
    assert run["outputs"]["agent_core"]["final_answer"] == "There are 12."
    assert host.client.get(f"/runs/{turn['trace_id']}/verify").json()["ok"]


def test_conversation_goes_on_and_its_messages_have_their_runs(host: Served) -> None:
    first = chat(host)
    second = chat(host, "And again?", conversation_id=first["conversation_id"])
    found = host.client.get(f"/agent/conversations/{first['conversation_id']}").json()["messages"]
    assert [message["content"] for message in found if message["role"] == "user"] == ["How many A-17?", "And again?"]
    assert {message["trace_id"] for message in found} == {first["trace_id"], second["trace_id"]}


def test_deleted_conversation_is_gone(host: Served) -> None:
    identity = chat(host)["conversation_id"]
    assert host.client.delete(f"/agent/conversations/{identity}").status_code == 204
    for answer in (host.client.get, host.client.delete):
        assert answer(f"/agent/conversations/{identity}").status_code == 404


def test_turn_beyond_its_limit_is_no_success(host: Served) -> None:
    turn = chat(host, max_tokens=1)
    assert (turn["success"], turn["finish_reason"]) == (False, "token_budget")
    assert turn["error"]["kind"] == "token_budget"
    assert turn["error"]["message"].endswith("max_tokens of this request is 1")


def test_waiting_turn_is_decided_as_a_run(host: Served) -> None:
    turn = chat(host, "Order three.", "buyer")
    assert (turn["success"], turn["finish_reason"]) == (False, "awaiting_approval")
    assert turn["waiting"][0]["args"] == {"article": "A-17", "pieces": 3}
    done = host.client.post(f"/runs/{turn['trace_id']}/decide", json={"decision": "approve"}).json()
    assert (done["status"], done["outputs"]["agent_core"]["final_answer"]) == ("completed", "It is ordered.")


def test_same_key_is_the_same_turn(host: Served) -> None:
    body, headers = {"message": "Once.", "agent": "clerk"}, {"Idempotency-Key": "turn 1"}
    first, second = (host.client.post("/agent/chat", json=body, headers=headers).json() for _ in range(2))
    assert first["trace_id"] == second["trace_id"]
    assert first["conversation_id"] == second["conversation_id"]
    for change in ({"message": "Twice."}, {"conversation_id": "another"}):
        other = host.client.post("/agent/chat", json={**body, **change}, headers=headers)
        assert (other.status_code, other.json()["kind"]) == (422, "key_reused")
    messages = host.client.get(f"/agent/conversations/{first['conversation_id']}").json()["messages"]
    assert len([message for message in messages if message["role"] == "user"]) == 1


def test_turn_without_an_agent_names_those_there_are(host: Served) -> None:
    answer: httpx2.Response = host.client.post("/agent/chat", json={"message": "x"})
    assert answer.status_code == 404
    assert answer.json()["detail"].startswith("no agent is named; there are ")


@pytest.mark.parametrize(
    ("body", "status", "where"),
    [
        ({"message": "x", "agent": "nobody"}, 404, "body/agent"),
        ({"agent": "clerk"}, 422, "body/message"),
        ({"message": "", "agent": "clerk"}, 422, "body/message"),
        ({"message": "x", "agent": "clerk", "max_tool_calls": 0}, 422, "body/max_tool_calls"),
        ({"message": "x", "agent": "clerk", "conversation_id": ""}, 422, "body/conversation_id"),
        ({"message": "x", "agent": "clerk", "temperature": 1}, 422, "body/temperature"),
    ],
)
def test_turn_that_cannot_be_taken_says_why(host: Served, body: Any, status: int, where: str | None) -> None:
    answer: httpx2.Response = host.client.post("/agent/chat", json=body)
    assert answer.status_code == status, answer.text
    if where is not None:
        assert [fault["where"] for fault in answer.json()["errors"]] == [where]


def test_turn_that_is_not_waited_for_answers_at_once_and_is_stored(host: Served) -> None:
    body = {"message": "How many A-17?", "agent": "clerk"}
    answer = host.client.post("/agent/chat?wait=false", json=body)
    begun = answer.json()
    assert (answer.status_code, begun["status"], begun.keys()) == (
        202,
        "running",
        {"conversation_id", "trace_id", "status"},
    )
    run = host.await_status(begun["trace_id"], "completed")
    assert (run["agent"], run["conversation"]) == ("clerk", begun["conversation_id"])
    deadline = time.monotonic() + 10
    while (stored := host.client.get(f"/agent/conversations/{begun['conversation_id']}")).status_code == 404:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert stored.json()["messages"][-1]["content"] == "There are 12."
    more = {**body, "conversation_id": begun["conversation_id"]}
    assert chat(host, conversation_id=more["conversation_id"])["success"]


def test_turn_that_is_not_waited_for_waits_for_a_decision(host: Served) -> None:
    body = {"message": "Order.", "agent": "buyer"}
    run = host.client.post("/agent/chat?wait=false", json=body).json()["trace_id"]
    host.await_status(run, "waiting")
    assert host.client.post(f"/runs/{run}/decide", json={"decision": "approve"}).json()["status"] == "completed"


def test_turn_that_is_refused_is_refused_at_once(host: Served) -> None:
    body = {"message": "x", "agent": "nobody"}
    assert host.client.post("/agent/chat?wait=false", json=body).status_code == 404
    assert host.client.post("/agent/chat?wait=false", json={"message": 3}).status_code == 422


def test_key_names_the_turn_that_is_not_waited_for(host: Served) -> None:
    headers = {"Idempotency-Key": "chat-once"}

    def ask(message: str) -> httpx2.Response:
        body = {"message": message, "agent": "clerk"}
        return host.client.post("/agent/chat?wait=false", json=body, headers=headers)

    first = ask("How many?").json()
    host.await_status(first["trace_id"], "completed")
    assert ask("How many?").json() == first
    assert ask("Other?").json()["kind"] == "key_reused"
    body = {"message": "How many?", "agent": "clerk"}
    answer = host.client.post("/agent/chat", json=body, headers=headers).json()
    assert (answer["trace_id"], answer["conversation_id"]) == (first["trace_id"], first["conversation_id"])


@pytest.mark.exhaustive
def test_conversations_are_listed_with_the_newest_first(tmp_path: Path) -> None:
    with served(tmp_path) as host:
        for name in ("first", "second", "first", "gone"):
            chat(host, f"How many, {name}?", conversation_id=name)
        assert host.client.delete("/agent/conversations/gone").status_code == 204
        listed = host.client.get("/agent/conversations").json()["conversations"]
        assert [each["conversation_id"] for each in listed] == ["first", "second"]
        assert (listed[0]["agent"], listed[0]["last"]) == ("clerk", "There are 12.")
        stored = host.client.get("/agent/conversations/first").json()["messages"]
        assert listed[0]["messages"] == len(stored)
        assert listed[0]["updated_at"] > listed[1]["updated_at"]


# ── a whole conversation ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("of_host", [True, False], ids=["the host's", "the agent's"])
def test_a_whole_conversation_has_a_budget(tmp_path: Path, of_host: bool) -> None:
    keys = {"max_conversation_tokens": 50} if of_host else {}
    with served(tmp_path, **keys) as host:
        if not of_host:
            agent = host.folder / "agents" / "clerk.yaml"
            agent.write_text(agent.read_text() + "max_conversation_tokens: 50\n")
    with served(tmp_path, **keys) as host:
        first = chat(host, conversation_id="c")
        assert first["finish_reason"] == "token_budget"
        again = chat(host, conversation_id="c")
        assert (again["success"], again["finish_reason"]) == (False, first["finish_reason"])


def test_a_host_without_agents_has_the_assistant_that_chat_has(tmp_path: Path) -> None:
    (tmp_path / "replies.json").write_text(
        '[{"type":"action","tool":"calculator","args":{"expression":"6 * 7"}},{"type":"final","answer":"42."}]'
    )
    (tmp_path / "agent-core.yaml").write_text("{}")
    config = load_host_config(tmp_path / "agent-core.yaml")
    service = Service.of_host(config, tmp_path / "runs.db", model=f"scripted:{tmp_path / 'replies.json'}", is_open=True)
    app = FastAPI(lifespan=lambda _: service.running())
    app.include_router(create_router(service), prefix="/agents")
    with TestClient(app) as client:
        turn = client.post("/agents/agent/chat", json={"message": "What is 6 times 7?"}).json()
    assert (turn["success"], turn["response"], turn["tool_calls"][0]["tool"]) == (True, "42.", "calculator")


def test_a_mounted_api_asks_for_a_token_until_it_is_opened(tmp_path: Path) -> None:
    (tmp_path / "agent-core.yaml").write_text("{}")
    for is_open, status in ((False, 401), (True, 200)):
        service = Service.of_host(load_host_config(tmp_path / "agent-core.yaml"), tmp_path / "runs.db", is_open=is_open)
        app = FastAPI(lifespan=lambda _, service=service: service.running())
        app.include_router(create_router(service), prefix="/agents")
        with TestClient(app) as client:
            assert client.get("/agents/workflows").status_code == status
