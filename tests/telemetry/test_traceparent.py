"""traceparent: what is valid, how it comes in over HTTP and stays, and how it goes out with calls and questions."""

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_core.models import create_model
from engine_shim import Engine
from engine_shim.store.run_store_memory import MemoryRunStore
from engine_shim.telemetry.ids import SAMPLED, TraceParent, read_traceparent, span_id_of, trace_id_of
from support import mcp_servers
from support.by_hand import action, final
from support.loopback import Loopback, chat, http, serving
from support.optional import needs
from support.served_host import Served, served
from support.told import Told, agent_node, await_spans, engine_of, flow_of, ids_of, registry_of
from utools.sources.manifest import manifest_tools
from utools.sources.mcp.servers import McpServer, McpServers

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HEADER = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
NEAR: Mapping[str, Any] = {"allow_cidrs": ["127.0.0.1/32"]}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"00-{TRACE}-{SPAN}-01", TraceParent(int(TRACE, 16), int(SPAN, 16), SAMPLED)),
        (f"00-{TRACE}-{SPAN}-00", TraceParent(int(TRACE, 16), int(SPAN, 16), 0)),
        (f"cc-{TRACE}-{SPAN}-01-what-comes", TraceParent(int(TRACE, 16), int(SPAN, 16), SAMPLED)),
        (f"00-{TRACE}-{SPAN}-01-more", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE.upper()}-{SPAN}-01", None),
        (f"00-{TRACE}-{SPAN}", None),
        ("", None),
        (None, None),
    ],
)
def test_header_is_read_as_the_recommendation_says(text: str | None, found: TraceParent | None) -> None:
    assert read_traceparent(text) == found
    if text and found and text.startswith("00"):
        assert found.write() == text


def test_ids_are_the_same_wherever_they_are_made_and_differ_by_what_they_are_of() -> None:
    ids = {
        span_id_of(seed, path, n, part) for seed in (b"a", b"b") for path in "fg" for n in (1, 2) for part in ("", "p")
    }
    assert len(ids) == 16
    assert span_id_of(b"a", "f", 1) == span_id_of(b"a", "f", 1)
    assert trace_id_of(b"a") != trace_id_of(b"b")


# ── in ────────────────────────────────────────────────────────────────────────────────────────────


def submit(host: Served, headers: Mapping[str, str], workflow: str = "count", **external: str) -> Any:
    body = {"external": external or {"sum": "1 + 1"}}
    answer = host.client.post(f"/workflows/{workflow}/runs", json=body, headers=dict(headers))
    assert answer.is_success, answer.text
    return answer.json()


def test_callers_span_is_the_parent_of_a_run(tmp_path: Path) -> None:
    told = Told()
    with served(tmp_path, telemetry=told.telemetry) as host:
        submit(host, HEADER)
        await_spans(told, 2)
        workflow = told.span("invoke_workflow count")
        assert (f"{workflow.context.trace_id:032x}", f"{workflow.parent and workflow.parent.span_id:016x}") == (
            TRACE,
            SPAN,
        )
        assert told.tree()["execute_tool calculator"] == "invoke_workflow count"


@pytest.mark.sampled
@pytest.mark.parametrize("value", ["nonsense", f"ff-{TRACE}-{SPAN}-01", f"00-{'0' * 32}-{SPAN}-01", "x" * 3000])
def test_invalid_header_is_passed_over(tmp_path: Path, value: str) -> None:
    told = Told()
    with served(tmp_path, telemetry=told.telemetry) as host:
        assert submit(host, {"traceparent": value})["status"] == "completed"
        await_spans(told, 2)
        assert told.span("invoke_workflow count").parent is None


def test_caller_that_records_nothing_is_not_recorded_here(tmp_path: Path) -> None:
    told = Told()
    with served(tmp_path, telemetry=told.telemetry) as host:
        submit(host, {"traceparent": f"00-{TRACE}-{SPAN}-00"})
        submit(host, HEADER)
        await_spans(told, 2)
        assert len(told.spans) == 2


def test_turn_of_a_conversation_lies_under_its_caller(tmp_path: Path) -> None:
    told = Told()
    with served(tmp_path, telemetry=told.telemetry) as host:
        body = {"message": "How many?", "agent": "clerk"}
        turn = host.client.post("/agent/chat", json=body, headers=HEADER).json()
        await_spans(told, 4)
        agent = told.span("invoke_agent clerk")
        assert (agent.attributes or {})["gen_ai.conversation.id"] == turn["conversation_id"]
        assert (agent.attributes or {})["agent_core.run.id"] == turn["trace_id"]
        assert f"{agent.context.trace_id:032x}" == TRACE


def test_parent_survives_a_restart_of_the_server(tmp_path: Path) -> None:
    first, second = Told(), Told()
    with served(tmp_path, telemetry=first.telemetry) as host:
        body = {"external": {"until": "go"}}
        answer = host.client.post("/workflows/wait/runs?wait=false", json=body, headers=HEADER)
        run = answer.json()["run_id"]
        host.await_file("go.begun")
        host.service.grace = 0
    assert first.spans == []
    (tmp_path / "go").touch()
    with served(tmp_path, telemetry=second.telemetry) as host:
        assert host.await_status(run, "completed")
        await_spans(second, 3)
        assert {f"{ids_of(each)[0]:032x}" for each in second.spans} == {TRACE}
        workflow = second.span("invoke_workflow wait")
        assert f"{workflow.parent and workflow.parent.span_id:016x}" == SPAN


@pytest.mark.exhaustive
def test_key_that_comes_again_leaves_the_run_under_its_first_caller(tmp_path: Path) -> None:
    told = Told()
    with served(tmp_path, telemetry=told.telemetry) as host:
        run = submit(host, {**HEADER, "Idempotency-Key": "k"})["run_id"]
        submit(host, {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "Idempotency-Key": "k"})
        assert host.store.trace(run) == HEADER["traceparent"]


def test_server_that_traces_nothing_keeps_no_header(tmp_path: Path) -> None:
    with served(tmp_path) as host:
        assert host.store.trace(submit(host, HEADER)["run_id"]) is None


# ── out ───────────────────────────────────────────────────────────────────────────────────────────


def sent(endpoint: Loopback) -> TraceParent:
    """The span that the last request named."""
    found = read_traceparent(endpoint.requests[-1].headers.get("traceparent"))
    assert found is not None
    return found


@pytest.mark.anyio
async def test_request_of_a_tool_names_the_span_of_its_call() -> None:
    told = Told()
    async with serving(http(200, {"ok": True})) as endpoint:
        node = {"id": "get", "tool": "http_request", "config": {"method": "GET", "url": endpoint.url, **NEAR}}
        result = await engine_of(told).run(flow_of(node))
    assert result.status == "completed", result.error
    assert sent(endpoint)[:2] == ids_of(told.span("execute_tool http_request"))


@pytest.mark.anyio
async def test_request_to_a_model_names_the_span_of_its_question() -> None:
    told = Told()
    async with serving(chat(action("stock", article="A" * 300_000)), chat(final("12"))) as endpoint:
        model = create_model("openai:gpt-4o-mini", base_url=endpoint.url)
        engine = Engine(registry_of(), store=MemoryRunStore(), model=model, telemetry=told.telemetry)
        result = await engine.run(flow_of(agent_node(observation_max_len=None)))
        await engine.close()
    assert result.status == "completed", result.error
    asked = [ids_of(each) for each in told.spans if each.name == "chat gpt-4o-mini"]
    named = [read_traceparent(each.headers["traceparent"]) for each in endpoint.requests]
    assert [each and each[:2] for each in named] == asked
    assert len(endpoint.requests[1].body) > 2**18  # sent in slices


@pytest.mark.anyio
async def test_header_that_an_author_sets_stays() -> None:
    told = Told()
    async with serving(http(200, {"ok": True})) as endpoint:
        config = {"method": "GET", "url": endpoint.url, "headers": HEADER, **NEAR}
        await engine_of(told).run(flow_of({"id": "get", "tool": "http_request", "config": config}))
    assert endpoint.requests[0].headers["traceparent"] == HEADER["traceparent"]


@pytest.mark.anyio
async def test_nothing_is_sent_where_nothing_is_traced() -> None:
    async with serving(http(200, {"ok": True})) as endpoint:
        node = {"id": "get", "tool": "http_request", "config": {"method": "GET", "url": endpoint.url, **NEAR}}
        await engine_of(None).run(flow_of(node))
    assert "traceparent" not in endpoint.requests[0].headers


@pytest.mark.anyio
async def test_call_of_a_tool_by_manifest_names_its_span(tmp_path: Path) -> None:
    told = Told()
    async with serving(http(200, {"ok": True})) as endpoint:
        manifest = {
            "code": "lamp",
            "description": "Look at a lamp.",
            "schema": {"type": "object", "properties": {}},
            "http": {"url": f"{endpoint.url}/lamp", **NEAR},
        }
        (tmp_path / "lamp.json").write_text(json.dumps(manifest))
        tools = manifest_tools(tmp_path / "lamp.json", root=tmp_path, trusted=True)
        result = await engine_of(told, (), *tools).run(flow_of({"id": "look", "tool": "lamp", "config": {}}))
    assert result.status == "completed", result.error
    assert sent(endpoint)[:2] == ids_of(told.span("execute_tool lamp"))


@needs("mcp")
@pytest.mark.anyio
async def test_call_over_mcp_names_its_span_and_no_other(tmp_path: Path) -> None:
    told = Told()
    with over_http() as url:
        servers = McpServers({"own": McpServer(url=url)}, lock=tmp_path / "lock.json", base=tmp_path)
        tools = await asyncio.to_thread(servers.tools)
        nodes = [
            {"id": name, "tool": "mcp.own.header", "config": {"name": "traceparent"}} for name in ("first", "second")
        ]
        edges = [{"from": "first", "to": "second"}]
        result = await engine_of(told, (), *tools).run(flow_of(*nodes, edges=edges))
        await asyncio.to_thread(servers.close)
    assert result.status == "completed", result.error
    named = [read_traceparent(result.outputs[name]["result"]) for name in ("first", "second")]
    assert [each and each[:2] for each in named] == [
        ids_of(each) for each in told.spans if each.name == "execute_tool mcp.own.header"
    ]


@contextmanager
def over_http() -> Iterator[str]:
    """The URL of an MCP server in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(mcp_servers.__file__).with_name("over_http.py")
    with subprocess.Popen(
        [sys.executable, program, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            deadline = time.monotonic() + 30
            while True:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.kill()
