"""Whatever was stored, prepared in every vendor's shape, is taken by that vendor's own SDK, and is still the same."""

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam
from pydantic import TypeAdapter

from agent_core.run.sync import run_sync
from support.optional import needs
from utools import ToolRegistry
from utools.context.formats import _safe, _safe_id, anthropic, gemini, openai
from utools.context.manager import context_manager
from utools.context.store_memory import MemoryContextStore
from utools.context.turns import Message, Turn
from utools.context.window import Window, estimated_tokens, split_at_window

OPENAI = TypeAdapter(list[ChatCompletionMessageParam])


@cache
def anthropic_messages() -> TypeAdapter[Any]:
    from anthropic.types import MessageParam

    return TypeAdapter(list[MessageParam])


@cache
def gemini_contents() -> TypeAdapter[Any]:
    from google.genai.types import ContentListUnionDict

    return TypeAdapter(ContentListUnionDict)


def objects(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.text(max_size=8), values, max_size=4)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner) | objects(inner)
)
IDS = (
    st.sampled_from(["call_0", "call_0_2", "c.0"])
    | st.text(min_size=1, max_size=80)
    | st.from_regex(r"call_[A-Za-z0-9.:]{1,8}", fullmatch=True)
)
NAMES = st.sampled_from(["look", "mcp.web.get", "a:b", "ä ö", "x" * 128, "", "1st"])
ARGUMENTS = objects(JSON).map(json.dumps) | st.text() | st.sampled_from(["", "[1]", "NaN", "{" * 9000, '{"a":' * 70])


@st.composite
def exchanges(draw: st.DrawFn) -> list[Message]:
    """What an assistant says, or what it calls and what that gives."""
    ids = draw(st.lists(IDS, unique=True, max_size=3))
    text = draw(st.text() if not ids else st.none() | st.text())
    said: Message = {"role": "assistant", "content": text}
    if draw(st.booleans()):
        said["name"] = draw(st.text(min_size=1))
    if ids:
        said["tool_calls"] = [
            {"id": each, "function": {"name": draw(NAMES), "arguments": draw(ARGUMENTS)}} for each in ids
        ]
    answers = [
        {"role": "tool", "content": draw(ARGUMENTS), "tool_call_id": each, "name": "look"}
        for each in draw(st.permutations(ids))
    ]
    return [said, *answers]


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    first: Message = {"role": "user", "content": draw(st.text() | st.sampled_from(["", " ", "\n"]))}
    return [first, *(message for exchange in draw(st.lists(exchanges(), max_size=3)) for message in exchange)]


HISTORIES = st.lists(turns(), max_size=4)


STORED = st.tuples(HISTORIES, st.text(), st.none() | st.text(), st.none() | st.integers(1, 8))


@given(STORED)
def test_every_history_that_was_stored_is_prepared_for_openai(stored: Any) -> None:
    check_openai(run_sync(lambda: stored_and_prepared(*stored)))


@needs("anthropic")
@given(STORED)
def test_every_history_that_was_stored_is_prepared_for_anthropic(stored: Any) -> None:
    check_anthropic(run_sync(lambda: stored_and_prepared(*stored)))


@needs("google.genai")
@given(STORED)
def test_every_history_that_was_stored_is_prepared_for_gemini(stored: Any) -> None:
    check_gemini(run_sync(lambda: stored_and_prepared(*stored)))


async def stored_and_prepared(
    history: list[Turn], asked: str, system: str | None, window: int | None
) -> dict[str, Any]:
    registry = ToolRegistry(
        [context_manager(MemoryContextStore(), summarise=lambda messages, _: f"{len(messages)} more")]
    )

    async def call(**args: Any) -> Any:
        result = await registry.execute("context_manager", {"session_id": "s", **args})
        assert result.success, result.error
        return result.output

    for number, turn in enumerate(history):
        await call(op="persist", messages_json=turn, turn_id=str(number))
    more = {**({"system_prompt": system} if system is not None else {}), **({"window": window} if window else {})}
    output = await call(op="prepare", user_message=asked, formats=["openai", "gemini", "anthropic"], **more)
    assert isinstance(output, dict)
    return output


def check_openai(prepared: dict[str, Any]) -> None:
    taken = consumed(OPENAI.validate_python(prepared["openai"]))
    assert [each["role"] for each in taken] == [each["role"] for each in prepared["messages_json"]]
    assert [each["content"] for each in taken] == [each["content"] for each in prepared["messages_json"]]
    assert [call["id"] for call in calls_of(taken)] == [call["id"] for call in calls_of(prepared["messages_json"])]
    assert all(1 <= len(call["function"]["name"]) <= 64 for call in calls_of(taken))


def check_anthropic(prepared: dict[str, Any]) -> None:
    neutral = prepared["messages_json"]
    taken = consumed(anthropic_messages().validate_python(prepared["anthropic"]["messages"]))
    assert [each["role"] for each in taken] == ["user", "assistant"] * (len(taken) // 2) + ["user"] * (len(taken) % 2)
    blocks = [block for each in taken for block in each["content"]]
    made = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert len(set(made)) == len(made)
    assert made == [_safe_id(call["id"]) for call in calls_of(neutral)]
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert answered == [_safe_id(each["tool_call_id"]) for each in neutral if each["role"] == "tool"]
    for each, after in zip(taken, [*taken[1:], None], strict=True):
        opened = {block["id"] for block in each["content"] if block["type"] == "tool_use"}
        first = after["content"][: len(opened)] if after else []
        assert opened == {block.get("tool_use_id") for block in first}
    assert texts(block.get("text") for block in blocks) == spoken(neutral)


def check_gemini(prepared: dict[str, Any]) -> None:
    neutral, shape = prepared["messages_json"], prepared["gemini"]
    from google.genai.types import Content, GenerateContentConfig

    gemini_contents().validate_python(shape["contents"])
    taken = [Content.model_validate(each) for each in shape["contents"]]
    GenerateContentConfig(system_instruction=shape.get("system_instruction"))
    parts = [part for each in taken for part in each.parts or ()]
    assert [each.role for each in taken][0::2] == ["user"] * len(taken[0::2])
    assert [each.role for each in taken][1::2] == ["model"] * len(taken[1::2])
    made = [part.function_call.id for part in parts if part.function_call]
    assert made == [call["id"] for call in calls_of(neutral)]
    names = {call["id"]: call["function"]["name"] for call in calls_of(neutral)}
    named = {part.function_response.id: part.function_response.name for part in parts if part.function_response}
    assert {each: _safe(names[each]) for each in named} == named
    answered = [part.function_response.id for part in parts if part.function_response]
    assert answered == [each["tool_call_id"] for each in neutral if each["role"] == "tool"]
    assert texts(part.text for part in parts) == spoken(neutral)


def consumed(value: Any) -> Any:
    """The value with its lazy parts read: pydantic checks an Iterable only when somebody walks through it."""
    if isinstance(value, dict):
        return {key: consumed(each) for key, each in value.items()}
    return value if isinstance(value, str) or not isinstance(value, Iterable) else [consumed(each) for each in value]


def calls_of(messages: list[Message]) -> list[dict[str, Any]]:
    return [call for each in messages for call in each.get("tool_calls") or ()]


def spoken(messages: list[Message]) -> list[str]:
    said = [each["content"] for each in messages if each["role"] in ("user", "assistant")]
    return [text for text in said if text and text.strip()]


def texts(found: Iterable[str | None]) -> list[str]:
    return [text for text in found if text and text != "(empty)"]


@given(HISTORIES, st.none() | st.integers(1, 12), st.none() | st.integers(1, 400))
def test_window_keeps_the_newest_whole_turns_that_fit_both_limits(
    history: list[Turn], messages: int | None, tokens: int | None
) -> None:
    dropped, kept = split_at_window(history, Window(messages, tokens))
    assert dropped + kept == history
    assert fits(kept, messages, tokens)
    assert not dropped or not fits([dropped[-1], *kept], messages, tokens)


def fits(kept: list[Turn], messages: int | None, tokens: int | None) -> bool:
    flat = [message for turn in kept for message in turn]
    few = messages is None or len(flat) <= messages
    return few and (tokens is None or sum(map(estimated_tokens, flat)) <= tokens)


def test_ids_that_anthropic_would_refuse_stay_apart_and_find_their_answers() -> None:
    odd = ["call.1", "call:1", "call_1", "x" * 100, "x" * 101]
    shaped = [_safe_id(each) for each in odd]
    assert len(set(shaped)) == len(odd)
    assert shaped[2] == "call_1"
    assert all(len(each) <= 64 and each.replace("_", "").isalnum() for each in shaped)


@pytest.mark.parametrize("arguments", ['{"n": NaN}', '{"n": 1e999}', '{"n": 99999999999999999999999}', '{"a":' * 63])
def test_arguments_that_no_json_holds_are_handed_on_as_text(arguments: str) -> None:
    call = {"id": "c", "function": {"name": "look", "arguments": arguments}}
    spoke = [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    assert anthropic(spoke)["messages"][1]["content"][0]["input"] == {"arguments": arguments}
    assert gemini(spoke)["contents"][1]["parts"][0]["function_call"]["args"] == {"arguments": arguments}
    assert openai(spoke)[1]["tool_calls"][0]["function"]["arguments"] == arguments


async def test_text_that_could_not_be_read_back_is_not_stored() -> None:
    registry = ToolRegistry([context_manager(MemoryContextStore())])
    args = {"op": "persist", "session_id": "s", "turn_id": "t", "user_message": "\ud800", "final_answer": "x"}
    refused = await registry.execute("context_manager", args)
    assert "the turn cannot be stored: /0/content holds a lone surrogate" in str(refused.error)
    assert (await registry.execute("context_manager", {"op": "load", "session_id": "s"})).output == []
