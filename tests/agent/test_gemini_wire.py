"""The Gemini API as a wire: what is asked, what is left out once it is refused, how a reply is read and goes back."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from time import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("google.genai", reason="needs the google-genai SDK (extra `gemini`)")

from google.genai import types

from agent_core import run_agent
from agent_core.models import Completion, Delta, ModelError, Question
from agent_core.models.endpoint.answer import HttpAnswer, Refusal
from agent_core.models.endpoint.asking import Adapted
from agent_core.models.endpoint.capabilities import EndpointCapabilities
from agent_core.models.endpoint.client import EndpointClient
from agent_core.models.endpoint.conversation import OWN_PARTS, own_parts
from agent_core.models.endpoint.route import DIRECT
from agent_core.models.gemini.contents import CONTINUED, DUMMY_SIGNATURE
from agent_core.models.gemini.schema import has_open_object, to_dialect
from agent_core.models.gemini.sdk import strip_path
from agent_core.models.gemini.wire import GeminiWire
from agent_core.protocol.step_schema import step_schema
from support.loopback import Loopback, Reply, Request, http, serving
from support.wires.gemini import STAND_IN
from support.wires.turn import KEY, Counts, Turn
from utools import Tool, ToolRegistry

WIRE = GeminiWire()
NOW = time()
HEAD = HttpAnswer(200, {"content-type": "application/json"}, b"")
STREAM_HEAD = HttpAnswer(200, {"content-type": "text/event-stream"}, b"")
HELLO: Any = {"role": "user", "content": "Grüß dich"}
SYSTEM: Any = {"role": "system", "content": "Sei kurz."}
QUERY = {"type": "object", "properties": {"q": {"type": "integer"}}, "required": ["q"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": QUERY}}]
STEP = step_schema([("look", QUERY)])
OPEN_STEP = step_schema([("look", {})])


def ask(*messages: Any, model: str = "gemini:m1", **options: Any) -> Question:
    return Question(model, tuple(map(orjson.dumps, messages or (SYSTEM, HELLO))), options, "agent", 0)


def adapt(asked: Question, *about: Any) -> Adapted | None:
    """How the model is asked again whose name is behind the colon."""
    return WIRE.adapt(asked.model.partition(":")[2], asked, *about)


def written(question: Question, **known: Any) -> Any:
    model = question.model.partition(":")[2]
    return orjson.loads(WIRE.write(model, question, replace(EndpointCapabilities(), **known), "not").body)


def call_message(*calls: tuple[str, str, str], **more: Any) -> Any:
    """An assistant's message with calls, (id, name, arguments) each."""
    made = [{"id": id_, "type": "function", "function": {"name": n, "arguments": a}} for id_, n, a in calls]
    return {"role": "assistant", "content": None, "tool_calls": made, **more}


def result_message(id_: str, text: str) -> Any:
    return {"role": "tool", "tool_call_id": id_, "content": text}


def read(body: Any) -> Completion | Refusal:
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    reader = WIRE.open_reader(HEAD, data)
    list(reader.feed(data))
    return reader.end(NOW)


def read_stream(*events: Any) -> tuple[str, Completion | Refusal]:
    """Return the texts that are shown of a stream, and what comes of it."""
    return read_cut(b"".join(b"data: %b\r\n\r\n" % orjson.dumps(each) for each in events), 7)


def read_cut(body: bytes, size: int) -> tuple[str, Completion | Refusal]:
    reader = WIRE.open_reader(STREAM_HEAD, b"data:")
    texts = [text for start in range(0, len(body), size) for text in reader.feed(body[start : start + size])]
    outcome = reader.end(NOW)
    return "".join(texts) + reader.rest(outcome), outcome


def reply(*parts: Any, finish: Any = "STOP", usage: Any = None, **candidate: Any) -> Any:
    content = {"role": "model", "parts": list(parts)}
    return {
        "candidates": [{"content": content, "finishReason": finish, "index": 0, **candidate}],
        "usageMetadata": usage or {"promptTokenCount": 12, "candidatesTokenCount": 3, "totalTokenCount": 15},
    }


def call_part(name: Any = "look", args: Any = None, **more: Any) -> Any:
    return {"functionCall": {"name": name, "args": args if args is not None else {"q": 1}}, **more}


def completion(outcome: Completion | Refusal) -> Completion:
    assert isinstance(outcome, Completion), outcome
    return outcome


def refusal(outcome: Completion | Refusal) -> Refusal:
    assert isinstance(outcome, Refusal), outcome
    return outcome


@asynccontextmanager
async def endpoint(*replies: Reply, api_key: str | None = KEY) -> AsyncIterator[tuple[EndpointClient, Loopback]]:
    async with serving(*replies) as server:
        url = server.url.removesuffix("/v1") + "/v1beta"
        model = EndpointClient("m1", WIRE, base_url=url, api_key=api_key, backoff=0.001)
        try:
            yield model, server
        finally:
            await model.close()


def answer(turn: Turn, number: int = 1) -> bytes:
    return http(200, STAND_IN.whole(turn, number))


def stream_of(turn: Turn, number: int = 1) -> bytes:
    return http(200, b"".join(STAND_IN.events(turn, number)), content_type="text/event-stream")


def refused(message: str, status: int = 400) -> bytes:
    return http(status, STAND_IN.error(status, message))


# ── what is asked ────────────────────────────────────────────────────────────────────────────────────

CONFIGS: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "nothing": ({}, None),
    "sampling": (
        {"temperature": 0, "top_p": 0.5, "seed": 7, "stop": ["x"], "max_output_tokens": 9},
        {"temperature": 0, "topP": 0.5, "seed": 7, "stopSequences": ["x"], "maxOutputTokens": 9},
    ),
    "absent sampling": ({"temperature": None, "stop": [], "max_output_tokens": None}, None),
    "stop as a text": ({"stop": "x"}, {"stopSequences": ["x"]}),
    "any JSON": ({"response_format": "json_object"}, {"responseMimeType": "application/json"}),
    "schema": (
        {"response_format": "auto", "step_schema": STEP},
        {"responseMimeType": "application/json", "responseJsonSchema": STEP},
    ),
    "schema with an open object": (
        {"response_format": "auto", "step_schema": OPEN_STEP},
        {"responseMimeType": "application/json"},
    ),
    "the author's schema with an open object": (
        {"response_format": "json_schema", "step_schema": OPEN_STEP},
        {"responseMimeType": "application/json", "responseJsonSchema": OPEN_STEP},
    ),
    "schema without one": ({"response_format": "auto"}, {"responseMimeType": "application/json"}),
    "text": ({"response_format": "text", "step_schema": STEP}, None),
    "extra merges": (
        {"temperature": 1, "extra": {"generationConfig": {"topK": 4, "temperature": 2}}},
        {"temperature": 2, "topK": 4},
    ),
    "extra thinks": (
        {"reasoning": "low", "extra": {"generationConfig": {"thinkingConfig": {"thinkingBudget": 5}}}},
        {"thinkingConfig": {"thinkingBudget": 5}},
    ),
    "extra shows thoughts": (
        {"reasoning": "low", "extra": {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}},
        {"thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": True}},
    ),
}


@pytest.mark.parametrize(("options", "config"), CONFIGS.values(), ids=CONFIGS)
def test_options_are_written_in_geminis_words(options: dict[str, Any], config: dict[str, Any] | None) -> None:
    body = written(ask(**options))
    assert body.pop("generationConfig", None) == config
    assert body == {
        "systemInstruction": {"parts": [{"text": "Sei kurz."}]},
        "contents": [{"role": "user", "parts": [{"text": "Grüß dich"}]}],
    }


THINKING = {
    ("gemini-3-flash", "none"): {"thinkingLevel": "MINIMAL"},
    ("gemini-3.1-pro-preview", "none"): {"thinkingLevel": "LOW"},
    ("gemini-flash-latest", "low"): {"thinkingLevel": "LOW"},
    ("models/gemini-4-argon", "high"): {"thinkingLevel": "HIGH"},
    ("gemini-3.8-flash", "none"): {"thinkingLevel": "LOW"},
    ("gemini-2.5-flash", "none"): {"thinkingBudget": 0},
    ("gemini-2.5-pro", "none"): {"thinkingBudget": 128},
    ("gemini-2.5-flash", "medium"): {"thinkingBudget": 8192},
    ("gemini-2.0-flash", "high"): None,
    ("gemini-3-flash", None): None,
}


@pytest.mark.parametrize(("name", "reasoning"), THINKING)
def test_a_model_thinks_as_its_generation_of_models_wants_it_said(name: str, reasoning: str | None) -> None:
    config = written(ask(model=f"gemini:{name}", reasoning=reasoning)).get("generationConfig", {})
    assert config.get("thinkingConfig") == THINKING[name, reasoning]


def test_tools_are_declared_with_their_json_schemas_and_have_no_response_format() -> None:
    body = written(ask(tools=TOOLS, tool_choice="required", response_format="auto", step_schema=STEP))
    declared = {"name": "look", "description": "Looks.", "parametersJsonSchema": QUERY}
    assert body["tools"] == [{"functionDeclarations": [declared]}]
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": "ANY"}}
    assert "generationConfig" not in body


@pytest.mark.parametrize(("choice", "mode"), [("auto", "AUTO"), ("none", "NONE")])
def test_choices_of_tools_are_modes(choice: str, mode: str) -> None:
    body = written(ask(tools=TOOLS, tool_choice=choice))
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": mode}}


def user(*parts: Any) -> Any:
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def model_side(*parts: Any) -> Any:
    return {**user(*parts), "role": "model"}


def output(text: str, name: str = "look", **more: Any) -> Any:
    return {"functionResponse": {"name": name, "response": {"output": text}, **more}}


ONE = ("c1", "look", '{"q":1}')
TWO = ("c2", "find", '{"q":2}')
SIGNED = call_part(thoughtSignature="c2lnbmVk")
CONVERSATIONS: dict[str, tuple[list[Any], list[Any]]] = {
    "a call without own parts gets the dummy signature": (
        [HELLO, call_message(ONE), result_message("c1", "seen")],
        [user("Grüß dich"), model_side(call_part(thoughtSignature=DUMMY_SIGNATURE)), user(output("seen"))],
    ),
    "only the first call of a turn gets it, and results follow the order of the calls": (
        [HELLO, call_message(ONE, TWO), result_message("c2", "b"), result_message("c1", "a"), HELLO],
        [
            user("Grüß dich"),
            model_side(call_part(thoughtSignature=DUMMY_SIGNATURE), call_part("find", {"q": 2})),
            user(output("a"), output("b", "find"), "Grüß dich"),
        ],
    ),
    "own parts go back as they came, results under the vendor's ids": (
        [
            HELLO,
            call_message(
                ONE, **own_parts("gemini", [{"functionCall": {"id": "v7", "name": "look"}, "thoughtSignature": "cw=="}])
            ),
            result_message("c1", "seen"),
        ],
        [
            user("Grüß dich"),
            model_side({"functionCall": {"id": "v7", "name": "look"}, "thoughtSignature": "cw=="}),
            user(output("seen", id="v7")),
        ],
    ),
    "own parts that do not make the turn's calls are not used": (
        [HELLO, call_message(ONE, **own_parts("gemini", [SIGNED, SIGNED])), result_message("c1", "seen")],
        [user("Grüß dich"), model_side(call_part(thoughtSignature=DUMMY_SIGNATURE)), user(output("seen"))],
    ),
    "another API's parts are left out": (
        [HELLO, call_message(ONE, **own_parts("messages", [{"type": "thinking"}])), result_message("c1", "seen")],
        [user("Grüß dich"), model_side(call_part(thoughtSignature=DUMMY_SIGNATURE)), user(output("seen"))],
    ),
    "neighbours of one side are one content, and empty messages none": (
        [HELLO, {"role": "assistant", "content": ""}, HELLO, {"role": "assistant", "content": "a"}, HELLO],
        [user("Grüß dich", "Grüß dich"), model_side("a"), user("Grüß dich")],
    ),
    "a model that begins is answered": (
        [{"role": "assistant", "content": "a"}, HELLO],
        [user(CONTINUED), model_side("a"), user("Grüß dich")],
    ),
    "instructions alone are what the user says": ([SYSTEM], [user("Sei kurz.")]),
    "a content of parts": ([{"role": "user", "content": [{"type": "text", "text": "x"}]}], [user("x")]),
}


@pytest.mark.parametrize(("messages", "contents"), CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_a_conversation_is_written_as_contents(messages: list[Any], contents: list[Any]) -> None:
    assert written(ask(*messages)) == {"contents": contents}


def test_what_was_left_out_of_a_conversation_is_named() -> None:
    messages = [HELLO, call_message(ONE, **own_parts("messages", [{}])), result_message("c1", "seen")]
    own = [HELLO, call_message(ONE, **own_parts("gemini", [SIGNED])), result_message("c1", "seen")]
    known = EndpointCapabilities()
    without = replace(known, left_out=frozenset({"native"}))
    assert WIRE.write("m1", ask(*messages), known, "not").dropped == ("messages",)
    assert WIRE.write("m1", ask(*own), known, "not").dropped == ()
    assert WIRE.write("m1", ask(*own), without, "not").dropped == ("gemini",)


# ── schemas in the dialect ───────────────────────────────────────────────────────────────────────────

TEXT, NUMBER, INTEGER = {"type": "STRING"}, {"type": "NUMBER"}, {"type": "INTEGER"}
DIALECT: dict[str, tuple[Any, Any]] = {
    "object": (QUERY, {"type": "OBJECT", "properties": {"q": INTEGER}, "required": ["q"]}),
    "null among types": ({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}),
    "null among alternatives": (
        {"description": "d", "anyOf": [{"type": "integer"}, {"type": "null"}]},
        {"type": "INTEGER", "description": "d", "nullable": True},
    ),
    "several types": ({"type": ["string", "number"]}, {"anyOf": [TEXT, NUMBER]}),
    "nothing beside alternatives": (
        {"description": "d", "title": "t", "oneOf": [{"type": "string"}, {"type": "number", "description": "n"}]},
        {"anyOf": [{**TEXT, "description": "d"}, {**NUMBER, "description": "n"}]},
    ),
    "const": ({"const": "a"}, {"type": "STRING", "enum": ["a"]}),
    "enum of texts and null": ({"enum": ["a", None]}, {"type": "STRING", "enum": ["a"], "nullable": True}),
    "enum of numbers": ({"type": "integer", "enum": [1, 2]}, {"type": "INTEGER", "description": "(one of 1, 2)"}),
    "enum with an empty text": ({"enum": ["", "a"]}, {"type": "STRING", "description": '(one of "", "a")'}),
    "truth": ({"const": True}, {"type": "BOOLEAN", "description": "(one of true)"}),
    "enum of objects": (
        {"type": "object", "enum": [{"a": None}]},
        {"type": "OBJECT", "description": '(one of {"a":null})'},
    ),
    "bounds": (
        {"type": "number", "minimum": 0, "maximum": 1.5, "exclusiveMinimum": 0},
        {"type": "NUMBER", "minimum": 0, "maximum": 1.5},
    ),
    "known formats alone": (
        {"type": "array", "minItems": 1, "items": {"type": "string", "format": "uri", "maxLength": 3}},
        {"type": "ARRAY", "minItems": 1, "items": {"type": "STRING", "maxLength": 3}},
    ),
    "places of a tuple": (
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
        {"type": "ARRAY", "items": {"anyOf": [TEXT, INTEGER]}},
    ),
    "array of anything": (
        {"type": "array"},
        {"type": "ARRAY", "items": {"anyOf": [TEXT, NUMBER, {"type": "BOOLEAN"}]}},
    ),
    "anything": (True, {"anyOf": [TEXT, NUMBER, {"type": "BOOLEAN"}]}),
    "a required property that is none": (
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]},
        {"type": "OBJECT", "properties": {"a": TEXT}, "required": ["a"]},
    ),
    "allOf": (
        {
            "allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}],
            "properties": {"b": {"type": "number"}},
        },
        {"type": "OBJECT", "properties": {"a": TEXT, "b": NUMBER}, "required": ["a"]},
    ),
    "references": (
        {
            "type": "object",
            "$defs": {"name": {"type": "string"}},
            "properties": {"a": {"$ref": "#/$defs/name", "description": "d"}, "b": {"$ref": "#/properties/a"}},
        },
        {
            "type": "OBJECT",
            "properties": {"a": {**TEXT, "description": "d"}, "b": {**TEXT, "description": "d"}},
        },
    ),
    "a reference to itself": (
        {"type": "object", "properties": {"next": {"$ref": "#"}}},
        {"type": "OBJECT", "properties": {"next": {"type": "OBJECT", "properties": {"next": {"type": "OBJECT"}}}}},
    ),
    "a reference to nothing": ({"$ref": "#/$defs/none", "type": "string"}, TEXT),
}


@pytest.mark.parametrize(("schema", "dialect"), DIALECT.values(), ids=DIALECT)
def test_a_schema_is_written_in_the_dialect_that_the_sdk_reads(schema: Any, dialect: Any) -> None:
    assert to_dialect(schema) == dialect
    types.Schema.model_validate(dialect)


def test_a_schema_whose_references_double_does_not_grow_without_end() -> None:
    defs: dict[str, Any] = {
        f"d{i}": {"type": "object", "properties": {name: {"$ref": f"#/$defs/d{i + 1}"} for name in "ab"}}
        for i in range(30)
    }
    dialect = to_dialect({"$ref": "#/$defs/d0", "$defs": {**defs, "d30": {"type": "string"}}})
    types.Schema.model_validate(dialect)
    assert len(orjson.dumps(dialect)) < 100_000


@pytest.mark.parametrize("schema", [STEP, OPEN_STEP, {"anyOf": [QUERY, {"type": "null"}]}])
def test_the_steps_schema_is_one_in_the_dialect(schema: Any) -> None:
    assert types.Schema.model_validate(to_dialect(schema)).any_of or schema["anyOf"][1] == {"type": "null"}


@pytest.mark.parametrize(
    ("schema", "is_open"),
    [
        ({"type": "object"}, True),
        ({"type": "object", "additionalProperties": {"type": "string"}}, True),
        ({"type": "object", "additionalProperties": False}, False),
        ({"type": "array", "items": {"type": "object"}}, True),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}, True),
        ({"anyOf": [{"type": "string"}, {"type": "object"}]}, True),
        ({"type": "object", "anyOf": [QUERY]}, False),
        (STEP, False),
        (OPEN_STEP, True),
    ],
)
def test_an_object_is_open_unless_it_names_its_properties(schema: Any, is_open: bool) -> None:
    assert has_open_object(schema) is is_open


# ── what is left out once it is refused ──────────────────────────────────────────────────────────────

FORMAT = {"response_format": "auto", "step_schema": STEP}
OWN = [HELLO, call_message(ONE, **own_parts("gemini", [SIGNED])), result_message("c1", "seen")]
UNSIGNED = [HELLO, call_message(ONE, **own_parts("gemini", [call_part()])), result_message("c1", "seen")]
MISSING = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, "
    "and missing thought_signature may lead to degraded model performance. Additional data, function call "
    "`default_api:look` , position 2."
)
REFUSALS: dict[str, tuple[str, Question, dict[str, Any], bool]] = {
    "level unknown to the model": (
        "Thinking level is not supported for this model.",
        ask(reasoning="low"),
        {"left_out": {"thinkingLevel"}},
        True,
    ),
    "one level": (
        "Thinking level MINIMAL is not supported for this model.",
        ask(reasoning="none"),
        {"left_out": {"thinkingLevel=MINIMAL"}},
        True,
    ),
    "budget of 0": (
        "Budget 0 is invalid. This model only works in thinking mode.",
        ask(model="gemini:gemini-2.5-flash", reasoning="none"),
        {"left_out": {"thinkingBudget=0"}},
        True,
    ),
    "budget of 0, as Vertex says it": (
        "Unable to submit request because Thinking can't be disabled for this model.",
        ask(model="gemini:gemini-2.5-flash", reasoning="none"),
        {"left_out": {"thinkingBudget=0"}},
        True,
    ),
    "budget too large": (
        "The thinking budget 24576 is invalid. Please choose a value between 0 and 8192.",
        ask(model="gemini:gemini-2.5-flash-lite", reasoning="high"),
        {"left_out": {"thinkingBudget=24576"}},
        True,
    ),
    "no thinking at all": (
        "Thinking is not enabled for this model",
        ask(reasoning="low"),
        {"left_out": {"thinkingConfig"}},
        True,
    ),
    "no words for it": (
        "Request contains an invalid argument.",
        ask(reasoning="none", **FORMAT),
        {"left_out": {"thinkingLevel=MINIMAL"}},
        True,
    ),
    "no words for it, of a level that every model has": (
        "Request contains an invalid argument.",
        ask(reasoning="high", **FORMAT),
        {"left_out": {"thinkingLevel=HIGH"}},
        False,
    ),
    "no words for it, of tools": (
        "Request contains an invalid argument.",
        ask(tools=TOOLS),
        {"left_out": {"parametersJsonSchema"}},
        True,
    ),
    "no words for it, of a format": ("Request contains an invalid argument.", ask(**FORMAT), {"format": "text"}, False),
    "an option": (
        "Invalid JSON payload received. Unknown name \"seed\" at 'generation_config': Cannot find field.",
        ask(seed=1, temperature=1, **FORMAT),
        {"left_out": {"seed"}},
        True,
    ),
    "two options": (
        "`temperature` and `top_p` cannot both be specified for this model.",
        ask(temperature=1, top_p=1),
        {"left_out": {"top_p"}},
        True,
    ),
    "JSON Schemas of functions": (
        "Invalid JSON payload received. Unknown name \"parametersJsonSchema\" at 'tools[0].function_declarations[0]': "
        "Cannot find field.",
        ask(tools=TOOLS, tool_choice="auto"),
        {"left_out": {"parametersJsonSchema"}},
        True,
    ),
    "a property that is named like a fault of the account": (
        "* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties[location].type: unknown",
        ask(tools=TOOLS, temperature=1),
        {"left_out": {"parametersJsonSchema"}},
        True,
    ),
    "a choice of tools": (
        "function_calling_config.mode ANY is unsupported for this model.",
        ask(tools=TOOLS, tool_choice="required"),
        {"choices": {"required"}},
        True,
    ),
    "JSON Schemas of replies": (
        "Invalid JSON payload received. Unknown name \"responseJsonSchema\" at 'generation_config': Cannot find field.",
        ask(**FORMAT),
        {"left_out": {"responseJsonSchema"}},
        True,
    ),
    "a schema": (
        "The specified schema produces a constraint that has too many states for serving.",
        ask(**FORMAT),
        {"format": "json_object"},
        True,
    ),
    "any JSON": (
        "JSON mode is not enabled for models/gemma-3-27b-it",
        ask(response_format="auto"),
        {"format": "text"},
        True,
    ),
    "instructions": (
        "Developer instruction is not enabled for models/gemma-3-27b-it",
        ask(**FORMAT),
        {"left_out": {"systemInstruction"}},
        True,
    ),
    "own parts": ("Corrupted thought signature.", ask(*OWN), {"left_out": {"native"}}, False),
    "own parts, as Vertex says it": (
        "Unable to submit request because Thought signature is not valid..",
        ask(*OWN),
        {"left_out": {"native"}},
        False,
    ),
    "own parts that are unknown": (
        "Invalid JSON payload received. Unknown name \"speechMetadata\" at 'contents[1].parts[0]': Cannot find field.",
        ask(*OWN),
        {"left_out": {"native"}},
        False,
    ),
    "own parts without a signature": (MISSING, ask(*UNSIGNED), {"left_out": {"unsigned"}}, True),
    "the dummy signature": (
        'Invalid JSON payload received. Unknown name "thoughtSignature": Cannot find field.',
        ask(HELLO, call_message(ONE), result_message("c1", "seen")),
        {"left_out": {"signature"}},
        True,
    ),
}


@pytest.mark.parametrize(("message", "question", "changed", "lasting"), REFUSALS.values(), ids=REFUSALS)
def test_what_is_refused_is_left_out(message: str, question: Question, changed: dict[str, Any], lasting: bool) -> None:
    known = EndpointCapabilities()
    adapted = adapt(question, known, "with usage", Refusal(f"answered 400: {message}", 400, "400"))
    assert adapted is not None
    assert adapted == (
        replace(known, **{n: frozenset(v) if n != "format" else v for n, v in changed.items()}),
        "with usage",
        lasting,
    )
    assert written(question, **changed) != written(question)


@pytest.mark.parametrize("name", ["gemini-2.5-flash", "gateway:m", "gemini:other"])
def test_a_refusal_is_read_by_the_name_that_was_sent(name: str) -> None:
    """A question names its model as the run does: without a provider, or by an endpoint of the host's own."""
    asked = ask(model=name, reasoning="none")
    refusal = Refusal("Budget 0 is invalid. This model only works in thinking mode.", 400)
    adapted = WIRE.adapt("gemini-2.5-flash", asked, EndpointCapabilities(), "not", refusal)
    assert adapted is not None
    assert adapted.capabilities.left_out == {"thinkingBudget=0"}


KEPT: dict[str, tuple[str, int]] = {
    "a wrong key": ("API key not valid. Please pass a valid API key.", 400),
    "a wrong place": ("User location is not supported for the API use.", 400),
    "another status": ("Unknown name seed, response_schema, thinking", 403),
    "a missing model": ("models/m9 is not found for API version v1beta, or is not supported for generateContent.", 404),
}


@pytest.mark.parametrize(("message", "status"), KEPT.values(), ids=KEPT)
def test_a_refusal_that_nothing_would_change_is_final(message: str, status: int) -> None:
    question = ask(*OWN, seed=1, reasoning="low", **FORMAT)
    assert adapt(question, EndpointCapabilities(), "not", Refusal(message, status)) is None


def test_a_format_that_the_author_asks_for_is_not_lowered() -> None:
    question = ask(response_format="json_schema", step_schema=STEP)
    assert adapt(question, EndpointCapabilities(), "not", Refusal("The schema is too complex", 400)) is None


def test_changes_after_refusals_end() -> None:
    """Whatever an endpoint says, each change leaves out more."""
    words = f"{MISSING} thinking_level response_schema is unsupported: seed, top_p, temperature, contents[0]"
    for options in ({"tools": TOOLS, "tool_choice": "auto"}, FORMAT):
        question = ask(SYSTEM, *OWN, reasoning="none", seed=1, temperature=1, **options)
        for message in (words, "Request contains an invalid argument.", "Thinking level and budget are unsupported"):
            capabilities, count = EndpointCapabilities(), 0
            while adapted := adapt(question, capabilities, "not", Refusal(message, 400)):
                capabilities, count = adapted.capabilities, count + 1
                assert count < 12


def test_a_model_that_does_not_stream_is_asked_for_a_whole_reply() -> None:
    said = Refusal("models/m1 is not supported for streamGenerateContent", 404)
    assert adapt(ask(), EndpointCapabilities(), "with usage", said) == (EndpointCapabilities(), "not", True)
    assert adapt(ask(), EndpointCapabilities(), "not", said) is None


def test_in_the_dialect_a_function_without_parameters_has_no_schema() -> None:
    bare = {"type": "function", "function": {"name": "now", "description": "", "parameters": {"type": "object"}}}
    functions = written(ask(tools=[*TOOLS, bare]), left_out={"parametersJsonSchema"})["tools"][0][
        "functionDeclarations"
    ]
    assert functions[0]["parameters"] == {"type": "OBJECT", "properties": {"q": INTEGER}, "required": ["q"]}
    assert functions[1] == {"name": "now"}


def test_instructions_that_are_refused_are_what_the_user_says_first() -> None:
    assert written(ask(), left_out={"systemInstruction"}) == {"contents": [user("Sei kurz.", "Grüß dich")]}


async def test_refusals_are_remembered_if_they_last() -> None:
    refusals = [refused("Thinking is not enabled for this model"), refused("Corrupted thought signature.")]
    async with endpoint(*refusals, answer(Turn("a")), answer(Turn("b"))) as (model, server):
        first = await model.complete(ask(*OWN, reasoning="low"))
        second = await model.complete(ask(*OWN, reasoning="low"))
    assert (first.requests, first.dropped, second.requests, second.dropped) == (3, ("gemini",), 1, ())
    assert ["generationConfig" in request.json() for request in server.requests] == [True, False, False, False]


# ── what is answered ─────────────────────────────────────────────────────────────────────────────────

TURNS: dict[str, Turn] = {
    "text": Turn("Grüß dich, 世界 🙂"),
    "text after a thought": Turn("Grüß dich", thought="Who is it?", counts=Counts(120, 30, 100, 0, 20)),
    "call": Turn(calls=[("look", {"q": 1})]),
    "calls after a thought and a text": Turn("I look.", [("look", {"q": 1}), ("find", {"q": {"é": [1, None]}})], "Hm."),
    "cut": Turn("Grü", finish="length"),
    "blocked": Turn("x", finish="content_filter"),
    "malformed": Turn("x", finish="malformed_call"),
}


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_a_stream_ends_in_what_it_would_have_been_as_a_whole(turn: Turn) -> None:
    whole, body = read(STAND_IN.whole(turn, 1)), b"".join(STAND_IN.events(turn, 1))
    for size in (1, 2, 3, 5, 17, 400, len(body)):
        shown, streamed = read_cut(body, size)
        assert streamed == whole
        assert shown == (whole.content if isinstance(whole, Completion) else "")


@pytest.mark.exhaustive
@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_a_stream_is_read_wherever_it_is_cut(turn: Turn) -> None:
    whole, body = read(STAND_IN.whole(turn, 1)), b"".join(STAND_IN.events(turn, 1))
    for size in range(1, len(body)):
        assert read_cut(body, size)[1] == whole


def test_a_reply_has_its_text_its_counts_and_its_reason() -> None:
    turn = TURNS["text after a thought"]
    assert read(STAND_IN.whole(turn, 1)) == Completion(
        "Grüß dich", "STOP", 120, 30, cached_tokens=100, reasoning_tokens=20
    )


def test_calls_come_with_the_parts_that_go_back() -> None:
    turn = TURNS["calls after a thought and a text"]
    said = completion(read(STAND_IN.whole(turn, 3)))
    assert said.content == "I look."
    assert said.calls == (
        {"name": "look", "arguments": '{"q":1}'},
        {"name": "find", "arguments": '{"q":{"é":[1,null]}}'},
    )
    parts = orjson.loads(STAND_IN.whole(turn, 3))["candidates"][0]["content"]["parts"]
    assert said.echo == {OWN_PARTS: {"api": "gemini", "parts": parts}}
    messages = [HELLO, call_message(ONE, TWO, **said.echo), result_message("c1", "a"), result_message("c2", "b")]
    body = written(ask(*messages))
    assert orjson.dumps(body["contents"][1]["parts"]) == orjson.dumps(parts)
    asked = STAND_IN.read(Request("/v1beta/models/m1:generateContent", {}, orjson.dumps(body)))
    assert (asked.thoughts, asked.results) == ([True], ["a", "b"])


LONG_CALLS = [call_part() for _ in range(129)]
DEEP: Any = {}
for _ in range(240):
    DEEP = {"a": DEEP}
ODD: dict[str, tuple[Any, Any]] = {
    "thoughts are not the content": (
        reply({"text": "hm", "thought": True}, {"text": "a"}, {"text": "b"}),
        Completion("ab", "STOP", 12, 3),
    ),
    "unknown parts are passed over": (
        reply({"videoMetadata": {}}, {"text": "a"}, 7, None),
        Completion("a", "STOP", 12, 3),
    ),
    "no parts": ({"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]}, Completion("", "STOP")),
    "no content": ({"candidates": [{"finishReason": "MAX_TOKENS", "index": 0}]}, Completion("", "MAX_TOKENS")),
    "nulls": ({"candidates": [{"content": None, "finishReason": None}], "usageMetadata": None}, Completion("", "stop")),
    "fields of wrong types": (
        {"candidates": [{"content": {"parts": {}}, "finishReason": 7, "safetyRatings": 7}], "usageMetadata": []},
        Completion("", "stop"),
    ),
    "the first candidate alone": (
        {"candidates": [{"index": 1, "content": {"parts": [{"text": "b"}]}}, {"content": {"parts": [{"text": "a"}]}}]},
        Completion("a", "stop"),
    ),
    "blocked without words": (reply({"text": "a"}, finish="RECITATION"), Completion("a", "RECITATION", 12, 3)),
    "malformed with its words": (
        reply(call_part(), finish="UNEXPECTED_TOOL_CALL", finishMessage="No tool was allowed."),
        Completion("", "UNEXPECTED_TOOL_CALL", 12, 3, refusal="No tool was allowed."),
    ),
    "a call without a name": (
        reply(call_part(None)),
        Completion("", "malformed_call", 12, 3, refusal="a call has no name"),
    ),
    "a call in pieces": (
        reply({"functionCall": {"name": "look", "willContinue": True}}),
        Completion("", "malformed_call", 12, 3, refusal="the arguments of a call came in pieces"),
    ),
    "half a character": (
        b'{"candidates":[{"content":{"parts":[{"text":"a\\ud83d"}]},"finishReason":"STOP"}]}',
        Completion("a\ufffd", "STOP"),
    ),
    "a list of pieces": (
        [reply({"text": "a"}, finish=None), reply({"text": "b"})],
        Completion("ab", "STOP", 12, 3),
    ),
}


@pytest.mark.parametrize(("body", "expected"), ODD.values(), ids=ODD)
def test_an_odd_reply_is_read(body: Any, expected: Completion) -> None:
    assert read(body) == expected


@pytest.mark.parametrize(
    ("args", "text"),
    [({}, "{}"), (None, "{}"), ([1], "[1]"), (7, "7"), ('{"q":1}', '{"q":1}'), ({"q": 1.5}, '{"q":1.5}')],
)
def test_arguments_are_passed_on_as_json(args: Any, text: str) -> None:
    body = reply({"functionCall": {"name": "look", "args": args}})
    assert completion(read(body)).calls == ({"name": "look", "arguments": text},)


NO_REPLIES: dict[str, tuple[Any, str, str]] = {
    "the question is blocked": (
        {
            "promptFeedback": {
                "blockReason": "SAFETY",
                "safetyRatings": [
                    {"category": "HARM_CATEGORY_HARASSMENT", "probability": "HIGH"},
                    {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "NEGLIGIBLE"},
                    {"category": 7},
                    None,
                ],
            },
            "usageMetadata": {"promptTokenCount": 5},
        },
        "content_filter",
        "answered: the question was blocked: SAFETY: harassment high",
    ),
    "the question is blocked with a message": (
        {"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": "No."}},
        "content_filter",
        "answered: the question was blocked: OTHER: No.",
    ),
    "a signature is missing": (
        reply(finish="MISSING_THOUGHT_SIGNATURE"),
        "missing_thought_signature",
        "answered: MISSING_THOUGHT_SIGNATURE",
    ),
    "no candidates": ({"candidates": [], "usageMetadata": {}}, "", "answered without a candidate"),
    "another API's reply": ({"choices": []}, "", 'answered with no reply of the Gemini API: {"choices":[]}'),
    "no object": ([], "", "answered with no reply of the Gemini API: []"),
    "HTML": (b"<html>no</html>", "", "answered with what is not JSON: <html>no</html>"),
    "too many calls": (reply(*LONG_CALLS), "", "answered with 129 calls, and at most 128 are read"),
    "nested too deep": (reply(call_part(args=DEEP)), "", "answered with what nests too deep"),
    "an error in a list": ([{"error": {"message": "No.", "code": 404}}], "404", "answered 404: No."),
    "an error without a status": ({"error": {"message": "No."}}, "", "answered with an error: No."),
}


@pytest.mark.parametrize(("body", "code", "message"), NO_REPLIES.values(), ids=NO_REPLIES)
def test_why_there_is_no_reply_is_said(body: Any, code: str, message: str) -> None:
    said = refusal(read(body))
    assert (said.code, said.message, said.transient) == (code, message, False)


BLOCKED: list[tuple[Any, str]] = [
    ({"finish": "PROHIBITED_CONTENT", "finishMessage": "Not allowed."}, "PROHIBITED_CONTENT: Not allowed."),
    (
        {
            "finish": "SAFETY",
            "safetyRatings": [{"category": "HARM_CATEGORY_HATE_SPEECH", "probability": "LOW", "blocked": True}],
        },
        "SAFETY: hate speech low",
    ),
]


@pytest.mark.parametrize(("more", "why"), BLOCKED)
def test_a_blocked_reply_says_why_and_is_counted(more: Any, why: str) -> None:
    said = completion(read(reply(**more)))
    assert said.refusal == f"the reply was blocked: {why}"
    assert said.input_tokens


async def test_a_missing_signature_that_ends_a_reply_is_asked_for_again_without_own_parts() -> None:
    missing = http(200, reply(finish="MISSING_THOUGHT_SIGNATURE"))
    async with endpoint(missing, answer(Turn("a"))) as (model, server):
        said = await model.complete(ask(*UNSIGNED))
    assert (said.content, said.requests) == ("a", 2)
    parts = server.requests[1].json()["contents"][1]["parts"]
    assert parts == [call_part(thoughtSignature=DUMMY_SIGNATURE)]


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"promptTokenCount": 10, "candidatesTokenCount": 4, "totalTokenCount": 14}, (10, 4, 0, 0, False)),
        (
            {
                "promptTokenCount": 10,
                "toolUsePromptTokenCount": 5,
                "candidatesTokenCount": 4,
                "thoughtsTokenCount": 6,
                "cachedContentTokenCount": 8,
                "totalTokenCount": 25,
            },
            (15, 10, 8, 6, False),
        ),
        ({"promptTokenCount": 10, "thoughtsTokenCount": 6, "totalTokenCount": 16}, (10, 6, 0, 6, False)),
        ({"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0}, (None, 0, 0, 0, False)),
        ({"promptTokenCount": 10, "candidatesTokenCount": 4, "totalTokenCount": 50}, (10, 40, 0, 0, True)),
        ({"promptTokenCount": 10, "candidatesTokenCount": 4, "cachedContentTokenCount": 99}, (109, 4, 99, 0, True)),
        ({"promptTokenCount": True, "candidatesTokenCount": "4"}, (None, None, 0, 0, False)),
        ({"promptTokenCount": -1, "candidatesTokenCount": 2**41}, (None, None, 0, 0, False)),
        ("many", (None, None, 0, 0, False)),
    ],
)
def test_tokens_are_counted_as_gemini_does(usage: Any, counts: tuple[Any, ...]) -> None:
    said = completion(read(reply({"text": "a"}, usage=usage)))
    read_counts = said.input_tokens, said.output_tokens, said.cached_tokens, said.reasoning_tokens, said.estimated
    assert read_counts == counts


# ── streams ──────────────────────────────────────────────────────────────────────────────────────────


def piece(*parts: Any, **candidate: Any) -> Any:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "index": 0, **candidate}]}


END = piece(finishReason="STOP")


def parts_of(outcome: Completion | Refusal) -> Any:
    echo = completion(outcome).echo
    return echo[OWN_PARTS]["parts"] if echo else None


def test_texts_of_neighbouring_pieces_are_one_part_unless_one_is_signed() -> None:
    signed = {"text": "c", "thoughtSignature": "cw=="}
    thoughts = [piece({"text": "h", "thought": True}), piece({"text": "m", "thought": True})]
    texts = [piece({"text": "a"}), piece({"text": "b"}), piece(signed), piece({"text": "d"})]
    shown, outcome = read_stream(*thoughts, *texts, piece(SIGNED), piece({"text": ""}, finishReason="STOP"))
    assert shown == completion(outcome).content == "abcd"
    assert parts_of(outcome) == [{"text": "hm", "thought": True}, {"text": "ab"}, signed, {"text": "d"}, SIGNED]


def test_an_empty_part_with_a_signature_goes_back() -> None:
    signed = {"text": "", "thoughtSignature": "cw=="}
    outcome = read_stream(piece({"text": "a"}), piece(call_part()), piece(signed, {}), END)[1]
    assert parts_of(outcome) == [{"text": "a"}, call_part(), signed]


STREAMS: dict[str, tuple[list[Any], Any]] = {
    "counts grow, and zeros do not erase them": (
        [
            {**piece({"text": "a"}), "usageMetadata": {"promptTokenCount": 10, "totalTokenCount": 10}},
            {**END, "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 4, "totalTokenCount": 14}},
            {"usageMetadata": {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0}},
        ],
        Completion("a", "STOP", 10, 4),
    ),
    "counts of a piece that lacks some are not its total": (
        [
            {**piece({"text": "a"}), "usageMetadata": {"promptTokenCount": 10, "totalTokenCount": 10}},
            {**END, "usageMetadata": {"candidatesTokenCount": 6, "totalTokenCount": 6}},
        ],
        Completion("a", "STOP", 10, 6),
    ),
    "halves of a character": (
        [piece({"text": "a\ud83d"}), piece({"text": "\ude00b"}), END],
        Completion("a\U0001f600b", "STOP"),
    ),
    "unknown events": ([{"modelVersion": "m"}, piece({"text": "a"}), {"x": 1}, END, {}], Completion("a", "STOP")),
    "nulls": (
        [{"candidates": None}, {"candidates": [None]}, piece({"text": "a"}, finishReason=None), END],
        Completion("a", "STOP"),
    ),
    "another candidate": (
        [piece({"text": "a"}), {"candidates": [{"index": 1, "content": {"parts": [{"text": "z"}]}}]}, END],
        Completion("a", "STOP"),
    ),
}


@pytest.mark.parametrize(("events", "expected"), STREAMS.values(), ids=STREAMS)
def test_an_odd_stream_is_read(events: list[Any], expected: Completion) -> None:
    data = [json.dumps(each).encode() for each in events]
    shown, outcome = read_cut(b"".join(b"data: %b\n\n" % each for each in data), 11)
    assert outcome == expected
    assert shown == expected.content


def error_event(status: int) -> Any:
    return orjson.loads(STAND_IN.error(status, "The model is overloaded."))


CUT: dict[str, tuple[list[Any], str, bool]] = {
    "before its end": ([piece({"text": "a"})], "ended its stream before the reply was whole", True),
    "by an error": ([piece({"text": "a"}), error_event(503)], "answered 503: The model is overloaded.", True),
    "by an error that stays": ([error_event(400)], "answered 400: The model is overloaded.", False),
    "by a list": ([piece({"text": "a"}), []], "answered with no reply of the Gemini API: []", False),
    "by a blocked question": (
        [{"promptFeedback": {"blockReason": "BLOCKLIST"}}],
        "answered: the question was blocked: BLOCKLIST",
        False,
    ),
}


@pytest.mark.parametrize(("events", "message", "transient"), CUT.values(), ids=CUT)
def test_a_stream_that_is_not_whole_is_no_reply(events: list[Any], message: str, transient: bool) -> None:
    said = refusal(read_stream(*events)[1])
    assert (said.message, said.transient) == (message, transient)


def test_a_list_of_pieces_without_an_end_or_with_an_error_is_no_reply() -> None:
    assert refusal(read([piece({"text": "a"})])).transient
    assert refusal(read([piece({"text": "a"}), error_event(429)])).status == 429


@pytest.mark.parametrize("events", [[piece({"text": "a"})] * 20_000, [piece(call_part())] * 20_000])
@pytest.mark.exhaustive
def test_many_pieces_are_joined_before_anyone_waits(events: list[Any]) -> None:
    start = time()
    read_cut(b"".join(b"data: %b\n\n" % orjson.dumps(each) for each in [*events, END]), 4096)
    assert time() - start < 20


async def told(model: EndpointClient, question: Question) -> tuple[list[Delta], Completion]:
    async with aclosing(model.stream(question)) as pieces:
        *deltas, said = [each async for each in pieces]
    assert isinstance(said, Completion)
    return [each for each in deltas if isinstance(each, Delta)], said


async def test_a_stream_has_its_own_path_and_begins_anew_after_an_error() -> None:
    broken = http(200, b"data: %b\n\ndata: %b\n\n" % (orjson.dumps(piece({"text": "x"})), STAND_IN.error(503, "Busy.")))
    async with endpoint(broken, stream_of(Turn("Grüß dich"))) as (model, server):
        deltas, said = await told(model, ask())
    assert [STAND_IN.read(request).streams for request in server.requests] == [True, True]
    assert deltas[0] == Delta("x")
    assert deltas[1].anew
    assert "".join(delta.text for delta in deltas[1:]) == said.content == "Grüß dich"


async def test_a_model_that_does_not_stream_is_read_all_the_same() -> None:
    said = refused("models/m1 is not supported for streamGenerateContent", 404)
    async with endpoint(said, answer(Turn("a"))) as (model, server):
        deltas, reply = await told(model, ask())
    assert (deltas, reply.content) == ([Delta("a")], "a")
    assert [STAND_IN.is_its_path(request) for request in server.requests] == [True, True]


KEYS = [
    *("candidates", "content", "parts", "text", "thought", "thoughtSignature", "functionCall", "name", "args", "index"),
    *("finishReason", "finishMessage", "safetyRatings", "promptFeedback", "blockReason", "usageMetadata", "error"),
    *("promptTokenCount", "totalTokenCount", "code", "message", "category", "probability", "willContinue"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 600) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=25,
)


@given(st.lists(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=5), max_size=4), JSON)
def test_whatever_comes_is_a_reply_or_a_refusal(events: list[Any], body: Any) -> None:
    assert isinstance(read(body), Completion | Refusal)
    assert isinstance(
        read(reply(body, finish=body, finishMessage=body, safetyRatings=[body], index=0)), Completion | Refusal
    )
    assert isinstance(read(reply(call_part(body, body), usage=body)), Completion | Refusal)
    assert isinstance(read_stream(*events, *[piece(each, body) for each in events], END)[1], Completion | Refusal)


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────


async def test_an_endpoint_that_is_busy_is_asked_again_when_it_says() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.01s"}
    busy = {"code": 429, "message": "Resource exhausted.", "status": "RESOURCE_EXHAUSTED", "details": [info]}
    async with endpoint(http(429, [{"error": busy}]), answer(Turn("a"))) as (model, _):
        said = await model.complete(ask())
    assert (said.content, said.requests) == ("a", 2)


async def test_an_error_is_told_in_the_vendors_words() -> None:
    async with endpoint(refused("API key not valid. Please pass a valid API key.")) as (model, server):
        with pytest.raises(ModelError, match=r"127\.0\.0\.1:\d+ answered 400: API key not valid"):
            await model.complete(ask(seed=1, **FORMAT))
    assert len(server.requests) == 1


async def test_a_question_that_is_too_long_says_by_how_much() -> None:
    message = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
    async with endpoint(refused(message)) as (model, _):
        with pytest.raises(ModelError) as caught:
            await model.complete(ask(**FORMAT))
    assert caught.value.overflow == {"room": 1048576, "counted": 1200000}


# ── where it is sent ─────────────────────────────────────────────────────────────────────────────────

ENVIRONMENT = {
    "GOOGLE_API_KEY": "key-of-the-environment",
    "GEMINI_API_KEY": "another-key-of-the-environment",
    "GOOGLE_GENAI_USE_VERTEXAI": "true",
    "GOOGLE_GENAI_USE_ENTERPRISE": "1",
    "GOOGLE_CLOUD_PROJECT": "project-of-the-environment",
    "GOOGLE_CLOUD_LOCATION": "europe-west4",
    "GOOGLE_GEMINI_BASE_URL": "https://elsewhere.example",
    "GOOGLE_VERTEX_BASE_URL": "https://elsewhere.example",
    "GOOGLE_GENAI_API_VERSION": "v9",
    "GOOGLE_GENAI_CLIENT_MODE": "replay",
    "GOOGLE_GENAI_REPLAYS_DIRECTORY": "/nowhere",
    "GOOGLE_GENAI_REPLAY_ID": "none",
    "GOOGLE_APPLICATION_CREDENTIALS": "/nowhere/credentials.json",
}
HEADERS = {"accept", "accept-encoding", "content-type", "user-agent", "x-goog-api-client"}
BASES = {
    "": "",
    "/": "",
    "/v1beta": "",
    "/v1beta/": "",
    "/v1beta/openai": "",
    "/gateway/openai": "/gateway",
    "/gateway": "/gateway",
}


@pytest.mark.parametrize("path", BASES)
def test_a_base_url_is_taken_with_or_without_its_version(path: str) -> None:
    assert strip_path(f"https://gemini.example{path}") == f"https://gemini.example{BASES[path]}"


@pytest.mark.parametrize("name", ["m1", "models/m1"])
@pytest.mark.parametrize("api_key", [KEY, None])
async def test_nothing_of_the_environment_is_sent(
    name: str, api_key: str | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for variable, value in ENVIRONMENT.items():
        monkeypatch.setenv(variable, value)
    for streams, end in ((False, "generateContent"), (True, "streamGenerateContent?alt=sse")):
        head = await WIRE.read_head(name, "https://gemini.example/v1beta", api_key, streams=streams)
        assert head.url == f"https://gemini.example/v1beta/models/m1:{end}"
        headers = dict(head.with_route(DIRECT).headers)
        assert headers.pop("x-goog-api-key", None) == api_key
        assert headers.keys() == HEADERS
        assert "environment" not in str([*headers.values()])
    assert [record for record in caplog.records if record.name.startswith("google")] == []


async def test_a_key_goes_in_the_vendors_header() -> None:
    async with (
        endpoint(answer(Turn("a"))) as (model, server),
        endpoint(answer(Turn("a")), api_key=None) as (bare, other),
    ):
        await model.complete(ask())
        await bare.complete(ask())
    assert [STAND_IN.key_of(each.requests[0]) for each in (server, other)] == [KEY, None]


# ── whole runs ───────────────────────────────────────────────────────────────────────────────────────

CONFIG: Any = {"model": "gemini:m1", "max_steps": 5, "allowed_tools": ["look"], "prompt": "Go."}


def registry() -> ToolRegistry:
    async def look(args: dict[str, Any], context: Any) -> Any:
        return f"seen {args['q']}"

    return ToolRegistry([Tool("look", "Looks.", QUERY, look, effect="read")])


def replies_of(*turns: Turn, streams: bool) -> Iterator[bytes]:
    for number, turn in enumerate(turns):
        yield stream_of(turn, number) if streams else answer(turn, number)


@pytest.mark.parametrize("streams", [False, True])
async def test_a_run_with_native_calls_keeps_the_thought_of_each(streams: bool) -> None:
    turns = [
        Turn("I look.", [("look", {"q": 1}), ("look", {"q": 2})], "Where is it?"),
        Turn(calls=[("look", {"q": 3})], thought="Not there."),
        Turn("Done.", thought="There."),
    ]
    async with endpoint(*replies_of(*turns, streams=streams)) as (model, server):
        listen: Any = (lambda event: None) if streams else None
        config = {**CONFIG, "protocol": "tools"}
        output = await run_agent(config, registry=registry(), model=model, on_event=listen)
    assert (output.finish_reason, output.final_answer) == ("final", "Done."), output.error
    *_, last = asked = [STAND_IN.read(request) for request in server.requests]
    assert [each.streams for each in asked] == [streams] * 3
    assert last.results == ["seen 1", "seen 2", "seen 3"]
    assert last.calls == [("look", {"q": 1}), ("look", {"q": 2}), ("look", {"q": 3})]
    assert last.thoughts == [True, True]
    assert last.tools == ["look"]
    assert "Where is it?" not in last.said


async def test_a_run_with_one_json_object_a_reply() -> None:
    call = '{"type":"action","tool":"look","args":{"q":1},"thought":"I look."}'
    turns = [Turn(call, thought="Where is it?"), Turn('{"type":"final","answer":"Done."}')]
    async with endpoint(*replies_of(*turns, streams=False)) as (model, server):
        output = await run_agent(CONFIG, registry=registry(), model=model)
    assert (output.finish_reason, output.final_answer) == ("final", "Done."), output.error
    first, second = [STAND_IN.read(request) for request in server.requests]
    assert (first.options["response_format"], first.tools, second.calls) == ("json_schema", [], [])
    assert any("seen 1" in text for text in second.said)


async def test_a_malformed_call_is_told_to_the_model_and_a_blocked_reply_ends_the_run() -> None:
    turns = [Turn(finish="malformed_call"), Turn("x", finish="content_filter")]
    async with endpoint(*replies_of(*turns, streams=False)) as (model, server):
        output = await run_agent({**CONFIG, "protocol": "tools"}, registry=registry(), model=model)
    assert output.finish_reason == "content_filter"
    assert "stopped for safety" in str(output.error)
    assert "Malformed function call" in STAND_IN.read(server.requests[1]).said[-1]
