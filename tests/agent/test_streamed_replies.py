"""A streamed reply: told piece by piece, and in the end the same completion as if it had come as a whole."""

import asyncio
import gzip
from collections.abc import Callable
from contextlib import aclosing
from time import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.models import Completion, Delta, ModelError
from agent_core.models.endpoint.answer import HttpAnswer, Refusal
from agent_core.models.endpoint.events import EventParser
from agent_core.models.openai.chat import ChatWire
from agent_core.models.openai.client import OpenAICompatible
from agent_core.models.openai.streams import StreamedMessage
from support.asking import SCHEMA, answered, endpoint, question
from support.loopback import USAGE, Reply, chat, events, half, hang_up, http, piece, serving, silence, streamed, then

pytestmark = pytest.mark.usefixtures("each_transport")
BOM = b"\xef\xbb\xbf"
HEAD = HttpAnswer(200, {"content-type": "text/event-stream"}, b"")
NOW = time()


def body_of(reply: bytes) -> bytes:
    return reply.partition(b"\r\n\r\n")[2]


async def told(model: OpenAICompatible, **options: Any) -> tuple[list[Delta], Completion]:
    async with aclosing(model.stream(question(**options))) as pieces:
        *deltas, completion = [each async for each in pieces]
    assert isinstance(completion, Completion)
    assert all(isinstance(delta, Delta) for delta in deltas)
    return deltas, completion


async def stream_failed(*replies: Reply) -> ModelError:
    async with endpoint(*replies) as (model, _):
        with pytest.raises(ModelError) as caught:
            await told(model)
    return caught.value


# ── what is asked and told ────────────────────────────────────────────────────────────────────────────


async def test_a_stream_is_asked_for_with_its_token_counts() -> None:
    async with endpoint(streamed("ok")) as (model, server):
        await told(model, temperature=0)
        await model.complete(question(temperature=0))
    stream, whole = (request.json() for request in server.requests)
    assert {name: stream.pop(name) for name in ("stream", "stream_options")} == {
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert stream == whole


ONLY_STREAMS = [
    "This model only support stream mode, please enable the stream parameter to access the model.",
    "The value of the enable_thinking parameter is restricted to True.",
]


@pytest.mark.parametrize("message", ONLY_STREAMS)
async def test_a_model_that_only_streams_is_asked_for_a_stream_and_read_as_a_whole(message: str) -> None:
    refusal = http(400, {"error": {"message": message, "code": "invalid_parameter_error"}})
    async with endpoint(refusal, streamed("Gr", "üß")) as (model, server):
        first, second = [await model.complete(question()) for _ in range(2)]
    assert (first.content, first.requests, second.content, second.requests) == ("Grüß", 2, "Grüß", 1)
    assert ["stream" in request.json() for request in server.requests] == [False, True, True]


async def test_an_endpoint_that_neither_streams_nor_does_not_is_left_after_a_few_requests() -> None:
    only = http(400, {"error": {"message": ONLY_STREAMS[0]}})
    never = http(400, {"error": {"message": "stream is not supported"}})
    async with endpoint(only, never, only, never, only) as (model, server):
        with pytest.raises(ModelError):
            await model.complete(question())
    assert len(server.requests) <= 4


async def test_pieces_are_told_as_they_come_and_last_the_whole() -> None:
    async with endpoint(streamed("Gr", "üß", " dich")) as (model, _):
        assert await told(model) == (
            [Delta("Gr"), Delta("üß"), Delta(" dich")],
            Completion("Grüß dich", "stop", 12, 3),
        )


async def test_a_piece_is_told_before_the_next_is_written() -> None:
    seen = asyncio.Event()

    async def slowly(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        writer.write(b"data: " + orjson.dumps(piece("first")) + b"\n\n")
        await seen.wait()
        writer.write(b"data: " + orjson.dumps(piece("second", finish_reason="stop")) + b"\n\ndata: [DONE]\n\n")
        await writer.drain()

    async with endpoint(slowly) as (model, _), aclosing(model.stream(question())) as pieces:
        assert await anext(pieces) == Delta("first")
        seen.set()
        assert await anext(pieces) == Delta("second")


EVENTS_TYPE = "text/event-stream"
SPLIT_BY_NULL = body_of(events(piece("a"), b"null", piece("b"), USAGE))
LINES = orjson.dumps(piece("ab", finish_reason="stop"), option=orjson.OPT_INDENT_2).replace(b"\n", b"\ndata:")
SAME: dict[str, tuple[bytes, bytes]] = {
    "length": (streamed('{"type"', finish_reason="length"), chat('{"type"', finish_reason="length")),
    "content_filter": (streamed("a", finish_reason="content_filter"), chat("a", finish_reason="content_filter")),
    "null": (events(piece(finish_reason="stop"), USAGE), chat(None)),
    "no finish reason but done": (events(piece("a"), USAGE), chat("a", finish_reason=None)),
    "not done but a finish reason": (events(piece("a", finish_reason="stop"), USAGE, done=False), chat("a")),
    "an empty finish reason": (
        events(
            {"choices": [{"delta": {"content": "a"}, "finish_reason": ""}]}, piece("b", finish_reason="stop"), USAGE
        ),
        chat("ab"),
    ),
    "parts": (events(piece([{"type": "text", "text": "a"}, {"type": "thinking"}]), piece("b"), USAGE), chat("ab")),
    "a whole message": (events({"choices": [{"message": {"content": "a"}}]}, USAGE), chat("a")),
    "usage with the last piece": (
        events(piece("a") | {"usage": None}, piece("b") | {"usage": USAGE["usage"]}),
        chat("ab"),
    ),
    "an event without choices": (events({"type": "ping"}, piece("a"), USAGE), chat("a")),
    "another choice beside": (
        events(piece("a"), {"choices": [{"index": 1, "delta": {"content": "z"}}]}, USAGE),
        chat("a"),
    ),
    "calls": (
        events(
            piece(reasoning_content="I "),
            piece(tool_calls=[{"index": 0, "id": "c1", "type": "function", "function": {"name": "look"}}]),
            piece(reasoning_content="think", tool_calls=[{"index": 0, "function": {"arguments": '{"q":'}}]),
            piece(tool_calls=[{"index": 0, "extra_content": {"google": 1}, "function": {"arguments": "1}"}}]),
            piece(finish_reason="tool_calls"),
            USAGE,
        ),
        chat(
            None,
            finish_reason="tool_calls",
            reasoning_content="I think",
            tool_calls=[
                {
                    "id": "c1",
                    "type": "function",
                    "extra_content": {"google": 1},
                    "function": {"name": "look", "arguments": '{"q":1}'},
                }
            ],
        ),
    ),
    "not asked for": (chat("a"), chat("a")),
    "empty data between": (events(b"", piece("a"), b"", b" ", piece("b"), USAGE), chat("ab")),
    "without the last empty line": (
        http(200, body_of(streamed("ab"))[:-1], content_type="text/event-stream"),
        chat("ab"),
    ),
    "without the last line end": (
        http(200, body_of(streamed("ab"))[:-2], content_type="text/event-stream"),
        chat("ab"),
    ),
    "its end cut off": (
        http(200, body_of(events(piece("ab", finish_reason="stop"), USAGE, done=False)) + b'data: {"ch'),
        chat("ab"),
    ),
    "single line ends": (
        http(200, body_of(streamed("a", "b")).replace(b"\n\n", b"\n"), content_type="text/event-stream"),
        chat("ab"),
    ),
    "null between": (http(200, SPLIT_BY_NULL, content_type=EVENTS_TYPE), chat("ab")),
    "null between single line ends": (
        http(
            200,
            body_of(events(piece("a"), b"null", piece("b"), USAGE)).replace(b"\n\n", b"\n"),
            content_type=EVENTS_TYPE,
        ),
        chat("ab"),
    ),
    "a line of JSON for each event": (
        http(200, body_of(streamed("a", "b")).replace(b"data: ", b"").replace(b"\n\n", b"\n")),
        chat("ab"),
    ),
    "lines of JSON labelled as events": (
        http(200, body_of(streamed("a", "b")).replace(b"data: ", b"\n"), content_type=EVENTS_TYPE),
        chat("ab"),
    ),
    "a line end before the data": (
        http(200, body_of(streamed("a", "b")).replace(b"data: {", b"data:\n {"), content_type=EVENTS_TYPE),
        chat("ab"),
    ),
    "one JSON in several lines": (events(LINES, USAGE), chat("ab")),
    "a byte order mark": (http(200, BOM + body_of(streamed("ab")), content_type="text/event-stream"), chat("ab")),
    "labelled as JSON": (http(200, b": hello\n\n" + body_of(streamed("ab"))), chat("ab")),
    "labelled as text": (http(200, BOM + body_of(streamed("ab")), content_type="text/plain"), chat("ab")),
    "JSON labelled as events": (http(200, body_of(chat("ab")), content_type="text/event-stream"), chat("ab")),
    "compressed": (
        http(
            200,
            gzip.compress(streamed("ab").partition(b"\r\n\r\n")[2]),
            content_type="text/event-stream; charset=utf-8",
            content_encoding="gzip",
        ),
        chat("ab"),
    ),
}


@pytest.mark.parametrize(("stream", "whole"), SAME.values(), ids=SAME)
async def test_a_stream_ends_in_what_it_would_have_been_as_a_whole(stream: bytes, whole: bytes) -> None:
    async with endpoint(stream) as (model, _):
        deltas, completion = await told(model)
    assert completion == await answered(whole)
    assert "".join(delta.text for delta in deltas) == completion.content


async def test_a_stream_that_nobody_asked_for_is_read_as_well() -> None:
    assert await answered(streamed("a", "b")) == Completion("ab", "stop", 12, 3)


# ── where the bytes are cut ───────────────────────────────────────────────────────────────────────────

EVENTS = b": hello\r\n\r\ndata:a\ndata: b\n\nevent: x\rid: 7\rdata\r\rretry: 5\n\ndata: c\xff\r\n\r\ndata: never"


def test_events_are_read_however_they_are_cut() -> None:
    for size in range(1, len(EVENTS) + 1):
        reader = EventParser()
        pieces = [EVENTS[start : start + size] for start in range(0, len(EVENTS), size)]
        assert [data for part in pieces for data in reader.feed(part)] == [b"a\nb", b"", b"c\xff"], size


def test_a_reply_is_the_same_however_its_bytes_are_cut() -> None:
    body = BOM + body_of(streamed("Grüß", " dich"))
    for size in range(1, len(body)):
        reply = ChatWire().open_reader(HEAD, b"data:")
        texts = [text for start in range(0, len(body), size) for text in reply.feed(body[start : start + size])]
        assert reply.end(NOW) == Completion("Grüß dich", "stop", 12, 3)
        assert "".join(texts) == "Grüß dich"


# ── native calls ──────────────────────────────────────────────────────────────────────────────────────


def call(index: int | None = None, identity: str | None = None, name: str | None = None, arguments: Any = None) -> Any:
    function = {"name": name, "arguments": arguments}
    sent = {
        "index": index,
        "id": identity,
        "function": {name: each for name, each in function.items() if each is not None},
    }
    return {name: each for name, each in sent.items() if each is not None}


CALLS: dict[str, list[Any]] = {
    "numbered, id and name once": [
        [call(0, "c1", "look", ""), call(1, "c2", "look", '{"q"')],
        [call(0, None, None, '{"q":'), call(1, None, None, ":2}")],
        [call(0, None, None, "1}")],
    ],
    "id and name with each piece": [
        [call(0, "c1", "look", '{"q":')],
        [call(0, "c1", "look", "1}")],
        [call(1, "c2", "look", '{"q":2}')],
    ],
    "empty id and name with each piece": [
        [call(0, "c1", "look", '{"q":')],
        [call(0, "", "", "1}")],
        [call(1, "c2", "look", '{"q":2}')],
    ],
    "a new id with each piece": [
        [call(0, "c1", "look", '{"q":')],
        [call(0, "x9", None, "1}")],
        [call(1, "c2", "look", '{"q":2}')],
    ],
    "whole calls without a number": [[call(None, "c1", "look", '{"q":1}')], [call(None, "c2", "look", '{"q":2}')]],
    "whole calls with the same number": [[call(0, "c1", "look", '{"q":1}')], [call(0, "c2", "look", '{"q":2}')]],
    "all in one piece": [[call(0, "c1", "look", '{"q":1}'), call(1, "c2", "look", '{"q":2}')]],
    "without a number in pieces": [
        [call(None, "c1", "look", '{"q"')],
        [call(None, None, None, ":1}")],
        [call(None, "c2", "look", '{"q":2}')],
    ],
    "whole calls with the same id": [[call(0, "c1", "look", '{"q":1}'), call(1, "c1", "look", '{"q":2}')]],
    "the same id in pieces": [
        [call(0, "c1", "look", '{"q":'), call(1, "c1", "look", '{"q":')],
        [call(0, "c1", "look", "1}"), call(1, "c1", "look", "2}")],
    ],
    "a name in pieces": [
        [call(0, "c1", "lo"), call(1, "c2", "l")],
        [call(0, "c1", "ok", '{"q":'), call(1, None, "ook", '{"q":')],
        [call(0, "c1", "look", "1}"), call(1, "c2", "look", "2}")],
    ],
    "an empty object before the arguments": [
        [call(0, "c1", "look", "{}"), call(1, "c2", "look", "{}")],
        [call(0, None, None, '{"q":'), call(1, None, None, '{"q":2}')],
        [call(0, None, None, "1}")],
    ],
    "arguments as far as they are written": [
        [call(0, "c1", "look", ""), call(1, "c2", "look", '{"q"')],
        [call(0, None, None, '{"q":'), call(1, "c2", "look", '{"q":2')],
        [call(0, None, None, '{"q":1}'), call(1, "c2", "look", '{"q":2}')],
        [call(0, None, None, '{"q":1}')],
    ],
    "arguments whole once more": [
        [call(0, "c1", "look", '{"q":1}'), call(1, "c2", "look", '{"q":')],
        [call(0, None, None, '{"q":1}'), call(1, None, None, "2}")],
        [call(1, None, None, '{"q":2}')],
    ],
    "arguments as an object": [[call(0, "c1", "look", {"q": 1})], [call(1, "c2", "look", {"q": 2})]],
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_put_together_as_vendors_send_them(name: str) -> None:
    message = StreamedMessage()
    for each in CALLS[name]:
        message.add({"content": None, "tool_calls": each})
    expected = [("look", '{"q":1}'), ("look", '{"q":2}')]
    calls = message.whole()["tool_calls"]
    assert [(each["function"]["name"], each["function"]["arguments"]) for each in calls] == expected
    assert [each["id"] for each in calls] == (["c1", "c1"] if "the same id" in name else ["c1", "c2"])


MANY = 20_000
FLOODS: dict[str, Callable[[], list[Any]]] = {
    "calls by number": lambda: [call(index) for index in range(MANY)],
    "calls by id": lambda: [call(None, f"c{index}", "f") for index in range(MANY)],
    "calls of one id": lambda: [call(index, "c") for index in range(MANY)],
    "one call in pieces": lambda: [call(0, None, None, "1") for _ in range(MANY)],
    "one call's name with each piece": lambda: [call(0, "c1", "f", "12345678") for _ in range(MANY)],
    "one call's name in pieces": lambda: [call(0, "c1", "fg")] * MANY + [call(0, None, "f")] * MANY,
}


@pytest.mark.sampled
@pytest.mark.parametrize("flood", FLOODS)
def test_pieces_without_number_are_put_together_before_anyone_waits(flood: str) -> None:
    """Each of these would take minutes if a piece were compared with all before it."""
    message = StreamedMessage()
    message.add({"tool_calls": FLOODS[flood]()})
    assert message.whole()["tool_calls"]


def test_what_stands_beside_a_call_and_a_text_is_kept() -> None:
    message = StreamedMessage()
    signed = {"google": {"thought_signature": "s1"}}
    message.add(
        {
            "role": "assistant",
            "reasoning_content": "I th",
            "tool_calls": [call(0, "c1", "look") | {"extra_content": signed}],
        }
    )
    message.add({"reasoning_content": "ink", "reasoning_details": [1], "tool_calls": [call(0, None, None, "{}")]})
    message.add({"reasoning_details": [2], "content": "ok"})
    assert message.whole() == {
        "role": "assistant",
        "content": "ok",
        "reasoning_content": "I think",
        "reasoning_details": [1, 2],
        "tool_calls": [
            {"type": "function", "id": "c1", "extra_content": signed, "function": {"name": "look", "arguments": "{}"}}
        ],
    }


NAMES = ["id", "index", "function", "name", "arguments", "content", "role", "tool_calls", "delta", "finish_reason"]
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", '{"q":1}']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=20,
)
CALL = st.fixed_dictionaries({}, optional={"id": ANY, "index": ANY, "function": ANY})
DELTA = st.fixed_dictionaries({}, optional={"content": ANY, "reasoning": ANY, "tool_calls": st.lists(CALL) | ANY})
CHOICE = st.fixed_dictionaries({}, optional={"index": ANY, "delta": DELTA | ANY, "finish_reason": ANY}) | ANY


@given(st.lists(st.fixed_dictionaries({"choices": st.lists(CHOICE, max_size=3) | ANY}, optional={"usage": ANY}) | ANY))
def test_no_stream_is_too_odd_to_end(chunks: list[Any]) -> None:
    reply = ChatWire().open_reader(HEAD, b"data:")
    texts = [text for chunk in chunks for text in reply.feed(b"data: " + orjson.dumps(chunk) + b"\n\n")]
    outcome = reply.end(NOW)
    assert isinstance(outcome, Refusal) or "".join(texts) == outcome.content


# ── what fails ────────────────────────────────────────────────────────────────────────────────────────

BEGUN = events(piece("no, "), done=False, connection="close")
BROKEN: dict[str, Reply] = {
    "cut off": BEGUN,
    "nothing at all": events(done=False, connection="close"),
    "lost in the middle": http(
        200, b"data: " + orjson.dumps(piece("no, ")) + b"\n\n", content_length="999", content_type="text/event-stream"
    ),
    "cut off, null as a text": events(
        {"choices": [{"delta": {"content": "no, "}, "finish_reason": "null"}]}, done=False, connection="close"
    ),
    "an error that may pass": events(piece("no, "), {"error": {"code": "502"}}, connection="close"),
    "an error of a kind that may pass": events(piece("no, "), {"error": {"type": "server_error"}}, connection="close"),
    "lost before": hang_up,
    "half a head": half,
    "busy": http(503, {"error": "busy"}),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
async def test_a_stream_that_breaks_begins_anew(broken: Reply) -> None:
    async with endpoint(then(broken, hang_up) if isinstance(broken, bytes) else broken, streamed("yes", "!")) as (
        model,
        server,
    ):
        deltas, completion = await told(model)
    assert completion == Completion("yes!", "stop", 12, 3, requests=2)
    before = [Delta("no, ")] if isinstance(broken, bytes) and b"no, " in broken else []
    assert deltas == [*before, Delta("yes", anew=bool(before)), Delta("!")]
    assert len(server.requests) == 2


async def test_what_was_shown_is_void_where_the_reply_that_comes_after_has_no_text() -> None:
    calls = events(piece(tool_calls=[call(0, "c1", "look", "{}")]), piece(finish_reason="tool_calls"))
    async with endpoint(then(BEGUN, hang_up), calls) as (model, _):
        deltas, completion = await told(model)
    assert (completion.content, len(completion.calls)) == ("", 1)
    assert deltas == [Delta("no, "), Delta("", anew=True)]


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
async def test_a_stream_that_always_breaks_is_an_error_after_three_attempts(broken: Reply) -> None:
    error = await stream_failed(then(broken, hang_up) if isinstance(broken, bytes) else broken)
    assert (error.kind, error.requests) == ("model_error", 3)


NO_ROUTE = b'{"error":{"message":"no such route","code":404}}'
UNUSABLE: dict[str, tuple[bytes, str]] = {
    "an error in a field of its own": (
        http(200, body_of(events(piece("a"), done=False)) + b"error: " + NO_ROUTE + b"\n\n"),
        "answered 404: no such route",
    ),
    "an error without the form of an event": (
        http(200, body_of(events(piece("a"), done=False)) + NO_ROUTE + b"\n"),
        "answered 404: no such route",
    ),
    "an error after the finish, without the form of an event": (
        http(
            200,
            body_of(events(piece("a", finish_reason="stop"), done=False))
            + b'{\n  "error": {\n    "code": 404,\n    "message": "no such route"\n  }\n}\n',
        ),
        "answered 404: no such route",
    ),
    "an error without its empty line": (
        http(200, body_of(events(piece("a"), done=False)) + b"data: " + NO_ROUTE),
        "answered 404: no such route",
    ),
    "an error": (events(piece("a"), {"error": {"message": "overloaded"}}), "answered with an error: overloaded"),
    "why Groq stopped": (events(piece("a"), {"choices": [], "x_groq": {"error": "no room"}}), "an error: no room"),
    "an error in a list": (events([{"error": {"message": "quota"}}]), "answered with an error: quota"),
    "an error beside choices": (events(piece("a") | {"error": "provider down"}), "provider down"),
    "an error after the finish": (events(piece("a", finish_reason="stop"), {"error": "late"}), "late"),
    "an error in the choice": (
        events(piece("a"), {"choices": [{"delta": {}, "finish_reason": "error", "error": {"message": "upstream"}}]}),
        "answered with an error: upstream",
    ),
    "an error as finish reason": (events(piece("a"), piece(finish_reason="error")), "finish reason error"),
    "no JSON": (events(piece("a"), b"<html>"), "not JSON: <html>"),
    "deep": (events(b"[" * 100_000 + b"]" * 100_000), "not JSON"),
    "a number": (events(b"17"), "no chat completion"),
    "no choice": (events(USAGE), "an empty list of choices"),
    "content of another type": (events(piece(5), piece("a")), "no message"),
    "an HTTP error": (http(401, {"error": "no such key"}), "answered 401: no such key"),
    "a redirect": (http(307, b"", location="https://evil.example/"), "a redirect to evil.example"),
}


@pytest.mark.parametrize(("reply", "words"), UNUSABLE.values(), ids=UNUSABLE)
async def test_an_unusable_stream_is_a_model_error_in_the_vendors_words(reply: bytes, words: str) -> None:
    error = await stream_failed(reply)
    assert words in str(error)
    assert (error.kind, error.requests) == ("model_error", 1)


async def test_what_a_proxy_writes_into_a_stream_is_told() -> None:
    for more, said in ((b"<html>502</html>", ": <html>502</html>"), (b"dat", ""), (b"", "")):
        reply = ChatWire().open_reader(HEAD, b"data:")
        assert list(reply.feed(body_of(events(piece("a"), done=False)) + more)) == ["a"]
        outcome = reply.end(NOW)
        assert isinstance(outcome, Refusal)
        assert (outcome.message, outcome.transient) == (f"ended its stream before the reply was whole{said}", True)


async def test_a_line_without_end_is_not_read_to_the_end() -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ")
        while True:
            writer.write(b" " * 2**20)
            await writer.drain()

    assert "more than 16 MiB" in str(await stream_failed(endless))


def test_a_stream_that_ends_in_the_middle_of_its_calls_is_cut() -> None:
    reply = ChatWire().open_reader(HEAD, b"data:")
    body = events(piece(tool_calls=[call(0, "c1", "wipe", "{}")]), done=False).partition(b"\r\n\r\n")[2]
    assert list(reply.feed(body)) == []
    outcome = reply.end(NOW)
    assert isinstance(outcome, Refusal)
    assert outcome.transient


# ── what an endpoint does not take ────────────────────────────────────────────────────────────────────

REFUSALS = {
    "options by message": ({"error": "Extra inputs: stream_options"}, [True, True], [True, False]),
    "options by detail": (
        {"detail": [{"loc": ["body", "stream_options"], "msg": "extra"}]},
        [True, True],
        [True, False],
    ),
    "stream by param": ({"error": {"message": "be verified", "param": "stream"}}, [True, None], [True, False]),
    "stream by message": ({"error": {"message": "Streaming is off"}}, [True, None], [True, False]),
}


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(("refusal", "stream", "options"), REFUSALS.values(), ids=REFUSALS)
async def test_what_of_a_stream_is_refused_is_not_asked_for_again(
    status: int, refusal: Any, stream: list[Any], options: list[bool]
) -> None:
    reply = streamed("ok") if stream[1] else chat("ok")
    async with endpoint(http(status, refusal), reply) as (model, server):
        first = await told(model)
        second = await told(model)
        assert model.info().streaming is (None if stream[1] else False)
    sent = [request.json() for request in server.requests]
    assert [each.get("stream") for each in sent] == [*stream, stream[1]]
    assert ["stream_options" in each for each in sent] == [*options, options[1]]
    assert first == ([Delta("ok")], Completion("ok", "stop", 12, 3, requests=2))
    assert second == ([Delta("ok")], Completion("ok", "stop", 12, 3))


async def test_a_refusal_of_something_else_is_not_about_the_stream() -> None:
    async with endpoint(http(400, {"error": "no json_schema here, nor upstream"}), streamed("ok")) as (model, server):
        await told(model, response_format="auto", step_schema=SCHEMA)
    sent = [request.json() for request in server.requests]
    assert [(each["stream"], each["response_format"]["type"]) for each in sent] == [
        (True, "json_schema"),
        (True, "json_object"),
    ]


STREAM_BROKE = [
    "Could not read the request stream: unexpected end of input",
    "response_format is not supported. The stream ended.",
    "unknown error while opening the upstream stream",
]


@pytest.mark.parametrize("words", STREAM_BROKE)
async def test_a_stream_that_broke_is_still_one_that_is_taken(words: str) -> None:
    async with endpoint(http(400, {"error": {"message": words}}), streamed("ok")) as (model, server):
        with pytest.raises(ModelError):
            await told(model)
        await told(model)
    assert all(request.json()["stream_options"] for request in server.requests)


# ── connections ───────────────────────────────────────────────────────────────────────────────────────


async def test_whoever_stops_listening_closes_the_connection() -> None:
    async with endpoint(then(BEGUN.replace(b"content-length", b"x"), silence)) as (model, server):
        async with aclosing(model.stream(question())) as pieces:
            assert await anext(pieces) == Delta("no, ")
        async with asyncio.timeout(5):
            while not server.left:
                await asyncio.sleep(0.002)
    assert len(server.requests) == 1


async def test_a_stream_that_is_done_is_not_waited_for() -> None:
    async with endpoint(then(streamed("ok").replace(b"content-length", b"x"), silence)) as (model, _):
        assert (await told(model))[1] == Completion("ok", "stop", 12, 3)


async def test_streams_one_after_another_share_a_connection() -> None:
    async with endpoint(streamed("ok")) as (model, server):
        for _ in range(3):
            await told(model)
    assert server.connections == 1


async def test_a_redirect_of_a_stream_leads_nowhere() -> None:
    async with serving(streamed("stolen")) as other:
        error = await stream_failed(http(308, b"", location=other.url + "/chat/completions"))
    assert "redirects are refused" in str(error)
    assert other.connections == 0
