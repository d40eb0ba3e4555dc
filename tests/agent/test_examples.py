"""The examples in a prompt: written by people, legal, and no part of the conversation; none is made of a schema."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson
import pytest

from agent_core import Action, DefinitionError, Final, Plan, parse
from agent_core.models import ModelInfo
from agent_core.prompts.profile import is_small
from agent_core.prompts.render import built_in
from agent_core.protocol.feedback import Feedback
from agent_core.run.prepare import prepare_agent
from support.by_hand import AT, Hand, action, final, look
from support.sentences import english_sentences
from utools import Tool, ToolRegistry, default_registry, tool
from utools.host_policy import HostPolicy
from utools.problems import DefinitionErrors
from utools.schema.config_schema import ConfigSchema
from utools.words.text import translate_example

STOCK = {"user": "How many A-17?", "args": {"q": "A-17"}, "output": {"pieces": 12}, "answer": "12 pieces."}
LANGUAGES = ("en", "zh")


def started(tools: list[Tool], **config: Any) -> Any:
    allowed = config.pop("allowed_tools", [tool.code for tool in tools])
    settings = {"model": "m", "max_steps": 5, "prompt": "Go.", "allowed_tools": allowed, **config}
    return prepare_agent("r", "agent", settings, {}, registry=ToolRegistry(tools), at=AT)


def showing(code: str = "look", *examples: Any, **options: Any) -> Tool:
    """A tool that looks something up, with the examples of its author."""
    made = look(code, **options)
    return Tool(made.code, made.description, made.config_schema, made.execute, made.effect, examples=examples)


def system(body: Any) -> str:
    return str(body["messages"][0]["content"])


# ── those that ship ──────────────────────────────────────────────────────────────────────────────


def blocks(text: str) -> Iterator[list[tuple[str, str]]]:
    """The conversations in a template, each a list of (who speaks, what is said)."""
    said: list[tuple[str, str]] = []
    for line in text.splitlines():
        spoken = re.match("(User|You|用户|你)[:：] ?(.*)", line)
        if spoken is None and said and line and not line.startswith("$"):
            said[-1] = (said[-1][0], f"{said[-1][1]}\n{line}")
        elif spoken is not None:
            who = "user" if spoken[1] in ("User", "用户") else "model"
            if who == "user" and said and isinstance(parse(said[-1][1]), Final):
                yield said
                said = []
            said.append((who, spoken[2]))
    if said:
        yield said


def leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from leaves(each)
    else:
        yield str(value)


def observed(said: list[tuple[str, str]]) -> set[str]:
    """The values in what tools gave, in one conversation."""
    texts = [text for who, text in said if who == "user"]
    return {leaf for text in texts for found in re.findall(r"\{.*?\}", text) for leaf in leaves(orjson.loads(found))}


def fault(said: list[tuple[str, str]]) -> str | None:
    """What no person would write in an example."""
    replies = [parse(text) for who, text in said if who == "model"]
    if not isinstance(replies[-1], Final) or not all(isinstance(each, Action | Plan | Final) for each in replies):
        return "it does not end with an answer, or a reply cannot be read"
    answer, values = str(replies[-1].answer), observed(said)
    if len(replies) == 1:
        return None
    if not any(value in answer for value in values):
        return f"the answer {answer!r} holds nothing of what was observed: {values}"
    made_up = set(re.findall("[0-9]+", answer)) - {
        n for text in (*values, said[0][1]) for n in re.findall("[0-9]+", text)
    }
    return f"the answer has {made_up}, which nothing gave" if made_up else None


SHIPPED = [(language, protocol) for language in LANGUAGES for protocol in ("json", "plan")]


@pytest.mark.parametrize(("language", "protocol"), SHIPPED)
def test_the_answer_of_each_example_that_ships_is_in_its_observations(language: str, protocol: str) -> None:
    found = list(blocks(built_in(language, "examples", protocol)))
    assert [fault(said) for said in found] == [None] * 3


@pytest.mark.parametrize(("language", "protocol"), SHIPPED)
def test_a_success_a_repair_and_an_answer_without_a_tool_are_shown(language: str, protocol: str) -> None:
    success, repair, plain = blocks(built_in(language, "examples", protocol))
    asked = Action if protocol == "json" else Plan
    kinds = [[type(parse(text)) for who, text in said if who == "model"] for said in (success, repair, plain)]
    assert kinds == [[asked, Final], [asked, asked, Final], [Final]]


@pytest.mark.parametrize(
    "reply",
    ["ok", "Lisbon", "7 minutes.", ""],
)
def test_an_example_whose_answer_was_not_observed_is_refused(reply: str) -> None:
    said = [
        ("user", "Lisbon?"),
        ("model", '{"type":"action","tool":"http_request","args":{"url":"Lisbon"}}'),
        ("user", 'The tool returned: {"minutes":5}'),
        ("model", orjson.dumps({"type": "final", "answer": reply}).decode()),
    ]
    assert fault(said) is not None


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("model", ["openai:gpt-4o-mini", "ollama:qwen2.5:0.5b"])
def test_every_model_reads_those_that_ship(model: str, language: str) -> None:
    body = started([look()], model=model, language=language)
    assert built_in(language, "examples").removesuffix("$examples").strip() in system(body)
    assert body["examples"] == []


@pytest.mark.parametrize("prompts", ["small", {}])
def test_no_example_is_made_of_the_schemas_of_tools(prompts: Any) -> None:
    tools = [replace(each, examples=()) for each in default_registry().for_models() if each.effect == "read"]
    body = started(tools, prompts=prompts)
    replies = [line.split(":", 1)[1] for line in system(body).splitlines() if line.startswith("You:")]
    called = {each.tool for reply in replies if isinstance(each := parse(reply), Action)}
    assert called == {"bus", "inn"}
    assert body["examples"] == []


# ── those of tools' authors ──────────────────────────────────────────────────────────────────────


def test_what_a_tools_author_wrote_follows_those_that_ship() -> None:
    shown = system(started([showing("look", STOCK)])).split("Summer.")[1]
    assert 'User: How many A-17?\nYou: {"type":"action","tool":"look","args":{"q":"A-17"}}' in shown
    assert 'You: {"type":"final","answer":"12 pieces."}' in shown


def test_a_small_model_sees_them_as_turns_of_an_invented_past_and_one_without_a_call() -> None:
    body = started([showing("look", STOCK)], prompts="small")
    said = [(message["role"], message["content"]) for message in body["examples"]]
    assert said[0] == ("user", "How many A-17?")
    assert [role for role, _ in said] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert said[-2:] == [("user", "Which season follows spring?"), ("assistant", "Summer.")]
    assert system(body).endswith("The first turns are examples.")
    assert "bus" not in system(body)


def test_three_of_tools_that_only_read_first_are_shown_as_text() -> None:
    tools = [showing("write_it", STOCK, effect="write"), *(showing(code, STOCK, STOCK) for code in "abc")]
    shown = system(started(tools)).split("Summer.")[1]
    assert re.findall('"tool":"(.*?)"', shown) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("codes", "called"),
    [
        ("ab", ["a", "a", "b", "b"]),
        ("abcde", ["a", "a", "b", "b", "c", "c", "d", "e"]),
        ("abcdefghi", ["a", "b", "c", "d", "e", "f", "g", "h"]),
    ],
)
def test_a_small_model_sees_a_second_one_of_a_tool_where_each_has_its_first(codes: str, called: list[str]) -> None:
    body = started([showing(code, STOCK, STOCK, STOCK) for code in codes], prompts="small")
    calls = [call["function"]["name"] for each in body["examples"] for call in each.get("tool_calls", ())]
    assert calls == called


def test_those_of_the_node_stand_alone() -> None:
    body = started([showing("look", STOCK)], prompts="small", examples=[{"user": "Hello?", "answer": "Hello."}])
    assert [message["content"] for message in body["examples"]] == ["Hello?", "Hello."]


def test_those_of_our_own_tools_are_in_the_runs_language_those_of_others_as_they_are_written() -> None:
    foreign = showing("look", {**STOCK, "output": "lamp"})
    ours = [each for each in default_registry().for_models() if each.code == "http_request"]
    body = started([foreign, *ours], prompts="small", language="zh")
    read = [message["content"] for message in body["examples"]]
    assert "https://shop.example/lamp 上的灯多少钱？" in read
    assert "lamp" in read
    assert "春天之后是哪个季节？" in read


def test_the_one_without_a_call_is_in_the_language_of_the_others() -> None:
    body = started([showing("look", STOCK)], prompts="small", language="zh")
    assert [message["content"] for message in body["examples"]][-1] == "Summer."


def test_those_of_built_in_tools_are_for_small_models() -> None:
    ours = [each for each in default_registry().for_models() if each.code == "http_request"]
    shown = system(started([*ours, showing("look", STOCK)])).split("Summer.")[1]
    assert re.findall('"tool":"(.*?)"', shown) == ["look"]


BUILT_IN = [(each, example) for each in default_registry().for_models() for example in each.examples]


@pytest.mark.parametrize(("made", "example"), BUILT_IN, ids=[each.code for each, _ in BUILT_IN])
def test_an_example_of_a_built_in_tool_is_legal_and_gives_what_the_tool_could(made: Tool, example: Any) -> None:
    assert ToolRegistry([made])
    if made.output_schema is not None:
        assert ConfigSchema(made.output_schema, foreign=True).faults(example["output"]) == []
    words = {word for leaf in leaves(example["output"]) for word in leaf.split()}
    assert made.effect == "write" or any(word in example["answer"] for word in words)
    in_chinese = translate_example(example, "zh")
    assert english_sentences(f"{in_chinese['user']} {in_chinese['answer']}") == []


def test_an_example_of_a_tools_author_that_the_host_sets_otherwise_is_left_out() -> None:
    preset = HostPolicy(presets={"look": {"q": "B-2"}})
    registry = ToolRegistry([showing("look", STOCK)], policy=preset)
    settings = {"model": "m", "max_steps": 5, "prompt": "Go.", "allowed_tools": ["look"]}
    assert "A-17" not in system(prepare_agent("r", "agent", settings, {}, registry=registry, at=AT))


def test_what_the_workflows_author_refuses_or_sets_is_not_shown() -> None:
    narrowed = {"tool": "look", "args": {"properties": {"q": {"pattern": "^never$"}}}}
    preset = {"tool": "look", "preset": {"q": "B-2"}}
    for entry in (narrowed, preset):
        assert "A-17" not in system(started([showing("look", STOCK)], allowed_tools=[entry]))


@pytest.mark.parametrize("language", LANGUAGES)
def test_in_plan_mode_they_are_plans(language: str) -> None:
    shown = system(started([showing("look", STOCK)], mode="plan", language=language))
    assert '"tool":"look","parameters":{"q":"A-17"}' in shown


def test_none_is_shown_under_native_function_calling() -> None:
    body = started([showing("look", STOCK)], protocol="tools")
    assert body["examples"] == []
    assert "A-17" not in system(body)


@pytest.mark.parametrize(
    ("example", "where"),
    [
        ({**STOCK, "args": {"q": 7}}, "tools.look.examples/0/args"),
        ({**STOCK, "args": {}}, "tools.look.examples/0/args"),
        ({"args": {"q": "A-17"}, "answer": "12"}, "tools.look.examples/0"),
        ({**STOCK, "user": None}, "tools.look.examples/0"),
        ("How many?", "tools.look.examples/0"),
    ],
    ids=["wrong type", "missing", "no output", "no request", "a text"],
)
def test_an_example_that_no_model_could_follow_is_refused(example: Any, where: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        ToolRegistry([showing("look", example)])
    assert refused.value.where == where


def test_an_example_with_what_the_author_sets_is_refused() -> None:
    schema = {
        "type": "object",
        "properties": {"q": {"type": "string"}, "root": {"type": "string", "x-author": True}},
        "required": ["q", "root"],
    }
    assert ToolRegistry([showing("look", STOCK, schema=schema)])
    with pytest.raises(DefinitionError, match="shown to no model"):
        ToolRegistry([showing("look", {**STOCK, "args": {"q": "x", "root": "/home"}}, schema=schema)])


def test_the_decorator_takes_them() -> None:
    @tool(effect="read", examples=[{"user": "Of 3?", "args": {"n": 3}, "output": 9, "answer": "9."}])
    def square(n: int) -> int:
        """Square a number."""
        return n * n

    assert '"tool":"square","args":{"n":3}' in system(started([square]))


# ── those of the node ────────────────────────────────────────────────────────────────────────────

OWN = {"user": "How many A-17?", "calls": [{"tool": "look", "args": {"q": "A-17"}, "output": "12"}], "answer": "12."}


def test_those_of_the_node_replace_all_others() -> None:
    shown = system(started([showing("look", STOCK)], examples=["mine", OWN]))
    assert "mine\n\nUser: How many A-17?" in shown
    assert "bus" not in shown
    assert shown.count("A-17") == 2
    assert "bus" not in system(started([look()], examples=[]))


@pytest.mark.parametrize("config", [{"prompts": "small"}, {"protocol": "tools"}], ids=["small", "native"])
def test_a_small_model_and_a_native_one_see_those_of_the_node_as_turns(config: Any) -> None:
    body = started([look()], examples=[OWN], **config)
    assert [message["role"] for message in body["examples"]] == ["user", "assistant", "tool", "assistant"]


def test_an_example_of_another_shape_is_a_fault_of_the_definition() -> None:
    with pytest.raises(DefinitionErrors, match="examples/0") as refused:
        started([look()], examples=[{"user": "How many?", "call": {}}])
    assert "calls" in str(refused.value) or "answer" in str(refused.value)


def test_turns_are_sent_before_the_conversation_and_are_no_part_of_it() -> None:
    history = [{"role": "user", "content": "OLD"}, {"role": "assistant", "content": "ANSWER"}]
    run = Hand([action(), final()], messages_json=history, prompt="NEW", prompts="small", examples=[OWN])
    sent = [message["content"] for message in run.questions[0]]
    assert "The first turns are examples." in sent[0]
    assert sent[1] == "How many A-17?"
    assert sent[-3:] == ["OLD", '{"type":"final","answer":"ANSWER"}', "NEW"]
    assert "A-17" not in str(run.output["messages_json"])
    assert "A-17" not in str(run.started["sources"])


def test_turns_are_the_first_to_go_when_room_is_short() -> None:
    run = Hand(
        [final()],
        messages_json=[{"role": "user", "content": "w" * 1000}],
        prompt="NEW",
        prompts="small",
        examples=[OWN],
        max_input_tokens=420,
    )
    assert run.asked[0].cut is not None
    sent = str(run.questions[0])
    assert "A-17" not in sent
    assert "w" * 1000 in sent


# ── small models ─────────────────────────────────────────────────────────────────────────────────


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
    body = started([look()], model=model, examples=[OWN])
    assert bool(body["examples"]) == small


def test_a_small_model_is_told_by_what_is_known_of_it() -> None:
    settings = {"model": "m", "max_steps": 5, "prompt": "Go.", "allowed_tools": [], "examples": [OWN]}
    for small in (True, False, None):
        known = ModelInfo("m", small=small)
        body = prepare_agent(
            "r", "agent", settings, {}, registry=ToolRegistry([]), at=AT, info=lambda *_, known=known: known
        )
        assert bool(body["examples"]) == bool(small)


@pytest.mark.parametrize(("prompts", "told"), [("small", True), ({}, False)])
def test_a_small_model_reads_the_request_again_with_each_observation(prompts: Any, told: bool) -> None:
    run = Hand([action(), final()], prompt="What is 17 times 23?" + "!" * 400, prompts=prompts)
    observation = run.questions[-1][-1]["content"]
    assert ('The request was: "What is 17 times 23?' in observation) is told
    assert len(observation) < 600


# ── what else a small model gets ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("config", "sent"),
    [
        ({"prompts": "small"}, 0),
        ({"model": "ollama:qwen2.5:0.5b", "protocol": "tools"}, 0),
        ({"prompts": "small", "temperature": 0.4}, 0.4),
        ({"prompts": "small", "temperature": None}, None),
        ({}, 0.7),
    ],
)
def test_a_small_model_is_asked_at_temperature_0_where_its_author_gives_none(config: Any, sent: float | None) -> None:
    body = started([look()], **config)
    assert body["options"].get("temperature") == sent
    assert body["config"]["temperature"] == sent


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_small_model_reads_the_request_again_when_a_tool_fails(language: str) -> None:
    body = started([look()], prompts="small", language=language)
    failed = Feedback(body["texts"], request="Is A-17 there?").tool_error("look", "no such article")
    assert "Is A-17 there?" in failed
    assert "no such article" in failed
    own = started([look()], prompts={"tool_error": "MINE $error"}, model="ollama:qwen2.5:0.5b")
    assert Feedback(own["texts"], request="Is A-17 there?").tool_error("look", "gone") == "MINE gone"
