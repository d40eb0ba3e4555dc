"""Anthropic's Messages API: what is asked, what is read of a reply, and what goes back as it came."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from itertools import pairwise
from time import time
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("anthropic", reason="needs the anthropic SDK (extra `anthropic`)")

from agent_core import MemoryJournal, run_agent
from agent_core.models import Completion, Delta, ModelError, Question
from agent_core.models.anthropic.messages import OWN_VENDOR, MessagesWire
from agent_core.models.anthropic.request import is_closed
from agent_core.models.anthropic.thinking import read_version
from agent_core.models.endpoint.answer import MAX_CALLS, HttpAnswer, Refusal
from agent_core.models.endpoint.asking import Adapted
from agent_core.models.endpoint.capabilities import EndpointCapabilities
from agent_core.models.endpoint.client import EndpointClient
from support.loopback import Loopback, Request, http, serving
from support.programs import environment
from support.wires.anthropic import EXPLANATION, STAND_IN
from support.wires.turn import KEY, Counts, Turn
from utools import Tool, ToolRegistry

Json = dict[str, Any]
WIRE = MessagesWire()
ADAPTIVE, MANUAL = "claude-opus-4-6", "claude-sonnet-4-5"
CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": CLOSED}}
SYSTEM, HELLO = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}
MARK = {"cache_control": {"type": "ephemeral"}}
THOUGHT = {"type": "thinking", "thinking": "So…", "signature": "sig/+="}
REDACTED = {"type": "redacted_thinking", "data": "opaque=="}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"a": "x"}}
NOW = time()


def question(*messages: Json, model: str = ADAPTIVE, **options: Any) -> Question:
    return Question(f"anthropic:{model}", tuple(map(orjson.dumps, messages or (HELLO,))), options, "agent", 0)


def adapt(asked: Question, *about: Any) -> Adapted | None:
    """How the model is asked again whose name is behind the colon."""
    return WIRE.adapt(asked.model.partition(":")[2], asked, *about)


def write(asked: Question, known: EndpointCapabilities | None = None) -> Json:
    name = asked.model.partition(":")[2]
    body: Json = orjson.loads(WIRE.write(name, asked, known or WIRE.capabilities, "not").body)
    STAND_IN.read(Request("/v1/messages", {"anthropic-version": "1"}, orjson.dumps(body), "POST"))
    return body


def sent(*messages: Json, model: str = ADAPTIVE, **options: Any) -> Json:
    return write(question(*messages, model=model, **options))


def calling(*ids: str, native: Any = None, content: str | None = None) -> list[Json]:
    """A message with calls, and their results."""
    calls = [{"id": each, "type": "function", "function": {"name": "look", "arguments": '{"a":"x"}'}} for each in ids]
    own = {} if native is None else {"native": native}
    results = [{"role": "tool", "tool_call_id": each, "content": f"result {each}"} for each in ids]
    return [{"role": "assistant", "content": content, "tool_calls": calls, **own}, *results]


def parts(*blocks: Json, api: str = "messages") -> Json:
    return {"api": api, "parts": list(blocks)}


# ── what is asked ─────────────────────────────────────────────────────────────────────────────────────


def test_a_plain_question() -> None:
    assert sent(SYSTEM, HELLO, max_output_tokens=50) == {
        "model": ADAPTIVE,
        "max_tokens": 50,
        "system": [{"type": "text", "text": "Be brief.", **MARK}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello", **MARK}]}],
    }


OPTIONS: dict[str, tuple[Json, Json]] = {
    "sampling": ({"temperature": 0.0, "top_p": 0.5, "seed": 7}, {"temperature": 0.0, "top_p": 0.5}),
    "stop": ({"stop": ["END", " ", "\n"]}, {"stop_sequences": ["END"]}),
    "one stop": ({"stop": "END"}, {"stop_sequences": ["END"]}),
    "no stop": ({"stop": ["\n"]}, {}),
    "auto is text": ({"response_format": "auto", "step_schema": CLOSED}, {}),
    "no bare objects": ({"response_format": "json_object"}, {}),
    "a closed schema": (
        {"response_format": "json_schema", "step_schema": CLOSED},
        {"output_config": {"format": {"type": "json_schema", "schema": CLOSED}}},
    ),
    "an open schema": ({"response_format": "json_schema", "step_schema": {"type": "object"}}, {}),
    "no schema": ({"response_format": "json_schema"}, {}),
    "a schema beside tools": (
        {"response_format": "json_schema", "step_schema": CLOSED, "tools": []},
        {"output_config": {"format": {"type": "json_schema", "schema": CLOSED}}},
    ),
    "adaptive": ({"reasoning": "high"}, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
    "off where it is off": ({"reasoning": "none"}, {}),
    "no sampling beside thinking": (
        {"reasoning": "low", "temperature": 0.5, "top_p": 0.9},
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
    ),
    "both outputs": (
        {"reasoning": "low", "response_format": "json_schema", "step_schema": CLOSED},
        {
            "thinking": {"type": "adaptive"},
            "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": CLOSED}},
        },
    ),
    "extra": (
        {"extra": {"service_tier": "standard_only", "metadata": {"user_id": "u"}}},
        {"service_tier": "standard_only", "metadata": {"user_id": "u"}},
    ),
    "extra is merged key by key": (
        {"reasoning": "low", "extra": {"thinking": {"display": "omitted"}, "output_config": {"effort": "max"}}},
        {"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "max"}},
    ),
    "thinking by extra": (
        {
            "temperature": 0.5,
            "extra": {"thinking": {"type": "enabled", "budget_tokens": 2000}},
            "max_output_tokens": 1500,
        },
        {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 3500},
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_in_the_words_of_the_api(name: str) -> None:
    options, more = OPTIONS[name]
    plain = sent(max_output_tokens=9)
    assert sent(**{"max_output_tokens": 9, **options}) == plain | more


def test_the_own_vendor_is_sent_no_sampling_options() -> None:
    asked = question(temperature=0.5, top_p=0.5, stop=["END"], max_output_tokens=9)
    body = write(asked, OWN_VENDOR)
    assert (body.keys() & {"temperature", "top_p"}, body["stop_sequences"]) == (set(), ["END"])


def test_what_the_author_writes_in_extra_is_sent_whatever_the_api_makes_of_it() -> None:
    extra = {"temperature": 1.0, "tool_choice": {"type": "any"}, "max_tokens": 5, "thinking": {"budget_tokens": 2_000}}
    asked = question(model=MANUAL, reasoning="low", temperature=0.5, tools=[TOOL], extra=extra)
    body = orjson.loads(WIRE.write(MANUAL, asked, WIRE.capabilities, "not").body)
    assert {name: body[name] for name in extra} == {**extra, "thinking": {"type": "enabled", "budget_tokens": 2_000}}
    refusal = Refusal("answered 400: `max_tokens` must be greater than `thinking.budget_tokens`.", 400)
    assert adapt(asked, WIRE.capabilities, "not", refusal) is None


TOKENS = {
    "the author's": ("claude-opus-4-6", {"max_output_tokens": 50}, 50),
    "a newer model's": ("claude-opus-4-6", {}, 32_000),
    "an older model's": ("claude-3-5-haiku-latest", {}, 8_192),
    "unknown": ("kimi-k3", {}, 8_192),
}


@pytest.mark.parametrize("name", TOKENS)
def test_a_limit_is_always_sent(name: str) -> None:
    model, options, limit = TOKENS[name]
    assert sent(model=model, **options)["max_tokens"] == limit


BUDGETS = [("low", 40_000, 2_048, 40_000), ("high", 40_000, 16_384, 40_000), ("high", 8_000, 4_000, 8_000)]
BUDGETS += [("low", 1_500, 1_024, 1_500), ("low", 500, 1_024, 1_524)]


@pytest.mark.parametrize(("level", "limit", "budget", "most"), BUDGETS)
def test_manual_thinking_leaves_room_for_the_reply(level: str, limit: int, budget: int, most: int) -> None:
    body = sent(model=MANUAL, reasoning=level, max_output_tokens=limit)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": budget}
    assert (body["max_tokens"], "output_config" in body) == (most, False)


VERSIONS = {
    "claude-opus-4-6": (4, 6),
    "claude-4.6-opus": (4, 6),
    "claude-sonnet-4-5-20250929": (4, 5),
    "claude-opus-4-20250514": (4, 0),
    "claude-3-7-sonnet-20250219": (3, 7),
    "us.anthropic.claude-opus-4-6-v1:0": (4, 6),
    "claude-sonnet-5": (5, 0),
    "claude-haiku-5-5": (5, 5),
    "claude-mythos-preview": None,
    "kimi-k2-0905": None,
}


@pytest.mark.parametrize("model", VERSIONS)
def test_a_version_is_read_from_a_name(model: str) -> None:
    assert read_version(model) == VERSIONS[model]


def test_thinking_is_switched_off_where_it_may_be_on() -> None:
    asked = [sent(model=model, reasoning="none").get("thinking") for model in (MANUAL, "claude-sonnet-5", "kimi-k3")]
    assert asked == [None, {"type": "disabled"}, {"type": "disabled"}]


def test_tools_and_the_choice_among_them() -> None:
    body = sent(HELLO, tools=[TOOL], tool_choice="required")
    assert body["tools"] == [{"name": "look", "description": "Looks.", "input_schema": CLOSED, **MARK}]
    choices = [sent(tools=[TOOL], tool_choice=choice)["tool_choice"]["type"] for choice in ("auto", "required", "none")]
    assert choices == ["auto", "any", "none"]
    assert sent(tools=[TOOL], tool_choice="required", reasoning="low")["tool_choice"] == {"type": "auto"}
    assert not {"tools", "tool_choice"} & sent(tools=[], tool_choice="none").keys()


def test_a_tool_without_a_description_or_parameters() -> None:
    bare = {"type": "function", "function": {"name": "f", "description": ""}}
    assert sent(tools=[bare])["tools"] == [{"name": "f", "input_schema": {"type": "object", "properties": {}}, **MARK}]


SCHEMAS: list[tuple[Any, bool]] = [
    (CLOSED, True),
    ({"type": "object"}, False),
    ({"type": ["object", "null"]}, False),
    ({"anyOf": [CLOSED, {"type": "object", "properties": {}}]}, False),
    ({**CLOSED, "properties": {"properties": {"type": "string"}, "type": {"type": "string"}}}, True),
    ({**CLOSED, "properties": {"a": {"type": "array", "items": {"type": "object"}}}}, False),
    ({**CLOSED, "$defs": {"x": {"type": "object"}}}, False),
    ({**CLOSED, "default": {"type": "object"}}, True),
]


@pytest.mark.parametrize(("schema", "closed"), SCHEMAS)
def test_a_schema_is_closed_if_all_its_objects_are(schema: Any, closed: bool) -> None:
    assert is_closed(schema) is closed


# ── the conversation ──────────────────────────────────────────────────────────────────────────────────


def test_a_conversation_alternates_and_its_results_come_first() -> None:
    messages = sent(SYSTEM, HELLO, HELLO, *calling("run/a.1:0", "b", content="Let me see."), HELLO, SYSTEM)["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[1]["content"] == [
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "call_0", "name": "look", "input": {"a": "x"}},
        {"type": "tool_use", "id": "b", "name": "look", "input": {"a": "x"}},
    ]
    assert messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "call_0", "content": "result run/a.1:0"},
        {"type": "tool_result", "tool_use_id": "b", "content": "result b"},
        {"type": "text", "text": "Hello", **MARK},
    ]


@pytest.mark.parametrize("text", ["", " \n"])
def test_texts_without_a_character_are_left_out(text: str) -> None:
    empty = [{"role": role, "content": text} for role in ("system", "user", "assistant")]
    call, result = calling("a")
    body = sent(*empty, HELLO, empty[2], {**call, "content": text}, {**result, "content": text})
    assert "system" not in body
    assert [len(message["content"]) for message in body["messages"]] == [1, 1, 1]
    assert body["messages"][2]["content"] == [{"type": "tool_result", "tool_use_id": "a", **MARK}]


def test_a_conversation_that_the_assistant_begins_is_given_an_opening() -> None:
    said = sent({"role": "assistant", "content": "What is it?"}, HELLO)["messages"]
    assert [message["content"][0]["text"] for message in said] == ["…", "What is it?", "Hello"]
    assert [message["content"][0]["text"] for message in sent(SYSTEM)["messages"]] == ["…"]


def test_the_cache_reaches_to_the_end_of_what_is_fixed_and_of_two_turns() -> None:
    long = [SYSTEM, SYSTEM, HELLO, *calling("a"), *calling("b", "c"), *calling("d")]
    body = sent(*long, tools=[TOOL])
    marked = [
        (index, place)
        for index, message in enumerate(body["messages"])
        for place, block in enumerate(message["content"])
        if "cache_control" in block
    ]
    assert marked == [(4, 1), (6, 0)]
    assert ["cache_control" in block for block in body["system"]] == [False, True]
    assert "cache_control" not in body["tools"][0]
    before = sent(*long[:-2], tools=[TOOL])["messages"]
    assert "cache_control" in before[4]["content"][1], "where the question before ended"


def test_own_parts_go_back_byte_for_byte_with_the_ids_of_the_vendor() -> None:
    """Unknown kinds too, and a text between; a text without a character would be refused."""
    unknown = {"type": "of_tomorrow", "data": [1.5, {"ü": None}], "b": 1, "a": 2}
    own = [THOUGHT, REDACTED, {"type": "text", "text": "Let me see.", "citations": None}, unknown, CALL]
    second = {**CALL, "id": "toolu_2", "caller": {"type": "direct"}}
    native = orjson.loads(orjson.dumps(parts(*own, {"type": "text", "text": ""}, second)))
    body = WIRE.write("m", question(HELLO, *calling("a", "b", native=native)), WIRE.capabilities, "not").body
    assert b",".join(map(orjson.dumps, [*own, second])) in body
    results = orjson.loads(body)["messages"][2]["content"]
    assert [result["tool_use_id"] for result in results] == ["toolu_1", "toolu_2"]


NOT_USED = {
    "of another API": (parts(CALL, api="responses"), ("responses",)),
    "other calls": (parts(THOUGHT, CALL, {**CALL, "id": "toolu_2"}), ("messages",)),
    "without an id": (parts({**CALL, "id": None}), ("messages",)),
    "no blocks": (parts("text"), ("messages",)),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", NOT_USED)
def test_parts_that_cannot_be_used_are_left_out_and_named(name: str) -> None:
    native, dropped = NOT_USED[name]
    asked = question(HELLO, *calling("a", native=native))
    assert WIRE.write("m", asked, WIRE.capabilities, "not").dropped == dropped
    assert write(asked)["messages"][1]["content"] == [{**CALL, "id": "a"}]


def test_manual_thinking_does_not_go_on_from_calls_without_a_thought() -> None:
    def thinks(*messages: Json) -> bool:
        return "thinking" in sent(HELLO, *messages, model=MANUAL, reasoning="low")

    thought = parts({**THOUGHT, "signature": "3C0jWE7XBXS9n/Qzn2Oxs4vLgCNaVgrXRa1mVX9Pl6A="}, CALL)
    assert [thinks(), thinks(*calling("a")), thinks(*calling("a"), HELLO)] == [True, False, False]
    assert thinks({"role": "assistant", "content": "Hi"}, HELLO)
    body = WIRE.write(
        MANUAL, question(HELLO, *calling("a", native=thought), model=MANUAL, reasoning="low"), WIRE.capabilities, "not"
    ).body
    assert "thinking" in orjson.loads(body)


# ── what is read ──────────────────────────────────────────────────────────────────────────────────────

TURNS = {
    "text": Turn("Grüß dich 😀 und mehr"),
    "calls": Turn("", [("look", {"a": "ü😀"}), ("look", {})]),
    "text and calls": Turn("Let me see.", [("look", {"deep": [{"a": 1.5, "b": None}]})]),
    "thought": Turn("Yes.", thought="Hm, 😀."),
    "thought and calls": Turn("Well.", [("look", {"a": "x"})], "Hm."),
    "cut": Turn("Ye", finish="length"),
    "empty": Turn(),
    "counts": Turn("Yes.", thought="Hm.", counts=Counts(900, 60, 300, 200, 40)),
}


def read(body: bytes, kind: str = "application/json", *, step: int = 0, status: int = 200) -> tuple[str, Any]:
    """The texts that were shown, and what came of it; the body comes in pieces of `step` bytes."""
    pieces = [body[start : start + step] for start in range(0, len(body), step)] if step else [body]
    reader = WIRE.open_reader(HttpAnswer(status, {"content-type": kind}, b""), pieces[0] if pieces else b"")
    shown = [text for piece in pieces for text in reader.feed(piece)]
    outcome = reader.end(NOW)
    return "".join(shown) + reader.rest(outcome), outcome


def read_value(value: Any) -> Any:
    return read(orjson.dumps(value))[1]


def message(*blocks: Any, **more: Any) -> Json:
    return {"type": "message", "role": "assistant", "content": list(blocks), "stop_reason": "end_turn", **more}


@pytest.mark.parametrize("name", TURNS)
@pytest.mark.parametrize("step", [0, 1, 7])
def test_a_stream_is_the_same_reply_as_a_whole_one(name: str, step: int) -> None:
    turn = TURNS[name]
    _, whole = read(STAND_IN.whole(turn, 1))
    shown, streamed = read(b"".join(STAND_IN.events(turn, 1)), "text/event-stream", step=step)
    assert streamed == whole
    assert shown == whole.content == turn.text


def test_a_reply_is_read() -> None:
    _, reply = read(
        STAND_IN.whole(Turn("Well.", [("look", {"a": "x"})], "Hm.", counts=Counts(900, 60, 300, 200, 40)), 1)
    )
    assert (reply.content, reply.finish_reason) == ("Well.", "tool_use")
    assert reply.calls == ({"name": "look", "arguments": '{"a":"x"}'},)
    counts = (reply.input_tokens, reply.output_tokens, reply.cached_tokens, reply.cache_write_tokens)
    assert (*counts, reply.reasoning_tokens, reply.estimated) == (900, 60, 300, 200, 40, False)
    assert [part["type"] for part in reply.echo["native"]["parts"]] == ["thinking", "text", "tool_use"]


@pytest.mark.parametrize("turn", [TURNS["text"], TURNS["thought"]])
def test_nothing_goes_back_of_a_reply_without_calls(turn: Turn) -> None:
    assert read(STAND_IN.whole(turn, 1))[1].echo is None


REASONS = ["end_turn", "stop_sequence", "max_tokens", "model_context_window_exceeded", "pause_turn", "of_tomorrow"]


@pytest.mark.parametrize("reason", REASONS)
def test_the_finish_reason_is_the_word_of_the_vendor(reason: str) -> None:
    assert read_value(message({"type": "text", "text": "a"}, stop_reason=reason)).finish_reason == reason


@pytest.mark.parametrize("streams", [False, True])
def test_a_refusal_keeps_the_explanation(streams: bool) -> None:
    turn = Turn("I can", finish="content_filter")
    body = b"".join(STAND_IN.events(turn, 1)) if streams else STAND_IN.whole(turn, 1)
    reply = read(body, "text/event-stream" if streams else "application/json")[1]
    assert (reply.finish_reason, EXPLANATION in reply.refusal) == ("refusal", True)
    assert reply.input_tokens


def test_a_refusal_without_an_explanation_names_its_category_or_is_a_word() -> None:
    details = {"type": "refusal", "category": "bio", "explanation": None}
    assert "bio" in read_value(message(stop_reason="refusal", stop_details=details)).refusal
    for nothing in (None, {}, "text", {"explanation": 1}):
        reply = read_value(message(stop_reason="refusal", stop_details=nothing))
        assert (reply.finish_reason, reply.refusal) == ("refusal", "")


ODD: dict[str, tuple[Any, Json]] = {
    "content is null": (message() | {"content": None}, {"content": ""}),
    "content is a text": (message() | {"content": "Hi"}, {"content": "Hi"}),
    "unknown and broken blocks": (
        message(
            {"type": "x", "text": "no"}, None, 7, {"type": "text", "text": None}, {"type": "text", "text": "Hi"}, {}
        ),
        {"content": "Hi", "calls": ()},
    ),
    "no end": (message({"type": "text", "text": "Hi"}, stop_reason=None), {"content": "Hi", "finish_reason": "stop"}),
    "an odd end": (message(stop_reason=["x"]), {"finish_reason": "stop"}),
    "a long end": (message(stop_reason="x" * 500), {"finish_reason": "x" * 99}),
    "no arguments": (
        message({**CALL, "input": None}),
        {"calls": ({"name": "look", "arguments": "{}"},), "echo": None},
    ),
    "arguments that are a list": (
        message({**CALL, "input": [1]}),
        {"calls": ({"name": "look", "arguments": "[1]"},), "echo": None},
    ),
    "arguments that are a text": (
        message({**CALL, "input": '{"a'}),
        {"calls": ({"name": "look", "arguments": '{"a'},), "echo": None},
    ),
    "most calls": (message(*[CALL] * MAX_CALLS), {"calls": ({"name": "look", "arguments": '{"a":"x"}'},) * MAX_CALLS}),
    "a call of the vendor's own": (
        message({"type": "server_tool_use", "id": "s", "name": "web_search"}),
        {"calls": ()},
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_reply_is_read_as_far_as_it_can_be(name: str) -> None:
    reply, expected = ODD[name]
    completion = read_value(reply)
    assert isinstance(completion, Completion)
    assert {field: getattr(completion, field) for field in expected} == expected


DEEP: Any = {"a": []}
for _ in range(240):
    DEEP = {"a": DEEP}
REFUSED: dict[str, tuple[bytes, str]] = {
    "null": (b"null", "what is not JSON: null"),
    "a list": (b"[]", "with no message"),
    "another object": (b'{"object":"list"}', "with no message"),
    "content of another kind": (orjson.dumps(message() | {"content": 7}), "with no message"),
    "html": (b"<html>Sign in</html>", "what is not JSON: <html>"),
    "nothing": (b"", "what is not JSON"),
    "a call without a name": (orjson.dumps(message({**CALL, "name": None})), "a call without a name"),
    "too many calls": (orjson.dumps(message(*[CALL] * (MAX_CALLS + 1))), f"with {MAX_CALLS + 1} calls"),
    "too deep": (orjson.dumps(message({**CALL, "input": DEEP})), "nests too deep"),
    "an error": (STAND_IN.error(500, "Internal."), "answered with an error: Internal."),
    "an error without a message": (b'{"type":"error"}', "answered with an error"),
    "an error of a gateway": (b'{"error":"no such model"}', "no such model"),
    "another error of a gateway": (b'{"detail":"Not here"}', "Not here"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_message_is_refused_in_words(name: str) -> None:
    body, words = REFUSED[name]
    outcome = read(body)[1]
    assert isinstance(outcome, Refusal)
    assert words in outcome.message


@pytest.mark.parametrize("levels", [250, 500, 1_000, 5_000])
def test_what_nests_too_deep_is_refused_however_deep(levels: int) -> None:
    deep = b'{"a":' * levels + b"1" + b"}" * levels
    block = b'{"type":"tool_use","id":"a","name":"look","input":%b}' % deep
    opened = b'{"type":"content_block_start","index":0,"content_block":%b}' % block
    used = b'{"type":"message_delta","delta":{},"usage":%b}' % deep
    bodies = [b'{"type":"message","content":[%b]}' % block, b'{"error":%b}' % deep]
    assert all(isinstance(read(body)[1], Refusal) for body in bodies)
    streams = [events(opened, *ended()), events(used, used, opened, *ended())]
    assert all(isinstance(read(stream, "text/event-stream")[1], Refusal) for stream in streams)


def test_arguments_that_nest_too_deep_to_be_read_stay_a_text() -> None:
    deep = '{"a":' * 5_000 + "1" + "}" * 5_000
    piece = delta(0, "input_json_delta", partial_json=deep)
    completion = read(events(start(0, {**CALL, "input": {}}), piece, *ended("tool_use")), "text/event-stream")[1]
    assert (completion.calls, completion.echo) == (({"name": "look", "arguments": deep},), None)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "text"]), inner, max_size=2),
    max_leaves=4,
)
PLACES = [
    "type",
    "index",
    "delta",
    "content_block",
    "message",
    "usage",
    "content",
    "stop_reason",
    "stop_details",
    "error",
]


@settings(max_examples=30, deadline=None)
@given(place=st.sampled_from(PLACES), value=VALUES, at=st.integers(0, 40))
def test_whatever_stands_in_a_place_is_read_or_refused(place: str, value: Any, at: int) -> None:
    turn = TURNS["thought and calls"]
    whole = {**orjson.loads(STAND_IN.whole(turn, 1)), place: value}
    pieces = [orjson.loads(piece.partition(b"data: ")[2]) for piece in STAND_IN.events(turn, 1)]
    pieces[at % len(pieces)][place] = value
    outcomes = [read(json.dumps(whole).encode())[1]]
    outcomes.append(read(events(*(json.dumps(piece).encode() for piece in pieces)), "text/event-stream")[1])
    assert all(isinstance(outcome, Completion | Refusal) for outcome in outcomes)


USAGES: list[tuple[Any, tuple[Any, ...]]] = [
    ({"input_tokens": 5, "output_tokens": 3}, (5, 3, 0, 0, 0, False)),
    ({"input_tokens": 0, "cache_read_input_tokens": 7, "output_tokens": 3}, (7, 3, 7, 0, 0, False)),
    ({"input_tokens": 0, "output_tokens": 0}, (None, 0, 0, 0, 0, False)),
    ({"input_tokens": True, "cache_read_input_tokens": 7, "output_tokens": "3"}, (None, None, 0, 0, 0, False)),
    ({"input_tokens": -1, "output_tokens": 2**40}, (None, None, 0, 0, 0, False)),
    ({"input_tokens": 2**40 - 1, "cache_read_input_tokens": 9, "output_tokens": 1}, (None, 1, 0, 0, 0, False)),
    ({"input_tokens": 5, "cache_read_input_tokens": None, "output_tokens": 1.5}, (5, None, 0, 0, 0, False)),
    ({"input_tokens": 5, "output_tokens": 3, "output_tokens_details": {"thinking_tokens": 9}}, (5, 3, 0, 0, 3, True)),
    ({"input_tokens": 5, "output_tokens": 3, "output_tokens_details": [1]}, (5, 3, 0, 0, 0, False)),
    (None, (None, None, 0, 0, 0, False)),
    ([1], (None, None, 0, 0, 0, False)),
    (
        {
            "input_tokens": 5,
            "output_tokens": 3,
            "iterations": [
                {"type": "compaction", "input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 900},
                {"type": "message", "input_tokens": 5, "output_tokens": 3, "cache_creation_input_tokens": 7},
            ],
        },
        (1012, 23, 900, 7, 0, False),
    ),
    ({"input_tokens": 5, "output_tokens": 3, "iterations": []}, (5, 3, 0, 0, 0, False)),
    ({"input_tokens": 5, "output_tokens": 3, "iterations": [{"input_tokens": 9}]}, (5, 3, 0, 0, 0, False)),
    ({"input_tokens": 5, "output_tokens": 3, "iterations": [None]}, (5, 3, 0, 0, 0, False)),
]


@pytest.mark.parametrize(("usage", "counts"), USAGES)
def test_counts_that_cannot_be_true_are_none(usage: Any, counts: tuple[Any, ...]) -> None:
    reply = read_value(message(usage=usage))
    tokens = (reply.input_tokens, reply.output_tokens, reply.cached_tokens, reply.cache_write_tokens)
    assert (*tokens, reply.reasoning_tokens, reply.estimated) == counts


# ── streams ───────────────────────────────────────────────────────────────────────────────────────────


def events(*values: Any) -> bytes:
    return b"".join(
        b"event: x\ndata: %b\n\n" % (each if isinstance(each, bytes) else orjson.dumps(each)) for each in values
    )


def start(index: Any, block: Any) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: Any, kind: str, **more: Any) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **more}}


def ended(reason: Any = "end_turn", **usage: Any) -> list[Json]:
    return [{"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}, {"type": "message_stop"}]


TEXT = {"type": "text", "text": ""}
STREAMS: dict[str, tuple[list[Any], Json]] = {
    "no starts": ([delta(0, "text_delta", text="Hi"), *ended()], {"content": "Hi"}),
    "no indexes": (
        [start(None, TEXT), delta(None, "text_delta", text="H"), delta(None, "text_delta", text="i"), *ended()],
        {"content": "Hi"},
    ),
    "one index for all": (
        [
            start(0, TEXT),
            delta(0, "text_delta", text="Hi"),
            start(0, {**CALL, "input": {}}),
            delta(0, "input_json_delta", partial_json='{"a":1}'),
            *ended("tool_use"),
        ],
        {"content": "Hi", "calls": ({"name": "look", "arguments": '{"a":1}'},)},
    ),
    "a call whole at its start": ([start(0, CALL), *ended()], {"calls": ({"name": "look", "arguments": '{"a":"x"}'},)}),
    "a call that is cut": (
        [start(0, {**CALL, "input": {}}), delta(0, "input_json_delta", partial_json='{"a":'), *ended("max_tokens")],
        {"calls": ({"name": "look", "arguments": '{"a":'},), "finish_reason": "max_tokens", "echo": None},
    ),
    "a text at its start": (
        [start(0, {"type": "text", "text": "H"}), delta(0, "text_delta", text="i"), *ended()],
        {"content": "Hi"},
    ),
    "unknown events and pieces": (
        [
            {"type": "of_tomorrow"},
            {},
            start(0, TEXT),
            delta(0, "of_tomorrow_delta", text="no"),
            delta(0, "text_delta"),
            delta(7, "input_json_delta", partial_json="{"),
            {"type": "content_block_delta"},
            delta(0, "text_delta", text="Hi"),
            {"type": "message_start", "message": None},
            *ended(),
        ],
        {"content": "Hi", "finish_reason": "end_turn"},
    ),
    "a thought is no text": (
        [
            start(0, {"type": "thinking", "thinking": ""}),
            delta(0, "thinking_delta", thinking="Hm"),
            delta(0, "text_delta", text="?"),
            delta(1, "thinking_delta", thinking="!"),
            start(2, TEXT),
            delta(2, "text_delta", text="Hi"),
            *ended(),
        ],
        {"content": "Hi"},
    ),
    "a whole message as an event": (
        [message({"type": "text", "text": "Hi"})],
        {"content": "Hi", "finish_reason": "end_turn"},
    ),
    "no last event": ([start(0, TEXT), delta(0, "text_delta", text="Hi"), ended()[0]], {"content": "Hi"}),
    "no reason": (
        [start(0, TEXT), delta(0, "text_delta", text="Hi"), {"type": "message_stop"}],
        {"finish_reason": "stop"},
    ),
    "done": ([start(0, TEXT), delta(0, "text_delta", text="Hi"), b"[DONE]"], {"content": "Hi"}),
    "halves of a character": (
        [
            start(0, TEXT),
            b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\ud83d"}}',
            b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\ude00"}}',
            *ended(),
        ],
        {"content": "😀"},
    ),
    "halves of a character in a call": (
        [
            start(0, {**CALL, "input": {}}),
            b'{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\\"a\\":\\"\\ud83d"}}',
            b'{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"\\ude00\\"}"}}',
            *ended("tool_use"),
        ],
        {"calls": ({"name": "look", "arguments": '{"a":"😀"}'},)},
    ),
    "a lone half in a call": (
        [
            start(0, {**CALL, "input": {}}),
            delta(0, "input_json_delta", partial_json='{"a":"\\ud83d"}'),
            *ended("tool_use"),
        ],
        {"calls": ({"name": "look", "arguments": '{"a":"\ufffd"}'},)},
    ),
    "counts are cumulative": (
        [
            {
                "type": "message_start",
                "message": {"usage": {"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 2}},
            },
            start(0, TEXT),
            delta(0, "text_delta", text="Hi"),
            *ended(output_tokens=9, input_tokens=None),
        ],
        {"input_tokens": 7, "output_tokens": 9, "cached_tokens": 2},
    ),
    "a second message in place of the first": (
        [
            {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}},
            start(0, {**CALL, "input": {}}),
            delta(0, "input_json_delta", partial_json='{"a":"lo'),
            {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}},
            start(0, {**CALL, "input": {}}),
            delta(0, "input_json_delta", partial_json='{"a":"lost"}'),
            *ended("tool_use"),
        ],
        {"calls": ({"name": "look", "arguments": '{"a":"lost"}'},), "input_tokens": 5},
    ),
    "what is on the way is counted": (
        [
            {"type": "message_start", "message": {"usage": {"input_tokens": 4, "cache_read_input_tokens": 900}}},
            start(0, TEXT),
            delta(0, "text_delta", text="Hi"),
            *ended(
                input_tokens=9,
                output_tokens=2,
                cache_read_input_tokens=0,
                iterations=[
                    {"type": "compaction", "input_tokens": 4, "cache_read_input_tokens": 900, "output_tokens": 30},
                    {"type": "message", "input_tokens": 9, "output_tokens": 2},
                ],
            ),
        ],
        {"input_tokens": 913, "cached_tokens": 900, "output_tokens": 32},
    ),
    "a later null erases nothing": (
        [
            ended()[0],
            {"type": "message_delta", "delta": {"stop_reason": None}, "usage": None},
            {"type": "message_stop"},
        ],
        {"finish_reason": "end_turn"},
    ),
    "blocks that are none": (
        [start(0, None), start(1, "x"), delta(0, "text_delta", text="no"), *ended()],
        {"content": ""},
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_an_odd_stream_is_read_as_far_as_it_can_be(name: str) -> None:
    values, expected = STREAMS[name]
    shown, completion = read(events(*values), "text/event-stream")
    assert isinstance(completion, Completion)
    assert {field: getattr(completion, field) for field in expected} == expected
    assert shown == completion.content


def test_a_second_message_after_a_text_was_shown_is_a_stream_that_was_cut() -> None:
    begun = {"type": "message_start", "message": {}}
    values = [begun, start(0, TEXT), delta(0, "text_delta", text="He"), begun, start(0, TEXT)]
    shown, refusal = read(events(*values, delta(0, "text_delta", text="Hello"), *ended()), "text/event-stream")
    assert (shown, isinstance(refusal, Refusal) and refusal.transient) == ("He", True)


def test_a_second_message_that_is_cut_is_not_whole_by_the_end_of_the_first() -> None:
    first = [{"type": "message_start", "message": {}}, start(0, {**CALL, "input": {"a": "x"}}), ended("tool_use")[0]]
    second = [first[0], start(0, {**CALL, "input": {}}), delta(0, "input_json_delta", partial_json='{"a":"lo')]
    refusal = read(events(*first, *second), "text/event-stream")[1]
    assert isinstance(refusal, Refusal)
    assert refusal.transient


def test_a_stream_of_another_api_is_no_empty_reply() -> None:
    chunk = {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}
    refusal = read(events(chunk, b"[DONE]"), "text/event-stream")[1]
    assert isinstance(refusal, Refusal)
    assert refusal.message.startswith('answered with no message: {"choices":')


@pytest.mark.parametrize("label", ["text/event-stream", "application/json", "", "text/plain; charset=utf-8"])
def test_a_wrong_label_is_not_believed(label: str) -> None:
    turn = Turn("Hi")
    assert read(STAND_IN.whole(turn, 1), label)[1].content == "Hi"
    assert read(b"".join(STAND_IN.events(turn, 1)), label)[1].content == "Hi"


def test_a_call_whose_characters_were_cut_goes_back_whole() -> None:
    values, _ = STREAMS["halves of a character in a call"]
    echo = read(events(*values), "text/event-stream")[1].echo
    assert echo == {"native": parts({**CALL, "input": {"a": "😀"}})}


def test_citations_and_signatures_of_a_stream_are_kept() -> None:
    cited = [{"type": "char_location", "cited_text": text} for text in "ab"]
    stream = events(
        start(0, {"type": "thinking", "thinking": "", "signature": ""}),
        delta(0, "signature_delta", signature="sig/+="),
        start(1, REDACTED),
        start(2, {"type": "text", "text": "", "citations": None}),
        *(delta(2, "citations_delta", citation=each) for each in cited),
        delta(2, "text_delta", text="Hi"),
        start(3, CALL),
        *ended("tool_use"),
    )  # fmt: skip
    _, completion = read(stream, "text/event-stream")
    assert completion.echo["native"]["parts"] == [
        {"type": "thinking", "thinking": "", "signature": "sig/+="},
        REDACTED,
        {"type": "text", "text": "Hi", "citations": cited},
        CALL,
    ]


@pytest.mark.parametrize(("kind", "transient"), [("overloaded_error", True), ("invalid_request_error", False)])
def test_an_error_in_a_stream_is_a_refusal(kind: str, transient: bool) -> None:
    stream = events(start(0, TEXT), delta(0, "text_delta", text="Hi"), STAND_IN.error(529, "Overloaded", kind))
    refusal = read(stream, "text/event-stream")[1]
    assert (refusal.transient, "Overloaded" in refusal.message) == (transient, True)


def cuts(turn: Turn, step: int) -> Iterator[tuple[Any, bytes]]:
    stream = b"".join(STAND_IN.events(turn, 1))
    for end in range(1, len(stream), step):
        yield read(stream[:end], "text/event-stream")[1], stream[:end]


@pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_a_stream_that_is_cut_is_asked_again_until_its_end_is_known(step: int) -> None:
    whole = read(STAND_IN.whole(TURNS["thought and calls"], 1))[1]
    for outcome, seen in cuts(TURNS["thought and calls"], step):
        last = next((line for line in seen.splitlines() if b'"stop_reason":"tool_use"' in line), b"{")
        if last.count(b"{") == last.count(b"}"):  # the event's empty line may be missing
            assert outcome == whole
        else:
            assert isinstance(outcome, Refusal)
            assert outcome.transient


@pytest.mark.parametrize("step", [17, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_a_whole_reply_that_is_cut_is_a_refusal(step: int) -> None:
    body = STAND_IN.whole(TURNS["thought and calls"], 1)
    outcomes = [read(body[:end])[1] for end in range(0, len(body), step)]
    assert all(isinstance(outcome, Refusal) for outcome in outcomes)


# ── what is left out once it is refused ───────────────────────────────────────────────────────────────

FULL: Json = {"temperature": 0.5, "top_p": 0.5, "stop": ["END"], "tools": [TOOL], "tool_choice": "required"}
SONNET_5 = {"model": "claude-sonnet-5", "reasoning": "none"}
MANUALLY = {"model": MANUAL, "reasoning": "low"}
ADAPTIVELY = {"model": ADAPTIVE, "reasoning": "low", "tools": [TOOL]}
FORMAT = {"response_format": "json_schema", "step_schema": CLOSED}
REFUSALS: dict[str, tuple[Json, str, str]] = {
    "both": (FULL, "`temperature` and `top_p` cannot both be specified for this model. Please use only one.", "top_p"),
    "deprecated": (FULL, "`temperature` is deprecated for this model.", "temperature"),
    "extra": (FULL, "top_p: Extra inputs are not permitted", "top_p"),
    "thinking by default": (
        FULL,
        "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.",
        "temperature",
    ),
    "stop": (FULL, "stop_sequences is not supported by this model", "stop_sequences"),
    "choice": (FULL, "Thinking may not be enabled when tool_choice forces tool use.", "tool_choice"),
    "cache": (FULL, "messages.0.content.0.text.cache_control: Extra inputs are not permitted", "cache_control"),
    "enabled": (
        MANUALLY,
        '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
        '"output_config.effort" to control thinking behavior.',
        "enabled",
    ),
    "adaptive": (ADAPTIVELY, "adaptive thinking is not supported on this model", "adaptive"),
    "adaptive tag": (
        ADAPTIVELY,
        "thinking: Input tag 'adaptive' found using 'type' does not match any of the expected tags: 'disabled'",
        "adaptive",
    ),
    "effort": (ADAPTIVELY, "This model does not support the effort parameter.", "effort"),
    "output_config": (ADAPTIVELY, "output_config: Extra inputs are not permitted", "output_config"),
    "disabled": (SONNET_5, '"thinking.type.disabled" is not supported for this model.', "disabled"),
    "format": (FORMAT, "output_config.format: structured outputs are not supported for this model", "output_config"),
    "schema": (FORMAT, "output_config.format.schema: For 'string' type, property 'pattern' is not supported", "format"),
    "limit": ({}, "max_tokens: 32000 > 4096, which is the maximum allowed number of output tokens for m", "32000"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_a_refusal_names_is_left_out_and_remembered(name: str) -> None:
    options, words, gone = REFUSALS[name]
    asked = question(**{"model": ADAPTIVE, **options})
    before = write(asked)
    adapted = adapt(asked, WIRE.capabilities, "not", Refusal(f"answered 400: {words}", 400))
    assert adapted is not None
    after = orjson.dumps(write(asked, adapted.capabilities)).decode()
    assert (gone in orjson.dumps(before).decode(), gone in after, adapted.lasting) == (True, False, True)
    kept = "tools" if "tools" in before else "messages"
    assert kept in after


OTHER_FAULTS = [
    (400, "messages.0.content: at least one message is required"),
    (400, "tools.0.custom.input_schema.properties: temperature is not supported"),
    (400, "Your credit balance is too low to access the Anthropic API."),
    (401, "`temperature` is not supported"),
    (500, "thinking is not supported"),
    (0, "temperature"),
]


@pytest.mark.parametrize(("status", "words"), OTHER_FAULTS)
def test_a_refusal_for_another_reason_changes_nothing(status: int, words: str) -> None:
    assert adapt(question(**FULL), WIRE.capabilities, "not", Refusal(words, status)) is None


def test_a_window_that_is_full_lowers_the_limit_of_this_question_alone() -> None:
    refusal = Refusal("input length and `max_tokens` exceed context limit: 160000 + 32000 > 190000", 400)
    adapted = adapt(question(), WIRE.capabilities, "not", refusal)
    assert adapted is not None
    assert (write(question(), adapted.capabilities)["max_tokens"], adapted.lasting) == (4_096, False)


def test_the_limit_of_the_author_is_not_changed() -> None:
    refusal = Refusal("max_tokens: 50 > 40, which is the maximum", 400)
    assert adapt(question(max_output_tokens=50), WIRE.capabilities, "not", refusal) is None


EVERYTHING = ["thinking", "effort", "temperature", "top_p", "stop_sequences", "tool_choice", "cache_control", "schema"]
EVERYTHING.append("max_tokens")


@pytest.mark.parametrize("model", [ADAPTIVE, MANUAL, "claude-sonnet-5", "kimi-k3"])
@pytest.mark.parametrize("level", ["none", "low"])
def test_an_endpoint_that_refuses_whatever_it_can_is_left_after_a_few_requests(model: str, level: str) -> None:
    """Every change leaves out something that was sent."""
    words = f"{', '.join(EVERYTHING)} not supported"
    for message in (words, words.replace(", max_tokens", "")):
        asked, known = question(**{**FULL, "model": model, "reasoning": level}), WIRE.capabilities
        bodies = []
        while adapted := adapt(asked, known, "not", Refusal(message, 400)):
            known = adapted.capabilities
            bodies.append(orjson.dumps(write(asked, known)))
        assert len(set(bodies)) == len(bodies) < 12


def test_a_model_that_cannot_be_kept_from_thinking_thinks_little() -> None:
    asked, known = question(**SONNET_5), WIRE.capabilities
    seen = []
    while adapted := adapt(asked, known, "not", Refusal("thinking.type: not supported for this model", 400)):
        known = adapted.capabilities
        seen.append({key: write(asked, known).get(key) for key in ("thinking", "output_config")})
    assert seen == [
        {"thinking": {"type": "between_tools"}, "output_config": None},
        {"thinking": None, "output_config": {"effort": "low"}},
    ]


NATIVE_REFUSED = [
    "messages.1.content.0: Invalid `signature` in `thinking` block",
    "messages.1.content.0: `thinking` blocks in the latest assistant message cannot be modified. These must remain",
    "messages.1.content.3: Input tag 'of_tomorrow' found using 'type' does not match any of the expected tags",
]


@pytest.mark.parametrize("words", NATIVE_REFUSED)
def test_own_parts_that_the_vendor_refuses_are_left_out_of_this_question_alone(words: str) -> None:
    asked = question(HELLO, *calling("a", native=parts(THOUGHT, CALL)))
    refusal = Refusal(f"answered 400: {words}", 400)
    adapted = adapt(asked, WIRE.capabilities, "not", refusal)
    assert adapted is not None
    assert not adapted.lasting
    written = WIRE.write("m", asked, adapted.capabilities, "not")
    assert (written.dropped, b"sig/" in written.body) == (("messages",), False)
    assert adapt(asked, adapted.capabilities, "not", refusal) is None


def test_thinking_that_cannot_go_on_here_is_left_out_of_this_question_alone() -> None:
    asked = question(HELLO, *calling("a"), reasoning="low")
    words = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
    adapted = adapt(asked, WIRE.capabilities, "not", Refusal(words, 400))
    assert adapted is not None
    assert not adapted.lasting
    assert "thinking" not in write(asked, adapted.capabilities)


def test_an_endpoint_that_does_not_stream_is_asked_for_whole_replies() -> None:
    adapted = adapt(question(), WIRE.capabilities, "with usage", Refusal("stream: not supported", 400))
    assert adapted is not None
    assert adapted.streaming == "not"
    bodies = [orjson.loads(WIRE.write("m", question(), WIRE.capabilities, how).body) for how in ("with usage", "not")]
    assert [body.get("stream") for body in bodies] == [True, None]


# ── through the client ────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def endpoint(*replies: bytes, path: str = "") -> AsyncIterator[tuple[EndpointClient, Loopback]]:
    async with serving(*replies) as server:
        base_url = server.url.removesuffix("/v1") + path
        model = EndpointClient("m1", WIRE, base_url=base_url, api_key=KEY, backoff=0.001)
        try:
            yield model, server
        finally:
            await model.close()


def whole(*turns: Turn) -> list[bytes]:
    return [http(200, STAND_IN.whole(turn, number)) for number, turn in enumerate(turns)]


@pytest.mark.parametrize("path", ["", "/v1", "/v1/", "/gateway", "/gateway/v1"])
async def test_the_base_url_may_have_the_path_of_the_version(path: str) -> None:
    async with endpoint(*whole(Turn("Hi")), path=path) as (model, server):
        await model.complete(question())
    request = server.requests[0]
    assert request.target == path.rstrip("/").removesuffix("/v1") + "/v1/messages"
    assert STAND_IN.is_its_path(request)
    assert (STAND_IN.key_of(request), "authorization" in request.headers) == (KEY, False)


async def test_an_overloaded_endpoint_is_asked_again() -> None:
    busy = http(529, STAND_IN.error(529, "Overloaded"))
    stream = http(200, b"".join(STAND_IN.events(Turn("Hi"), 1)), content_type="text/event-stream")
    broken = http(200, events(start(0, TEXT), STAND_IN.error(529, "Overloaded")), content_type="text/event-stream")
    async with endpoint(busy, broken, stream) as (model, _), aclosing(model.stream(question())) as pieces:
        *deltas, reply = [each async for each in pieces]
    assert isinstance(reply, Completion)
    assert ("".join(each.text for each in deltas if isinstance(each, Delta)), reply.requests) == ("Hi", 3)


async def test_a_question_that_is_too_long_says_by_how_much() -> None:
    refusal = http(400, STAND_IN.error(400, "prompt is too long: 210000 tokens > 200000 maximum"))
    async with endpoint(refusal) as (model, _):
        with pytest.raises(ModelError) as caught:
            await model.complete(question())
    assert caught.value.overflow == {"room": 200_000, "counted": 210_000}


async def test_a_refusal_by_the_model_ends_as_filtered() -> None:
    async with endpoint(*whole(Turn(finish="content_filter"))) as (model, _):
        output = await run_agent(
            {"model": "m1", "prompt": "Go.", "max_steps": 2, "allowed_tools": []},
            registry=ToolRegistry([]),
            model=model,
        )
    assert (output.finish_reason, EXPLANATION in output.error["message"]) == ("content_filter", True)
    assert output.usage["input_tokens"]


async def test_a_form_that_is_refused_once_is_not_tried_again() -> None:
    refusal = http(400, STAND_IN.error(400, '"thinking.type.enabled" is not supported for this model.'))
    async with endpoint(refusal, *whole(Turn("Hi"))) as (model, server):
        first, second = [await model.complete(question(reasoning="low", model="m1")) for _ in range(2)]
    assert (first.requests, second.requests) == (2, 1)
    assert [request.json()["thinking"]["type"] for request in server.requests] == ["enabled", "adaptive", "adaptive"]


async def test_a_reply_that_is_paused_goes_on() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    usage = {"input_tokens": 10, "output_tokens": 5}
    paused = message({"type": "text", "text": "I look. "}, search, stop_reason="pause_turn", usage=usage)
    async with endpoint(http(200, paused), http(200, paused), *whole(Turn("Done.", [("look", {})]))) as (model, server):
        reply = await model.complete(question(SYSTEM, HELLO))
    assert (reply.content, reply.finish_reason, reply.requests) == ("I look. I look. Done.", "tool_use", 3)
    assert (reply.input_tokens, reply.output_tokens) == (140, 40)
    assert [len(request.json()["messages"]) for request in server.requests] == [1, 2, 2]
    assert server.requests[2].json()["messages"][1] == {"role": "assistant", "content": paused["content"] * 2}
    assert reply.echo is not None
    assert [part["type"] for part in reply.echo["native"]["parts"]].count("server_tool_use") == 2


async def test_the_text_of_a_paused_reply_is_shown_as_one_also_when_a_stream_breaks() -> None:
    def streamed(*values: Any) -> bytes:
        return http(200, events(*values), content_type="text/event-stream")

    paused = streamed(start(0, TEXT), delta(0, "text_delta", text="I look. "), *ended("pause_turn"))
    broken = streamed(start(0, TEXT), delta(0, "text_delta", text="Do"))
    done = streamed(start(0, TEXT), delta(0, "text_delta", text="Done."), *ended())
    async with endpoint(paused, broken, done) as (model, _), aclosing(model.stream(question())) as pieces:
        *deltas, reply = [each async for each in pieces]
    assert isinstance(reply, Completion)
    assert reply.content == "I look. Done."
    assert deltas == [Delta("I look. "), Delta("Do"), Delta("I look. Done.", anew=True)]


@pytest.mark.parametrize("blocks", [[], [CALL]])
async def test_a_pause_that_cannot_go_on_is_the_end(blocks: list[Json]) -> None:
    """Calls want their results first."""
    async with endpoint(http(200, message(*blocks, stop_reason="pause_turn"))) as (model, _):
        reply = await model.complete(question())
    assert (reply.finish_reason, reply.requests, len(reply.calls)) == ("pause_turn", 1, len(blocks))


async def test_parts_that_are_refused_are_sent_again_with_the_next_question() -> None:
    refusal = http(400, STAND_IN.error(400, "messages.1.content.0: Invalid `signature` in `thinking` block"))
    asked = question(HELLO, *calling("a", native=parts(THOUGHT, CALL)))
    async with endpoint(refusal, *whole(Turn("Hi"))) as (model, server):
        first, second = await model.complete(asked), await model.complete(asked)
    assert (first.dropped, second.dropped) == (("messages",), ())
    assert [b"sig/" in request.body for request in server.requests] == [True, False, True]


# ── nothing of the environment goes elsewhere ─────────────────────────────────────────────────────────

ENVIRONMENT = {
    "ANTHROPIC_API_KEY": "key-of-the-environment",
    "ANTHROPIC_AUTH_TOKEN": "token-of-the-environment",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Secret: header-of-the-environment\nAuthorization: Bearer of-the-environment",
    "ANTHROPIC_BASE_URL": "https://elsewhere-of-the-environment.example",
    "ANTHROPIC_PROFILE": "profile-of-the-environment",
    "ANTHROPIC_WEBHOOK_SIGNING_KEY": "hook-of-the-environment",
    "ANTHROPIC_FEDERATION_RULE_ID": "rule-of-the-environment",
    "ANTHROPIC_ORGANIZATION_ID": "org-of-the-environment",
    "ANTHROPIC_WORKSPACE_ID": "workspace-of-the-environment",
    "ANTHROPIC_IDENTITY_TOKEN": "identity-of-the-environment",
    "CLAUDE_CODE_USE_VERTEX": "1",
    "GOOGLE_CLOUD_PROJECT": "project-of-the-environment",
}
ENVIRONMENTS = {
    "with keys": ENVIRONMENT,
    "with an identity": {
        name: value for name, value in ENVIRONMENT.items() if not name.endswith(("_KEY", "_AUTH_TOKEN", "_PROFILE"))
    },
}
AT_HOME = ["https://api.anthropic.com/v1", "https://api.anthropic.com"]
ELSEWHERE = ["http://api.anthropic.com", "https://api.anthropic.com:444/v1", "https://api.anthropic.com.evil.example"]
ELSEWHERE += ["http://127.0.0.1:9/v1"]


@pytest.mark.parametrize("others", ENVIRONMENTS)
@pytest.mark.parametrize("key", [KEY, None])
@pytest.mark.parametrize("base_url", [*AT_HOME, *ELSEWHERE])
async def test_a_request_carries_our_key_alone(
    base_url: str, key: str | None, others: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENTS[others].items():
        monkeypatch.setenv(name, value)
    head = await WIRE.read_head("m1", base_url, key, streams=False)
    headers = dict(head.headers)
    assert (headers.get("x-api-key"), "authorization" in headers) == (key, False)
    assert head.url == base_url.removesuffix("/v1") + "/v1/messages"
    leaked = [value for value in headers.values() if "of-the-environment" in value]
    assert leaked == (["header-of-the-environment"] if base_url in AT_HOME else [])
    assert headers["anthropic-version"] == "2026-10-21"


# ── a run ─────────────────────────────────────────────────────────────────────────────────────────────

ARGS = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


async def look(args: Json, context: Any) -> str:
    return f"seen {args['a']}"


def registry() -> ToolRegistry:
    return ToolRegistry([Tool("look", "Looks.", ARGS, look, effect="read")])


@pytest.mark.parametrize("streams", [False, True])
async def test_a_run_keeps_a_thought_across_its_calls(streams: bool) -> None:
    turns = [
        Turn("Let me see.", [("look", {"a": "x"}), ("look", {"a": "y"})], "Two of them."),
        Turn("", [("look", {"a": "z"})]),
        Turn("Done.", thought="Enough."),
    ]
    stream = [
        http(200, b"".join(STAND_IN.events(turn, number)), content_type="text/event-stream")
        for number, turn in enumerate(turns)
    ]
    config = {"model": "anthropic:m1", "protocol": "tools", "allowed_tools": ["look"], "prompt": "Go.", "max_steps": 5}
    heard: list[Any] = []
    journal = MemoryJournal()
    async with endpoint(*(stream if streams else whole(*turns))) as (model, server):
        output = await run_agent(
            config,
            registry=registry(),
            model=model,
            journal=journal,
            on_event=heard.append if streams else None,
        )
    assert (output.finish_reason, output.final_answer) == ("final", "Done.")
    asked = [STAND_IN.read(request) for request in server.requests]
    assert [each.streams for each in asked] == [streams] * 3
    assert [each.thoughts for each in asked] == [[], [True], [True, True]]
    assert [each.results for each in asked] == [[], ["seen x", "seen y"], ["seen x", "seen y", "seen z"]]
    assert asked[2].calls == [("look", {"a": "x"}), ("look", {"a": "y"}), ("look", {"a": "z"})]
    assert [len(each.marks) for each in asked] == [2, 3, 3]
    for before, after in pairwise(asked):
        assert before.marks[-1] == after.marks[-2], "the cache of the question before is found"
    assert output.usage["input_tokens"] == 360
    assert "Two of them." not in str([event for event in heard if "delta" in type(event).__name__.lower()])


async def test_a_run_in_the_json_dialect() -> None:
    steps = [{"type": "action", "tool": "look", "args": {"a": "x"}}, {"type": "final", "answer": "Done."}]
    turns = [Turn(orjson.dumps(step).decode(), thought="Hm.") for step in steps]
    config = {"model": "anthropic:m1", "allowed_tools": ["look"], "prompt": "Go.", "max_steps": 5}
    async with endpoint(*whole(*turns)) as (model, server):
        output = await run_agent(config, registry=registry(), model=model)
    assert (output.finish_reason, output.final_answer) == ("final", "Done.")
    asked = [STAND_IN.read(request) for request in server.requests]
    assert not any(each.tools or each.calls or "output_config" in each.options for each in asked)
    assert "seen x" in asked[1].said[-1]


def test_the_sdk_is_imported_beside_the_event_loop() -> None:
    """It takes seconds on a slow machine, and other questions go on meanwhile."""
    code = """
import asyncio, sys, threading
threads = []
def hear(event, args):
    if event == "import" and args[0].startswith("anthropic."):
        threads.append(threading.current_thread() is threading.main_thread())
sys.addaudithook(hear)
from agent_core.models import ModelError, Question
from agent_core.models.providers import create_model
model = create_model("anthropic:m1", base_url="http://127.0.0.1:9", api_key="k", api="native")
async def main():
    try:
        await model.complete(Question("m1", (b'{"role":"user","content":"Hi"}',), {}, "agent", 0, within=0.1))
    except ModelError:
        print(threads[0])
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
