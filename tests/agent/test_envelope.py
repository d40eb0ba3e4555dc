"""One bad character in what an endpoint sends: it is mended, and costs no reply."""

from contextlib import aclosing
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core import run_agent
from agent_core.models import Completion, Delta
from agent_core.models.endpoint.envelope import decode, mend, mend_text, split_open_end
from agent_core.models.openai.streams import StreamedMessage
from support.asking import answered, client, endpoint, question
from support.loopback import Reply, chat, events, http, piece, serving, then
from utools import ToolRegistry, tool

pytestmark = pytest.mark.usefixtures("each_transport")
EMOJI, LOST = "\U0001f600", "\ufffd"


def whole(content: bytes) -> bytes:
    """A whole reply with these bytes as its content."""
    return http(200, b'{"choices":[{"index":0,"message":{"content":"%b"},"finish_reason":"stop"}]}' % content)


def pieces(*contents: bytes) -> bytes:
    """A stream with these bytes as the contents of its chunks."""
    chunks = [b'{"choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":null}]}' % each for each in contents]
    return events(*chunks, piece(finish_reason="stop"))


async def streamed(reply: Reply) -> tuple[str, Completion]:
    async with endpoint(reply) as (model, _), aclosing(model.stream(question())) as parts:
        *deltas, completion = [each async for each in parts]
    assert isinstance(completion, Completion)
    return "".join(each.text for each in deltas if isinstance(each, Delta)), completion


TEXTS: dict[str, tuple[tuple[bytes, ...], str]] = {
    "a pair": ((rb"Party \ud83d\ude00 now",), f"Party {EMOJI} now"),
    "a pair in two chunks": ((rb"Party \ud83d", rb"\ude00 now"), f"Party {EMOJI} now"),
    "a pair with nothing between": ((rb"Party \ud83d", b"", rb"\ude00 now"), f"Party {EMOJI} now"),
    "half of one": ((rb"Half \ud83d alone",), f"Half {LOST} alone"),
    "half of one before a chunk": ((rb"Half \ud83d", b" alone"), f"Half {LOST} alone"),
    "half of one at the end": ((b"Half ", rb"\ud83d"), f"Half {LOST}"),
    "the other half": ((rb"\ude00 alone",), f"{LOST} alone"),
    "a byte of Latin-1": ((b"caf\xe9 now",), f"caf{LOST} now"),
    "an emoji's bytes in two chunks": ((b"Party \xf0\x9f", b"\x98\x80 now"), f"Party {EMOJI} now"),
    "an emoji's bytes one by one": ((b"\xf0", b"\x9f", b"\x98", b"\x80"), EMOJI),
    "half of an emoji's bytes": ((b"Party \xf0\x9f", b"now"), f"Party {LOST}now"),
    "an escape of the model's own": ((rb"{\"q\": \"\\ud83d\"}",), r'{"q": "\ud83d"}'),
}


@pytest.mark.parametrize(("contents", "expected"), TEXTS.values(), ids=TEXTS)
async def test_a_character_that_is_not_whole_is_joined_or_replaced(contents: tuple[bytes, ...], expected: str) -> None:
    shown, completion = await streamed(pieces(*contents))
    assert shown == completion.content == expected
    if len(contents) == 1:
        assert (await answered(whole(contents[0]))).content == expected


async def test_a_character_may_come_in_two_pieces_of_the_network() -> None:
    body = pieces("Grüß 雪 🎉".encode())
    for at in range(body.index(b"Gr"), body.index(b"finish_reason")):

        async def rest(writer: Any, at: int = at) -> None:
            writer.write(body[at:])
            await writer.drain()

        shown, completion = await streamed(then(body[:at], rest))
        assert shown == completion.content == "Grüß 雪 🎉"


@given(st.text(alphabet=st.sampled_from("aé雪🎉\ud83d\ude00\udce9\udcf0"), max_size=12), st.lists(st.integers(0, 12)))
def test_pieces_are_mended_as_the_whole_is(text: str, cuts: list[int]) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    shown, held = "", ""
    for start, end in pairwise(places):
        mended, held = split_open_end(held + text[start:end])
        shown += mended
    assert shown + mend_text(held) == mend_text(text)
    orjson.dumps(mend_text(text))


def test_what_orjson_reads_is_read_the_same() -> None:
    for value in ({"a": [1, 2.5, None, True, "雪"]}, [], "x", 2**63):
        assert mend(decode(orjson.dumps(value))) == value
    for broken in (b"<html>", b"", b"{", b'{"a":NaN}', b"[" * 100_000 + b'"\xff"'):
        with pytest.raises(ValueError, match=r"\w"):
            decode(broken)


# ── in a call ─────────────────────────────────────────────────────────────────────────────────────

made: list[str] = []


@tool(effect="read")
async def note(text: str) -> str:
    """Note it."""
    made.append(text)
    return "noted"


async def run(*replies: Reply, **listen: Any) -> Any:
    made.clear()
    async with serving(*replies) as server:
        model = client(server.url)
        config = {"model": "m", "max_steps": 5, "prompt": "Go.", "allowed_tools": ["note"], "protocol": "tools"}
        output = await run_agent(config, registry=ToolRegistry([note]), model=model, **listen)
        await model.close()
    return output


def call_with(name: bytes, arguments: bytes) -> bytes:
    call = b'{"id":"c\\ud83d","function":{"name":"%b","arguments":"%b"}}' % (name, arguments)
    message = b'{"content":null,"tool_calls":[%b]}' % call
    return http(200, b'{"choices":[{"index":0,"message":%b,"finish_reason":"tool_calls"}]}' % message)


async def test_the_arguments_of_a_call_are_mended_too() -> None:
    output = await run(call_with(b"note", rb"{\"text\": \"half \ud83d, whole \ud83d\ude00\"}"), chat("done"))
    assert (output.finish_reason, made) == ("final", [f"half {LOST}, whole {EMOJI}"])


async def test_an_escape_in_the_models_own_json_is_told_to_it() -> None:
    replies = [call_with(b"note", rb"{\"text\": \"half \\ud83d\"}"), call_with(b"note", rb"{\"text\": \"whole\"}")]
    output = await run(*replies, chat("done"))
    assert (output.finish_reason, made) == ("final", ["whole"])
    assert "surrogate" in output.trace[0]["error"]


async def test_a_name_that_no_tool_has_is_refused_and_costs_no_run() -> None:
    output = await run(call_with(rb"note\ud83d", b"{}"), chat("done"))
    assert output.finish_reason == "final"


# ── calls that come in odd ways ───────────────────────────────────────────────────────────────────


def calls_of(*deltas: dict[str, Any]) -> list[tuple[str, str]]:
    message = StreamedMessage()
    for delta in deltas:
        message.add(delta)
    calls = message.whole().get("tool_calls", ())
    return [(call["function"]["name"], call["function"].get("arguments", "")) for call in calls]


def part(name: str | None, arguments: Any, **more: Any) -> dict[str, Any]:
    function = {**({"name": name} if name else {}), "arguments": arguments}
    return {"tool_calls": [{**more, "function": function}]}


A, B = '{"q":"a"}', '{"q":"b"}'
CALLS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str]]]] = {
    "whole, without ids": ([part("look", A, index=0), part("look", B, index=0)], [("look", A), ("look", B)]),
    "three of two tools": (
        [part("look", A, index=0), part("find", B, index=0), part("look", B, index=0)],
        [("look", A), ("find", B), ("look", B)],
    ),
    "the first with an id": ([part("look", A, index=0, id="c"), part("look", B, index=0)], [("look", A), ("look", B)]),
    "the second with an id": ([part("look", A, index=0), part("look", B, index=0, id="c")], [("look", A), ("look", B)]),
    "as objects": ([part("look", {"q": "a"}, index=0), part("look", {"q": "b"}, index=0)], [("look", A), ("look", B)]),
    "the second in pieces": (
        [part("look", A, index=0), part("look", '{"q":', index=0), part(None, '"b"}', index=0)],
        [("look", A), ("look", B)],
    ),
    "one, its name in each piece": (
        [part("look", '{"q":', index=0), part("look", '"a"', index=0), part("look", "}", index=0)],
        [("look", A)],
    ),
    "one, an object in it": (
        [part("look", '{"q":', index=0), part("look", '{"x":1}}', index=0)],
        [("look", '{"q":{"x":1}}')],
    ),
}


@pytest.mark.parametrize(("deltas", "expected"), CALLS.values(), ids=CALLS)
def test_whole_calls_under_one_number_are_calls_of_their_own(
    deltas: list[dict[str, Any]], expected: list[tuple[str, str]]
) -> None:
    assert calls_of(*deltas) == expected


OLDER = {"name": "note", "arguments": '{"text":"x"}'}


async def test_the_older_field_of_one_call_is_a_call() -> None:
    body = {"choices": [{"message": {"content": None, "function_call": OLDER}, "finish_reason": "function_call"}]}
    output = await run(http(200, body), chat("done"))
    assert (output.final_answer, made) == ("done", ["x"])
    stream = events(
        piece(None, function_call={"name": "note", "arguments": ""}),
        piece(None, function_call={"arguments": '{"text":'}),
        piece(None, function_call={"arguments": '"x"}'}),
        piece(finish_reason="function_call"),
    )
    output = await run(stream, events(piece("done"), piece(finish_reason="stop")), on_event=lambda event: None)
    assert (output.final_answer, made) == ("done", ["x"])


async def test_a_call_in_both_fields_is_made_once() -> None:
    call = {"id": "c", "type": "function", "function": OLDER}
    message = {"content": None, "function_call": OLDER, "tool_calls": [call]}
    await run(http(200, {"choices": [{"message": message, "finish_reason": "tool_calls"}]}), chat("done"))
    assert made == ["x"]
    assert calls_of({"function_call": OLDER}, {"tool_calls": [{"index": 0, **call}]}) == [("note", '{"text":"x"}')]


LONG = {
    2**64 - 1: 2**64 - 1,
    -(2**63): -(2**63),
    2**64: str(2**64),
    -(2**63) - 1: str(-(2**63) - 1),
}


@pytest.mark.parametrize(("number", "read"), LONG.items())
def test_an_integer_that_no_journal_holds_is_a_text_of_its_digits(number: int, read: Any) -> None:
    assert decode(b'{"id":%d,"of":[1.5,"%d"]}' % (number, number)) == {"id": read, "of": [1.5, str(number)]}


def test_an_integer_of_thousands_of_digits_is_a_text_too() -> None:
    assert decode(b"1" + b"0" * 5000) == "1" + "0" * 5000
