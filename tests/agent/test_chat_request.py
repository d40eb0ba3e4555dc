"""What an endpoint is sent, and what is given up as it refuses one thing after another, in each vendor's words."""

import json
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.models import Question
from agent_core.models.endpoint.answer import Refusal
from agent_core.models.endpoint.capabilities import EndpointCapabilities, merge, merge_streaming
from agent_core.models.endpoint.conversation import join_messages
from agent_core.models.endpoint.refused_parts import downgrade_streaming, is_format_refusal
from agent_core.models.openai.request import (
    downgrade,
    request_body,
    wants_stream,
    without_keywords,
)
from agent_core.models.vendors import VENDORS

SCHEMA = {"type": "object", "properties": {"const": {"const": 1}}, "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "look_up", "description": "Look it up.", "parameters": SCHEMA}}
EVERYTHING: dict[str, Any] = {"temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ["END"], "max_output_tokens": 9}


def question(**options: Any) -> Question:
    return Question("m", (b'{"role":"user","content":"hi"}',), options, "agent", 0)


def written(asked: Question, capabilities: EndpointCapabilities) -> bytes:
    return request_body("m", b",".join(asked.messages), asked.options, capabilities)


def sent(capabilities: EndpointCapabilities | None = None, **options: Any) -> Any:
    return orjson.loads(written(question(**options), capabilities or EndpointCapabilities()))


AUTO: dict[str, Any] = {"response_format": "auto", "step_schema": SCHEMA}
STARTS = {"openai": "json_object", "gemini": "json_schema", "anthropic": None, "qwen": "json_object"}
STARTS |= {"deepseek": "json_object", "openrouter": "json_schema", "ollama": "json_schema", "vllm": "json_schema"}


@pytest.mark.parametrize("name", VENDORS)
def test_a_vendor_is_first_asked_for_the_strictest_format_that_it_takes(name: str) -> None:
    assert sent(VENDORS[name].capabilities, **AUTO).get("response_format", {}).get("type") == STARTS[name]


def test_where_only_strict_schemas_are_taken_one_that_is_named_says_so() -> None:
    body = sent(VENDORS["anthropic"].capabilities, response_format="json_schema", step_schema=SCHEMA)
    assert body["response_format"]["json_schema"] == {"name": "step", "schema": SCHEMA, "strict": True}


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────────


def test_tools_go_as_they_are_and_without_a_response_format() -> None:
    body = sent(tools=[TOOL], tool_choice="required", **AUTO)
    assert (body["tools"], body["tool_choice"]) == ([TOOL], "required")
    assert "response_format" not in body


def test_tools_without_a_choice_leave_it_to_the_vendor() -> None:
    assert "tool_choice" not in sent(tools=[TOOL])


@pytest.mark.parametrize("tools", [[], None])
def test_a_choice_without_tools_is_not_sent(tools: Any) -> None:
    body = sent(tools=tools, tool_choice="none")
    assert not {"tools", "tool_choice"} & body.keys()


CHOICE_REFUSED = {
    "vllm": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    "deepseek": "Thinking mode does not support this tool_choice",
    "qwen": "<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to "
    "required or object in thinking mode",
}


@pytest.mark.parametrize("told", CHOICE_REFUSED.values(), ids=CHOICE_REFUSED)
def test_a_refused_choice_is_given_up_and_others_are_not(told: str) -> None:
    asked = question(tools=[TOOL], tool_choice="required")
    capabilities = downgrade(EndpointCapabilities(), asked, Refusal(f"answered 400: {told}", 400))
    assert capabilities is not None
    assert "tool_choice" not in sent(capabilities, tools=[TOOL], tool_choice="required")
    assert sent(capabilities, tools=[TOOL], tool_choice="none")["tool_choice"] == "none"
    assert downgrade(capabilities, asked, Refusal(f"answered 400: {told}", 400)) is None


GEMINI_UNKNOWN = (
    'answered 400: Invalid JSON payload received. Unknown name "additionalProperties" at '
    "'tools[0].function_declarations[0].parameters': Cannot find field.\nInvalid JSON payload received. "
    "Unknown name \"const\" at 'tools[0].function_declarations[0].parameters.properties[0].value': Cannot find field."
)


def test_words_of_a_schema_that_an_endpoint_does_not_know_are_left_out_at_once() -> None:
    capabilities = downgrade(EndpointCapabilities(), question(tools=[TOOL]), Refusal(GEMINI_UNKNOWN, 400))
    assert capabilities is not None
    parameters = sent(capabilities, tools=[TOOL])["tools"][0]["function"]["parameters"]
    assert parameters == {"type": "object", "properties": {"const": {}}}
    assert downgrade(capabilities, question(tools=[TOOL]), Refusal(GEMINI_UNKNOWN, 400)) is None


def test_leaving_words_out_spares_names_and_data() -> None:
    schema = {
        "properties": {"title": {"title": "T", "enum": [{"title": 1}]}},
        "anyOf": [{"title": "A", "type": "object"}],
        "default": {"title": "x"},
    }
    assert without_keywords(schema, frozenset({"title"})) == {
        "properties": {"title": {"enum": [{"title": 1}]}},
        "anyOf": [{"type": "object"}],
        "default": {"title": "x"},
    }


# ── formats ───────────────────────────────────────────────────────────────────────────────────────────

FORMAT_REFUSED = {
    "openai": "Invalid schema for response_format 'step': schema must be a JSON Schema of 'type: \"object\"', got "
    "'type: \"None\"'.",
    "deepseek": "This response_format type is unavailable now",
    "deepseek before": "Failed to deserialize the JSON body into the target type: response_format: "
    "response_format.type `json_schema` is unavailable now at line 1 column 12440",
    "anthropic": "response_format: Extra inputs are not permitted",
    "qwen": "<400> InternalError.Algo.InvalidParameter: 'messages' must contain the word 'json' in some form, to use "
    "'response_format' of type 'json_object'.",
    "qwen that thinks": "Json mode response is not supported when enable_thinking is true",
    "llama.cpp": "Failed to initialize samplers: failed to parse grammar",
    "vllm": "The provided JSON schema contains features not supported by xgrammar.",
}


@pytest.mark.parametrize("told", FORMAT_REFUSED.values(), ids=FORMAT_REFUSED)
def test_a_refused_format_gives_way_to_milder_ones_and_then_there_is_an_end(told: str) -> None:
    capabilities: EndpointCapabilities | None = EndpointCapabilities()
    types = []
    while capabilities is not None:
        types.append(sent(capabilities, **AUTO).get("response_format", {}).get("type"))
        capabilities = downgrade(capabilities, question(**AUTO), Refusal(f"answered 400: {told}", 400))
    assert types == ["json_schema", "json_object", None]


OF_LLAMA_CPP = [
    'response_format type must be one of "text" or "json_object", but got: json_schema',
    'JSON schema conversion failed: Unrecognized schema: {"required":["q"]}',
]


@pytest.mark.parametrize("told", OF_LLAMA_CPP)
def test_a_format_may_be_refused_as_a_fault_of_the_server(told: str) -> None:
    refusal = Refusal(f"answered 500: {told}", 500)
    capabilities = downgrade(EndpointCapabilities(), question(**AUTO), refusal)
    assert capabilities is not None
    assert capabilities.format == "json_object"
    broken = Refusal("answered 500: The server had an error while processing your request", 500)
    assert downgrade(EndpointCapabilities(), question(**AUTO), broken) is None


NO_FORMAT_HELPS = {
    "gemini's wrong key": Refusal("API key not valid. Please pass a valid API key.", 400),
    "openai's window": Refusal("too many tokens", 400, code="context_length_exceeded"),
    "vllm's window": Refusal("This model's maximum context length is 4096 tokens.", 400),
    "anthropic's window": Refusal("prompt is too long: 210000 tokens > 200000 maximum", 400),
    "qwen's window": Refusal("Range of input length should be [1, 98304]", 400),
    "gemini's window": Refusal("The input token count (1100000) exceeds the maximum number of tokens allowed", 400),
    "anthropic's purse": Refusal("Your credit balance is too low to access the Anthropic API.", 400),
    "ollama's model": Refusal('model "qwen9" not found, try pulling it first', 404),
    "vllm's model": Refusal("The model `qwen9` does not exist.", 404),
}


@pytest.mark.parametrize("refusal", NO_FORMAT_HELPS.values(), ids=NO_FORMAT_HELPS)
def test_what_no_format_would_mend_is_not_asked_again(refusal: Refusal) -> None:
    assert downgrade(EndpointCapabilities(), question(**AUTO), refusal) is None


VAGUE = {
    "groq's model wrote no JSON": Refusal("answered 400: Failed to generate JSON. See 'failed_generation'.", 400),
    "groq's model wrote other JSON": Refusal("JSON does not match the expected schema", 400, "json_validate_failed"),
    "a page while deploying": Refusal("answered 404: <html><a href='https://schema.org/'>no route</a></html>", 404),
    "a page of a gateway": Refusal("answered 501: <!DOCTYPE html><p>not ready</p>", 501),
    "no reason": Refusal("answered 400: Bad Request", 400),
}


@pytest.mark.parametrize("refusal", VAGUE.values(), ids=VAGUE)
def test_a_refusal_that_does_not_speak_of_the_format_is_asked_once_without_any_and_teaches_nothing(
    refusal: Refusal,
) -> None:
    capabilities = downgrade(EndpointCapabilities(), question(**AUTO), refusal)
    assert capabilities is not None
    assert "response_format" not in sent(capabilities, **AUTO)
    assert downgrade(capabilities, question(**AUTO), refusal) is None
    assert not is_format_refusal(refusal)


@pytest.mark.parametrize("told", FORMAT_REFUSED.values(), ids=FORMAT_REFUSED)
def test_a_refusal_that_speaks_of_the_format_teaches(told: str) -> None:
    assert is_format_refusal(Refusal(f"answered 400: {told}", 400))


# ── sampling ──────────────────────────────────────────────────────────────────────────────────────────

UNWANTED = {
    "openai": (
        Refusal("Unsupported value: 'temperature' does not support 0.5 with this model.", 400, "unsupported_value"),
        "temperature",
    ),
    "openai, by its field": (Refusal("no", 400, "unsupported_parameter", "stop"), "stop"),
    "anthropic": (Refusal("`temperature` is deprecated for this model.", 400), "temperature"),
    "anthropic, both": (
        Refusal("`temperature` and `top_p` cannot both be specified for this model. Please use only one.", 400),
        "top_p",
    ),
    "gemini": (Refusal('Invalid JSON payload received. Unknown name "seed": Cannot find field.', 400), "seed"),
    "TGI, at an end": (Refusal("Input validation error: `temperature` must be strictly positive", 422), "temperature"),
    "TGI, at the other": (Refusal("Input validation error: `top_p` must be > 0.0 and < 1.0", 422), "top_p"),
    "moonshot": (Refusal("invalid temperature: only 1 is allowed for this model", 400), "temperature"),
    "bedrock": (Refusal("Malformed input request: extraneous key [seed] is not permitted, please", 400), "seed"),
    "a strict one": (Refusal("seed: Extra inputs are not permitted", 400), "seed"),
}


@pytest.mark.parametrize(("refusal", "name"), UNWANTED.values(), ids=UNWANTED)
def test_a_sampling_option_that_is_not_taken_is_left_out_alone(refusal: Refusal, name: str) -> None:
    refusal = replace(refusal, message=f"answered 400: {refusal.message}")
    capabilities = downgrade(EndpointCapabilities(), question(**EVERYTHING), refusal)
    assert capabilities is not None
    assert set(sent(**EVERYTHING)) - set(sent(capabilities, **EVERYTHING)) == {name}
    assert downgrade(capabilities, question(**EVERYTHING), refusal) is None


INSIDE = {
    "a path": "response_format.json_schema.schema.properties.temperature: 'minimum' is not supported",
    "a context": "Invalid schema: In context=('properties', 'temperature'), 'minimum' is not permitted.",
    "a detail": '[{"loc":["body","response_format","json_schema","seed"],"msg":"Extra inputs are not permitted"}]',
    "a message": "messages[0].stop: Extra inputs are not permitted",
    "a function": "Unknown name \"stop\" at 'tools[0].function_declarations[0].parameters': Cannot find field.",
}


@pytest.mark.parametrize("told", INSIDE.values(), ids=INSIDE)
def test_a_name_inside_another_option_is_no_option(told: str) -> None:
    capabilities = downgrade(
        EndpointCapabilities(), question(**EVERYTHING, **AUTO), Refusal(f"answered 400: {told}", 400)
    )
    assert capabilities is None or not capabilities.left_out


LONG = ["temperature top_p ", "model ", 'Unknown name "a" at \'', "enable_thinking ", "stream ", "stream_options. "]


@pytest.mark.sampled
@pytest.mark.parametrize("words", LONG)
def test_a_refusal_of_a_hundred_thousand_words_is_read_before_anyone_waits(words: str) -> None:
    """It would take minutes or months if each word were compared with all that follow."""
    refusal = Refusal(words * 10**5, 400)
    downgrade(EndpointCapabilities(), question(**EVERYTHING, **AUTO), refusal)
    assert not wants_stream(refusal)
    assert downgrade_streaming("with usage", refusal) is None


@pytest.mark.parametrize(
    "told", ["temperature: range: 0..1", "'seed' must be an integer", "stop sequences must be four at the most"]
)
def test_a_wrong_value_is_told_and_not_left_out(told: str) -> None:
    assert downgrade(EndpointCapabilities(), question(**EVERYTHING), Refusal(f"answered 400: {told}", 400)) is None


def test_a_model_that_may_only_think_in_streams_is_asked_not_to() -> None:
    told = "parameter.enable_thinking must be set to false for non-streaming calls"
    capabilities = downgrade(VENDORS["qwen"].capabilities, question(), Refusal(told, 400))
    assert capabilities is not None
    assert sent(capabilities)["enable_thinking"] is False
    assert "enable_thinking" not in sent()
    assert downgrade(capabilities, question(), Refusal(told, 400)) is None


# ── what is remembered ────────────────────────────────────────────────────────────────────────────────

SCALARS = {
    "nothing learnt": (
        EndpointCapabilities(format="text"),
        EndpointCapabilities(),
        EndpointCapabilities(),
        EndpointCapabilities(format="text"),
    ),
    "the milder format": (
        EndpointCapabilities(format="text"),
        EndpointCapabilities(),
        EndpointCapabilities(format="json_object"),
        EndpointCapabilities(format="text"),
    ),
    "a milder format": (
        EndpointCapabilities(),
        EndpointCapabilities(),
        EndpointCapabilities(format="json_object"),
        EndpointCapabilities(format="json_object"),
    ),
    "sets": (
        EndpointCapabilities(left_out=frozenset({"seed"})),
        EndpointCapabilities(),
        EndpointCapabilities(left_out=frozenset({"stop"})),
        EndpointCapabilities(left_out=frozenset({"seed", "stop"})),
    ),
    "another's word": (
        EndpointCapabilities(tokens="max_completion_tokens"),
        EndpointCapabilities(),
        EndpointCapabilities(allows_thinking=False),
        EndpointCapabilities(tokens="max_completion_tokens", allows_thinking=False),
    ),
}


@pytest.mark.parametrize(("before", "began", "ended", "after"), SCALARS.values(), ids=SCALARS)
def test_what_a_question_learnt_is_added_to_what_others_learnt_meanwhile(
    before: EndpointCapabilities, began: EndpointCapabilities, ended: EndpointCapabilities, after: EndpointCapabilities
) -> None:
    assert merge(before, began, ended) == after


def test_streaming_is_given_up_by_those_who_asked_for_it_alone() -> None:
    assert merge_streaming("bare", None, "not") == "bare"
    assert merge_streaming("not", "with usage", "with usage") == "not"
    assert merge_streaming("not", "with usage", "bare") == "not"
    assert merge_streaming("with usage", "with usage", "bare") == "bare"
    assert merge_streaming("not", "not", "with usage") == "with usage"


WORDS = [
    *VAGUE.values(),
    *(Refusal(told, 400) for told in (*FORMAT_REFUSED.values(), *CHOICE_REFUSED.values(), GEMINI_UNKNOWN)),
    *(refusal for refusal, _ in UNWANTED.values()),
    *NO_FORMAT_HELPS.values(),
    Refusal("Use 'max_completion_tokens' instead.", 400),
    Refusal("enable_thinking must be set to false", 422),
    Refusal("", 404),
]


@given(st.lists(st.sampled_from(WORDS), min_size=30, max_size=30), st.booleans())
def test_no_endpoint_can_refuse_for_ever(refusals: list[Refusal], native: bool) -> None:
    dialect = {"tools": [TOOL], "tool_choice": "required"} if native else AUTO
    asked, capabilities, steps = question(**EVERYTHING, **dialect), EndpointCapabilities(), 0
    for refusal in refusals:
        less = downgrade(capabilities, asked, refusal)
        if less is not None:
            assert written(asked, less) != written(asked, capabilities)
            capabilities, steps = less, steps + 1
    assert steps <= 10


def test_the_bytes_before_the_options_are_the_messages_as_they_came() -> None:
    body = written(question(tools=[TOOL], temperature=0), EndpointCapabilities())
    assert body.startswith(b'{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0')
    assert json.loads(body)


def test_id_that_is_too_long_is_sent_shortened_and_everything_else_as_it_came() -> None:
    def calling(id_: str) -> bytes:
        call = {"id": id_, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        return orjson.dumps(
            {"role": "assistant", "content": None, "tool_calls": [call], "extra_content": {"id": "x" * 99}}
        )

    def answering(id_: str) -> bytes:
        return orjson.dumps({"role": "tool", "content": f"'tool_call_id': {'y' * 99}", "tool_call_id": id_})

    fitting = [b'{"role": "user","content":"hi"}', calling("a" * 40), answering("a" * 40)]
    long = [calling("b" * 41), answering("b" * 41)]
    assert join_messages(fitting) == (b",".join(fitting), ())
    joined, _ = join_messages([*fitting, *long])
    assert joined.startswith(b",".join(fitting))
    sent = orjson.loads(b"[%b]" % joined)[3:]
    assert sent[0]["tool_calls"][0]["id"] == sent[1]["tool_call_id"]
    assert (len(sent[1]["tool_call_id"]), sent[0]["extra_content"]) == (40, {"id": "x" * 99})
