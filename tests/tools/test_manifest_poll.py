"""Manifests that poll: work is started once, asked about until it is done, and cancelled with its call."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.loopback import Loopback, Reply, hang_up, http, serving, silence
from utools import DefinitionError, ToolContext, ToolRegistry, ToolResult
from utools.sources.manifest import manifest_tools
from utools.sources.manifest_poll import make_key

KEY = "20261128-r/flow/agent_core.1:4"
SAFE = make_key(ToolContext(idempotency_key=KEY))
RUNNING, DONE = http(200, {"state": "running"}), http(200, {"state": "success", "rows": 7})
POLL: dict[str, Any] = {
    "done": "state == 'success'",
    "failed": "state == 'failed'",
    "error": "note",
    "started": [409],
    "interval": 0.05,
    "longest": 0.05,
}


def registry(folder: Path, port: int, *, idempotent: bool = True, timeout: float = 5, **poll: Any) -> ToolRegistry:
    at = f"http://127.0.0.1:{port}"
    asked = {"url": "AT/dags/{{dag}}/runs/{{call.key}}", **POLL, **poll}
    call = {
        "method": "POST",
        "url": f"{at}/dags/{{{{dag}}}}/runs",
        "json": {"id": "{{call.key}}", "conf": "{{conf}}"},
        "allow_cidrs": ["127.0.0.1/32"],
        "timeout": timeout,
        "poll": {key: value.replace("AT", at) if isinstance(value, str) else value for key, value in asked.items()},
    }
    manifest = {
        "code": "dag",
        "description": "Run a DAG.",
        "idempotent": idempotent,
        "schema": {"type": "object", "properties": {"dag": {"type": "string"}, "conf": {}}, "required": ["dag"]},
        "http": call,
    }
    path = folder / "dag.yaml"
    path.write_text(yaml.safe_dump(manifest))
    return ToolRegistry(manifest_tools(path, trusted=True))


async def ran(
    folder: Path, *replies: Reply, deadline_s: float | None = None, **keys: Any
) -> tuple[ToolResult, Loopback]:
    async with serving(*replies) as server:
        context = ToolContext(idempotency_key=KEY, deadline_s=deadline_s)
        tools = registry(folder, server.port, **keys)
        return await tools.execute("dag", {"dag": "etl", "conf": {"day": 1}}, context), server


async def test_work_is_started_with_the_key_of_its_call_and_asked_about_until_it_is_done(tmp_path: Path) -> None:
    result, server = await ran(tmp_path, http(200, {}), RUNNING, RUNNING, DONE, output="{rows: rows}")
    assert (result.success, result.output) == (True, {"rows": 7})
    assert server.requests[0].json() == {"id": SAFE, "conf": {"day": 1}}
    asked = [(each.method, each.target) for each in server.requests]
    assert asked == [("POST", "/dags/etl/runs"), *[("GET", f"/dags/etl/runs/{SAFE}")] * 3]


def test_key_has_letters_alone_that_any_service_takes_and_is_another_for_another_call() -> None:
    assert SAFE.startswith("20261128-r-flow-agent_core.1-4-")
    assert make_key(ToolContext(idempotency_key=KEY.replace(":", "/"))) != SAFE
    assert make_key(ToolContext()) != make_key(ToolContext())


async def test_work_that_fails_is_a_failure_in_its_own_words(tmp_path: Path) -> None:
    result, _ = await ran(tmp_path, http(200, {}), http(200, {"state": "failed", "note": "no disk"}))
    assert (result.success, result.error) == (False, "it was started, and failed: no disk")
    assert not result.metadata.get("cut_off")


async def test_another_attempt_finds_work_that_was_started_before(tmp_path: Path) -> None:
    result, server = await ran(tmp_path, http(409, {"detail": "exists"}), DONE)
    assert result.success
    assert [each.method for each in server.requests] == ["POST", "GET"]


@pytest.mark.parametrize("odd", [http(502, b"bad gateway"), hang_up, http(200, b"<html>"), http(429, {})])
async def test_service_that_is_away_in_the_middle_is_asked_again(tmp_path: Path, odd: Reply) -> None:
    result, _ = await ran(tmp_path, http(200, {}), RUNNING, odd, odd, DONE)
    assert result.success


@pytest.mark.parametrize("lost", [hang_up, http(503, {}), silence])
async def test_lost_answer_of_a_start_is_asked_for_again_where_that_starts_nothing_twice(
    tmp_path: Path, lost: Reply
) -> None:
    result, server = await ran(tmp_path, lost, http(409, {}), DONE, timeout=0.5)
    assert result.success
    assert server.requests[0].json() == server.requests[1].json()


@pytest.mark.parametrize("lost", [hang_up, http(503, {}), silence])
async def test_lost_answer_of_a_start_leaves_other_work_in_doubt(tmp_path: Path, lost: Reply) -> None:
    result, server = await ran(tmp_path, lost, idempotent=False, timeout=0.5)
    assert (result.success, result.metadata.get("cut_off"), len(server.requests)) == (False, True, 1)
    assert "goes on there" not in str(result.error)


async def test_refused_start_is_a_failure_and_nothing_is_asked(tmp_path: Path) -> None:
    result, server = await ran(tmp_path, http(404, {"detail": "no such DAG"}), idempotent=False)
    assert (result.success, len(server.requests)) == (False, 1)
    assert "no such DAG" in str(result.error)
    assert not result.metadata.get("cut_off")


@pytest.mark.parametrize("idempotent", [True, False])
async def test_status_that_is_refused_says_that_the_work_was_started(tmp_path: Path, idempotent: bool) -> None:
    result, _ = await ran(tmp_path, http(200, {}), http(401, {}), idempotent=idempotent)
    assert str(result.error).startswith("it was started, and cannot be followed")
    assert bool(result.metadata.get("cut_off")) is not idempotent


@pytest.mark.parametrize("idempotent", [True, False])
async def test_status_that_never_ends_is_given_up_in_time(tmp_path: Path, idempotent: bool) -> None:
    keys = {"within": 0.4, "idempotent": idempotent}
    result, server = await ran(tmp_path, http(200, {}), RUNNING, **keys)
    assert result.error == "it was not done within 0.4 seconds, and goes on there"
    assert bool(result.metadata.get("cut_off")) is not idempotent
    assert {each.method for each in server.requests[1:]} == {"GET"}


async def test_call_says_that_its_work_goes_on_before_its_own_time_is_over(tmp_path: Path) -> None:
    result, _ = await ran(tmp_path, http(200, {}), RUNNING, deadline_s=0.5)
    assert result.error == "it was not done within 0.475 seconds, and goes on there"


async def test_urls_take_what_the_first_answer_says_and_the_result_is_read_at_another(tmp_path: Path) -> None:
    keys = {"started": [], "url": "AT/runs/{{started.run.id}}", "result_url": "AT/results/{{started.run.id}}"}
    result, server = await ran(tmp_path, http(201, {"run": {"id": "a b"}}), DONE, http(200, [1, 2]), **keys)
    assert result.output == [1, 2]
    assert [each.target for each in server.requests[1:]] == ["/runs/a%20b", "/results/a%20b"]
    result, _ = await ran(tmp_path, http(201, {"run": {}}), DONE, **keys)
    assert result.error == "the first answer of the server has no run.id"


@pytest.mark.parametrize("is_let_go", [False, True], ids=["cancelled", "let go"])
async def test_cancelled_call_cancels_its_work_unless_only_its_process_ends(tmp_path: Path, is_let_go: bool) -> None:
    async with serving(http(200, {}), RUNNING) as server:
        tools = registry(tmp_path, server.port, longest=60, interval=60)
        cancel = {
            "method": "PATCH",
            "url": f"http://127.0.0.1:{server.port}/x/{{{{call.key}}}}",
            "json": {"to": "failed"},
        }
        tools = registry(tmp_path, server.port, cancel=cancel)
        context = ToolContext(idempotency_key=KEY, is_let_go=lambda: is_let_go)
        calling = asyncio.create_task(tools.execute("dag", {"dag": "etl"}, context))
        while len(server.requests) < 2:
            await asyncio.sleep(0.01)
        calling.cancel()
        with suppress(asyncio.CancelledError):
            await calling
        cancelled = [each for each in server.requests if each.method == "PATCH"]
    assert len(cancelled) == (0 if is_let_go else 1)
    assert is_let_go or (cancelled[0].target, cancelled[0].json()) == (f"/x/{SAFE}", {"to": "failed"})


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "another host": ({"url": "https://other.example/x"}, "poll/url must be at http://127.0.0.1:1"),
    "result at another host": ({"result_url": "https://other.example/x"}, "poll/result_url must be at"),
    "expression": ({"done": "state =="}, "http/poll/done"),
    "function": ({"done": "lenght(state)"}, "did you mean length?"),
    "unknown argument": ({"url": "AT/{{dagg}}"}, "there is no argument 'dagg'"),
    "answer of a repeated start": ({"url": "AT/{{started.id}}"}, "take call.key for started.NAME"),
    "unknown key": ({"intervall": 1}, "did you mean interval?"),
}


@pytest.mark.parametrize(("keys", "told"), BAD.values(), ids=BAD)
def test_bad_poll_is_told_when_it_is_loaded(tmp_path: Path, keys: dict[str, Any], told: str) -> None:
    with pytest.raises(DefinitionError) as error:
        registry(tmp_path, 1, **keys)
    assert told in str(error.value)


def test_answer_of_the_start_is_no_argument_of_the_start(tmp_path: Path) -> None:
    path = tmp_path / "tool.yaml"
    path.write_text("{code: x, description: X., schema: {}, http: {url: 'https://example.com/{{started.id}}'}}")
    with pytest.raises(DefinitionError, match="no argument 'started"):
        manifest_tools(path)
