"""Spans: names, kinds and attributes of the semantic conventions, the hierarchy, errors, and content by opt-in."""

import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as conventions
from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE
from opentelemetry.trace import SpanKind, StatusCode

from agent_core.models import create_model
from engine_shim import Engine
from engine_shim.store.run_store_memory import MemoryRunStore
from engine_shim.telemetry import names
from engine_shim.telemetry.telemetry import Telemetry
from support.by_hand import action, final
from support.loopback import chat, serving
from support.told import Told, agent_node, engine_of, flow_of, ids_of, registry_of

pytestmark = pytest.mark.anyio
REPLIES = [action("stock", article="A-17"), final("There are 12.")]
CONVENTIONS = {value for name, value in vars(conventions).items() if name.startswith("GEN_AI_")}


@pytest.fixture
def told() -> Told:
    return Told()


async def run(told: Told, definition: dict[str, Any], replies: Any = REPLIES, **external: Any) -> Any:
    return await engine_of(told, replies).run(definition, external=external)


def test_names_are_those_of_the_conventions() -> None:
    ours = {value for value in vars(names).values() if isinstance(value, str) and value.startswith("gen_ai.")}
    metrics = {value for name, value in vars(names).items() if name.endswith(("_DURATION", "TOKEN_USAGE"))}
    assert ours - metrics <= CONVENTIONS
    assert set(names.REQUEST_OPTIONS.values()) <= CONVENTIONS
    assert names.ERROR_TYPE == ERROR_TYPE


async def test_agent_in_a_workflow_gives_a_tree_of_spans(told: Told) -> None:
    result = await run(told, flow_of(agent_node()))
    assert [(each.name, each.kind) for each in told.spans] == [
        ("chat gpt-4o-mini", SpanKind.CLIENT),
        ("execute_tool stock", SpanKind.INTERNAL),
        ("chat gpt-4o-mini", SpanKind.CLIENT),
        ("invoke_agent clerk", SpanKind.INTERNAL),
        ("invoke_workflow desk", SpanKind.INTERNAL),
    ]
    assert told.tree() == {
        "invoke_workflow desk": None,
        "invoke_agent clerk": "invoke_workflow desk",
        "chat gpt-4o-mini": "invoke_agent clerk",
        "execute_tool stock": "invoke_agent clerk",
    }
    assert {ids_of(each)[0] for each in told.spans} == {told.span("invoke_workflow desk").context.trace_id}
    for each in told.spans:
        assert each.attributes is not None
        assert each.attributes["agent_core.run.id"] == result.run_id
        assert each.attributes["gen_ai.operation.name"] == each.name.split()[0]
        assert {"agent_core.strand", "agent_core.n"} <= set(each.attributes)
        assert {name for name in each.attributes if name.startswith("gen_ai.")} <= CONVENTIONS
        assert each.status.status_code is StatusCode.UNSET


async def test_span_lies_within_that_of_its_parent(told: Told) -> None:
    await run(told, flow_of(agent_node()))
    agent, call = told.span("invoke_agent clerk"), told.span("execute_tool stock")
    assert all(each.end_time >= each.start_time for each in told.spans)
    assert agent.start_time <= call.start_time  # type: ignore[operator]


async def test_usage_is_on_chat_spans_only(told: Told) -> None:
    result = await run(told, flow_of(agent_node()))
    usage = result.outputs["clerk"]["usage"]
    counted = [each.attributes or {} for each in told.spans if any("usage" in name for name in each.attributes or {})]
    assert len(counted) == 2
    assert {each["gen_ai.operation.name"] for each in counted} == {"chat"}
    assert sum(each["gen_ai.usage.input_tokens"] for each in counted) == usage["input_tokens"]
    assert sum(each["gen_ai.usage.output_tokens"] for each in counted) == usage["output_tokens"]


async def test_attributes_of_each_operation(told: Told) -> None:
    await run(told, flow_of(agent_node(temperature=0.5, max_output_tokens=100), version="7"))
    asked = told.spans[0].attributes or {}
    assert asked["gen_ai.provider.name"] == conventions.GenAiProviderNameValues.OPENAI.value
    assert asked["gen_ai.request.model"] == asked["gen_ai.response.model"] == "gpt-4o-mini"
    assert (asked["gen_ai.request.temperature"], asked["gen_ai.request.max_tokens"]) == (0.5, 100)
    assert asked["gen_ai.response.finish_reasons"] == ("stop",)
    assert asked["agent_core.step"] == 1
    call = told.attributes("execute_tool stock")
    assert (call["gen_ai.tool.name"], call["gen_ai.tool.type"], call["gen_ai.agent.name"]) == (
        *("stock", "function"),
        "clerk",
    )
    assert call["gen_ai.tool.call.id"].startswith("call_")
    agent = told.attributes("invoke_agent clerk")
    assert (agent["gen_ai.agent.name"], agent["agent_core.finish_reason"], agent["agent_core.steps"]) == (
        *("clerk", "final"),
        2,
    )
    workflow = told.attributes("invoke_workflow desk")
    assert (workflow["gen_ai.workflow.name"], workflow["agent_core.workflow.version"]) == ("desk", "7")


async def test_nested_agent_lies_under_the_call_that_made_it(told: Told) -> None:
    preset = {"model": "openai:gpt-4o", "max_steps": 3, "allowed_tools": ["stock"]}
    node = agent_node(allowed_tools=[{"tool": "agent_core", "preset": preset}])

    inner = iter([action("stock", article="A-17"), final("12")])
    outer = iter([action("agent_core", prompt="Count."), final("done")])
    seen: list[Any] = []

    def reply(messages: Any) -> str:
        seen.append(messages)
        return next(outer) if len(seen) in (1, 4) else next(inner)

    await run(told, flow_of(node), reply)
    assert told.tree() == {
        "invoke_workflow desk": None,
        "invoke_agent clerk": "invoke_workflow desk",
        "chat gpt-4o-mini": "invoke_agent clerk",
        "execute_tool agent_core": "invoke_agent clerk",
        "invoke_agent agent_core": "execute_tool agent_core",
        "chat gpt-4o": "invoke_agent agent_core",
        "execute_tool stock": "invoke_agent agent_core",
    }


async def test_invoked_workflow_lies_under_its_workflow(told: Told, tmp_path: Path) -> None:
    inner = flow_of({"id": "say", "tool": "echo", "config": {"text": "hi"}}, identity="inner")
    (tmp_path / "inner.json").write_text(json.dumps(inner))
    node = {"id": "sub", "tool": "invoke_workflow", "config": {"workflow": str(tmp_path / "inner.json"), "inputs": {}}}
    result = await run(told, flow_of(node, identity="outer"))
    assert result.status == "completed", result.error
    assert told.tree() == {
        "invoke_workflow outer": None,
        "invoke_workflow inner": "invoke_workflow outer",
        "execute_tool echo": "invoke_workflow inner",
    }
    assert "gen_ai.tool.call.id" not in told.attributes("execute_tool echo")


async def test_items_and_branches_lie_under_their_workflow(told: Told) -> None:
    items = {"id": "each", "tool": "stock", "foreach": "{{external.articles}}", "config": {"article": "{{item}}"}}
    left = {"id": "left", "tool": "echo", "config": {"text": "{{nodes.each.results.0.article}}"}}
    right = agent_node(prompt="{{nodes.each.results.0.article}}")
    result = await run(told, flow_of(items, left, right), [final("ok")], articles=["A", "B", "C"])
    assert result.status == "completed", result.error
    workflow = told.span("invoke_workflow desk").context.span_id
    calls = [each for each in told.spans if each.name == "execute_tool stock"]
    assert len(calls) == len({ids_of(each) for each in calls}) == 3
    assert {each.parent.span_id for each in calls if each.parent} == {workflow}
    assert told.tree()["execute_tool echo"] == told.tree()["invoke_agent clerk"] == "invoke_workflow desk"


async def test_parallel_calls_of_an_agent_lie_under_it(told: Told) -> None:
    function = {"name": "stock", "arguments": '{"article":"A"}'}
    calls = [{"id": f"c{n}", "type": "function", "function": function} for n in (1, 2)]
    async with serving(chat(None, tool_calls=calls, finish_reason="tool_calls"), chat("There are 12.")) as endpoint:
        model = create_model("openai:gpt-4o-mini", base_url=endpoint.url)
        engine = Engine(registry_of(), store=MemoryRunStore(), model=model, telemetry=told.telemetry)
        result = await engine.run(flow_of(agent_node(protocol="tools")))
        await engine.close()
    assert result.status == "completed", result.error
    agent = told.span("invoke_agent clerk").context.span_id
    made = [each for each in told.spans if each.name == "execute_tool stock"]
    assert len(made) == 2
    assert {each.parent.span_id for each in made if each.parent} == {agent}


def plan(*tools: str) -> str:
    steps = [
        {"step": n, "description": "d", "tool": tool, "parameters": {"article": "A"}} for n, tool in enumerate(tools, 1)
    ]
    return json.dumps({"type": "plan", "steps": steps})


async def test_planning_is_a_span_around_its_questions(told: Told) -> None:
    replies = ["no plan", plan("stock"), final("12")]
    result = await run(told, flow_of(agent_node(mode="plan")), replies)
    assert result.status == "completed", result.error
    planning, agent = told.span("plan clerk"), told.span("invoke_agent clerk")
    assert (planning.parent and planning.parent.span_id) == agent.context.span_id
    parents = [each.parent and each.parent.span_id for each in told.spans if each.name == "chat gpt-4o-mini"]
    assert parents == [planning.context.span_id, planning.context.span_id, agent.context.span_id]
    assert told.tree()["execute_tool stock"] == "invoke_agent clerk"


async def test_planning_anew_is_a_span_of_its_own(told: Told) -> None:
    replies = [plan("broken"), plan("stock"), final("12")]
    node = agent_node(mode="plan", plan={"on_failure": "replan"})
    result = await run(told, flow_of(node), replies)
    assert result.status == "completed", result.error
    plannings = [each for each in told.spans if each.name == "plan clerk"]
    assert len({ids_of(each) for each in plannings}) == 2


async def test_failures_are_errors_with_their_kind(told: Told) -> None:
    result = await run(told, flow_of(agent_node(max_repairs=0)), [action("broken", article="A-17")])
    assert result.status == "failed"
    for name, kind in (
        ("execute_tool broken", "tool_error"),
        ("invoke_agent clerk", "tool_error"),
        ("invoke_workflow desk", result.error["kind"]),
    ):
        assert told.span(name).status.status_code is StatusCode.ERROR
        assert told.attributes(name)["error.type"] == kind
    assert "A-17" not in "".join(str(each.status.description) for each in told.spans)


async def test_model_that_cannot_be_asked_is_an_error_of_chat(told: Told) -> None:
    await run(told, flow_of(agent_node()), [])
    question = told.span("chat gpt-4o-mini")
    assert question.status.status_code is StatusCode.ERROR
    assert (question.attributes or {})["error.type"] == "model_error"
    assert "gen_ai.usage.input_tokens" not in (question.attributes or {})


async def test_content_is_told_by_opt_in_only() -> None:
    silent, open_ = Told(), Told(content=True)
    for told in (silent, open_):
        await run(told, flow_of(agent_node(system_prompt="You count.", prompt="How many A-17?")))
    shown = json.dumps([dict(each.attributes or {}) for each in silent.spans])
    assert "A-17" not in shown
    assert "There are 12." not in shown
    assert "You count." not in shown
    agent, call = open_.attributes("invoke_agent clerk"), open_.attributes("execute_tool stock")
    assert "How many A-17?" in agent["gen_ai.input.messages"]
    assert "You count." in agent["gen_ai.system_instructions"]
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": "There are 12."}], "finish_reason": "stop"}]
    assert json.loads(agent["gen_ai.output.messages"]) == answer
    assert json.loads(call["gen_ai.tool.call.arguments"]) == {"article": "A-17"}
    assert json.loads(call["gen_ai.tool.call.result"]) == {"article": "A-17", "pieces": 12}
    last = [each.attributes or {} for each in open_.spans if each.name == "chat gpt-4o-mini"][-1]
    assert "pieces" in last["gen_ai.input.messages"]
    assert json.loads(last["gen_ai.output.messages"])[0]["parts"][0]["content"] == final("There are 12.")


async def test_secret_is_redacted_in_content_too() -> None:
    key = "sk-proj-0123456789abcdefghijABCDEFGHIJ0123456789"
    told = Told(content=True)
    await run(told, flow_of(agent_node(prompt=f"Use {key}")), [action("stock", article=key), final(key)])
    assert key not in json.dumps([dict(each.attributes or {}) for each in told.spans])


@pytest.mark.parametrize(("value", "wanted"), [("true", True), ("SPAN_ONLY", True), ("false", False), ("", False)])
def test_the_variable_of_the_conventions_opts_in(value: str, wanted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value)
    assert Telemetry().wants_content is wanted
