"""What OpenAICompatible makes of everything that an endpoint may answer."""

import gzip
from typing import Any

import pytest
from asking import KEY, SCHEMA, answered, failed
from loopback import chat, http

from agent_core.models import Completion

pytestmark = pytest.mark.usefixtures("each_transport")

# ── what is read ──────────────────────────────────────────────────────────────────────────────────────

PARTS = [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]
CONTENTS = {"text": ("Grüß", "Grüß"), "null": (None, ""), "parts": (PARTS, "ab"), "no parts": ([], "")}


@pytest.mark.parametrize(("sent", "read"), CONTENTS.values(), ids=CONTENTS)
async def test_content_is_read_as_text(sent: Any, read: str) -> None:
    assert await answered(chat(sent)) == Completion(read, "stop", 12, 3)


REASONS = [("stop", "stop"), ("length", "length"), ("content_filter", "content_filter"), ("tool_calls", "stop")]


@pytest.mark.parametrize(("sent", "read"), [*REASONS, (None, "stop"), (7, "stop"), ("eos", "eos")])
async def test_finish_reason_is_read(sent: Any, read: str) -> None:
    assert (await answered(chat("x", finish_reason=sent))).finish_reason == read


@pytest.mark.parametrize("usage", [None, [], {}, {"prompt_tokens": "12", "completion_tokens": True}])
async def test_usage_that_is_no_count_is_absent(usage: Any) -> None:
    completion = await answered(chat("x", usage=usage))
    assert (completion.input_tokens, completion.output_tokens) == (None, None)


async def test_a_compressed_reply_is_read() -> None:
    plain = chat("x").partition(b"\r\n\r\n")[2]
    assert (await answered(http(200, gzip.compress(plain), content_encoding="gzip"))).content == "x"


# ── what fails at once ────────────────────────────────────────────────────────────────────────────────

UNUSABLE = {
    "error with status 200": (http(200, {"error": {"message": "overloaded"}}), "overloaded"),
    "error beside choices": (chat("x", error={"message": "provider down"}), "provider down"),
    "error as text": (http(200, {"error": "model not loaded"}), "model not loaded"),
    "error in a list": (http(400, [{"error": {"message": "API key not valid"}}]), "answered 400: API key not valid"),
    "detail": (http(422, {"detail": [{"loc": ["body"]}]}), "loc"),
    "bare message": (http(403, {"code": "Denied", "message": "no access"}), "answered 403: no access"),
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
    "a number": (http(200, b"17"), "no chat completion"),
    "a redirect": (http(307, b"", location="https://evil.example/take?t=secret"), "a redirect to evil.example;"),
    "a redirect to nowhere": (http(302, b"", location="http://[bad"), "a redirect; redirects"),
    "bad gzip": (http(200, b"no gzip", content_encoding="gzip"), "gave no answer"),
}


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


async def test_a_long_message_is_shortened() -> None:
    assert len(str(await failed(http(400, {"error": "x" * 9000})))) < 550
