"""Conversations in the shape that the SDKs write: taken as they are meant, else named with their place."""

from typing import Any

import orjson
import pytest

from agent_core import DefinitionError
from agent_core.protocol.messages import read_messages
from support.by_hand import Hand, final

USER = {"role": "user", "content": "And?"}
CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
NULLS = {"refusal": None, "audio": None, "function_call": None, "annotations": [], "tool_calls": None, "name": None}

TAKEN: dict[str, tuple[list[Any], list[dict[str, Any]]]] = {
    "text parts": (
        [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}]}],
        [{"role": "user", "content": "a\nb"}],
    ),
    "an output part": (
        [{"role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}]}],
        [{"role": "assistant", "content": "a"}],
    ),
    "a text in a list": ([{"role": "user", "content": ["a"]}], [{"role": "user", "content": "a"}]),
    "a thinking part": (
        [{"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]}],
        [{"role": "assistant", "content": "a"}],
    ),
    "a tool's parts": (
        [
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "A"}]},
        ],
        [
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c", "content": "A"},
        ],
    ),
    "a developer": (
        [{"role": "developer", "content": "Be short."}, USER],
        [{"role": "system", "content": "Be short."}, USER],
    ),
    "a system message and a developer": (
        [{"role": "system", "content": "Be short."}, {"role": "developer", "content": "Be kind."}, USER],
        [{"role": "system", "content": "Be short."}, {"role": "system", "content": "Be kind."}, USER],
    ),
    "empty keys": ([{"role": "assistant", "content": "a", **NULLS}], [{"role": "assistant", "content": "a"}]),
    "no calls": ([{"role": "assistant", "content": "a", "tool_calls": []}], [{"role": "assistant", "content": "a"}]),
    "nothing said": ([{"role": "assistant", "content": None}], [{"role": "assistant", "content": ""}]),
    "a refusal": (
        [{"role": "assistant", "content": None, "refusal": "No."}],
        [{"role": "assistant", "content": "No."}],
    ),
    "a refusal as a part": (
        [{"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}],
        [{"role": "assistant", "content": "No."}],
    ),
    "thoughts beside the text": (
        [
            {
                "role": "assistant",
                "content": "a",
                "reasoning": "hm",
                "reasoning_content": "hm",
                "reasoning_details": [{"type": "reasoning.text", "text": "hm"}],
            }
        ],
        [{"role": "assistant", "content": "a"}],
    ),
    "citations": (
        [{"role": "assistant", "content": "a", "annotations": [{"type": "url_citation", "url_citation": {}}]}],
        [{"role": "assistant", "content": "a"}],
    ),
    "a flag that is not set": (
        [{"role": "assistant", "content": "a", "prefix": False}],
        [{"role": "assistant", "content": "a"}],
    ),
    "an item of the Responses API": (
        [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]},
            {
                "type": "message",
                "id": "msg_1",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "b", "annotations": []}],
            },
        ],
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
    ),
    "the older call": (
        [
            {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
            {"role": "function", "name": "look", "content": "A"},
        ],
        [
            {"role": "assistant", "content": None, "tool_calls": [{**CALL, "id": "function_0"}]},
            {"role": "tool", "content": "A", "name": "look", "tool_call_id": "function_0"},
        ],
    ),
}


@pytest.mark.parametrize("as_text", [False, True], ids=["list", "text"])
@pytest.mark.parametrize(("given", "expected"), TAKEN.values(), ids=TAKEN)
def test_what_an_sdk_writes_is_taken_as_meant(given: list[Any], expected: list[Any], as_text: bool) -> None:
    assert read_messages(orjson.dumps(given).decode() if as_text else given) == expected
    assert read_messages([given]) == expected


REFUSED: dict[str, tuple[list[Any], str]] = {
    "an image": (
        [
            USER,
            {
                "role": "user",
                "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}],
            },
        ],
        "messages_json/1/content/1",
    ),
    "a sound": (
        [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}],
        "messages_json/0/content/0",
    ),
    "a number in a content": ([{"role": "user", "content": [7]}], "messages_json/0/content/0"),
    "a part without its text": ([{"role": "user", "content": [{"type": "text"}]}], "messages_json/0/content/0"),
    "a sound of the assistant's": (
        [{"role": "assistant", "content": "a", "audio": {"id": "x"}}],
        "messages_json/0/audio",
    ),
    "a key": ([{"role": "user", "content": "a", "weight": 1}], "messages_json/0/weight"),
    "a flag that is set": ([{"role": "assistant", "content": "a", "prefix": True}], "messages_json/0/prefix"),
    "a user's thoughts": ([{"role": "user", "content": "a", "reasoning": "hm"}], "messages_json/0/reasoning"),
    "a type": ([{"type": "memo", "role": "user", "content": "a"}], "messages_json/0/type"),
    "a key with a text": ([{"role": "user", "content": "a", "weight": "1"}], "messages_json/0/weight"),
    "a system message in the middle": ([USER, {"role": "developer", "content": "x"}], "messages_json/1"),
    "a user who says null": ([{"role": "user", "content": None}], "messages_json/0/content"),
    "a role": ([{"role": "critic", "content": "x"}], "messages_json/0/role"),
    "a call's arguments": (
        [{"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{"}}],
        "messages_json/0/tool_calls/0/function/arguments",
    ),
    "arguments that nest too deep to be written again": (
        [{"role": "assistant", "function_call": {"name": "look", "arguments": f'{{"a":{"[" * 300}{"]" * 300}}}'}}],
        "messages_json/0/tool_calls/0/function/arguments",
    ),
}


@pytest.mark.parametrize(("given", "where"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_taken_is_named_with_its_place(given: list[Any], where: str) -> None:
    with pytest.raises(DefinitionError, match=f"^{where}: "):
        read_messages(given)


def test_what_a_summary_stands_for_is_taken_as_meant_too() -> None:
    quotes = [{"role": "user", "content": [{"type": "text", "text": "A?"}]}, {"role": "tool", "tool_call_id": "c"}]
    (message,) = read_messages([{"role": "assistant", "content": "They asked.", "quotes": quotes}])
    assert [each["content"] for each in message["quotes"]] == ["A?", ""]
    assert "content" not in quotes[1]


def test_a_message_in_our_own_shape_is_not_touched() -> None:
    messages = [USER, {"role": "assistant", "content": "", "tool_calls": [{**CALL, "id": ""}]}]
    messages += [{"role": "tool", "tool_call_id": "", "content": ""}]
    assert all(read is given for read, given in zip(read_messages(messages), messages, strict=True))


EMPTY = [
    {"role": "user", "content": "One?"},
    {"role": "assistant", "content": ""},
    {"role": "user", "content": ""},
    {"role": "assistant", "content": None, "refusal": None},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": ""},
    {"role": "user", "content": [{"type": "text", "text": "And?"}]},
]


@pytest.mark.parametrize("protocol", ["json", "tools"])
def test_a_message_that_says_nothing_is_not_sent(protocol: str) -> None:
    run = Hand([final()], messages_json=EMPTY, prompt=None, protocol=protocol)
    sent = run.questions[0][1:]
    assert all(message.get("content") or message.get("tool_calls") or message["role"] == "tool" for message in sent)
    assert sent[0]["content"].startswith("One?")
    kept = [message["role"] for message in run.output["messages_json"]]
    assert kept == ["user", "assistant", "tool", "user", "assistant"]


def test_a_conversation_of_nothing_is_a_definition_error() -> None:
    with pytest.raises(DefinitionError, match="no message to answer"):
        Hand([final()], messages_json=[{"role": "assistant", "content": None}], prompt=None)


def test_all_leading_system_messages_are_in_the_system_message() -> None:
    history = [{"role": "system", "content": "Be short."}, {"role": "developer", "content": "Be kind."}, USER]
    (system, *others) = Hand([final()], messages_json=history, prompt=None).questions[0]
    assert "Be short.\n\nBe kind." in system["content"]
    assert [message["role"] for message in others] == ["user"]
