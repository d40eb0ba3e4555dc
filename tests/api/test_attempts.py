"""Attempts of a client that gives up waiting, and asks again by itself: both requests are of one run."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from agent_core.errors import JournalError
from engine_shim.service.unanswered import KEPT_S, MOST, Unanswered
from support.optional import needs
from support.served_host import INPUTS, Served, served, write_host

pytestmark = needs("fastapi")

SLOW = {
    "id": "slow",
    "inputs": INPUTS,
    "nodes": [
        {"id": "order", "tool": "order", "config": {"article": "{{external.message}}", "pieces": 1}},
        {"id": "linger", "tool": "linger", "config": {"until": "{{external.message}}"}, "timeout": 60},
    ],
    "edges": [{"from": "order", "to": "linger"}],
}
RETRY = {"X-Stainless-Retry-Count": "1"}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("host")
    write_host(folder)
    (folder / "workflows" / "slow.json").write_text(json.dumps(SLOW))
    with served(folder) as found:
        yield found


def ask(host: Served, message: str, *, seconds: float = 30, stream: bool = False, **headers: str) -> httpx2.Response:
    body = {"model": "workflow/slow", "messages": [{"role": "user", "content": message}], "stream": stream}
    return httpx2.post(f"{host.url}/v1/chat/completions", json=body, headers=headers, timeout=seconds)


def leave(host: Served, message: str, **more: Any) -> None:
    """Ask, and leave before the answer; until the server knows that."""
    with pytest.raises(httpx2.ReadTimeout):
        ask(host, message, seconds=0.5, **more)
    deadline = time.monotonic() + 10
    while not host.service.tenants[None].completions.unanswered._left:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def count_orders(host: Served, message: str) -> int:
    return (host.folder / "orders.txt").read_text().count(f"{message} 1\n")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("headers", [{}, RETRY], ids=["says nothing", "says so"])
def test_who_left_before_the_answer_and_asks_again_gets_that_of_the_same_run(
    host: Served, stream: bool, headers: dict[str, str]
) -> None:
    message = f"again-{stream}-{len(headers)}"
    leave(host, message, stream=stream)
    (host.folder / message).touch()
    answer = ask(host, message, stream=stream, **headers)
    assert answer.status_code == 200
    assert message in answer.text
    assert count_orders(host, message) == 1
    assert host.client.get(f"/runs/{answer.headers['x-run-id']}").json()["status"] == "completed"


def test_each_attempt_of_many_is_of_the_same_run(host: Served) -> None:
    for _ in range(3):
        leave(host, "many")
    (host.folder / "many").touch()
    first = ask(host, "many")
    assert (first.status_code, count_orders(host, "many")) == (200, 1)
    assert ask(host, "many").headers["x-run-id"] != first.headers["x-run-id"]  # answered: this is another question
    assert count_orders(host, "many") == 2


def test_two_who_ask_the_same_and_stay_have_a_run_each(host: Served) -> None:
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(ask, host, "both") for _ in range(2)]
        host.await_file("both.begun")
        while count_orders(host, "both") < 2:
            time.sleep(0.01)
        (host.folder / "both").touch()
        assert len({each.result().headers["x-run-id"] for each in asked}) == 2


def test_attempt_with_a_key_is_of_the_run_of_its_key(host: Served) -> None:
    leave(host, "keyed")
    (host.folder / "keyed").touch()
    keyed = ask(host, "keyed", **{"Idempotency-Key": "another"}).headers["x-run-id"]
    assert count_orders(host, "keyed") == 2
    assert ask(host, "keyed").headers["x-run-id"] != keyed
    assert count_orders(host, "keyed") == 2


def test_second_attempt_whose_first_is_not_known_is_refused_in_words(host: Served) -> None:
    answer = ask(host, "unknown", **RETRY)
    assert (answer.status_code, answer.headers["x-should-retry"]) == (409, "false")
    assert "set its retries to 0 to see why" in answer.json()["error"]["message"]
    assert not (host.folder / "unknown.begun").exists()


@pytest.mark.parametrize("stream", [False, True])
def test_client_that_hears_that_there_are_too_many_runs_may_ask_again(
    host: Served, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    message = f"full-{stream}"
    (host.folder / message).touch()
    with monkeypatch.context() as patched:
        patched.setattr(host.service.shares.runs, "most", 0)
        refused = ask(host, message, stream=stream)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "2")
    assert "x-should-retry" not in refused.headers
    answer = ask(host, message, stream=stream, **RETRY)
    assert (answer.status_code, count_orders(host, message)) == (200, 1)


def test_attempt_after_a_store_that_was_away_is_of_the_run_that_had_begun(
    host: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    (host.folder / "away").touch()

    async def fail(run: str) -> None:
        raise JournalError("the store is away")

    with monkeypatch.context() as patched:
        patched.setattr(host.service.tenants[None].runs, "wait_settled", fail)
        assert ask(host, "away").status_code == 503
    assert ask(host, "away").status_code == 200
    assert count_orders(host, "away") == 1


def run_of(host: Served) -> str:
    (entry,) = host.service.tenants[None].completions.unanswered._left
    return entry[2]


def test_who_has_cancelled_what_they_asked_and_asks_it_again_gets_a_new_run(host: Served) -> None:
    leave(host, "stopped")
    run = run_of(host)
    assert host.client.post(f"/runs/{run}/cancel").status_code == 200
    host.await_status(run, "cancelled")
    (host.folder / "stopped").touch()
    answer = ask(host, "stopped")
    assert (answer.status_code, count_orders(host, "stopped")) == (200, 2)
    assert answer.headers["x-run-id"] != run


def test_client_that_tries_again_by_itself_does_not_undo_a_cancellation(host: Served) -> None:
    leave(host, "operator")
    run = run_of(host)
    host.client.post(f"/runs/{run}/cancel")
    host.await_status(run, "cancelled")
    answer = ask(host, "operator", **RETRY)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "cancelled")
    assert count_orders(host, "operator") == 1


def test_who_has_changed_the_workflow_and_asks_again_gets_an_answer_of_the_new_one(host: Served) -> None:
    leave(host, "changed")
    (host.folder / "changed").touch()
    changed = {**SLOW, "nodes": [*SLOW["nodes"], {"id": "last", "tool": "echo", "config": {"text": "of the new one"}}]}
    changed["edges"] = [*SLOW["edges"], {"from": "linger", "to": "last"}]
    file = host.folder / "workflows" / "slow.json"
    try:
        file.write_text(json.dumps(changed))
        assert "of the new one" in ask(host, "changed").text
    finally:
        file.write_text(json.dumps(SLOW))
    assert count_orders(host, "changed") == 2


def test_agent_that_is_as_it_was_answers_by_the_run_that_has_begun(host: Served) -> None:
    body = json.dumps({"model": "agent/clerk", "messages": [{"role": "user", "content": "how many?"}]}).encode()

    def put() -> httpx2.Response:
        return host.client.post("/v1/chat/completions", content=body, headers={"Content-Type": "application/json"})

    first = put().headers["x-run-id"]
    host.service.tenants[None].completions.unanswered.add("local", body, first)
    assert [put().headers["x-run-id"] == first for _ in range(2)] == [True, False]


def test_attempt_that_finds_too_many_streams_leaves_the_earlier_run_known(
    host: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(host, "streams", stream=True)
    (host.folder / "streams").touch()
    with monkeypatch.context() as patched:
        patched.setattr(host.service.shares.streams, "most", 0)
        assert ask(host, "streams", stream=True).status_code == 429
    assert ask(host, "streams", stream=True, **RETRY).status_code == 200
    assert count_orders(host, "streams") == 1


def test_mistake_that_comes_again_is_not_that_of_the_next_question(
    host: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(host, "mistake")
    (host.folder / "mistake").touch()

    async def fail(run: str) -> None:
        raise RuntimeError("a mistake")

    with monkeypatch.context() as patched:
        patched.setattr(host.service.tenants[None].runs, "wait_settled", fail)
        assert ask(host, "mistake").status_code == 500
    assert ask(host, "mistake").status_code == 200
    assert count_orders(host, "mistake") == 2


def test_question_that_was_refused_or_has_no_answer_is_asked_anew(host: Served) -> None:
    """A run without an answer is a 400: clients such as LangChain.js ask six times more after 422, each time anew."""
    body = {"model": "workflow/count", "messages": [{"role": "user", "content": "1 / 0"}]}
    first, second = (host.client.post("/v1/chat/completions", json=body) for _ in range(2))
    assert (first.status_code, second.status_code, first.json()["error"]["code"]) == (400, 400, "tool_error")
    assert first.json()["error"]["message"] != second.json()["error"]["message"]  # which ends with the run
    assert host.client.post("/v1/chat/completions", json={"model": "workflow/count"}).status_code == 422
    assert not host.service.tenants[None].completions.unanswered._left


def test_what_is_left_is_known_once_to_its_asker_for_a_while() -> None:
    now = 0.0
    left = Unanswered(lambda: now)
    left.add("ann", b"x", "run")
    assert (left.take("bob", b"x"), left.take("ann", b"y"), left.take("ann", b"x")) == (None, None, "run")
    assert left.take("ann", b"x") is None
    left.add("ann", b"x", "old")
    now = KEPT_S
    assert left.take("ann", b"x") is None
    left.add("ann", b"x", "twice")
    left.add("ann", b"x", "twice")
    assert (left.take("ann", b"x"), left.take("ann", b"x")) == ("twice", None)
    for number in range(MOST + 1):
        left.add("ann", b"%d" % number, "run")
    assert (left.take("ann", b"0"), left.take("ann", b"1")) == (None, "run")
