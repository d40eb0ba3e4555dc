"""What OpenAICompatible makes of everything that an endpoint may answer."""

import gzip
import zlib
from base64 import b64encode
from time import time
from typing import Any

import orjson
import pytest

from agent_core.models import Completion
from agent_core.models.endpoint.answer import HttpAnswer, Refusal, read_answer
from agent_core.models.openai.response import read_reply
from support.asking import KEY, SCHEMA, answered, failed
from support.loopback import chat, events, http, piece

pytestmark = pytest.mark.usefixtures("each_transport")

# ── what is read ──────────────────────────────────────────────────────────────────────────────────────

PARTS = [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]
UNTYPED = [{"text": "a"}, {"type": "thinking", "text": "?"}, {"type": "output_text", "text": "b"}, "c"]
CONTENTS = {
    "text": ("Grüß", "Grüß"),
    "null": (None, ""),
    "parts": (PARTS, "ab"),
    "parts of gateways": (UNTYPED, "abc"),
    "no parts": ([], ""),
}


@pytest.mark.parametrize(("sent", "expected"), CONTENTS.values(), ids=CONTENTS)
async def test_content_is_read_as_text(sent: Any, expected: str) -> None:
    assert await answered(chat(sent)) == Completion(expected, "stop", 12, 3)


REASONS = [("stop", "stop"), ("length", "length"), ("content_filter", "content_filter"), ("tool_calls", "stop")]


@pytest.mark.parametrize(("sent", "expected"), [*REASONS, (None, "stop"), (7, "stop"), ("eos", "eos")])
async def test_finish_reason_is_read(sent: Any, expected: str) -> None:
    assert (await answered(chat("x", finish_reason=sent))).finish_reason == expected


ABSURD = {"prompt_tokens": 2**64 - 1, "completion_tokens": 2**40 + 1, "cost": 1e300}


@pytest.mark.parametrize("usage", [None, [], {}, {"prompt_tokens": "12", "completion_tokens": True}, ABSURD])
async def test_usage_that_is_no_count_is_absent(usage: Any) -> None:
    completion = await answered(chat("x", usage=usage))
    assert (completion.input_tokens, completion.output_tokens, completion.cost) == (None, None, None)


def call(**more: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "look", **more}}


SAID = {"role": "assistant", "content": "I look."}
SPLIT: dict[str, tuple[list[dict[str, Any]], int]] = {
    "without numbers": ([{"message": SAID}, {"message": {"tool_calls": [call()]}}], 1),
    "one call each": (
        [{"message": {**SAID, "tool_calls": [call()]}}, {"message": {"content": None, "tool_calls": [call()]}}],
        2,
    ),
    "one number": ([{"index": 0, "message": SAID}, {"index": 0, "message": {"tool_calls": [call(), call()]}}], 2),
    "it says that it calls": (
        [
            {"index": 0, "message": SAID, "finish_reason": "tool_calls"},
            {"index": 1, "message": {"tool_calls": [call()]}},
        ],
        1,
    ),
    "another reply": ([{"index": 0, "message": SAID}, {"index": 1, "message": {"tool_calls": [call()]}}], 0),
    "nothing of a call": ([{"message": SAID}, {"message": {"tool_calls": {"id": "c"}}}, {"message": None}, {}], 0),
}


@pytest.mark.parametrize(("choices", "count"), SPLIT.values(), ids=SPLIT)
async def test_calls_that_a_server_puts_into_choices_of_their_own_are_of_the_reply(
    choices: list[dict[str, Any]], count: int
) -> None:
    completion = await answered(http(200, {"choices": choices}))
    assert (completion.content, len(completion.calls)) == ("I look.", count)


NAMES: dict[str, tuple[Any, str]] = {
    "tokens of a template": (call(name="look<|channel|>commentary"), "look"),
    "nothing but a token": (call(name="<|call|>"), "<|call|>"),
    "null": (call(name=None), ""),
    "no function": ({"id": "c1", "type": "custom", "custom": {"name": "look"}}, ""),
    "beside the id": ({"id": "c1", "name": "look", "arguments": "{}"}, "look"),
}


@pytest.mark.parametrize(("sent", "name"), NAMES.values(), ids=NAMES)
async def test_a_name_is_read_without_what_a_server_has_left_and_none_is_told(sent: Any, name: str) -> None:
    assert [each["name"] for each in (await answered(chat(None, tool_calls=[sent]))).calls] == [name]


ARGUMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "absent": ({}, "{}"),
    "null": ({"arguments": None}, "{}"),
    "a text": ({"arguments": '{"q":1}'}, '{"q":1}'),
    "an empty text": ({"arguments": ""}, ""),
    "an object": ({"arguments": {"q": 1}}, '{"q":1}'),
    "false": ({"arguments": False}, "false"),
    "zero": ({"arguments": 0}, "0"),
    "a list": ({"arguments": []}, "[]"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("sent", "text"), ARGUMENTS.values(), ids=ARGUMENTS)
async def test_arguments_are_kept_as_their_text_and_only_none_is_an_empty_object(
    sent: dict[str, Any], text: str, streams: bool
) -> None:
    calls = [call(**sent)]
    reply = events(piece(tool_calls=calls, finish_reason="stop")) if streams else chat(None, tool_calls=calls)
    assert [each["arguments"] for each in (await answered(reply)).calls] == [text]


PLAIN = chat("x").partition(b"\r\n\r\n")[2]
COMPRESSED = {
    "gzip": gzip.compress(PLAIN),
    "GZIP": gzip.compress(PLAIN),
    "x-gzip": gzip.compress(PLAIN),
    "deflate": zlib.compress(PLAIN),
    "deflate ": zlib.compress(PLAIN)[2:-4],  # without its head, as some servers send it
    "identity": PLAIN,
    "none": PLAIN,  # as Next.js writes it
    "gzip, ": gzip.compress(PLAIN[:9]) + gzip.compress(PLAIN[9:]),
}


@pytest.mark.parametrize("encoding", COMPRESSED)
async def test_a_compressed_reply_is_read(encoding: str) -> None:
    assert (await answered(http(200, COMPRESSED[encoding], content_encoding=encoding))).content == "x"


LABELS = ["application/json", "text/json", "text/plain", "text/html", "application/octet-stream", ""]


@pytest.mark.parametrize("label", LABELS)
async def test_what_is_json_is_read_whatever_its_label(label: str) -> None:
    body = chat("x").partition(b"\r\n\r\n")[2]
    for sent in (body, b"\xef\xbb\xbf" + body, b"\r\n \n" + body):
        assert (await answered(http(200, sent, content_type=label))).content == "x"


async def test_an_error_after_a_byte_order_mark_is_read() -> None:
    error = await failed(http(400, b'\xef\xbb\xbf{"error":{"message":"no such model"}}'))
    assert str(error).endswith("answered 400: no such model")


REFUSING = {"refusal": "I cannot help with that."}


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("beside", [{}, {"content": '{"type":"final"'}, {"tool_calls": [call()]}], ids=str)
async def test_a_refusal_of_the_model_is_a_content_filter_in_its_words(beside: dict[str, Any], streams: bool) -> None:
    more = {**REFUSING, **beside}
    pieces = [piece(refusal="I cannot "), piece(refusal="help with that.", **beside), piece(finish_reason="stop")]
    reply = await answered(events(*pieces) if streams else chat(more.pop("content", None), **more))
    assert (reply.finish_reason, reply.content, reply.calls) == ("content_filter", "", ())
    assert reply.refusal == "the model refused to answer: I cannot help with that."
    assert streams or (reply.input_tokens, reply.output_tokens) == (12, 3)


@pytest.mark.parametrize("refusal", [None, "", " "])
async def test_an_empty_refusal_is_none(refusal: Any) -> None:
    assert (await answered(chat("x", refusal=refusal))).content == "x"


EMPTY_ERRORS = [None, False, "", {}, {"code": "", "message": "", "type": "", "param": None}]


async def test_a_list_without_errors_is_no_error() -> None:
    reply = {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}], "errors": [{"message": "a note"}]}
    assert (await answered(http(200, reply))).content == "ok"


@pytest.mark.parametrize("error", EMPTY_ERRORS, ids=str)
async def test_an_error_that_says_nothing_is_none(error: Any) -> None:
    assert (await answered(chat("x", error=error, base_resp={"status_code": 0, "status_msg": ""}))).content == "x"


# ── what fails at once ────────────────────────────────────────────────────────────────────────────────


def in_choice(fields: dict[str, Any]) -> bytes:
    """A whole reply whose choice has these fields as well."""
    return http(200, {"choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": "stop", **fields}]})


UNUSABLE = {
    "error with status 200": (http(200, {"error": {"message": "overloaded"}}), "overloaded"),
    "error beside choices": (chat("x", error={"message": "provider down"}), "provider down"),
    "error in the choice": (in_choice({"finish_reason": "error", "error": {"message": "upstream"}}), "error: upstream"),
    "error in the choice, no finish reason": (in_choice({"error": {"message": "upstream"}}), "error: upstream"),
    "error as finish reason": (in_choice({"finish_reason": "error"}), "finish reason error"),
    "error as text": (http(200, {"error": "model not loaded"}), "model not loaded"),
    "error in a list": (http(400, [{"error": {"message": "API key not valid"}}]), "answered 400: API key not valid"),
    "detail": (http(422, {"detail": [{"loc": ["body"]}]}), "loc"),
    "bare message": (http(403, {"code": "Denied", "message": "no access"}), "answered 403: no access"),
    "error behind a router": (
        http(400, {"error": {"message": "Provider returned error", "metadata": {"raw": "no such field"}}}),
        "answered 400: Provider returned error: no such field",
    ),
    "a title with the reason beside it": (
        http(400, {"status": 400, "error": "Bad Request", "message": "no such model"}),
        "answered 400: Bad Request: no such model",
    ),
    "true with the reason beside it": (http(400, {"error": True, "msg": "no such model"}), "400: no such model"),
    "Vapor's": (http(400, {"error": True, "reason": "no such model"}), "answered 400: no such model"),
    "true with what is no word of it": (http(200, {"error": True, "errorCode": "E17"}), '"errorCode":"E17"'),
    "a code and a text": (http(200, {"code": 404, "msg": "no such route"}), "answered 404: no such route"),
    "Baidu's": (http(200, {"error_code": 3, "error_msg": "no such method"}), "an error: no such method"),
    "Tencent's": (
        http(200, {"Response": {"Error": {"Code": "AuthFailure.SecretIdNotFound", "Message": "no such id"}}}),
        "an error: no such id",
    ),
    "Ollama's own reply": (
        http(200, {"model": "m", "message": {"role": "assistant", "content": "a"}, "done": True}),
        "answered with no chat completion",
    ),
    "AWS's": (http(403, {"Message": "User: x is not authorized"}), "answered 403: User: x is not authorized"),
    "Cloudflare's": (
        http(200, {"success": False, "errors": [{"code": 5007, "message": "No such model"}], "result": None}),
        "answered with an error: No such model",
    ),
    "watsonx's": (
        http(400, {"errors": [{"code": "a", "message": "No such model"}, {"message": "no space"}], "status_code": 400}),
        "answered 400: No such model; no space",
    ),
    "MiniMax's": (
        http(200, {"choices": None, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}),
        "answered 402: insufficient balance",
    ),
    "error that is not JSON": (http(401, b"<html>Log in</html>"), "answered 401: <html>Log in</html>"),
    "HTML": (http(200, b"<html>Hello</html>"), "not JSON: <html>"),
    "truncated JSON": (http(200, b'{"choices":[{"mess'), "not JSON"),
    "empty body": (http(200, b""), "an empty body"),
    "no choices": (http(200, {"id": 1}), "no chat completion"),
    "empty choices": (http(200, {"choices": []}), "an empty list of choices"),
    "choices that are none": (http(200, {"choices": {"0": 1}}), "no chat completion"),
    "a choice without message": (http(200, {"choices": [{"index": 0}]}), "no message"),
    "a choice that is null": (http(200, {"choices": [None]}), "no message"),
    "content of another type": (chat(5), "no message"),
    "calls that are no list": (chat(None, tool_calls={"id": "c1", "function": {"name": "look"}}), "no message: {"),
    "a number": (http(200, b"17"), "no chat completion"),
    "a redirect": (http(307, b"", location="https://evil.example/take?t=secret"), "a redirect to evil.example;"),
    "a redirect to nowhere": (http(302, b"", location="http://[bad"), "a redirect; redirects"),
    "bad gzip": (http(200, b"no gzip", content_encoding="gzip"), "gave no answer: its body (gzip) cannot be read"),
    "bad deflate": (http(200, b"\xff\xff", content_encoding="deflate"), "its body (deflate) cannot be read"),
    "half a gzip": (
        http(200, gzip.compress(chat("x"))[:-9], content_encoding="gzip"),
        "(gzip) cannot be read: it ends",
    ),
    "an encoding that nobody asked for": (
        http(200, b"x", content_encoding="br"),
        "its body (br) cannot be read: it is packed as br, which is not read here, and gzip was asked for",
    ),
}


DEEP = b"[" * 300 + b"]" * 300
NESTED = {
    "a call's field": call() | {"extra_content": "DEEP"},
    "a call's arguments": call(arguments="DEEP"),
    "the echo": {"tool_calls": [call()], "reasoning_details": "DEEP"},
}


def nested(name: str) -> bytes:
    """A message's JSON, one value of which nests deeper than can be written again."""
    found = NESTED[name] if name == "the echo" else {"tool_calls": [NESTED[name]]}
    return orjson.dumps({"content": "", **found}).replace(b'"DEEP"', DEEP)


@pytest.mark.sampled
@pytest.mark.parametrize("kind", ["message", "delta"])
@pytest.mark.parametrize("name", NESTED)
async def test_a_call_that_could_not_be_sent_back_is_refused(name: str, kind: str) -> None:
    body = b'{"choices":[{"%b":%b,"finish_reason":"stop"}]}' % (kind.encode(), nested(name))
    error = await failed(http(200, body) if kind == "message" else events(body))
    assert "answered with what nests too deep" in str(error)
    assert error.requests == 1


@pytest.mark.parametrize("body", [b'{"a":%b}', b'{"choices":[{"a":%b}]}', b'{"choices":[{"message":{"content":%b}}]}'])
def test_what_nests_too_deep_to_be_shown_is_refused(body: bytes) -> None:
    assert isinstance(read_answer(HttpAnswer(200, {}, body % DEEP), time(), read_reply), (Refusal, Completion))


def test_an_error_that_nests_too_deep_is_still_one_that_may_pass() -> None:
    refusal = read_answer(HttpAnswer(503, {}, b'{"error":{"message":%b}}' % DEEP), time(), read_reply)
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.transient) == (503, True)


async def test_a_deep_field_that_nobody_wants_is_not_read() -> None:
    body = b'{"choices":[{"delta":{"content":"ok","x":%b},"finish_reason":"stop"}],"y":%b}' % (DEEP, DEEP)
    assert (await answered(events(body))).content == "ok"


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
async def test_calls_past_128_are_refused_all_together(streams: bool) -> None:
    def reply(size: int) -> bytes:
        calls = [call() | {"index": index, "id": f"c{index}"} for index in range(size)]
        return events(piece(tool_calls=calls, finish_reason="stop")) if streams else chat(None, tool_calls=calls)

    assert len((await answered(reply(128))).calls) == 128
    assert "answered with 129 calls, and at most 128 are read" in str(await failed(reply(129)))


@pytest.mark.parametrize(("reply", "told"), UNUSABLE.values(), ids=UNUSABLE)
async def test_an_unusable_answer_is_a_model_error_in_the_vendors_words(reply: bytes, told: str) -> None:
    error = await failed(reply)
    assert told in str(error)
    assert str(error).startswith("127.0.0.1:")
    assert error.kind == "model_error"
    assert "secret" not in str(error)


async def test_a_content_filter_that_refuses_the_request_has_its_own_kind() -> None:
    refusal = {"error": {"message": "filtered", "code": "content_filter"}}
    error = await failed(http(400, refusal), response_format="auto", step_schema=SCHEMA)
    assert (error.kind, error.requests) == ("content_filter", 1)


async def test_a_key_that_is_echoed_is_not_shown() -> None:
    message = str(await failed(http(401, {"error": {"message": f"Incorrect API key provided: {KEY}."}})))
    assert "Incorrect API key provided: ***." in message


async def test_a_key_that_is_echoed_in_base64_is_not_shown() -> None:
    coded = b64encode(KEY.encode()).decode()
    message = str(await failed(http(401, {"error": {"message": f"Basic {coded} is no key."}})))
    assert "Basic *** is no key." in message


def test_only_the_beginning_of_a_vendors_message_is_looked_at() -> None:
    refusal = read_answer(HttpAnswer(400, {}, b'{"error":{"message":"%b"}}' % (b"m" * 10**6)), time(), read_reply)
    assert isinstance(refusal, Refusal)
    assert len(refusal.message) < 2_100


async def test_a_long_message_is_shortened() -> None:
    assert len(str(await failed(http(400, {"error": "x" * 9000})))) < 550
