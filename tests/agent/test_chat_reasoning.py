"""How much a model thinks, and an author's own parameters, in chat completions: each vendor's manner, and refusals."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from agent_core import DefinitionError
from agent_core.models import Question
from agent_core.models.endpoint.answer import Refusal
from agent_core.models.endpoint.asking import Adapted, merge_extra
from agent_core.models.endpoint.capabilities import EndpointCapabilities
from agent_core.models.openai.chat import ChatWire
from agent_core.models.openai.reasoning import REASONING, WRITERS
from agent_core.models.providers import Providers
from agent_core.models.vendors import VENDORS


def ask(**options: Any) -> Question:
    return Question("m1", (b'{"role":"user","content":"Hi"}',), options, "agent", 0)


def write(capabilities: EndpointCapabilities, **options: Any) -> dict[str, Any]:
    """The options of a request."""
    sent = orjson.loads(ChatWire().write("m1", ask(**options), capabilities, "not").body)
    return {name: value for name, value in sent.items() if name not in ("model", "messages")}


def adapt(capabilities: EndpointCapabilities, message: str, param: str = "", **options: Any) -> Adapted | None:
    return ChatWire().adapt("m1", ask(**options), capabilities, "not", Refusal(message, 400, param=param))


MANNERS: list[tuple[str, str, dict[str, Any]]] = [
    ("openai", "none", {"reasoning_effort": "none"}),
    ("openai", "high", {"reasoning_effort": "high"}),
    ("gemini", "low", {"reasoning_effort": "low"}),
    ("openrouter", "medium", {"reasoning": {"effort": "medium"}}),
    ("qwen", "none", {"enable_thinking": False}),
    ("qwen", "low", {"enable_thinking": True, "thinking_budget": 2_048}),
    ("deepseek", "none", {"thinking": {"type": "disabled"}}),
    ("deepseek", "low", {"thinking": {"type": "enabled"}}),
    ("anthropic", "none", {}),
    ("anthropic", "high", {"thinking": {"type": "enabled", "budget_tokens": 16_384}}),
]


@pytest.mark.parametrize(("vendor", "level", "sent"), MANNERS)
def test_a_vendor_is_told_in_its_own_manner(vendor: str, level: str, sent: dict[str, Any]) -> None:
    assert write(VENDORS[vendor].capabilities, reasoning=level) == sent


@pytest.mark.parametrize("manner", WRITERS)
def test_nothing_is_said_without_a_level(manner: str) -> None:
    assert write(EndpointCapabilities(thinking=manner)) == {}
    assert write(EndpointCapabilities(thinking=manner), reasoning=None) == {}


def test_beside_a_budget_there_is_no_sampling_and_the_reply_has_room() -> None:
    known = VENDORS["anthropic"].capabilities
    options: dict[str, Any] = {"temperature": 0.7, "top_p": 0.9, "max_output_tokens": 500}
    sent = write(known, reasoning="low", **options)
    assert sent == {"max_tokens": 2_548, "thinking": {"type": "enabled", "budget_tokens": 2_048}}
    assert write(known, reasoning="low", max_output_tokens=9_000)["max_tokens"] == 9_000
    assert write(known, reasoning="none", **options) == {"temperature": 0.7, "top_p": 0.9, "max_tokens": 500}


REFUSALS: list[tuple[str, str, str]] = [
    ("effort", "Unrecognized request argument supplied: reasoning_effort", ""),
    ("effort", "No.", "reasoning_effort"),
    ("routed effort", "reasoning is not supported by this model", ""),
    ("switch", "parameter.enable_thinking is unknown", ""),
    ("kind", "thinking: Extra inputs are not permitted", ""),
    ("budget", "thinking.budget_tokens: this model has no thinking", ""),
]


@pytest.mark.parametrize(("manner", "message", "param"), REFUSALS)
def test_an_endpoint_that_knows_no_thinking_is_not_told_again(manner: str, message: str, param: str) -> None:
    known = EndpointCapabilities(thinking=manner)
    adapted = adapt(known, message, param, reasoning="high")
    assert adapted is not None
    assert (REASONING in adapted.capabilities.left_out, adapted.lasting) == (True, True)
    assert write(adapted.capabilities, reasoning="high") == {}
    assert adapt(adapted.capabilities, message, param, reasoning="high") is None


@pytest.mark.parametrize(("manner", "message", "param"), REFUSALS)
def test_such_words_mean_nothing_where_nothing_was_said(manner: str, message: str, param: str) -> None:
    assert adapt(EndpointCapabilities(thinking=manner), message, param) is None


def test_a_model_that_thinks_in_a_stream_alone_is_asked_for_one_where_it_has_to_think() -> None:
    message = "parameter.enable_thinking must be set to false for non-streaming calls"
    known = VENDORS["qwen"].capabilities
    adapted = adapt(known, message, reasoning="high")
    assert adapted is not None
    assert (adapted.streaming, adapted.capabilities.only_streams) == ("with usage", True)
    assert write(adapted.capabilities, reasoning="high")["enable_thinking"] is True
    for level in (None, "none"):
        without = adapt(known, message, reasoning=level)
        assert without is None or not without.capabilities.only_streams
    plain = adapt(known, message)
    assert plain is not None
    assert not plain.capabilities.allows_thinking


# ── the author's own parameters ───────────────────────────────────────────────────────────────────────

MERGED: dict[str, tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]] = {
    "a new one": ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
    "in place of ours": ({"a": 1}, {"a": 2}, {"a": 2}),
    "key by key": ({"a": {"x": 1, "y": 2}}, {"a": {"y": 3, "z": 4}}, {"a": {"x": 1, "y": 3, "z": 4}}),
    "deeper": ({"a": {"b": {"c": 1}}}, {"a": {"b": {"d": 2}}}, {"a": {"b": {"c": 1, "d": 2}}}),
    "a list as a whole": ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
    "an object for a value": ({"a": 1}, {"a": {"x": 1}}, {"a": {"x": 1}}),
    "a value for an object": ({"a": {"x": 1}}, {"a": 1}, {"a": 1}),
    "null": ({"a": {"x": 1}}, {"a": None}, {"a": None}),
    "nothing": ({"a": 1}, {}, {"a": 1}),
}


@pytest.mark.parametrize("name", MERGED)
def test_parameters_are_merged_key_by_key(name: str) -> None:
    ours, own, merged = MERGED[name]
    before = orjson.dumps([ours, own])
    assert merge_extra(dict(ours), own) == merged
    assert orjson.dumps([ours, own]) == before


def test_an_author_has_the_last_word() -> None:
    extra = {"temperature": 1, "reasoning_effort": "minimal", "top_k": 4, "response_format": {"type": "text"}}
    sent = write(EndpointCapabilities(), temperature=0.2, reasoning="high", response_format="json_object", extra=extra)
    assert sent == extra


def test_options_that_an_endpoint_refuses_are_left_out_but_not_the_authors() -> None:
    known = EndpointCapabilities(left_out=frozenset({"temperature", REASONING}))
    assert write(known, temperature=0.2, reasoning="low", extra={"temperature": 1}) == {"temperature": 1}


# ── models that are known not to think ────────────────────────────────────────────────────────────────


NAMES = {
    "openai:gpt-4o": False,
    "openai:o3": True,
    "openai:gpt-5-mini": True,
    "openai:new": True,
    "anthropic:claude-3-5-sonnet-latest": False,
    "anthropic:claude-3-7-sonnet-latest": True,
    "gemini:gemini-2.0-flash": False,
    "gemini:gemini-2.5-flash": True,
    "qwen:qwen-max": True,
}


@pytest.mark.parametrize("api", [None, "chat"])
@pytest.mark.parametrize(("model", "may"), NAMES.items(), ids=NAMES)
def test_a_check_faults_thinking_of_a_model_that_does_not(model: str, *, may: bool, api: str | None) -> None:
    providers = Providers()
    options = {} if api is None else {"api": api}
    for level in (None, "none"):
        providers.check(model, {"reasoning": level, **options})
    for level in ("low", "medium", "high"):
        if may:
            providers.check(model, {"reasoning": level, **options})
            continue
        with pytest.raises(DefinitionError, match="does not think") as caught:
            providers.check(model, {"reasoning": level, **options})
        assert caught.value.where == "reasoning"


def test_an_endpoint_of_ones_own_may_have_a_model_of_any_name() -> None:
    Providers().check("openai:gpt-4o", {"reasoning": "high", "base_url": "http://127.0.0.1:9/v1"})
