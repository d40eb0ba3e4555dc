"""The examples in a prompt: made from the run's own tools, legal, short, and no part of the conversation."""

from typing import Any

import pytest

from agent_core import Final, Plan, parse
from agent_core.loop.plan_check import judge_plan
from agent_core.loop.references import GRAMMARS
from agent_core.models import ModelInfo
from agent_core.origins.proof import proof_of
from agent_core.prompts.examples import write_examples
from agent_core.prompts.profile import is_small
from agent_core.prompts.samples import sample
from agent_core.run.prepare import prepare_agent
from agent_core.words.catalogue import ENGLISH
from support.by_hand import AT, Hand, action, final, look
from utools import Tool, ToolRegistry, default_registry
from utools.schema.compiled import compile_schema

SAMPLES: list[tuple[Any, Any]] = [
    ({"type": "string"}, "Lisbon"),
    ({"type": "string", "pattern": "^[0-9]+$"}, "17"),
    ({"type": "string", "maxLength": 1}, "a"),
    ({"type": "string", "enum": ["GET", "POST"]}, "GET"),
    ({"type": "string", "examples": ["A-7"]}, "A-7"),
    ({"type": "string", "default": "data"}, "data"),
    ({"const": 5}, 5),
    ({"type": "integer", "minimum": 10}, 10),
    ({"type": "number", "maximum": 1}, 1),
    ({"type": ["null", "string"]}, None),
    ({"type": "boolean"}, True),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [2, 2]),
    ({"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}, {"a": 2}),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, 2),
    ({"properties": {"a": {"type": "integer"}}, "anyOf": [{"required": ["a"]}]}, {"a": 2}),
    ({"$ref": "#/$defs/N", "$defs": {"N": {"type": "integer"}}}, 2),
]


@pytest.mark.parametrize(("schema", "value"), SAMPLES, ids=[str(schema) for schema, _ in SAMPLES])
def test_a_sample_is_of_the_schemas_kind(schema: Any, value: Any) -> None:
    assert sample(schema) == value
    assert not compile_schema(schema).faults(value)


def test_a_schema_that_never_ends_has_a_sample() -> None:
    assert sample({"properties": {"a": {"$ref": "#"}}, "required": ["a"]}) is not None


def started(tools: list[Tool], **config: Any) -> Any:
    allowed = config.pop("allowed_tools", [tool.code for tool in tools])
    settings = {"model": "m", "max_steps": 5, "prompt": "Go.", "allowed_tools": allowed, "prompts": "small", **config}
    return prepare_agent("r", "agent", settings, {}, registry=ToolRegistry(tools), at=AT)


def calls(messages: list[Any]) -> list[str]:
    return [call["function"]["name"] for message in messages for call in message.get("tool_calls", ())]


def test_three_of_the_runs_own_tools_are_shown_and_an_answer_without_any() -> None:
    tools = [look("write_it", effect="write"), look("a"), look("b"), look("c")]
    shown = started(tools)["examples"]
    assert [message["role"] for message in shown[:2]] == ["user", "assistant"]
    assert calls(shown) == ["c", "a", "b", "a"]


@pytest.mark.parametrize("code", [tool.code for tool in default_registry().all()])
def test_every_call_that_is_shown_would_be_let_through(code: str) -> None:
    tool = default_registry().get(code)
    policy: Any = {
        "schema": tool.config_schema,
        "visible": tool.config_schema,
        "hidden": [],
        "preset": {},
        "args": None,
        "effect": "read",
        "description": tool.description,
    }
    shown = write_examples({code: policy}, {code: tool.output_schema}, ENGLISH)
    assert len(str(shown)) < 1500


def test_what_the_author_refuses_is_not_shown() -> None:
    narrowed = {"tool": "look", "args": {"properties": {"q": {"pattern": "^never$"}}}}
    assert calls(started([look()], allowed_tools=[narrowed])["examples"]) == []


def test_what_the_author_sets_is_not_shown() -> None:
    schema = {
        "type": "object",
        "properties": {"q": {"type": "string"}, "root": {"type": "string", "x-author": True}},
        "required": ["q", "root"],
        "examples": [{"q": "x", "root": "/home"}],
    }
    body = started([look(schema=schema)], allowed_tools=[{"tool": "look", "preset": {"root": "data"}}])
    assert body["examples"][3]["tool_calls"][0]["function"]["arguments"] == '{"q":"x"}'
    assert "/home" not in str((body["messages"], body["options"], body["tools"]["look"]["visible"]))


@pytest.mark.parametrize(
    "config",
    [{"examples": []}, {"examples": ["mine"]}, {"prompts": {"examples": "mine"}}, {"protocol": "tools"}],
    ids=["none", "config", "prompts", "native"],
)
def test_there_are_none_where_the_author_gives_some_or_calls_are_native(config: Any) -> None:
    assert started([look()], **config)["examples"] == []


@pytest.mark.parametrize(("language", "you"), [("en", "You: "), ("zh", "你：")])
def test_in_plan_mode_they_are_plans_that_would_be_carried_out(language: str, you: str) -> None:
    run = Hand([final()], tools=[look("a"), look("b")], mode="plan", language=language, allowed_tools=["a", "b"])
    system = run.questions[0][0]["content"]
    shown = [parse(line.removeprefix(you)) for line in system.splitlines() if line.startswith(you)]
    assert [type(each) for each in shown] == [Final, Plan, Final]
    (made,) = [each for each in shown if isinstance(each, Plan)]
    tools, proof = run.started["tools"], proof_of(run.started)
    assert [step.tool for step in made.steps] == ["b", "a"]
    assert judge_plan(made.steps, tools, proof, ENGLISH, grammar=GRAMMARS[2], calls_left=2, edited=False) is None


def test_they_are_sent_before_the_conversation_and_are_no_part_of_it() -> None:
    history = [{"role": "user", "content": "OLD"}, {"role": "assistant", "content": "ANSWER"}]
    run = Hand([action(), final()], messages_json=history, prompt="NEW", prompts="small")
    sent = [message["content"] for message in run.questions[0]]
    assert "The first turns are examples." in sent[0]
    assert sent[1] == "Which season follows spring?"
    assert sent[-3:] == ["OLD", '{"type":"final","answer":"ANSWER"}', "NEW"]
    assert "spring" not in str(run.output["messages_json"])
    assert "spring" not in str(run.started["sources"])


def test_they_are_the_first_to_go_when_room_is_short() -> None:
    run = Hand(
        [final()],
        messages_json=[{"role": "user", "content": "w" * 1000}],
        prompt="NEW",
        prompts="small",
        max_input_tokens=420,
    )
    assert run.asked[0].cut is not None
    sent = str(run.questions[0])
    assert "spring" not in sent
    assert "w" * 1000 in sent


@pytest.mark.parametrize(
    ("model", "small"),
    [
        ("ollama:qwen2.5:0.5b", True),
        ("local:SmolLM2-135M-Instruct.Q4_1.gguf", True),
        ("openrouter:qwen/qwen2.5-3b-instruct", True),
        ("vllm:Qwen2.5-7B-Instruct", False),
        ("openrouter:meta-llama/llama-3.3-70b-instruct", False),
        ("openai:gpt-4o-mini", False),
        ("gemini:gemini-3-flash", False),
        ("vllm:mixtral-8x7b", False),
    ],
)
def test_a_small_model_is_told_by_its_name(model: str, small: bool) -> None:
    assert is_small(model) == small
    body = started([look()], model=model, prompts={})
    assert bool(body["examples"]) == small


def test_a_small_model_is_told_by_what_is_known_of_it() -> None:
    settings = {"model": "m", "max_steps": 5, "prompt": "Go.", "allowed_tools": []}
    for small in (True, False, None):
        known = ModelInfo("m", small=small)
        body = prepare_agent(
            "r", "agent", settings, {}, registry=ToolRegistry([]), at=AT, info=lambda *_, known=known: known
        )
        assert bool(body["examples"]) == bool(small)


@pytest.mark.parametrize(("language", "speaker"), [("en", "You: "), ("zh", "你：")])
def test_other_models_read_them_in_the_system_text(language: str, speaker: str) -> None:
    body = started([look("a"), look("b")], prompts={}, language=language)
    assert body["examples"] == []
    shown = body["messages"][0]["content"].splitlines()
    replies = [parse(line.removeprefix(speaker)) for line in shown if line.startswith(speaker)]
    assert [type(reply).__name__ for reply in replies] == ["Final", "Action", "Action", "Final"]


@pytest.mark.parametrize(("prompts", "told"), [("small", True), ({}, False)])
def test_a_small_model_reads_the_request_again_with_each_observation(prompts: Any, told: bool) -> None:
    run = Hand([action(), final()], prompt="What is 17 times 23?" + "!" * 400, prompts=prompts)
    observation = run.questions[-1][-1]["content"]
    assert ('The request was: "What is 17 times 23?' in observation) is told
    assert len(observation) < 600
