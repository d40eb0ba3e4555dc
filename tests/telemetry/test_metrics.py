"""Metrics: those of the conventions by the OpenTelemetry meter, and Prometheus' counts of what runs did."""

import pytest
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics as conventions
from prometheus_client.parser import text_string_to_metric_families

from agent_core.models import create_model
from engine_shim import DefinitionError, Engine
from engine_shim.store.run_store_memory import MemoryRunStore
from engine_shim.telemetry import names
from engine_shim.telemetry.metrics_page import serve_metrics
from engine_shim.telemetry.operations import Source
from engine_shim.telemetry.run_metrics import RunMetrics
from engine_shim.telemetry.tenant_state import TenantState
from support.by_hand import action, final
from support.loopback import chat, serving
from support.told import Told, agent_node, engine_of, flow_of, registry_of

pytestmark = pytest.mark.anyio
REPLIES = [action("stock", article="A-17"), action("broken", article="B-4"), final("There are 12.")]


def samples_of(text: bytes) -> dict[tuple[str, ...], float]:
    """The samples of Prometheus' text by name and label values, those of buckets left out."""
    return {
        (sample.name.removeprefix("agent_core_"), *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if not sample.name.endswith(("_bucket", "_created"))
    }


def test_names_of_metrics_are_those_of_the_conventions() -> None:
    assert names.TOKEN_USAGE == conventions.GEN_AI_CLIENT_TOKEN_USAGE
    assert names.CHAT_DURATION == conventions.GEN_AI_CLIENT_OPERATION_DURATION


async def test_tokens_and_durations_of_what_was_asked() -> None:
    told = Told()
    async with serving(chat(REPLIES[0]), chat(REPLIES[2])) as endpoint:
        model = create_model("openai:gpt-4o-mini", base_url=endpoint.url)
        engine = Engine(registry_of(), store=MemoryRunStore(), model=model, telemetry=told.telemetry)
        result = await engine.run(flow_of(agent_node()))
        await engine.close()
    assert result.status == "completed", result.error
    tokens = {point.attributes["gen_ai.token.type"]: point for point in told.points(names.TOKEN_USAGE)}
    assert {kind: (point.count, point.sum) for kind, point in tokens.items()} == {"input": (2, 24), "output": (2, 6)}
    (asked,) = told.points(names.CHAT_DURATION)
    assert asked.count == 2
    assert asked.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o-mini",
        "gen_ai.response.model": "gpt-4o-mini",
    }
    for metric, attributes in (
        (
            names.TOOL_DURATION,
            {"gen_ai.tool.name": "stock", "gen_ai.tool.type": "function", "gen_ai.agent.name": "clerk"},
        ),
        (names.AGENT_DURATION, {"gen_ai.agent.name": "clerk", "gen_ai.request.model": "gpt-4o-mini"}),
        (names.WORKFLOW_DURATION, {"gen_ai.workflow.name": "desk"}),
    ):
        (point,) = told.points(metric)
        assert (point.count, point.attributes) == (1, attributes)


async def test_tokens_that_are_counted_apart_are_on_spans_and_in_counts() -> None:
    told = Told()
    details = {"prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 20}}
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 30,
        "completion_tokens_details": {"reasoning_tokens": 9},
        **details,
    }
    async with serving(chat(REPLIES[2], usage=usage)) as endpoint:
        model = create_model("openai:gpt-4o-mini", base_url=endpoint.url)
        engine = Engine(registry_of(), store=MemoryRunStore(), model=model, telemetry=told.telemetry)
        await engine.run(flow_of(agent_node()))
        await engine.close()
    (asked,) = [each.attributes for each in told.spans if each.name.startswith("chat ")]
    assert asked is not None
    assert (asked["gen_ai.usage.cache_read.input_tokens"], asked["gen_ai.usage.input_tokens"]) == (60, 100)
    assert asked["gen_ai.usage.cache_creation.input_tokens"] == 20
    assert (asked["gen_ai.usage.reasoning.output_tokens"], asked["gen_ai.usage.output_tokens"]) == (9, 30)
    found = samples_of(told.metrics.write({}))
    parts = {labels[-2]: count for labels, count in found.items() if labels[0] == "token_parts_total"}
    assert parts == {"cached": 60, "cache_write": 20, "reasoning": 9}


async def test_estimated_tokens_are_no_usage() -> None:
    told = Told()
    await engine_of(told, REPLIES).run(flow_of(agent_node()))
    assert told.points(names.TOKEN_USAGE) == []


async def test_counts_are_what_the_runs_did() -> None:
    told = Told()
    done = await engine_of(told, REPLIES).run(flow_of(agent_node()))
    failed = await engine_of(told, [action("stock", article="A-17")]).run(flow_of(agent_node(max_steps=1)))
    assert (done.status, failed.status) == ("completed", "failed")
    found = samples_of(told.metrics.write({"": TenantState(open_runs=2, waiting_runs=1)}))
    usage = [run.outputs["clerk"]["usage"] for run in (done, failed) if "clerk" in run.outputs]
    assert found["runs_total", "", "completed", "", "desk"] == found["runs_total", "", "failed", "", "desk"] == 1
    assert found["run_duration_seconds_count", "", "", "desk"] == 2
    assert found["agent_runs_total", "clerk", "final", "", "desk"] == 1
    assert found["agent_runs_total", "clerk", "max_steps", "", "desk"] == 1
    assert found["agent_steps_sum", "clerk", "", "desk"] == 4
    assert found["agent_steps_count", "clerk", "", "desk"] == 2
    model = "openai:gpt-4o-mini"
    assert found["step_duration_seconds_count", "clerk", model, "", "desk"] == 4
    assert found["model_calls_total", "clerk", model, "success", "", "desk"] == 4
    assert found["tool_calls_total", "clerk", "success", "", "stock", "desk"] == 1
    assert found["tool_calls_total", "clerk", "tool_error", "", "broken", "desk"] == 1
    assert found["tool_duration_seconds_count", "clerk", "", "stock", "desk"] == 1
    assert found["tool_duration_seconds_sum", "clerk", "", "stock", "desk"] > 0
    assert sum(each["input_tokens"] for each in usage) <= found["tokens_total", "clerk", model, "", "input", "desk"]
    assert (found["open_runs", ""], found["waiting_runs", ""]) == (2, 1)


async def test_tokens_counted_are_those_of_the_run() -> None:
    told = Told()
    usage = (await engine_of(told, REPLIES).run(flow_of(agent_node()))).outputs["clerk"]["usage"]
    found = samples_of(told.metrics.write({}))
    for kind in ("input", "output"):
        assert found["tokens_total", "clerk", "openai:gpt-4o-mini", "", kind, "desk"] == usage[f"{kind}_tokens"]


async def test_tenant_sees_its_own_series_alone() -> None:
    told = Told()
    for tenant in ("acme", "globex"):
        engine = Engine(registry_of(), store=MemoryRunStore(), telemetry=told.telemetry.of_tenant(tenant))
        await engine.run(flow_of({"id": "say", "tool": "echo", "config": {"text": "hi"}}, identity=f"of-{tenant}"))
    standing = {"acme": TenantState(), "globex": TenantState()}
    text = told.metrics.write(standing, "acme")
    assert b"acme" in text
    assert b"globex" not in text
    assert b"globex" in told.metrics.write(standing)


def test_labels_are_bounded_and_the_rest_is_counted_together() -> None:
    metrics = RunMetrics(most=3)
    from agent_core.journal.reader import RunFinished
    from engine_shim.telemetry.operations import Ended, Operation, Place

    for number in range(10):
        operation = Operation("invoke_workflow", f"w{number}", Place("flow", 0), None, f"w{number}")
        ended = RunFinished("flow", 1, None, "completed", None, "2026-11-26T10:00:00Z", None, None)
        metrics.end(Ended(operation, ended), Source("r", "acme"))
    found = {key: value for key, value in samples_of(metrics.write({})).items() if key[0] == "runs_total"}
    assert len(found) == 4
    assert found["runs_total", "other", "other", "acme", "other"] == 7


@pytest.mark.parametrize("address", ["9464", ":9464", "localhost:", "localhost:http", "localhost:99999", "..:9464"])
def test_metrics_are_served_at_a_host_that_is_named(address: str) -> None:
    with (
        pytest.raises(DefinitionError, match=r"--metrics: .*name it as HOST:PORT, such as 127.0.0.1:9464"),
        serve_metrics(RunMetrics(), address),
    ):
        pass
