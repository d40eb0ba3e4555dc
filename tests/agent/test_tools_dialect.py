"""Native function calling: what goes over the wire, what is read of it, and calls side by side."""

import asyncio
import re
from typing import Any

import orjson
import pytest

from agent_core import (
    Approve,
    DefinitionError,
    Deny,
    Edit,
    MemoryJournal,
    ProtocolError,
    Skip,
    replay,
    run_agent,
    verify,
)
from agent_core.effects import Cancelled, Failed, Suspended
from agent_core.loop.run_state import RunState
from agent_core.models import ScriptedModel
from agent_core.protocol.argument_names import own_names
from agent_core.protocol.tools_dialect import function_name
from support.by_hand import AT, Hand, Q, action, broke, calls, did, final, look, said, spoken
from utools import Tool, ToolContext, ToolRegistry

NATIVE: dict[str, Any] = {"protocol": "tools"}


def native(replies: list[Any], **config: Any) -> Hand:
    """A run in this dialect; a text is said as it is."""
    return Hand([said(reply) if isinstance(reply, str) else reply for reply in replies], **NATIVE, **config)


def one(arguments: str, name: str = "look") -> Any:
    """A reply with one call, its arguments as they came."""
    return said("")._replace(calls=[{"name": name, "arguments": arguments}])


# ── the wire ──────────────────────────────────────────────────────────────────────────────────────


def test_a_call_and_its_answer_travel_in_the_vendors_own_fields() -> None:
    run = native([calls(("look", {"q": "x"}), thought="I look."), "Seen."], act=[did({"n": 1})])
    own, heard = run.questions[1][-2:]
    (call,) = own.pop("tool_calls")
    assert own == {"role": "assistant", "content": "I look."}
    assert call["function"] == {"name": "look", "arguments": '{"q":"x"}'}
    assert heard == {"role": "tool", "content": '{"n":1}', "tool_call_id": call["id"]}
    assert run.output["trace"][0]["thought"] == "I look."
    assert run.output["final_answer"] == "Seen."


def test_a_call_without_words_has_no_content() -> None:
    run = native([calls(("look", {"q": "x"})), "Seen."])
    assert run.questions[1][-2]["content"] is None


def test_the_tools_go_as_functions_with_all_that_a_model_may_know() -> None:
    schema = {**Q, "properties": {**Q["properties"], "root": {"type": "string", "x-author": True}}}
    run = native([final()], tools=[look("mcp.files.read", schema=schema)])
    (function,) = run.asked[0].options["tools"]
    assert function["function"]["name"] == "mcp__files__read"
    assert function["function"]["description"] == "Does mcp.files.read."
    assert list(function["function"]["parameters"]["properties"]) == ["q"]
    assert "step_schema" not in run.asked[0].options
    assert "look(" not in run.questions[0][0]["content"]


A, B = (
    {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "string"}}, "required": ["kind", "x"]},
    {"type": "object", "properties": {"kind": {"const": "b"}, "y": {}}, "required": ["kind"]},
)
KIND = {"anyOf": [{"const": "a"}, {"const": "b"}]}
ROOTS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "objects": ({"type": "object", "anyOf": [A, B]}, {"kind": KIND, "x": {"type": "string"}, "y": {}}, ["kind"]),
    "references": (
        {"type": "object", "oneOf": [{"$ref": "#/$defs/A"}, B], "$defs": {"A": A}},
        {"kind": KIND, "x": {"type": "string"}, "y": {}},
        ["kind"],
    ),
    "all of them": ({"allOf": [A, {"properties": {"z": {}}}]}, {**A["properties"], "z": {}}, ["kind", "x"]),
    "a reference": (
        {"$ref": "#/definitions/A", "$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"A": A}},
        A["properties"],
        ["kind", "x"],
    ),
    "a reference to alternatives": (
        {"type": "object", "$ref": "#/$defs/C", "$defs": {"A": A, "C": {"$ref": "#/$defs/D"}, "D": {"anyOf": [A, B]}}},
        {"kind": KIND, "x": {"type": "string"}, "y": {}},
        ["kind"],
    ),
    "a reference beside properties": (
        {"properties": {"z": {}}, "required": ["z"], "$ref": "#/$defs/A", "$defs": {"A": A}},
        {"z": {}, **A["properties"]},
        ["z", "kind", "x"],
    ),
    "parts of parts": (
        {
            "properties": {"z": {}},
            "$ref": "#/$defs/C",
            "$defs": {"C": {"allOf": [{"$ref": "#/$defs/D"}], "properties": {"c": {}}}, "D": {"allOf": [A]}},
        },
        {"z": {}, "c": {}, **A["properties"]},
        ["kind", "x"],
    ),
    "alternatives in a part": (
        {"allOf": [{"properties": {"z": {}}}, {"anyOf": [{"$ref": "#/$defs/A"}, B]}], "$defs": {"A": {"allOf": [A]}}},
        {"kind": KIND, "x": {"type": "string"}, "y": {}, "z": {}},
        ["kind"],
    ),
    "what each requires": (
        {"properties": {"a": {}, "b": {}, "c": {}}, "required": ["c"], "anyOf": [{"required": ["a"]}, True]},
        {"a": {}, "b": {}, "c": {}},
        ["c"],
    ),
    "dependencies": (
        {"properties": {"a": {}, "b": {}}, "dependentSchemas": {"a": {"properties": {"b": False}}}, "not": {}},
        {"a": {}, "b": {}},
        [],
    ),
}


@pytest.mark.parametrize(("schema", "properties", "required"), ROOTS.values(), ids=ROOTS)
def test_parameters_have_no_alternatives_at_their_root(
    schema: dict[str, Any], properties: dict[str, Any], required: list[str]
) -> None:
    """OpenAI refuses them there: `schema must have type 'object' and not have 'oneOf'/'anyOf'/… at the top level`."""
    tool = Tool("pick", "Picks.", schema, execute=nothing, effect="read", foreign=True)
    run = Hand([said("done")], **NATIVE, tools=[tool])
    (function,) = run.asked[0].options["tools"]
    parameters = function["function"]["parameters"]
    assert parameters["type"] == "object"
    assert (parameters["properties"], parameters["required"]) == (properties, required)
    assert not {"anyOf", "oneOf", "allOf", "not", "enum", "dependentSchemas", "$ref"} & parameters.keys()


def test_each_array_names_its_items() -> None:
    """OpenAI refuses all tools for one that does not: `array schema missing items`."""
    names, pair = {"type": ["array", "null"]}, {"type": "array", "prefixItems": [{}], "items": False}
    schema = {"properties": {"a": {"properties": {"names": names}}, "pair": pair, "ok": {"type": "array", "items": Q}}}
    tool = Tool("pick", "Picks.", schema, execute=nothing, effect="read", foreign=True)
    (function,) = Hand([said("done")], **NATIVE, tools=[tool]).asked[0].options["tools"]
    shown = function["function"]["parameters"]["properties"]
    assert shown["a"]["properties"]["names"] == {**names, "items": {}}
    assert shown["pair"] == {**pair, "items": {}}
    assert shown["ok"]["items"] == Q
    assert tool.config_schema["properties"]["a"]["properties"]["names"] == names


ODD = {"filter[name]": {"type": "string", "description": "By name."}, "$top": {}, "filter_name": {}, "城市": {}}


def odd_run(model: str, sent: dict[str, Any]) -> Hand:
    schema = {"type": "object", "properties": ODD, "required": ["filter[name]"], "additionalProperties": False}
    tool = Tool("find", "Finds.", schema, execute=nothing, effect="read", foreign=True)
    return Hand([calls(("find", sent)), said("done")], **NATIVE, model=model, tools=[tool])


def test_claude_is_shown_names_of_arguments_that_anthropic_takes_and_the_tool_gets_its_own() -> None:
    """It refuses all tools for one other name: `Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'`."""
    sent = {"filter_name_2": "x", "top": 1, "filter_name": 2, "argument": "Oslo"}
    run = odd_run("anthropic:claude-sonnet-4-5", sent)
    (function,) = run.asked[0].options["tools"]
    shown = function["function"]["parameters"]
    assert list(shown["properties"]) == [*sent]
    assert shown["properties"]["filter_name_2"]["description"] == "filter[name]: By name."
    assert shown["properties"]["argument"] == {"description": "城市"}
    assert shown["required"] == ["filter_name_2"]
    assert run.output["trace"][0]["action"]["args"] == dict(zip(ODD, sent.values(), strict=True))
    assert run.output["final_answer"] == "done"


def test_names_of_a_run_that_was_shown_fewer_arguments_lead_to_the_same_ones() -> None:
    """As earlier versions did of a schema with a reference at its root."""
    visible = {"$ref": "#/$defs/A", "allOf": [{"properties": {"$top": {}, "b": {}}}], "$defs": {"A": A}}
    function = {"function": {"name": "find", "parameters": {"properties": {"top": {}, "b": {}}}}}
    assert own_names([function], {"find": "find"}, {"find": {"visible": visible}}) == {"find": {"top": "$top"}}


def test_other_models_are_shown_the_names_of_the_tool() -> None:
    run = odd_run("qwen:qwen3-max", {"filter[name]": "x", "城市": "Oslo"})
    (function,) = run.asked[0].options["tools"]
    assert function["function"]["parameters"]["properties"] == ODD
    assert run.output["final_answer"] == "done"


async def nothing(args: Any, context: ToolContext) -> None:
    """A tool that does nothing."""


def test_without_tools_no_functions_are_sent() -> None:
    assert "tools" not in native(["Hi."], allowed_tools=[]).asked[0].options


@pytest.mark.parametrize(
    ("code", "name"),
    [("look", "look"), ("mcp.files.read", "mcp__files__read"), ("a:b", "a--b"), ("x" * 64, "x" * 64)],
)
def test_a_code_becomes_a_name_that_every_vendor_takes(code: str, name: str) -> None:
    assert function_name(code) == name


def test_a_long_code_has_a_name_of_its_own() -> None:
    names = {function_name("x" * 100 + end) for end in "abc"}
    assert len(names) == 3
    assert all(len(name) == 64 for name in names)


def test_two_codes_with_one_name_are_a_definition_error() -> None:
    with pytest.raises(DefinitionError, match=r"'a__b' in function calling.*'a\.b'"):
        native([final()], tools=[look("a.b"), look("a__b")])
    assert Hand([final()], tools=[look("a.b"), look("a__b")]).reason == "final"


def test_what_a_vendor_puts_into_its_calls_goes_back_to_it_and_to_nobody_else() -> None:
    signed = [{"name": "look", "arguments": '{"q":"x"}', "extra_content": {"google": {"thought_signature": "s1"}}}]
    reply = said("")._replace(calls=signed, echo={"reasoning_content": "Hm."})
    run = native([reply, "Seen."])
    own = run.questions[1][-2]
    assert own["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s1"}}
    assert own["reasoning_content"] == "Hm."
    assert "s1" not in str(run.output)
    assert "Hm." not in str(run.output)


def test_a_history_of_calls_is_sent_as_calls_each_with_its_answer() -> None:
    made = [
        {"id": f"c{i}", "type": "function", "function": {"name": "a.b", "arguments": f'{{"q":"{i}"}}'}}
        for i in range(2)
    ]
    history = [
        {"role": "user", "content": "First?"},
        {"role": "assistant", "content": "", "tool_calls": made},
        {"role": "tool", "tool_call_id": "c1", "name": "a.b", "content": "one"},
        {"role": "tool", "tool_call_id": "gone", "name": "old", "content": "orphan"},
        {"role": "assistant", "content": "There."},
    ]
    sent = native(["Hi."], messages_json=history, prompt="And?").questions[0][1:]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool", "user", "assistant", "user"]
    assert [call["function"]["name"] for call in sent[1]["tool_calls"]] == ["a__b", "a__b"]
    answers = {message["tool_call_id"]: message["content"] for message in sent[2:4]}
    assert answers == {"c0": "no answer was recorded", "c1": "one"}
    assert "orphan" in sent[4]["content"]


# ── which replies are read ────────────────────────────────────────────────────────────────────────

UNREADABLE: dict[str, tuple[Any, str]] = {
    "not_json": (one("{q:"), "not_json"),
    "two_values": (one('{"q":"x"}{"q":"y"}'), "multiple_values"),
    "duplicate_key": (one('{"q":"x","q":"y"}'), "duplicate_key"),
    "number_range": (one('{"q":1e999}'), "number_range"),
    "too_deep": (one("[" * 200 + "]" * 200), "too_deep"),
    "lone_surrogate": (one('{"q":"\\ud800"}'), "lone_surrogate"),
    "no_object": (one('["x"]'), "wrong_type"),
    "empty": (said("  \n"), "empty"),
    "cut_off": (one('{"q":"x"}')._replace(finish_reason="length"), "truncated"),
    "too_large": (one('{"q":"' + "x" * 2**20 + '"}'), "too_large"),
    "call_as_text": (said('<tool_call>\n{"name":"look","arguments":{"q":"x"}}\n</tool_call>'), "unknown_type"),
    "call_as_json": (said('{{"name": "look", "arguments": {"q": "x"}}}}'), "unknown_type"),
    "call_in_a_fence": (said('```json\n{"name":"look","parameters":{"q":"x"}}\n```'), "unknown_type"),
    "calls_as_a_list": (said('[TOOL_CALLS] [{"name": "look", "arguments": {}}]'), "unknown_type"),
    "call_after_thinking": (said('<think>hm</think>\n{"name":"look","arguments":{"q":"x"}}'), "unknown_type"),
    "tag_after_words": (said('I look.\n<tool_call>{"name":"look","arguments":{"q":"x"}}</tool_call>'), "unknown_type"),
    "our_json_in_a_fence": (said("```json\n" + action() + "\n```"), "unknown_type"),
    "too_many": (calls(*[("look", {"q": str(i)}) for i in range(129)]), "too_large"),
    "call_as_our_json": (said(" " + action()), "unknown_type"),
    "one_of_two": (
        said("")._replace(calls=[{"name": "look", "arguments": '{"q":"x"}'}, {"name": "look", "arguments": "{"}]),
        "not_json",
    ),
}


@pytest.mark.parametrize(("reply", "kind"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_told_and_nothing_is_run(reply: Any, kind: str) -> None:
    run = native([reply, "Right."])
    assert run.decided[0]["unreadable"]["kind"] == kind
    assert (run.batches, run.output["final_answer"]) == ([], "Right.")
    asked = [call["id"] for message in run.questions[1] for call in message.get("tool_calls") or ()]
    answered = [message["tool_call_id"] for message in run.questions[1] if message["role"] == "tool"]
    assert asked == answered
    assert len(asked) == len(reply.calls)
    orjson.loads(
        (run.questions[1][-2].get("tool_calls") or [{"function": {"arguments": "{}"}}])[0]["function"]["arguments"]
    )
    assert native([reply], max_repairs=0).reason == "protocol_error"


ANSWER = {"answer_schema": {"type": "object"}, "max_repairs": 2}
TOLD: dict[str, tuple[Any, dict[str, Any], str]] = {
    "arguments": (one("{q:"), {}, "Make the call again, with exactly one JSON object as its arguments."),
    "two arguments": (one('{"q":"x"}{"q":"y"}'), {}, "Make a call for each"),
    "no object": (one("x"), {}, "They hold no JSON object. Make the call again"),
    "an answer": (said('{"n":'), ANSWER, "Send the answer alone, as one JSON value."),
    "words": (said("n is 1"), ANSWER, "The answer is not valid JSON. Send the answer alone"),
    "two answers": (said("{}{}"), ANSWER, "Send the answer alone"),
    "in Chinese": (one("{q:"), {"language": "zh"}, "请重新调用"),
}


@pytest.mark.parametrize(("reply", "config", "told"), TOLD.values(), ids=TOLD)
def test_what_is_said_of_json_that_cannot_be_read_asks_for_what_this_dialect_has(
    reply: Any, config: dict[str, Any], told: str
) -> None:
    run = native([reply, said("{}")], **config)
    message = run.decided[0]["unreadable"]["message"]
    assert told in message
    assert "action" not in message
    earlier: Any = {**run.started, "rules": {**run.started["rules"], "texts": 6}}
    spoken_of = RunState(earlier).dialect.read_reply(reply, mode="strict", any_answer="answer_schema" in config)
    assert isinstance(spoken_of, ProtocolError)
    assert told not in spoken_of.message


@pytest.mark.parametrize("arguments", ["", " ", "{}"])
def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    run = native([one(arguments), "Hi."], tools=[look(schema={"type": "object"})])
    assert run.batches[0].calls[0].args == {}


def test_an_answer_may_hold_any_text() -> None:
    for text in ('{"type":"final","answer":"x"}', 'Use {"a": 1}.', "```json\n{}\n```", "<b>bold</b>"):
        assert native([text if text[0] != "{" else said(text)]).output["final_answer"] in (text, "x")


def test_an_answer_schema_is_told_and_held() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    run = native([said("n is 1"), said('{"n":"1"}'), said('{"n":1}')], answer_schema=schema, max_repairs=2)
    assert run.output["final_answer"] == {"n": 1}
    assert orjson.dumps(schema).decode() in run.questions[0][0]["content"]
    assert [each["unreadable"]["kind"] for each in run.decided[:2]] == ["not_json", "wrong_type"]


def test_tolerant_parsing_takes_a_think_block_off_an_answer() -> None:
    text = "<think>Is it so? It is.</think>\n\nYes."
    assert native([said(text)]).output["final_answer"] == text
    assert native([said(text)], parsing="tolerant").output["final_answer"] == "Yes."


@pytest.mark.parametrize("parsing", ["strict", "tolerant"])
@pytest.mark.parametrize("reply", [reply for name, (reply, _) in UNREADABLE.items() if "call" in name or "tag" in name])
def test_a_call_in_a_text_is_an_answer_in_no_mode(reply: Any, parsing: str) -> None:
    assert native([reply], parsing=parsing, max_repairs=0).reason == "protocol_error"


@pytest.mark.parametrize("name", ["look up!", "", "查询", "a b", "x" * 300, "look\n"])
def test_a_name_that_no_vendor_takes_does_not_go_back_to_one(name: str) -> None:
    run = native([one("{}", name), "Sorry."])
    sent = [call["function"]["name"] for message in run.questions[1] for call in message.get("tool_calls") or ()]
    assert len(sent) == 1
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", sent[0])


def test_an_answer_may_be_what_another_call_of_the_batch_returned() -> None:
    answer = "Order 17 was shipped to Oslo on Monday."
    for batch in ([("hack", {}), ("look", {"q": "x"})], [("look", {"q": "x"}), ("hack", {})]):
        assert native([calls(*batch), answer], act=[did(answer)]).output["final_answer"] == answer


def test_calls_of_a_history_with_one_id_each_have_their_own_answer() -> None:
    made = [{"id": "", "type": "function", "function": {"name": "look", "arguments": "{}"}} for _ in range(2)]
    history = [
        {"role": "user", "content": "Both?"},
        {"role": "assistant", "content": None, "tool_calls": made},
        {"role": "tool", "tool_call_id": "", "content": "first"},
        {"role": "tool", "tool_call_id": "", "content": "second"},
    ]
    sent = native(["Hi."], messages_json=history, prompt="And?").questions[0]
    asked = [call["id"] for call in sent[2]["tool_calls"]]
    assert [(message["tool_call_id"], message["content"]) for message in sent[3:5]] == [
        (asked[0], "first"),
        (asked[1], "second"),
    ]
    assert len(set(asked)) == 2
    run = Hand([final()], messages_json=history, prompt="And?", examples=[])
    texts = [message["content"] for message in run.questions[0]]
    assert ["first" in texts[3], "second" in texts[5]] == [True, True]


def test_calls_that_are_made_count_once_each() -> None:
    allowed = [{"tool": "look", "max_calls": 100}]
    run = native(
        [calls(*[("look", {"q": str(i)}) for i in range(120)]), "Done."], allowed_tools=allowed, max_tool_calls=0
    )
    assert [each["verdict"] for each in run.decided[0]["calls"]].count("refuse") == 20


# ── what does not fit ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("protocol", ["json", "tools"])
def test_what_earlier_tools_returned_is_shortened_before_turns_are_dropped(protocol: str) -> None:
    made = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q":"x"}'}}]
    history = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": made},
        {"role": "tool", "tool_call_id": "c1", "content": "o" * 4000},
        {"role": "assistant", "content": "Seen."},
    ]
    run = Hand([final()], messages_json=history, prompt="And?", max_input_tokens=1000, protocol=protocol)
    assert run.asked[0].cut == {"shortened": 1, "dropped": 0}


def test_after_a_cut_a_question_still_tells_what_was_called() -> None:
    turns = [{"role": role, "content": f"{role} " + "w" * 900} for _ in range(4) for role in ("user", "assistant")]
    digests = set()
    for word in ("one", "two"):
        replies = [calls(("look", {"q": word})), "Done."]
        run = native(replies, act=[did("seen")], messages_json=turns, prompt="Now?", max_input_tokens=700)
        assert run.asked[0].cut
        digests.add(run.asked[1].digest)
    assert len(digests) == 2


# ── which tool may be chosen ──────────────────────────────────────────────────────────────────────


def choices(**config: Any) -> list[Any]:
    run = native([spoken(action(), "tools"), spoken(action(), "tools"), "Done."], **config)
    return [asked.options.get("tool_choice") for asked in run.asked]


def test_the_choice_of_tools_is_the_models_until_it_must_answer() -> None:
    assert choices() == [None, None, None]
    assert choices(max_steps=3) == [None, None, "none"]
    assert choices(max_tool_calls=2) == [None, None, "none"]
    assert choices(tool_choice="none") == ["none", "none", "none"]


def test_a_required_call_is_required_until_one_was_made() -> None:
    assert choices(tool_choice="required") == ["required", None, None]


def test_in_the_last_step_the_schema_allows_only_an_answer() -> None:
    run = Hand([action(), final()], max_steps=2)
    usual, last = [asked.options["step_schema"]["anyOf"] for asked in run.asked]
    assert (len(usual), len(last)) == (2, 1)
    assert last[0]["properties"]["type"]["enum"] == ["final"]


# ── calls side by side ────────────────────────────────────────────────────────────────────────────

READ, WRITE = look("read"), look("write", effect="write")
BOTH: dict[str, Any] = {"tools": [READ, WRITE]}


def test_reads_run_side_by_side_and_each_has_its_entry_under_one_step() -> None:
    run = native([calls(("read", {"q": "a"}), ("read", {"q": "b"})), "Seen."], act=[did("A"), did("B")], **BOTH)
    assert [[call.args["q"] for call in batch.calls] for batch in run.batches] == [["a", "b"]]
    assert [(step["step"], step["observation"]) for step in run.output["trace"][:2]] == [(1, "A"), (1, "B")]
    assert [message["content"] for message in run.questions[1][-2:]] == ["A", "B"]
    assert run.output["usage"]["tool_calls"] == 2
    kept = run.output["messages_json"]
    assert [call["id"] for call in kept[1]["tool_calls"]] == [message["tool_call_id"] for message in kept[2:4]]


def test_a_batch_with_a_write_runs_in_order() -> None:
    run = native([calls(("read", {"q": "a"}), ("write", {"q": "b"}), ("read", {"q": "c"})), "Done."], **BOTH)
    assert [[call.tool for call in batch.calls] for batch in run.batches] == [["read"], ["write"], ["read"]]


def test_of_a_batch_what_may_run_runs_and_each_hears_its_own() -> None:
    run = native([calls(("read", {"q": 1}), ("hack", {}), ("read", {"q": "c"})), "Done."], act=[did("C")], **BOTH)
    heard = [message["content"] for message in run.questions[1][-3:]]
    assert "/q: expected a string" in heard[0]
    assert "not allowed" in heard[1]
    assert heard[2] == "C"
    assert [each["verdict"] for each in run.decided[0]["calls"]] == ["refuse", "refuse", "run"]


def test_a_batch_that_partly_failed_counts_as_one_repair() -> None:
    failing = calls(("write", {"q": "a"}), ("write", {"q": "b"}))
    acts = [broke(), broke(), broke(), did()]
    assert native([failing, failing, "Done."], act=acts, **BOTH).reason == "tool_error"
    assert native([failing, "Done."], act=acts, **BOTH).reason == "final"


def test_max_calls_counts_within_a_batch() -> None:
    allowed = [{"tool": "read", "max_calls": 2}]
    run = native([calls(*[("read", {"q": str(i)}) for i in range(3)]), "Done."], allowed_tools=allowed, **BOTH)
    assert [each["verdict"] for each in run.decided[0]["calls"]] == ["run", "run", "refuse"]
    assert len(run.batches[0].calls) == 2


def test_a_batch_beyond_the_limit_ends_the_run_before_any_of_it() -> None:
    run = native([calls(*[("read", {"q": str(i)}) for i in range(3)])], max_tool_calls=2, **BOTH)
    assert (run.reason, run.batches) == ("max_tool_calls", [])
    assert len(run.output["trace"]) == 3


def test_what_a_nested_run_spends_may_end_the_batch_midway() -> None:
    usage: dict[str, Any] = {"requests": 1, "tool_calls": 1, "cost": None, "estimated": False}
    usage |= {"input_tokens": 9_000, "output_tokens": 5}
    batch = calls(("write", {"q": "a"}), ("write", {"q": "b"}))
    for limit, reason in (({"max_tool_calls": 2}, "max_tool_calls"), ({"total_token_budget": 5_000}, "token_budget")):
        run = native([batch], act=[did("A", usage=usage)], **limit, **BOTH)
        assert (run.reason, len(run.batches)) == (reason, 1)
        assert [step["error"] for step in run.output["trace"]] == [None, f"not run: {reason}"]
        answered = [message["tool_call_id"] for message in run.output["messages_json"] if message["role"] == "tool"]
        assert [call["id"] for call in run.output["messages_json"][1]["tool_calls"]] == answered


@pytest.mark.parametrize(
    ("stop", "reason"),
    [(Cancelled(AT), "cancelled"), (Suspended("in_doubt", ({"strand": "agent"},)), "in_doubt")],
    ids=["cancelled", "in_doubt"],
)
def test_what_was_done_before_a_batch_stopped_is_told(stop: Any, reason: str) -> None:
    run = native([calls(("read", {"q": "a"}), ("write", {"q": "b"}))], act=[did("A"), stop], **BOTH)
    assert run.reason == reason
    assert [step["observation"] for step in run.output["trace"]] == ["A", None]
    assert run.output["trace"][1]["error"] == reason


def test_everything_that_waits_in_a_batch_is_told() -> None:
    both = [Suspended("in_doubt", ({"n": n},)) for n in range(2)]
    run = native([calls(("read", {"q": "a"}), ("read", {"q": "b"}))], act=both, **BOTH)
    assert run.output["waiting"] == [{"n": 0}, {"n": 1}]


def test_a_person_decides_on_each_call_of_a_batch() -> None:
    batch = calls(("write", {"q": "a"}), ("read", {"q": "b"}), ("write", {"q": "c"}), ("write", {"q": "d"}))
    words = [[Approve(), Deny("not this one"), Edit({"q": "better"})]]
    run = native([batch, "Done."], approval="on_write", decisions=words, **BOTH)
    assert [call.args["q"] for each in run.batches for call in each.calls] == ["a", "b", "better"]
    assert "not this one" in run.questions[1][-2]["content"]


# ── models that stand in ──────────────────────────────────────────────────────────────────────────

DOWN = Failed("model_error", "down", AT, 1.0, requests=3)


@pytest.mark.parametrize("protocol", ["json", "tools"])
def test_models_are_asked_in_turn_and_the_one_that_answers_is_kept(protocol: str) -> None:
    late = Failed("timeout", "late", AT, 30.0, requests=1)
    config = {"fallback_models": ["second", "third"], "base_url": "http://127.0.0.1:9/v1", "protocol": protocol}
    run = Hand([DOWN, late, action(), final()], **config)
    assert [asked.model for asked in run.asked] == ["m", "second", "third", "third"]
    assert [asked.question for asked in run.asked] == [0, 0, 0, 1]
    assert ["base_url" in asked.options for asked in run.asked] == [True, False, False, False]
    assert (run.reason, run.output["usage"]["requests"]) == ("final", 6)


def test_a_fallback_of_the_same_name_is_the_vendors_own() -> None:
    run = Hand([DOWN, final()], model="openai:gpt", base_url="http://127.0.0.1:9/v1", fallback_models=["openai:gpt"])
    assert ["base_url" in asked.options for asked in run.asked] == [True, False]


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        ([DOWN, DOWN], "model_error"),
        ([Failed("content_filter", "no", AT, 1.0)], "content_filter"),
        ([Failed("timeout", "late", AT, 120.0)], "timeout"),
    ],
    ids=["all_down", "filtered", "no_time_left"],
)
def test_no_other_model_is_asked_when_none_is_left_or_it_would_not_help(replies: list[Any], reason: str) -> None:
    assert Hand(replies, fallback_models=["second"]).reason == reason


# ── with a journal and real tools ─────────────────────────────────────────────────────────────────


def scripted(*replies: Any) -> ScriptedModel:
    return ScriptedModel([{"content": reply.content, "calls": reply.calls} for reply in map(_said, replies)])


def _said(reply: Any) -> Any:
    return said(reply) if isinstance(reply, str) else reply


def proven(journal: MemoryJournal, output: Any) -> bool:
    told = verify(journal, run_id=output.run_id, head=output.journal["head"], count=output.journal["count"])
    return told.ok and replay(journal, run_id=output.run_id).identical


CONFIG: dict[str, Any] = {"model": "m", "max_steps": 5, "allowed_tools": ["*"], "prompt": "Go.", **NATIVE}


async def test_reads_of_a_batch_are_under_way_at_the_same_time() -> None:
    meeting = asyncio.Barrier(3)

    async def meet(args: dict[str, Any], context: ToolContext) -> str:
        await meeting.wait()
        return f"met as {args['q']}"

    registry, journal = ToolRegistry([Tool("meet", "Meets.", Q, meet, effect="read")]), MemoryJournal()
    model = scripted(calls(*[("meet", {"q": name}) for name in "abc"]), "All met.")
    output = await run_agent(CONFIG, registry=registry, model=model, journal=journal)
    assert [step["observation"] for step in output.trace[:3]] == ["met as a", "met as b", "met as c"]
    assert proven(journal, output)


async def test_writes_of_a_batch_happen_in_order_and_a_doubt_stops_what_comes_behind() -> None:
    made: list[str] = []

    async def write(args: dict[str, Any], context: ToolContext) -> str:
        made.append(args["q"])
        if args["q"] == "b":
            await asyncio.Event().wait()
        return f"wrote {args['q']}"

    registry, journal = ToolRegistry([Tool("write", "Writes.", Q, write)]), MemoryJournal()
    batch = calls(*[("write", {"q": name}) for name in "abc"])
    how: dict[str, Any] = {"registry": registry, "model": scripted(batch, "Done."), "journal": journal, "run_id": "r"}
    config = {**CONFIG, "single_call_timeout": 0.05}
    output = await run_agent(config, **how)
    assert (output.finish_reason, made) == ("in_doubt", ["a", "b"])
    assert [step["observation"] for step in output.trace] == ["wrote a", None, None]
    assert proven(journal, output)
    (entry,) = output.waiting
    output = await run_agent(config, decisions={(entry["strand"], entry["n"]): Skip()}, **how)
    assert (output.finish_reason, made) == ("final", ["a", "b", "c"])
    assert proven(journal, output)


async def test_waiting_calls_of_a_batch_may_be_decided_one_after_another() -> None:
    made: list[str] = []
    tools = ToolRegistry([Tool("write", "Writes.", Q, lambda args, context: made.append(args["q"]) or "done")])
    journal, model = MemoryJournal(), scripted(calls(("write", {"q": "a"}), ("write", {"q": "b"})), "Done.")
    how: dict[str, Any] = {"registry": tools, "model": model, "journal": journal, "run_id": "r"}
    config = {**CONFIG, "approval": "always"}
    output = await run_agent(config, **how)
    first, second = [(entry["strand"], entry["n"]) for entry in output.waiting]
    output = await run_agent(config, decisions={second: Deny("no")}, **how)
    assert (output.finish_reason, made) == ("awaiting_approval", [])
    assert [(entry["strand"], entry["n"]) for entry in output.waiting] == [first]
    output = await run_agent(config, decisions={first: Approve()}, **how)
    assert (output.finish_reason, made) == ("final", ["a"])
    assert proven(journal, output)


async def test_another_policy_is_tried_on_each_call_of_a_batch() -> None:
    tools = ToolRegistry([Tool(code, code, Q, lambda args, context: "done", effect="read") for code in ("a", "b")])
    journal = MemoryJournal()
    model = scripted(calls(("a", {"q": "x"}), ("b", {"q": "y"})), "Done.")
    output = await run_agent(CONFIG, registry=tools, model=model, journal=journal)
    found = replay(journal, run_id=output.run_id, policy={"deny_tools": ["b"]})
    assert [(each["tool"], each["now"]) for each in found.decisions] == [("a", "run"), ("b", "refuse")]


async def test_both_models_of_a_run_are_in_its_journal() -> None:
    class Down(ScriptedModel):
        async def complete(self, question: Any) -> Any:
            if question.model == "first":
                raise ConnectionError("nobody is there")
            return await super().complete(question)

    journal = MemoryJournal()
    config = {**CONFIG, "model": "first", "fallback_models": ["second"], "allowed_tools": []}
    output = await run_agent(config, registry=ToolRegistry(), model=Down(["Hi."]), journal=journal)
    asked = [row.record() for row in journal.load(output.run_id)["agent"]]
    assert [each["model"] for each in asked if each["kind"] == "asked"] == ["first", "second"]
    assert output.final_answer == "Hi."
    assert proven(journal, output)
