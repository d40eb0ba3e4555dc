"""Endpoints that refuse the form of a conversation: asked once more in another, which says the same."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import orjson
import pytest

from agent_core import run_agent
from agent_core.models import Question
from agent_core.models.endpoint.answer import Refusal
from agent_core.models.endpoint.capabilities import EndpointCapabilities
from agent_core.models.openai.chat import ChatWire
from agent_core.models.openai.messages import find_refused_form, write_messages
from support.asking import client
from support.loopback import Stream, chat, http, serving
from utools import ToolRegistry, tool

Json = dict[str, Any]
Refuse = Callable[[Sequence[Json]], tuple[int, Json] | None]
"""The refusal of a conversation, None where it is taken."""
CALL = {"id": "call_one", "type": "function", "function": {"name": "look", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [{**CALL, "extra_content": {"s": 1}}]}
RESULT = {"role": "tool", "tool_call_id": "call_one", "content": ""}
SYSTEM, ASKED = {"role": "system", "content": "Be kind."}, {"role": "user", "content": "Go."}
CONVERSATION = [
    SYSTEM,
    {"role": "system", "content": "Be short."},
    {"role": "assistant", "content": "Hello."},
    ASKED,
    {**CALLING, "reasoning_content": "hm"},
    RESULT,
    {"role": "user", "content": "Answer."},
]


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "seen"


def written(*words: str, messages: Sequence[Json] = CONVERSATION) -> list[Json]:
    return [orjson.loads(each) for each in write_messages([orjson.dumps(each) for each in messages], words)]


def found(told: str, *words: str, status: int = 400, messages: Sequence[Json] = CONVERSATION) -> str | None:
    sent = [orjson.dumps(each) for each in messages]
    return find_refused_form(sent, words, Refusal(f"answered {status}: {told}", status))


# ── whose words ───────────────────────────────────────────────────────────────────────────────────

REFUSED = {
    "Mistral's ids": (400, "Tool call id was call_one but must be a-z, A-Z, 0-9, with a length of 9.", "ids"),
    "ids in a template": (404, "Tool call IDs should be alphanumeric strings with length 9!", "ids"),
    "Mistral's order": (400, "Unexpected role 'user' after role 'tool'", "turns"),
    "by OpenRouter": (
        400,
        'Provider returned error: {"message":"Unexpected role \\"user\\" after role \\"tool\\""}',
        "turns",
    ),
    "a template of vLLM": (400, "Conversation roles must alternate user/assistant/user/assistant/...", "turns"),
    "a template of llama.cpp": (
        500,
        "Error: Jinja Exception: After the optional system message, conversation roles must alternate user and "
        "assistant roles except for tool calls and results.",
        "turns",
    ),
    "Perplexity": (
        400,
        "After the (optional) system message(s), user and assistant roles should be alternating.",
        "turns",
    ),
    "Mistral's end": (
        400,
        "Expected last role User or Tool for serving but got assistant",
        "turns",
    ),
    "a prefill": (400, "The conversation must end with a user message.", "turns"),
    "Qwen's template": (400, "System message must be at the beginning.", "turns"),
    "Gemma's template": (400, "System role not supported", "system"),
    "Gemma's, by llama.cpp": (500, "raise_exception('System role not supported') Error: Jinja Exception", "system"),
    "o1": (400, "Unsupported value: 'messages[0].role' does not support 'system' with this model.", "system"),
    "Gemma at Google": (400, "Developer instruction is not enabled for models/gemma-3-27b-it", "system"),
    "Groq": (
        400,
        "'messages.4' : for 'role:assistant' the following must be satisfied[('messages.4' : property "
        "'reasoning_content' is unsupported)]",
        "thoughts of others",
    ),
    "Cerebras": (
        400,
        "messages.4.assistant.reasoning_content: property 'messages.4.assistant.reasoning_content' is unsupported",
        "thoughts of others",
    ),
    "Mistral's fields": (
        422,
        '{"detail":[{"type":"extra_forbidden","loc":["body","messages",4,"assistant","reasoning_content"],'
        '"msg":"Extra inputs are not permitted","input":"hm"}]}',
        "thoughts of others",
    ),
    "DeepSeek": (
        400,
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "no thoughts",
    ),
    "Moonshot": (
        400,
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 4",
        "no thoughts",
    ),
    "LiteLLM before Bedrock": (
        400,
        "litellm.UnsupportedParamsError: Bedrock doesn't support tool calling without `tools=` param specified.",
        "calls",
    ),
    "Bedrock's Converse": (
        400,
        "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
        "calls",
    ),
    "LM Studio": (400, "Invalid 'content': 'content' field must be a string or an array of objects.", "null"),
    "pydantic": (422, '[{"loc":["body","messages",4,"content"],"msg":"Input should be a valid string"}]', "null"),
    "Moonshot's text": (400, "Invalid request: the message at position 5 with role 'tool' must not be empty", "blank"),
    "Vertex": (400, "Unable to submit request because it has an empty text parameter.", "blank"),
    "Bedrock": (400, "messages: text content blocks must be non-empty", "blank"),
}


@pytest.mark.parametrize(("status", "told", "word"), REFUSED.values(), ids=REFUSED)
def test_a_refused_form_is_known_by_its_words_and_given_up_once(status: int, told: str, word: str) -> None:
    assert found(told, status=status) == word
    assert found(told, word, status=status) is None
    assert found(told, status=status, messages=[ASKED]) is None


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (401, "System role not supported"),
        (400, "This model's maximum context length is 4096 tokens."),
        (400, "Missing required parameter: 'messages[0].content'."),
        (400, "model must not be blank"),
        (400, "'tools' must be empty for this model."),
        (400, "This model does not support system fingerprints."),
        (400, "An assistant message with 'tool_calls' must be followed by tool messages."),
    ],
)
def test_another_refusal_is_of_no_form(status: int, told: str) -> None:
    assert found(told, status=status) is None


# ── each form ─────────────────────────────────────────────────────────────────────────────────────


def test_without_another_word_the_same_bytes_go_out() -> None:
    sent = [b'{"role": "user",  "content":"x"}']
    assert write_messages(sent, {"seed"}) is sent


def test_ids_are_of_nine_characters_and_still_name_their_call() -> None:
    _, _, _, _, calling, result, _ = written("ids")
    assert calling["tool_calls"][0]["id"] == result["tool_call_id"]
    assert len(result["tool_call_id"]) == 9
    assert result["tool_call_id"].isalnum()


def test_what_the_system_says_is_said_by_the_user_first() -> None:
    assert written("system")[:2] == [{"role": "user", "content": "Be kind.\n\nBe short."}, CONVERSATION[2]]
    assert written("system", messages=[SYSTEM, ASKED]) == [{"role": "user", "content": "Be kind.\n\nGo."}]


def test_turns_are_of_the_user_and_the_assistant_by_turns() -> None:
    said = [(message["role"], message["content"]) for message in written("turns", messages=[*CONVERSATION, ASKED])]
    assert said == [
        ("system", "Be kind.\n\nBe short."),
        ("user", "…"),
        ("assistant", "Hello."),
        ("user", "Go."),
        ("assistant", None),
        ("tool", ""),
        ("assistant", "…"),
        ("user", "Answer.\n\nGo."),
    ]


def test_a_conversation_that_ends_with_the_assistant_is_ended_by_the_user() -> None:
    assert written("turns", messages=[ASKED, CONVERSATION[2]])[2:] == [{"role": "user", "content": "…"}]


def test_fields_of_another_vendor_are_left_out() -> None:
    assert written("thoughts of others")[4] == {**CALLING, "tool_calls": [CALL]}


def test_a_thought_stands_where_none_was() -> None:
    thoughts = [message.get("reasoning_content") for message in written("no thoughts")]
    assert thoughts == [None, None, "…", None, "hm", None, None]


def test_calls_and_their_results_are_texts() -> None:
    assert written("calls")[4:6] == [{"role": "assistant", "content": "look({})"}, {"role": "user", "content": ""}]


def test_no_content_is_null_and_none_is_blank() -> None:
    assert written("null")[4]["content"] == ""
    assert [message["content"] for message in written("blank")[4:6]] == [None, "…"]
    assert [message["content"] for message in written("null", "blank")[4:6]] == ["…", "…"]


# ── a run ─────────────────────────────────────────────────────────────────────────────────────────


def refuse_as_mistral(messages: Sequence[Json]) -> tuple[int, Json] | None:
    ids = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    if any(len(id_) != 9 or not id_.isalnum() for id_ in ids):
        message = f"Tool call id was {ids[0]} but must be a-z, A-Z, 0-9, with a length of 9."
        return 400, {"object": "error", "message": message, "type": "invalid_function_call", "code": "3280"}
    roles = [message["role"] for message in messages]
    if ("tool", "user") in pairwise(roles):
        return 400, {"object": "error", "message": "Unexpected role 'user' after role 'tool'", "code": "3230"}
    return None


def refuse_as_gemma(messages: Sequence[Json]) -> tuple[int, Json] | None:
    if messages[0]["role"] == "system":
        return 500, {"error": {"code": 500, "message": "Error: Jinja Exception: System role not supported"}}
    return None


def answer(refuse: Refuse, asked: list[list[Json]]) -> Callable[[Sequence[Json]], bytes]:
    def reply(messages: Sequence[Json]) -> bytes:
        asked.append(list(messages))
        if (refusal := refuse(messages)) is not None:
            return http(*refusal)
        is_seen = any(message["role"] == "tool" for message in messages)
        return chat("A.") if is_seen else chat(None, finish_reason="tool_calls", tool_calls=[CALL])

    return reply


@pytest.mark.parametrize(
    ("refuse", "requests"), [(refuse_as_mistral, 4), (refuse_as_gemma, 3)], ids=["Mistral", "Gemma"]
)
async def test_a_run_goes_on_in_the_form_that_its_endpoint_takes(refuse: Refuse, requests: int) -> None:
    asked: list[list[Json]] = []
    reply = answer(refuse, asked)

    async def write(writer: Any) -> None:
        data = reply(server.requests[-1].json()["messages"])
        writer.write(data.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))
        await writer.drain()

    told: Stream = write
    async with serving(told) as server:
        model = client(server.url)
        config = {"model": "m", "max_steps": 2, "prompt": "Go.", "allowed_tools": ["look"], "protocol": "tools"}
        output = await run_agent(config, registry=ToolRegistry([look]), model=model)
        again = await run_agent(config, registry=ToolRegistry([look]), model=model)
        await model.close()
    assert (output.finish_reason, output.final_answer, output.usage["requests"]) == ("final", "A.", requests)
    assert again.usage["requests"] == 2  # what was learnt is remembered


@pytest.mark.parametrize(("word", "lasting"), [("ids", True), ("calls", False)])
def test_calls_are_written_as_texts_where_no_tools_are_offered_alone(word: str, lasting: bool) -> None:
    told = next(text for _, text, found_word in REFUSED.values() if found_word == word)
    question = Question("m", tuple(orjson.dumps(each) for each in CONVERSATION), {}, "agent", 0)
    adapted = ChatWire().adapt("m", question, EndpointCapabilities(), "not", Refusal(told, 400))
    assert adapted is not None
    assert (word in adapted.capabilities.left_out, adapted.lasting) == (True, lasting)
