"""OpenAI's Responses API: what is sent, what is read, and what goes back, checked by the openai SDK's own types."""

import json
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import replace
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core import run_agent
from agent_core.models import Completion, Delta, ModelError, Question
from agent_core.models.endpoint.answer import HttpAnswer, Refusal
from agent_core.models.endpoint.asking import Adapted
from agent_core.models.endpoint.capabilities import EndpointCapabilities, Streaming
from agent_core.models.endpoint.client import EndpointClient
from agent_core.models.finish_reasons import read_finish_reason
from agent_core.models.openai.responses.reasoning import find_family
from agent_core.models.openai.responses.strict import qualifies
from agent_core.models.openai.responses.wire import ANY_JSON, ResponsesWire, with_version
from support.loopback import Loopback, Request, http, serving
from support.wires.responses import STAND_IN, check_types, write_items
from support.wires.turn import KEY, Counts, Turn
from utools import Tool, ToolRegistry

WIRE = ResponsesWire()
CLOSED = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
OPEN = {"type": "object", "properties": {"a": {"type": "integer"}}}
JSON_HEAD = HttpAnswer(200, {"content-type": "application/json"}, b"")
EVENT_HEAD = HttpAnswer(200, {"content-type": "text/event-stream"}, b"")
CALLING = Turn("Ich schaue nach. 😀", [("add", {"a": 1}), ("add", {"a": 2})], "Erst denken.", counts=Counts(cached=9))


def tool(parameters: Any = CLOSED) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": parameters}}


def message(role: str, content: str | None, **more: Any) -> bytes:
    return orjson.dumps({"role": role, "content": content, **more})


def ask(*messages: bytes, model: str = "m1", **options: Any) -> Question:
    return Question(f"openai:{model}", messages or (message("user", "Hi"),), options, "agent", 0)


def adapt(asked: Question, *about: Any) -> Adapted | None:
    """How the model is asked again whose name is behind the colon."""
    return WIRE.adapt(asked.model.partition(":")[2], asked, *about)


def body_of(question: Question, capabilities: EndpointCapabilities = ANY_JSON, streaming: Streaming = "not") -> Any:
    """The body of a question, which the SDK's types must allow."""
    written = WIRE.write(question.model.partition(":")[2], question, capabilities, streaming)
    body = orjson.loads(written.body)
    check_types(body)
    return body


def options_of(model: str = "m1", **options: Any) -> Any:
    body = body_of(ask(model=model, **options))
    return {name: value for name, value in body.items() if name not in ("model", "input", "store")}


def read(head: HttpAnswer, pieces: Iterable[bytes]) -> tuple[str, Completion | Refusal]:
    """The text that was shown, and what came of it."""
    pieces = list(pieces)
    reader = WIRE.open_reader(head, pieces[0] if pieces else b"")
    shown = [text for piece in pieces for text in reader.feed(piece)]
    outcome = reader.end(0.0)
    return "".join([*shown, reader.rest(outcome)]), outcome


def read_whole(reply: Any) -> Completion | Refusal:
    return read(JSON_HEAD, [reply if isinstance(reply, bytes) else orjson.dumps(reply)])[1]


def read_events(*events: Any, done: bool = False) -> tuple[str, Completion | Refusal]:
    data = [b"data: %b\n\n" % orjson.dumps(event) for event in events]
    return read(EVENT_HEAD, [*data, *[b"data: [DONE]\n\n"] * done])


def completed(*output: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    return {"object": "response", "status": status, "output": list(output), "error": None, **more}


def said(text: Any, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}], **more}


def call(name: Any = "add", arguments: Any = '{"a":1}', call_id: Any = "c1", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "name": name, "arguments": arguments, "call_id": call_id, **more}


def completion_of(outcome: Completion | Refusal) -> Completion:
    assert isinstance(outcome, Completion), outcome
    return outcome


def refusal_of(outcome: Completion | Refusal) -> Refusal:
    assert isinstance(outcome, Refusal), outcome
    return outcome


# ── what is sent ──────────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_stored_and_a_plain_question_has_no_more_than_it_needs() -> None:
    body = body_of(ask(message("system", "Sei kurz."), message("user", "Hi")))
    items = [{"type": "message", "role": "system", "content": "Sei kurz."}]
    items += [{"type": "message", "role": "user", "content": "Hi"}]
    assert body == {"model": "m1", "input": items, "store": False}


@pytest.mark.parametrize(
    ("model", "role"), [("gpt-5.2", "developer"), ("o3", "developer"), ("gpt-4o", "system"), ("qwen3", "system")]
)
def test_the_system_speaks_in_the_role_that_the_model_knows(model: str, role: str) -> None:
    assert body_of(ask(message("system", "S"), model=model))["input"][0]["role"] == role


def test_a_longer_conversation_begins_with_the_items_of_the_shorter_one() -> None:
    texts = [message("system", "S"), message("user", "A"), message("user", "B"), message("assistant", "C")]
    bodies = [body_of(ask(*texts[:count]))["input"] for count in range(1, 5)]
    assert all(longer[: len(shorter)] == shorter for shorter, longer in pairwise(bodies))
    assert bodies[-1][-1] == {"type": "message", "role": "assistant", "content": "C"}


THINKS = {"include": ["reasoning.encrypted_content"]}
AUTO: dict[str, Any] = {"response_format": "auto", "step_schema": OPEN}
JSON_TEXT = {"text": {"format": {"type": "json_object"}}}
SCHEMA_TEXT = {"text": {"format": {"type": "json_schema", "name": "step", "schema": OPEN, "strict": False}}}
WARM = {"temperature": 0.5, "top_p": 0.9}
OPTIONS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("m1", {**WARM, "seed": 7, "stop": ["END"]}, WARM),
    ("m1", {"max_output_tokens": 100}, {"max_output_tokens": 100}),
    ("m1", {"max_output_tokens": 3}, {"max_output_tokens": 16}),
    ("m1", {"max_output_tokens": 0, "temperature": None}, {}),
    ("m1", AUTO, JSON_TEXT),
    ("m1", {**AUTO, "response_format": "json_schema"}, SCHEMA_TEXT),
    ("m1", {"response_format": "json_object"}, JSON_TEXT),
    ("m1", {"response_format": "json_schema"}, JSON_TEXT),
    ("m1", {**AUTO, "response_format": "text"}, {}),
    ("m1", {"reasoning": "high"}, {"reasoning": {"effort": "high"}, **THINKS}),
    ("m1", {"reasoning": "none"}, {"reasoning": {"effort": "none"}}),
    ("gpt-4o", {"reasoning": "high", **WARM}, WARM),
    ("gpt-4o", {}, {}),
    ("gpt-5-chat-latest", {"reasoning": "low", **WARM}, WARM),
    ("gpt-5", WARM, THINKS),
    ("gpt-5-mini-2025-08-07", {"reasoning": "none", **WARM}, {"reasoning": {"effort": "minimal"}, **THINKS}),
    ("gpt-5.1", {"reasoning": "none", **WARM}, {"reasoning": {"effort": "none"}, **THINKS, **WARM}),
    ("gpt-5.4", {"reasoning": "low", **WARM}, {"reasoning": {"effort": "low"}, **THINKS}),
    ("gpt-6-astra", {"reasoning": "medium"}, {"reasoning": {"effort": "medium"}, **THINKS}),
    ("o4-mini", {"reasoning": "none", **WARM}, {"reasoning": {"effort": "low"}, **THINKS}),
    (
        "m1",
        {"extra": {"prompt_cache_key": "k", "service_tier": "flex"}},
        {"prompt_cache_key": "k", "service_tier": "flex"},
    ),
    (
        "o3",
        {"reasoning": "low", "extra": {"reasoning": {"summary": "auto"}}},
        {"reasoning": {"effort": "low", "summary": "auto"}, **THINKS},
    ),
    (
        "m1",
        {**AUTO, "extra": {"text": {"verbosity": "low"}}},
        {"text": {"format": {"type": "json_object"}, "verbosity": "low"}},
    ),
    ("m1", {"temperature": 0.5, "extra": {"temperature": 0.1}}, {"temperature": 0.1}),
    ("m1", {"tools": [], "tool_choice": "none"}, {}),
]


@pytest.mark.parametrize(("model", "options", "expected"), OPTIONS, ids=[f"{m} {o}"[:60] for m, o, _ in OPTIONS])
def test_options_are_sent_in_the_words_of_the_api(
    model: str, options: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert options_of(model, **options) == expected


FAMILIES = {
    **dict.fromkeys(["gpt-4o", "gpt-4.1-mini", "gpt-3.5-turbo", "gpt-35-turbo", "gpt-5-chat-latest"], "plain"),
    **dict.fromkeys(["o1", "o3-mini", "openai/o4-mini", "o3-2025-04-16"], "o"),
    **dict.fromkeys(["gpt-5", "gpt-5-nano", "openai/gpt-5-mini", "ft:gpt-5:me"], "gpt-5"),
    **dict.fromkeys(["gpt-5.1-chat-latest", "gpt-5.6-sol", "gpt-6", "gpt-10.2"], "later"),
    **dict.fromkeys(["m1", "gpt-oss-20b", "o3x", "foo3", "llama-3.1-8b"], None),
}


@pytest.mark.parametrize("model", FAMILIES)
def test_a_name_says_how_its_model_thinks(model: str) -> None:
    assert find_family(model) == FAMILIES[model]


@pytest.mark.parametrize("choice", ["auto", "required", "none"])
def test_functions_go_without_a_response_format_and_say_whether_they_are_strict(choice: str) -> None:
    body = options_of(tools=[tool(), tool(OPEN)], tool_choice=choice, **AUTO)
    strict, open_ = body.pop("tools")
    assert body == {"tool_choice": choice}
    assert strict == {"type": "function", "name": "add", "description": "Adds.", "parameters": CLOSED, "strict": True}
    assert (open_["parameters"], open_["strict"]) == (OPEN, False)


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


TEXT = {"type": "string"}
STRICT = {
    "nested": closed(a=closed(b=TEXT), c={"type": "array", "items": closed(d=TEXT)}),
    "nullable": closed(a={"type": ["string", "null"]}, b={"anyOf": [TEXT, {"type": "null"}]}),
    "references": closed(a={"$ref": "#/$defs/d"}) | {"$defs": {"d": closed(e=TEXT)}},
    "none": closed(),
}
NOT_STRICT = {
    "an optional property": closed(a=TEXT, b=TEXT) | {"required": ["a"]},
    "an open object": closed(a=TEXT) | {"additionalProperties": True},
    "an open object within": closed(a=OPEN),
    "an open definition": closed(a={"$ref": "#/$defs/d"}) | {"$defs": {"d": OPEN}},
    "alternatives at the root": {"anyOf": [closed(a=TEXT)], **closed(a=TEXT)},
    "no object": TEXT,
    "a default": closed(a={"type": "string", "default": "x"}),
    "an unknown keyword": closed(a={"type": "string", "minLength": 1}),
    "an unknown format": closed(a={"type": "string", "format": "uri"}),
    "no type": closed(a={}),
    "an array of anything": closed(a={"type": "array"}),
    "a reference with more": closed(a={"$ref": "#/$defs/d", "description": "x"}) | {"$defs": {"d": TEXT}},
    "no required": {"type": "object", "properties": {}, "additionalProperties": False},
    "true": closed(a=True),
}


@pytest.mark.parametrize("name", STRICT)
def test_a_closed_schema_is_strict(name: str) -> None:
    assert qualifies(STRICT[name])


@pytest.mark.parametrize("name", NOT_STRICT)
def test_a_schema_that_strict_mode_refuses_is_not_strict(name: str) -> None:
    assert not qualifies(NOT_STRICT[name])


@pytest.mark.parametrize("streaming", ["with usage", "bare", "not"])
def test_a_stream_is_asked_for(streaming: Streaming) -> None:
    assert body_of(ask(), streaming=streaming).get("stream", False) is (streaming != "not")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://api.openai.com", "https://api.openai.com/v1"),
        ("https://api.openai.com/", "https://api.openai.com/v1"),
        ("https://api.openai.com/v1", "https://api.openai.com/v1"),
        ("https://gateway.example", "https://gateway.example"),
    ],
)
def test_the_vendors_own_host_gets_its_version(url: str, expected: str) -> None:
    assert with_version(url) == expected


@pytest.mark.parametrize("key", [KEY, None])
@pytest.mark.parametrize("url", ["https://api.openai.com", "http://api.openai.com/v1", "https://gateway.example/v1"])
async def test_nothing_of_the_environment_reaches_another_host(
    url: str, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID", "WEBHOOK_SECRET"):
        monkeypatch.setenv(f"OPENAI_{name}", "ambient-value")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Ambient: ambient-value")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://ambient-value.example")
    head = await WIRE.read_head("m1", url, key, streams=False)
    assert head.url == (url if url.endswith("/v1") else f"{url}/v1") + "/responses"
    assert dict(head.headers).get("authorization") == (f"Bearer {key}" if key else None)
    assert ("ambient-value" in str(head.headers)) is (url == "https://api.openai.com")


# ── a conversation, and a reply's own items ───────────────────────────────────────────────────────────


def echoed(turn: Turn = CALLING) -> dict[str, Any]:
    """What is kept of a reply, after a journal has held it."""
    kept: Any = orjson.loads(orjson.dumps(completion_of(read_whole(STAND_IN.whole(turn, 1))).echo))
    return kept


def history(echo: dict[str, Any] | None, calls: int = 2, api: str = "responses") -> list[bytes]:
    """A question, a reply with calls, and their results, as the loop writes them."""
    if echo is not None and api != "responses":
        echo = {"native": {**echo["native"], "api": api}}
    made = [
        {"id": f"call_x_{i}", "type": "function", "function": {"name": "add", "arguments": f'{{"a": {i + 1}}}'}}
        for i in range(calls)
    ]
    results = [message("tool", f"= {i}", tool_call_id=f"call_x_{i}") for i in range(calls)]
    text = "Ich schaue nach. 😀"
    return [message("user", "Rechne."), message("assistant", text, tool_calls=made, **(echo or {})), *results]


def output_of(id_: str, text: str) -> dict[str, str]:
    return {"type": "function_call_output", "call_id": id_, "output": text}


def test_a_reply_goes_back_as_it_came_and_results_bear_the_vendors_ids() -> None:
    body = body_of(ask(*history(echoed()), message("user", "Und?")))
    results = [output_of("call_1_0", "= 0"), output_of("call_1_1", "= 1")]
    first, last = ({"type": "message", "role": "user", "content": text} for text in ("Rechne.", "Und?"))
    assert body["input"] == [first, *write_items(CALLING, 1), *results, last]
    asked = STAND_IN.read(Request("/v1/responses", {}, orjson.dumps(body), "POST"))
    assert (asked.thoughts, asked.results) == ([True], ["= 0", "= 1"])


FOREIGN: dict[str, tuple[list[bytes], EndpointCapabilities, tuple[str, ...]]] = {
    "another api's parts": (history(echoed(), api="gemini"), ANY_JSON, ("gemini",)),
    "no parts": (history(None), ANY_JSON, ()),
    "parts of other calls": (history(echoed(Turn("", [("add", {})]))), ANY_JSON, ("responses",)),
    "parts that were refused": (history(echoed()), replace(ANY_JSON, left_out=frozenset({"native"})), ("responses",)),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_reply_whose_parts_are_not_sent_goes_back_as_text_and_calls(name: str) -> None:
    messages, capabilities, dropped = FOREIGN[name]
    written = WIRE.write("m1", ask(*messages), capabilities, "not")
    assert written.dropped == dropped
    items = orjson.loads(written.body)["input"]
    assert items[1:] == [
        {"type": "message", "role": "assistant", "content": "Ich schaue nach. 😀"},
        call(arguments='{"a":1}', call_id="call_x_0"),
        call(arguments='{"a":2}', call_id="call_x_1"),
        output_of("call_x_0", "= 0"),
        output_of("call_x_1", "= 1"),
    ]
    STAND_IN.read(Request("/v1/responses", {}, written.body, "POST"))


def test_an_id_that_is_too_long_is_shortened_at_both_ends() -> None:
    long = "x" * 99
    made = [{"id": long, "type": "function", "function": {"name": "add", "arguments": "{}"}}]
    body = body_of(ask(message("assistant", None, tool_calls=made), message("tool", "1", tool_call_id=long)))
    first, second = (item["call_id"] for item in body["input"])
    assert first == second
    assert len(first) == 64


THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
KEPT = {
    "a thought with its encrypted content": (completed(THOUGHT, call()), True),
    "an open thought": (completed({**THOUGHT, "encrypted_content": None, "content": [{"text": "x"}]}, call()), True),
    "calls alone": (completed(call()), True),
    "an unknown item": (completed({"type": "web_search_call", "new": [1]}, call()), True),
    "a reply without status": ({"output": [call()]}, True),
    "a bare thought": (completed({**THOUGHT, "encrypted_content": None}, call()), False),
    "no calls": (completed(THOUGHT, said("x")), False),
    "a cut reply": (completed(call(), status="incomplete"), False),
    "an item that is not done": (completed(THOUGHT, call(status="in_progress")), False),
    "a call without id": (completed(call(call_id=None)), False),
    "calls with one id": (completed(call(), call()), False),
    "an item that is none": (completed(None, call()), False),
}


@pytest.mark.parametrize("name", KEPT)
def test_items_are_kept_where_they_can_go_back(name: str) -> None:
    reply, is_kept = KEPT[name]
    completion = completion_of(read_whole(reply))
    assert completion.echo == ({"native": {"api": "responses", "parts": reply["output"]}} if is_kept else None)


# ── what is read ──────────────────────────────────────────────────────────────────────────────────────

TURNS = {
    "text": Turn("Grüß dich, 世界! 😀\n\nEnde."),
    "calls": Turn("", [("add", {"a": 1}), ("look", {"q": "ü😀"})]),
    "text, calls, thought": CALLING,
    "thought": Turn("Ja.", thought="Nein? Doch."),
    "cut": Turn("Es war ein", finish="length"),
    "filtered": Turn("Es", finish="content_filter"),
    "counted": Turn("x", counts=Counts(100, 50, 60, 20, 40)),
    "empty": Turn(),
}


@pytest.mark.parametrize("name", TURNS)
def test_a_reply_is_the_same_whole_and_streamed_in_any_pieces(name: str) -> None:
    turn = TURNS[name]
    whole = completion_of(read_whole(STAND_IN.whole(turn, 3)))
    stream = b"".join(STAND_IN.events(turn, 3))
    for size in (1, 3, 64, len(stream)):
        pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
        assert read(EVENT_HEAD, pieces) == (turn.text, whole)
    assert (whole.content, read_finish_reason(whole.finish_reason)) == (turn.text, turn.finish)
    assert [(each["name"], json.loads(each["arguments"])) for each in whole.calls] == [*turn.calls]
    counted = whole.input_tokens, whole.output_tokens, whole.cached_tokens, whole.cache_write_tokens
    assert (*counted, whole.reasoning_tokens) == tuple(turn.counts)
    assert not whole.estimated


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", TURNS)
def test_a_stream_is_read_wherever_it_is_cut_in_two(name: str) -> None:
    stream = b"".join(STAND_IN.events(TURNS[name], 3))
    expected = read(EVENT_HEAD, [stream])
    assert all(read(EVENT_HEAD, [stream[:at], stream[at:]]) == expected for at in range(1, len(stream)))


@pytest.mark.parametrize("name", TURNS)
def test_a_stream_that_is_cut_off_may_be_asked_for_again(name: str) -> None:
    for count in range(1, len(events := STAND_IN.events(TURNS[name], 3)) - 1):
        assert refusal_of(read(EVENT_HEAD, events[:count])[1]).transient


def delta(text: str, place: int = 0, kind: str = "output_text", **more: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "output_index": place, "content_index": 0, "delta": text, **more}


def item(value: Any, place: int = 0, state: str = "done") -> dict[str, Any]:
    return {"type": f"response.output_item.{state}", "output_index": place, "item": value}


def end(*output: Any, kind: str = "completed", **more: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": {**completed(*output, status=kind), **more}}


COMMENTED = [said("Ich schaue. ", phase="commentary"), said("Fertig.", phase="final_answer")]
ARGUMENTS = {**delta('{"a":', 0, "function_call_arguments"), "item_id": "fc"}
STREAMS: dict[str, tuple[list[Any], str, int]] = {
    "no items in the end": ([delta("Gr"), delta("üß"), item(said("Grüß")), end()], "Grüß", 0),
    "fewer items in the end": ([item(said("Ja")), item(call(), 1), end(said("Ja"))], "Ja", 1),
    "no output in the end": ([item(said("Ja")), {"type": "response.completed", "response": {"id": "r"}}], "Ja", 0),
    "no response in the end": ([item(said("Ja")), {"type": "response.completed"}], "Ja", 0),
    "deltas alone": ([delta("Gr"), delta("üß"), item({"type": "message", "content": []}), end()], "Grüß", 0),
    "an empty message in the end": ([delta("Ja"), end({"type": "message", "content": []})], "Ja", 0),
    "no deltas": ([end(said("Ja"))], "Ja", 0),
    "a text that comes whole": ([{**delta(""), "type": "response.output_text.done", "text": "Ja"}, end()], "Ja", 0),
    "thoughts": ([delta("Hm", kind="reasoning_text"), delta("Hm", kind="reasoning_summary_text"), end()], "", 0),
    "unknown events": (
        [{"type": "response.new.delta", "delta": "x"}, {"type": "keepalive"}, {}, end(said("x"))],
        "x",
        0,
    ),
    "a commentary before the answer": (
        [
            item({**COMMENTED[0], "content": []}, 0, "added"),
            delta("Ich schaue. "),
            delta("Fertig.", 1),
            end(*COMMENTED),
        ],
        "Fertig.",
        0,
    ),
    "a commentary beside a call": (
        [item(COMMENTED[0], 0, "added"), delta("Ich schaue. "), end(COMMENTED[0], call())],
        "Ich schaue. ",
        1,
    ),
    "arguments in pieces alone": (
        [item(call(arguments=""), 0, "added"), ARGUMENTS, {**ARGUMENTS, "delta": "1}"}, end()],
        "",
        1,
    ),
    "a whole response as one event": ([completed(said("Ja"), call())], "Ja", 1),
    "fields that are null": (
        [{"type": "response.created", "response": None}, item(None), end(said("x"), usage=None)],
        "x",
        0,
    ),
    "halves of a character": ([delta("\ud83d"), delta("\ude00"), item(said("😀")), end()], "😀", 0),
}


@pytest.mark.parametrize("name", STREAMS)
def test_an_odd_stream_is_read(name: str) -> None:
    events, text, calls = STREAMS[name]
    data = [b"data: %b\n\n" % json.dumps(event).encode() for event in events]
    shown, outcome = read(EVENT_HEAD, data)
    completion = completion_of(outcome)
    assert (shown, completion.content, len(completion.calls)) == (text, text, calls)
    assert all(call_["arguments"] == '{"a":1}' for call_ in completion.calls)
    assert read(EVENT_HEAD, [*data, b"data: [DONE]\n\n"]) == (shown, outcome)


def test_done_without_an_end_ends_a_reply() -> None:
    assert completion_of(read_events(delta("Ja"), item(said("Ja")), done=True)[1]).content == "Ja"


def test_an_item_that_was_begun_and_never_done_does_not_go_back() -> None:
    events = [item(THOUGHT, 0, "added"), item(call(), 1)]
    assert completion_of(read_events(*events, end())[1]).echo is None
    assert completion_of(read_events(item(THOUGHT), *events[1:], end())[1]).echo is not None


@pytest.mark.parametrize("label", ["text/html", "application/json", ""])
def test_a_wrong_label_is_not_believed(label: str) -> None:
    head = HttpAnswer(200, {"content-type": label}, b"")
    assert read(head, STAND_IN.events(CALLING, 1)) == read(EVENT_HEAD, STAND_IN.events(CALLING, 1))


REPLIES: dict[str, tuple[Any, str, list[dict[str, str]]]] = {
    "content that is a text": ({"output": [{"type": "message", "content": "x"}]}, "x", []),
    "parts of a gateway": (
        {"output": [{"type": "message", "content": [{"type": "text", "text": "x"}, None, 5]}]},
        "x",
        [],
    ),
    "two messages": (completed(said("a"), said("b")), "ab", []),
    "null text": (completed(said(None)), "", []),
    "null content": (completed({"type": "message", "content": None}), "", []),
    "an empty refusal": (completed({"type": "message", "content": [{"type": "refusal", "refusal": " "}]}), "", []),
    "thoughts are no content": (completed({**THOUGHT, "content": [{"type": "reasoning_text", "text": "hm"}]}), "", []),
    "items of no shape": (completed(None, 5, {"type": "new"}, said("x")), "x", []),
    "no arguments": (completed(call(arguments=None)), "", [{"name": "add", "arguments": "{}"}]),
    "arguments as an object": (completed(call(arguments={"a": 1})), "", [{"name": "add", "arguments": '{"a":1}'}]),
    "arguments that are no object": (completed(call(arguments="[1]")), "", [{"name": "add", "arguments": "[1]"}]),
    "arguments that are cut": (completed(call(arguments='{"a')), "", [{"name": "add", "arguments": '{"a'}]),
}


@pytest.mark.parametrize("name", REPLIES)
def test_an_odd_reply_is_read(name: str) -> None:
    reply, text, calls = REPLIES[name]
    completion = completion_of(read_whole(reply))
    assert (completion.content, [*completion.calls]) == (text, calls)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "stop"),
        ({"status": None}, "stop"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ({"status": "incomplete", "incomplete_details": None}, "length"),
        ({"status": "cancelled"}, "length"),
        ({"status": "in_progress", "output": None}, "length"),
        ({"status": "queued", "output": []}, "length"),
        ({"status": "completed", "incomplete_details": {"reason": "max_output_tokens"}}, "stop"),
        ({"status": "brand_new"}, "brand_new"),
        ({"status": 5}, "stop"),
    ],
    ids=str,
)
def test_why_a_reply_ended_is_read(fields: dict[str, Any], reason: str) -> None:
    assert read_finish_reason(completion_of(read_whole({**completed(said("x")), **fields})).finish_reason) == reason


COUNTS: dict[str, tuple[Any, tuple[int | None, ...], bool]] = {
    "none": (None, (None, None, 0, 0, 0), False),
    "a list": ([1], (None, None, 0, 0, 0), False),
    "zeros": ({"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}, (None, 0, 0, 0, 0), False),
    "no numbers": ({"input_tokens": True, "output_tokens": "7"}, (None, None, 0, 0, 0), False),
    "below and above": ({"input_tokens": -1, "output_tokens": 2**50}, (None, None, 0, 0, 0), False),
    "null details": ({"input_tokens": 5, "output_tokens": 1, "input_tokens_details": None}, (5, 1, 0, 0, 0), False),
    "a larger total": ({"input_tokens": 5, "output_tokens": 1, "total_tokens": 9}, (5, 4, 0, 0, 0), True),
    "more from the cache than all": (
        {"input_tokens": 5, "output_tokens": 1, "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 2}},
        (5, 1, 5, 2, 0),
        True,
    ),
    "more thoughts than all": (
        {"input_tokens": 5, "output_tokens": 1, "output_tokens_details": {"reasoning_tokens": 2}},
        (5, 1, 0, 0, 2),
        True,
    ),
}


@pytest.mark.parametrize("name", COUNTS)
def test_tokens_are_counted_with_care(name: str) -> None:
    usage, counts, estimated = COUNTS[name]
    read_ = completion_of(read_whole(completed(said("x"), usage=usage)))
    counted = read_.input_tokens, read_.output_tokens, read_.cached_tokens, read_.cache_write_tokens
    assert (*counted, read_.reasoning_tokens) == counts
    assert read_.estimated is estimated


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────


def broken(code: Any, text: str = "It broke. Please try again in 2s.") -> dict[str, Any]:
    return {"code": code, "message": text}


def deep(*output: Any) -> bytes:
    """A reply in which a 0 is a list that nests deeper than can be written again."""
    return orjson.dumps({"output": output}).replace(b":0", b":" + b"[" * 300 + b"]" * 300)


REFUSALS: dict[str, tuple[Any, str, str, bool]] = {
    "an error in a 200": ({"error": {"message": "overloaded"}}, "overloaded", "", False),
    "a failed server": (completed(status="failed", error=broken("server_error")), "It broke", "server_error", True),
    "a rate limit": (
        completed(status="failed", error=broken("rate_limit_exceeded")),
        "broke",
        "rate_limit_exceeded",
        True,
    ),
    "no money": (completed(status="failed", error=broken("insufficient_quota")), "broke", "insufficient_quota", False),
    "a policy": (completed(status="failed", error=broken("bio_policy")), "It broke", "content_filter", False),
    "a flagged prompt": (
        completed(status="failed", error=broken("invalid_prompt", "flagged as potentially violating our usage policy")),
        "flagged",
        "content_filter",
        False,
    ),
    "no reason": (completed(status="failed"), "without a reason", "", True),
    "no output": ({"id": "r", "status": "completed"}, "no response", "", False),
    "a chat completion": ({"object": "chat.completion", "choices": []}, "no response", "", False),
    "a number": (17, "no response", "", False),
    "a list": ([], "no response", "", False),
    "a call without a name": (completed(call(name=None)), "no name", "", False),
    "129 calls": (completed(*[call()] * 129), "129 calls", "", False),
    "a page": (b"<html>Log in</html>", "not JSON", "", False),
    "nothing": (b"", "empty body", "", False),
    "a deep part": (deep(call(), {"type": "new", "x": 0}), "too deep", "", False),
    "deep arguments": (deep(call(arguments=0)), "too deep", "", False),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_no_reply_is_a_refusal_in_the_vendors_words(name: str) -> None:
    reply, words, code, transient = REFUSALS[name]
    refusal = refusal_of(read_whole(reply))
    assert words in refusal.message
    assert (refusal.code, refusal.transient) == (code, transient)
    assert refusal.wait == (2.0 if transient and "again in 2s" in refusal.message else None)


@pytest.mark.parametrize("streams", [False, True])
def test_a_refusal_of_the_model_is_a_content_filter_in_its_words(streams: bool) -> None:
    used = {"input_tokens": 12, "output_tokens": 3}
    refused = {"type": "message", "content": [{"type": "refusal", "refusal": "I cannot do that."}]}
    pieces = [delta("I cannot ", kind="refusal"), delta("do that.", kind="refusal"), item({"type": "message"}), end()]
    reply = completion_of(read_events(*pieces)[1] if streams else read_whole(completed(said("x"), refused, usage=used)))
    assert streams or (reply.input_tokens, reply.output_tokens) == (12, 3)
    assert (reply.finish_reason, reply.content, reply.calls) == ("content_filter", "", ())
    assert reply.refusal == "the model refused to answer: I cannot do that."


IN_STREAM = [
    {"type": "error", "sequence_number": 3, "param": None, **broken("server_error")},
    {"type": "error", "error": {"type": "server_error", **broken(None)}},
    {"type": "response.failed", "response": completed(status="failed", error=broken("server_error"))},
    {"error": broken("server_error")},
]


@pytest.mark.parametrize("event", IN_STREAM, ids=["error", "error within", "failed", "error of chat"])
def test_an_error_in_a_stream_ends_it(event: dict[str, Any]) -> None:
    shown, outcome = read_events({"type": "response.created", "response": completed()}, delta("Halb"), event)
    refusal = refusal_of(outcome)
    assert (shown, refusal.transient, refusal.wait) == ("Halb", True, 2.0)
    assert "It broke." in refusal.message


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_an_error_of_the_stand_in_is_read(status: int) -> None:
    head = HttpAnswer(status, {}, b"")
    refusal = refusal_of(read(head, [STAND_IN.error(status, "No.")])[1])
    assert (refusal.message, refusal.transient) == (f"answered {status}: No.", status in (429, 500))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3) | st.sampled_from(["message", "reasoning"]),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=3), each, max_size=3),
    max_leaves=6,
)
KINDS = ["response.output_item.added", "response.output_item.done", "response.output_text.delta", "response.completed"]
KINDS += ["response.function_call_arguments.delta", "response.output_text.done", "response.incomplete", "error"]
NAMES = ["item", "delta", "output_index", "item_id", "content_index", "text", "response", "output", "object", "error"]
NAMES += ["usage", "status", "content", "arguments", "name", "call_id", "type", "phase", "incomplete_details"]
FIELDS = st.dictionaries(st.sampled_from(NAMES), JSON_VALUES, max_size=5)
EVENTS = st.builds(
    lambda kind, fields, inner: {**fields, "type": kind, "item": inner, "response": inner},
    st.sampled_from(KINDS),
    FIELDS,
    FIELDS | JSON_VALUES,
)


@given(st.lists(EVENTS, max_size=5), FIELDS)
def test_whatever_a_server_sends_comes_out_as_a_completion_or_a_refusal(events: list[Any], reply: Any) -> None:
    assert isinstance(read_events(*events, done=True)[1], Completion | Refusal)
    assert isinstance(read_whole(reply), Completion | Refusal)
    assert isinstance(read_whole({**reply, "output": [event["item"] for event in events]}), Completion | Refusal)


# ── what an endpoint does not take ────────────────────────────────────────────────────────────────────


def adapted(message_: str, *messages: bytes, param: str = "", code: str = "", status: int = 400, **options: Any) -> Any:
    refusal = Refusal(f"answered {status}: {message_}", status, code, param)
    return adapt(ask(*messages, **options), ANY_JSON, "not", refusal)


EFFORT_400 = "Unsupported value: 'none' is not supported with the 'gpt-5.1-codex' model. "
EFFORT_400 += "Supported values are: 'low', 'medium', and 'high'."
LEFT_OUT: dict[str, tuple[dict[str, Any], dict[str, Any], set[str]]] = {
    "temperature": (
        {"message_": "Unsupported parameter: 'temperature' is not supported with this model.", "param": "temperature"},
        WARM,
        {"temperature"},
    ),
    "top_p": ({"message_": "`temperature` and `top_p` cannot both be specified"}, WARM, {"top_p"}),
    "limit": (
        {"message_": "Unsupported parameter: max_output_tokens"},
        {"max_output_tokens": 99},
        {"max_output_tokens"},
    ),
    "include": (
        {"message_": "Encrypted content is not supported with this model.", "param": "include"},
        {},
        {"include"},
    ),
    "effort": (
        {"message_": EFFORT_400, "param": "reasoning.effort", "code": "unsupported_value"},
        {"reasoning": "none"},
        {"effort:none", "effort:minimal"},
    ),
    "one effort": (
        {"message_": "Unsupported value: 'reasoning_effort' does not support 'high' with this model."},
        {"reasoning": "high"},
        {"effort:high"},
    ),
    "no effort": (
        {"message_": "Unsupported parameter: 'reasoning.effort' is not supported with this model."},
        {"reasoning": "high"},
        {"reasoning"},
    ),
    "strict": (
        {
            "message_": "Invalid schema for function 'add': In context=(), 'x' is not permitted.",
            "param": "tools[0].parameters",
        },
        {"tools": [tool()]},
        {"strict"},
    ),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_refused_by_name_is_left_out_and_remembered(name: str) -> None:
    refusal, options, left_out = LEFT_OUT[name]
    less = adapted(**refusal, **options)
    assert less == Adapted(replace(ANY_JSON, left_out=frozenset(left_out)), "not")
    model = "m1" if {"temperature", "top_p"} & left_out else "gpt-5.1"
    assert body_of(ask(model=model, **options), less.capabilities) != body_of(ask(model=model, **options))


@pytest.mark.parametrize(
    ("model", "asked", "refused", "effort"),
    [
        ("gpt-5.1-codex", "none", {"none", "minimal"}, "low"),
        ("gpt-5.2-chat-latest", "high", {"none", "minimal", "low", "high"}, "medium"),
        ("gpt-5-pro", "low", {"none", "minimal", "low", "medium"}, "high"),
        ("m1", "low", {"low", "medium", "high"}, None),
    ],
)
def test_the_nearest_effort_that_a_model_takes_is_asked_for(
    model: str, asked: str, refused: set[str], effort: str | None
) -> None:
    capabilities = replace(ANY_JSON, left_out=frozenset(f"effort:{word}" for word in refused))
    body = body_of(ask(model=model, reasoning=asked), capabilities)
    assert body.get("reasoning", {}).get("effort") == effort


@pytest.mark.parametrize(
    ("fields", "left_out", "lasting"),
    [
        ({"message_": "It could not be verified.", "code": "invalid_encrypted_content"}, "native", False),
        ({"message_": "The encrypted content gA== could not be verified."}, "native", False),
        ({"message_": "Encrypted content could not be decrypted or parsed.", "status": 200}, "native", False),
        ({"message_": "Item 'fc_1' was provided without its required 'reasoning' item: 'rs_1'."}, "native", False),
        ({"message_": "Unknown parameter: 'input[1].phase'.", "param": "input[1].phase"}, "native", False),
        ({"message_": "Item with id 'rs_1' not found. Items are not persisted.", "status": 404}, "ids", True),
    ],
)
def test_own_parts_that_are_refused_are_left_out(fields: dict[str, Any], left_out: str, lasting: bool) -> None:
    status, code = fields.get("status", 400), fields.get("code", "")
    refusal = Refusal(f"answered {status}: {fields['message_']}", status, code, fields.get("param", ""))
    asked = ask(*history(echoed()))
    assert adapt(asked, ANY_JSON, "not", refusal) == Adapted(
        replace(ANY_JSON, left_out=frozenset({left_out})), "not", lasting
    )
    without = adapt(ask(*history(None)), ANY_JSON, "not", refusal)
    assert without is None or left_out not in without.capabilities.left_out
    knowing = replace(ANY_JSON, left_out=frozenset({"ids", "native"}))
    assert adapt(asked, knowing, "not", refusal) is None


def test_an_endpoint_that_looks_items_up_gets_them_without_ids() -> None:
    written = WIRE.write("m1", ask(*history(echoed())), replace(ANY_JSON, left_out=frozenset({"ids"})), "not")
    _, thought, text, *calls = orjson.loads(written.body)["input"]
    sealed, _, *sent = write_items(CALLING, 1)
    assert thought == {name: value for name, value in sealed.items() if name != "id"}
    assert text == {"type": "message", "role": "assistant", "content": CALLING.text}
    assert [each["call_id"] for each in calls] == [each["call_id"] for each in sent] * 2
    assert not any("id" in each for each in calls)


def test_a_choice_that_is_refused_is_not_made() -> None:
    less = adapted("tool_choice 'required' is not supported", tools=[tool()], tool_choice="required")
    assert less == Adapted(replace(ANY_JSON, choices=frozenset({"required"})), "not")
    assert "tool_choice" not in body_of(ask(tools=[tool()], tool_choice="required"), less.capabilities)


@pytest.mark.parametrize(
    ("told", "lasting"),
    [
        ("Unknown response_format json_object", True),
        ("text.format of type 'json_object'", True),
        ("Bad request", False),
    ],
)
def test_a_refused_format_goes_to_text(told: str, lasting: bool) -> None:
    assert adapted(told, **AUTO) == Adapted(replace(ANY_JSON, format="text"), "not", lasting)


def test_a_model_that_only_streams_is_asked_for_a_stream() -> None:
    less = adapted("This model only supports streaming.")
    assert less == Adapted(replace(ANY_JSON, only_streams=True), "with usage")


@pytest.mark.parametrize("told", ["Please include more words.", "Invalid value.", "model not found"])
def test_a_refusal_of_something_else_is_one(told: str) -> None:
    assert adapted(told, **WARM, tools=[tool()], reasoning="low") is None


# ── a run ─────────────────────────────────────────────────────────────────────────────────────────────


def replied(turn: Turn, number: int = 1, *, streams: bool = False) -> bytes:
    if streams:
        return http(200, b"".join(STAND_IN.events(turn, number)), content_type="text/event-stream; charset=utf-8")
    return http(200, STAND_IN.whole(turn, number))


def client_of(server: Loopback) -> EndpointClient:
    return EndpointClient("gpt-5.1", WIRE, base_url=server.url, api_key=KEY, backoff=0.001)


def add(args: dict[str, Any], context: Any) -> Any:
    return {"sum": args["a"] + 1}


REGISTRY = ToolRegistry([Tool("add", "Adds one.", CLOSED, add, effect="read")])
CONFIG = {"model": "openai:gpt-5.1", "max_steps": 5, "allowed_tools": ["add"], "prompt": "Rechne.", "temperature": 0.3}


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
async def test_a_run_with_native_calls_keeps_its_thought(streams: bool) -> None:
    first = replied(CALLING, 1, streams=streams)
    final = replied(Turn("Zwei und drei.", thought="Klar."), 2, streams=streams)
    told: list[Any] = []
    async with serving(first, final) as server:
        model = client_of(server)
        listen: Callable[[Any], None] | None = told.append if streams else None
        output = await run_agent({**CONFIG, "protocol": "tools"}, registry=REGISTRY, model=model, on_event=listen)
        await model.close()
    assert (output.error, output.final_answer) == (None, "Zwei und drei.")
    begun, asked = (STAND_IN.read(request) for request in server.requests)
    assert all(STAND_IN.is_its_path(request) and STAND_IN.key_of(request) == KEY for request in server.requests)
    assert (asked.thoughts, asked.calls) == ([True], [("add", {"a": 1}), ("add", {"a": 2})])
    assert [json.loads(result) for result in asked.results] == [{"sum": 2}, {"sum": 3}]
    assert (begun.tools, begun.streams) == (["add"], streams)
    assert asked.options["include"] == ["reasoning.encrypted_content"]
    sent = [request.json()["input"] for request in server.requests]
    assert sent[1][: len(sent[0])] == sent[0]
    assert write_items(CALLING, 1) == sent[1][len(sent[0]) :][:4]
    assert "denken" not in str([event for event in told if event["event"].startswith("answer_")])


async def test_a_run_in_json_is_a_conversation_of_texts() -> None:
    action = Turn('{"type":"action","tool":"add","args":{"a":1}}', thought="Rechnen.")
    final = Turn('{"type":"final","answer":"Zwei."}')
    async with serving(replied(action, 1), replied(final, 2)) as server:
        model = client_of(server)
        output = await run_agent(CONFIG, registry=REGISTRY, model=model)
        await model.close()
    assert (output.error, output.final_answer) == (None, "Zwei.")
    asked = [STAND_IN.read(request) for request in server.requests]
    assert asked[1].said[-2] == action.text
    assert [each.options["text"] for each in asked] == [{"format": {"type": "json_object"}}] * 2
    assert "json" in str(server.requests[0].json()["input"]).lower()


async def test_thoughts_that_cannot_be_decrypted_are_left_out_of_one_question() -> None:
    refused = http(
        400, STAND_IN.error(400, "The encrypted content could not be verified.", "invalid_encrypted_content")
    )
    async with serving(refused, replied(Turn("Ja."))) as server:
        model = client_of(server)
        first, second = [await model.complete(ask(*history(echoed()), model="gpt-5.1")) for _ in range(2)]
        await model.close()
    assert (first.content, first.requests, first.dropped) == ("Ja.", 2, ("responses",))
    assert (second.requests, second.dropped) == (1, ())
    kinds = [{item["type"] for item in request.json()["input"]} for request in server.requests]
    assert ["reasoning" in each for each in kinds] == [True, False, True]


async def test_a_failed_stream_begins_again() -> None:
    failed = [*STAND_IN.events(Turn("Halber"), 1)[:6], b"data: %b\n\n" % orjson.dumps(IN_STREAM[2] | {"wait": 0})]
    failed[-1] = failed[-1].replace(b" Please try again in 2s.", b"")
    broken_ = http(200, b"".join(failed), content_type="text/event-stream")
    async with serving(broken_, replied(Turn("Ganzer"), streams=True)) as server:
        model = client_of(server)
        async with aclosing(model.stream(ask())) as pieces:
            *deltas, last = [each async for each in pieces]
        await model.close()
    texts = [each for each in deltas if isinstance(each, Delta)]
    assert "".join(each.text for each in texts) == "HalberGanzer"
    assert [each.anew for each in texts] == [False, True]
    assert isinstance(last, Completion)
    assert last.requests == 2


async def test_an_error_is_told_in_the_vendors_words_without_the_key() -> None:
    async with serving(http(401, STAND_IN.error(401, f"Incorrect API key provided: {KEY}."))) as server:
        model = client_of(server)
        with pytest.raises(ModelError) as caught:
            await model.complete(ask())
        await model.close()
    assert "answered 401: Incorrect API key provided" in str(caught.value)
    assert KEY not in str(caught.value)
