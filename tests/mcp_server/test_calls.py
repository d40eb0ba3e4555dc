"""What a client meets over MCP: tools, results, progress, cancellation and questions, over each transport."""

import asyncio
from typing import Any

import pytest

from agent_core.audit.verify import verify
from engine_shim.mcp_server.names import Target, tool_name
from support.mcp_host import LONG, McpHost, Person, until
from support.optional import needs

pytestmark = [needs("mcp", "fastapi", "uvicorn"), pytest.mark.xdist_group("mcp_server"), pytest.mark.timeout(120)]


def text_of(result: Any) -> str:
    (content,) = result.content
    return str(content.text)


async def test_newest_workflows_and_agents_are_tools_with_their_schemas(host: McpHost) -> None:
    async with host.connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    (long,) = (name for name in tools if name.startswith("run_a_workflow"))
    assert len(long) == 64
    workflows = {"run_fail", "run_hello", "run_hold", "run_order", long}
    assert set(tools) == {*workflows, "ask_buyer_x2e_2", "ask_clerk", "ask_sleeper"}
    hello = tools["run_hello"]
    assert (hello.title, hello.description) == ("Say hello", "Greets somebody.")
    assert hello.input_schema["required"] == ["who"]
    assert tools["run_order"].input_schema == {"type": "object", "properties": {}}
    assert tools["ask_clerk"].input_schema["required"] == ["message"]
    assert "status" in hello.output_schema["required"]


async def test_call_of_a_workflow_is_an_ordinary_run_that_verifies(host: McpHost) -> None:
    async with host.connect() as client:
        result = await client.call_tool("run_hello", {"who": "Ada"})
        assert not (await client.call_tool(tool_name(Target("workflow", LONG)), {})).is_error
        long = await client.call_tool("run_hello", {"who": "x" * 20_000})
    assert "x" * 20_000 in text_of(long)
    run = result.structured_content["run_id"]
    assert not result.is_error
    assert result.structured_content["status"] == "completed"
    assert result.structured_content["outputs"]["greeting"] == "Hello Ada"
    assert text_of(result) == f"greeting: Hello Ada\nrun {run} completed"
    assert verify(host.store.journal, run_id=run).ok
    assert host.store.submitter(run) == "local (tester, MCP)"
    assert run in host.command("runs")


async def test_agent_answers_and_goes_on_with_a_conversation(host: McpHost) -> None:
    async with host.connect() as client:
        first = await client.call_tool("ask_clerk", {"message": "Are you there?"})
        conversation = first.structured_content["conversation_id"]
        second = await client.call_tool("ask_clerk", {"message": "Still?", "conversation_id": conversation})
    assert text_of(first) == first.structured_content["response"] == "Yes, sir."
    assert second.structured_content["conversation_id"] == conversation
    assert first.structured_content["trace_id"] != second.structured_content["trace_id"]
    assert verify(host.store.journal, run_id=second.structured_content["trace_id"]).ok


BAD_ARGUMENTS: list[tuple[str, dict[str, Any], str]] = [
    ("run_hello", {}, "who: is required but missing"),
    ("run_hello", {"who": 7}, "who: "),
    ("ask_clerk", {}, "message: is required but missing"),
    ("ask_clerk", {"message": "Hi", "x": 1}, "x: "),
]


async def test_bad_arguments_are_named_and_run_nothing(host: McpHost) -> None:
    before = host.command("runs")
    async with host.connect() as client:
        results = [(await client.call_tool(tool, arguments), fault) for tool, arguments, fault in BAD_ARGUMENTS]
    for result, fault in results:
        assert result.is_error
        assert fault in text_of(result)
        assert str(host.home) not in text_of(result)
    assert host.command("runs") == before


async def test_unknown_tool_is_an_error_of_the_protocol(host: McpHost) -> None:
    from mcp.shared.exceptions import MCPError

    async with host.connect() as client:
        for tool in ("run_nothing", "ask_nobody", "hello", "run_hello@0", ""):
            with pytest.raises(MCPError, match="Unknown tool") as refused:
                await client.call_tool(tool, {})
            assert refused.value.code == -32602, tool


async def test_failed_run_is_an_error_of_the_tool_without_a_trace_of_the_program(host: McpHost) -> None:
    async with host.connect() as client:
        result = await client.call_tool("run_fail", {})
    assert result.is_error
    assert "the warehouse does not answer" in text_of(result)
    assert result.structured_content["error"]["kind"] == "tool_error"
    assert "Traceback" not in str(result)
    assert str(host.home) not in str(result)


@pytest.mark.parametrize(("tool", "arguments"), [("run_hello", {"who": "Ada"}), ("ask_clerk", {"message": "Hi"})])
async def test_progress_grows_to_the_end_of_the_run(host: McpHost, tool: str, arguments: dict[str, str]) -> None:
    heard: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    async with host.connect() as client:
        await client.call_tool(tool, arguments, progress_callback=hear)
        await until(lambda: heard and "finished" in str(heard[-1][1]))
    numbers = [progress for progress, _ in heard]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(
    ("tool", "arguments", "name"),
    [("run_hold", {"name": "hold"}, "hold"), ("ask_sleeper", {"message": "Wait."}, "sleeper")],
)
async def test_cancelled_call_cancels_its_run(host: McpHost, tool: str, arguments: dict[str, str], name: str) -> None:
    async with host.connect() as client:
        call = asyncio.create_task(client.call_tool(tool, arguments))
        await host.begun(name)
        call.cancel()
        run = host.command("runs").split()[0]
        await until(lambda: any(each["kind"] == "run_finished" for each in host.records(run)))
        host.let_go(name)
    assert host.command("runs").split()[:2] == [run, "cancelled"]
    if tool == "run_hold":
        (decision,) = [each for each in host.records(run) if each.get("decision") == "cancel"]
        assert decision["by"] == "local (tester, MCP)"


@pytest.mark.parametrize(("tool", "arguments"), [("run_order", {}), ("ask_buyer_x2e_2", {"message": "Buy ten."})])
async def test_approval_in_a_form_lets_the_call_run_and_is_recorded(
    host: McpHost, tool: str, arguments: dict[str, str]
) -> None:
    person = Person("accept", {"decision": "approve"})
    async with host.connect(person) as client:
        result = await client.call_tool(tool, arguments)
    assert len(person.asked) == 1
    assert 'order {"pieces":10}' in person.asked[0]
    assert not result.is_error
    assert "Ten are on their way." in text_of(result)
    assert host.orders() == ["10"]
    run = result.structured_content.get("run_id") or result.structured_content["trace_id"]
    (decision,) = [each for each in host.records(run) if each.get("decision") == "approve"]
    assert decision["by"] == "local (tester, MCP)"
    assert verify(host.store.journal, run_id=run).ok


@pytest.mark.parametrize(
    ("person", "message"),
    [
        (Person("accept", {"decision": "deny", "message": "We have enough"}), "We have enough"),
        (Person("decline"), "declined at the client"),
    ],
    ids=["deny", "decline"],
)
async def test_denial_reaches_the_model_and_nothing_is_ordered(host: McpHost, person: Person, message: str) -> None:
    async with host.connect(person) as client:
        result = await client.call_tool("run_order", {})
    (decision,) = [each for each in host.records(result.structured_content["run_id"]) if each.get("decision") == "deny"]
    assert decision["message"] == message
    assert result.structured_content["status"] == "completed"
    assert host.orders() == []


@pytest.mark.parametrize(
    "person",
    [None, Person("cancel"), Person("accept", {"decision": "perhaps"}), Person("accept")],
    ids=["nobody", "dismissed", "no-choice", "empty"],
)
async def test_undecided_run_waits_and_the_result_says_how_to_decide(host: McpHost, person: Person | None) -> None:
    async with host.connect(person) as client:
        result = await client.call_tool("run_order", {})
    run = result.structured_content["run_id"]
    assert not result.is_error
    assert result.structured_content["status"] == "waiting"
    assert result.structured_content["waiting"][0]["args"] == {"pieces": 10}
    assert f"`agent-core decide {run} approve|deny`" in text_of(result)
    assert host.orders() == []
    assert "Ten are on their way." in host.command("decide", run, "approve")


async def test_waiting_agent_says_what_waits(host: McpHost) -> None:
    async with host.connect(Person("cancel")) as client:
        result = await client.call_tool("ask_buyer_x2e_2", {"message": "Buy."})
    assert not result.is_error
    assert result.structured_content["waiting"][0]["tool"] == "order"
    assert f"agent-core decide {result.structured_content['trace_id']}" in text_of(result)


async def test_two_calls_of_a_client_run_side_by_side(host: McpHost) -> None:
    async with host.connect() as client:
        calls = [asyncio.create_task(client.call_tool("run_hold", {"name": name})) for name in ("one", "two")]
        await asyncio.gather(host.begun("one"), host.begun("two"))
        for name in ("two", "one"):
            host.let_go(name)
        results = await asyncio.gather(*calls)
    assert [result.structured_content["status"] for result in results] == ["completed", "completed"]


def test_result_of_a_run_whose_workflow_has_changed_since_has_what_the_run_gave() -> None:
    from engine_shim.definition.model import read_definition
    from engine_shim.mcp_server.results import run_result
    from engine_shim.service.run_view import RunView

    node = {"id": "new", "tool": "echo", "config": {"text": "x"}}
    for outputs in ({}, {"other": "{{nodes.new}}"}):
        view = RunView("r", "completed", outputs={"sum": 3}, path=["old"], nodes={"old": "three"})
        result = run_result(view, read_definition({"id": "w", "nodes": [node], "outputs": outputs}))
        assert result.content[0].text == "old: three\nrun r completed"  # type: ignore[union-attr]
        assert result.structured_content["outputs"] == {"sum": 3}  # type: ignore[index]
