"""Odd replies and odd conversations, in the shape of each vendor: what a client makes of them, and a run."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson
import pytest

from agent_core import MemoryJournal, replay, verify
from agent_core.models import Completion, ModelError
from agent_core.models.gemini.contents import DUMMY_SIGNATURE as DUMMY
from support.loopback import http
from support.wires.clients import THOUGHT, ask, client_of, each_client, each_way, question, replies_in, run
from support.wires.serving import Changed, Refused, Step, vendor
from support.wires.turn import Counts, Turn, WireStandIn
from utools import tool

pytestmark = pytest.mark.sampled

SIGNATURE = re.compile(rb'("thoughtSignature":)"[^"]*"')
EMOJI, LOST = "\U0001f600", "\ufffd"


def swap(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda body: body.replace(old, new)


@tool(effect="read")
async def look(q: str) -> str:
    """Look up."""
    return q.upper()


@tool(effect="read")
def pages(n: int) -> str:
    """Read n pages."""
    return f"{type(n).__name__} {n}"


run_tools = partial(run, tools=(look, pages), protocol="tools")


def write_otherwise(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    """The same for a call. Gemini's stand-in has signed it as it was, and now takes what Google documents instead."""
    return lambda body: SIGNATURE.sub(rb'\1"%b"' % DUMMY.encode(), body.replace(old, new))


async def reply_to(stand_in: WireStandIn, way: str, *steps: Step, **options: Any) -> tuple[str, Completion]:
    async with vendor(stand_in, *steps) as endpoint:
        model = client_of(endpoint)
        try:
            return await ask(model, question(**options), way)
        finally:
            await model.close()


# ── how a reply ends ──────────────────────────────────────────────────────────────────────────────────

ENDS: dict[str, tuple[bytes, bytes, bytes]] = {
    "chat": (b'"finish_reason":', b'"tool_calls"', b'"stop"'),
    "messages": (b'"stop_reason":', b'"tool_use"', b'"end_turn"'),
    "responses": (b'"status":', b'"completed"', b'"completed"'),
    "gemini": (b'"finishReason":', b'"STOP"', b'"STOP"'),
}
"""By API: the field that says why a reply ended, its word for calls, and that for a text."""


@each_way
@each_client
async def test_calls_are_made_although_the_reply_says_that_it_is_a_text(stand_in: WireStandIn, way: str) -> None:
    field, calling, done = ENDS[stand_in.api]
    odd = Changed(Turn("I look.", calls=[("look", {"q": "a"})]), swap(field + calling, field + done))
    async with vendor(stand_in, odd, Turn("A.")) as endpoint:
        output = await run_tools(endpoint, way)
    assert (output.finish_reason, output.final_answer, endpoint.asked[-1].results) == ("final", "A.", ["A"])


@each_way
@each_client
async def test_a_text_is_an_answer_although_the_reply_says_that_it_calls(stand_in: WireStandIn, way: str) -> None:
    field, calling, done = ENDS[stand_in.api]
    async with vendor(stand_in, Changed(Turn("Hello."), swap(field + done, field + calling))) as endpoint:
        output = await run_tools(endpoint, way)
    assert (output.finish_reason, output.final_answer) == ("final", "Hello.")


@each_way
@each_client
async def test_a_thought_without_a_text_is_no_answer(stand_in: WireStandIn, way: str) -> None:
    async with vendor(stand_in, Turn(thought=THOUGHT), Turn("Hello.")) as endpoint:
        output = await run_tools(endpoint, way)
    assert (output.finish_reason, output.final_answer, len(endpoint.asked)) == ("final", "Hello.", 2)
    assert THOUGHT not in str(output.model_dump())


@each_way
@each_client
async def test_a_vendor_that_could_not_read_its_models_call_is_asked_again(stand_in: WireStandIn, way: str) -> None:
    refused = Refused(400, "Failed to call a function. See 'failed_generation'.", "tool_use_failed")
    unread = Refused(500, "Failed to parse tool call arguments as JSON: parse error at line 1, column 9")
    good = Turn(calls=[("look", {"q": "a"})])
    word = [] if stand_in.api == "responses" else [Turn("", finish="malformed_call")]  # it has no word for such
    for bad in (refused, unread, *word):
        async with vendor(stand_in, bad, good, Turn("A.")) as endpoint:
            output = await run_tools(endpoint, way)
        assert (output.finish_reason, output.final_answer, len(endpoint.asked)) == ("final", "A.", 3)


CALLS_AS_TEXT = [
    '{"type": "function", "function": {"name": "look", "parameters": {"q": "a"}}',
    '<tool_call>\n{"name": "look", "arguments": {"q": "a"}}\n</tool_call>',
    '[TOOL_CALLS][{"name": "look", "arguments": {"q": "a"}}]',
    '<|channel|>commentary to=functions.look <|constrain|>json<|message|>{"q":"a"}',
    '<function_calls><invoke name="look"><parameter name="q">a</parameter></invoke></function_calls>',
    'Action: look\nAction Input: {"q": "a"}',
]


@pytest.mark.parametrize("text", CALLS_AS_TEXT)
@each_client
async def test_a_call_that_was_left_in_the_text_is_no_answer(stand_in: WireStandIn, text: str) -> None:
    async with vendor(stand_in, Turn(text), Turn("A.")) as endpoint:
        output = await run_tools(endpoint)
    assert (output.final_answer, len(endpoint.asked)) == ("A.", 2)


# ── characters and numbers ────────────────────────────────────────────────────────────────────────────

CHARACTERS: dict[str, tuple[bytes, str]] = {
    "a pair": (rb"\ud83d\ude00", EMOJI),
    "half of a pair": (rb"\ud83d", LOST),
    "the other half": (rb"\ude00", LOST),
    "a byte of Latin-1": (b"\xe9", LOST),
    "half of an emoji's bytes": (b"\xf0\x9f", LOST),
}


@each_way
@pytest.mark.parametrize("name", CHARACTERS)
@each_client
async def test_a_character_that_is_not_whole_costs_no_reply(stand_in: WireStandIn, name: str, way: str) -> None:
    written, read = CHARACTERS[name]
    shown, completion = await reply_to(stand_in, way, Changed(Turn("party ¤ now"), swap("¤".encode(), written)))
    assert shown == completion.content == f"party {read} now"


@each_way
@each_client
async def test_half_a_character_in_arguments_is_in_a_journal_that_verifies(stand_in: WireStandIn, way: str) -> None:
    journal = MemoryJournal()
    bad = Changed(Turn(calls=[("look", {"q": "party ¤"})]), write_otherwise("¤".encode(), rb"\ud83c"))
    async with vendor(stand_in, bad, Turn("Done.")) as endpoint:
        output = await run_tools(endpoint, way, journal=journal)
    assert output.final_answer == "Done."
    assert verify(journal, run_id="r").ok
    assert replay(journal, run_id="r").identical


@each_way
@each_client
async def test_an_integer_that_is_written_as_a_float_is_an_integer(stand_in: WireStandIn, way: str) -> None:
    async with vendor(stand_in, Turn(calls=[("pages", {"n": 3.0})]), Turn("Done.")) as endpoint:
        output = await run_tools(endpoint, way)
    assert (output.final_answer, endpoint.asked[-1].results) == ("Done.", ["int 3"])


SHORT = 4242424242


@pytest.mark.parametrize("number", [2**53 + 1, 2**63, 2**64 - 1])
@each_client
async def test_a_long_integer_keeps_each_digit(stand_in: WireStandIn, number: int) -> None:
    step = Changed(Turn(calls=[("pages", {"n": SHORT})]), write_otherwise(b"%d" % SHORT, b"%d" % number))
    async with vendor(stand_in, step, Turn("Done.")) as endpoint:
        output = await run_tools(endpoint)
    assert (output.final_answer, endpoint.asked[-1].results) == ("Done.", [f"int {number}"])


@pytest.mark.parametrize("number", [2**64, 10**29 + 7, -(2**63) - 1])
@each_client
async def test_an_integer_that_no_journal_holds_is_refused_in_words_and_not_rounded(
    stand_in: WireStandIn, number: int
) -> None:
    journal = MemoryJournal()
    step = Changed(Turn(calls=[("pages", {"n": SHORT})]), write_otherwise(b"%d" % SHORT, b"%d" % number))
    async with vendor(stand_in, step, Turn("Done.")) as endpoint:
        output = await run_tools(endpoint, journal=journal)
    [result] = endpoint.asked[-1].results
    assert output.final_answer == "Done."
    assert not result.startswith("int")
    assert "integer" in result.lower()
    assert str(number) in str(replies_in(journal)[0]["calls"])
    assert verify(journal, run_id="r").ok


# ── what is no reply ──────────────────────────────────────────────────────────────────────────────────


@each_way
@each_client
async def test_an_error_in_a_200_is_told_in_the_vendors_words(stand_in: WireStandIn, way: str) -> None:
    error = http(200, stand_in.error(400, "not for you", "invalid_request_error"), connection="close")
    with pytest.raises(ModelError, match="not for you"):
        await reply_to(stand_in, way, error)


@each_client
async def test_an_error_in_the_midst_of_a_stream_is_told_or_asked_again(stand_in: WireStandIn) -> None:
    def broken(error: bytes, body: bytes) -> bytes:
        first, *_ = body.replace(b"\r\n", b"\n").split(b"\n\n")
        return first + b"\n\ndata: " + error + b"\n\n"

    refused = stand_in.error(400, "no more of it", "invalid_request_error")
    with pytest.raises(ModelError, match="no more of it"):
        await reply_to(stand_in, "streamed", Changed(Turn("Hello."), partial(broken, refused)))


@each_way
@each_client
async def test_no_content_is_a_model_error(stand_in: WireStandIn, way: str) -> None:
    with pytest.raises(ModelError):
        await reply_to(stand_in, way, http(204, b"", connection="close"))


# ── what is not known ─────────────────────────────────────────────────────────────────────────────────

UNKNOWN: dict[str, Any] = {"type": "something_new", "id": "x_1", "x": {"y": [1, None]}}


def add_unknown(api: str, body: bytes) -> bytes:
    """The body with an event, or a part of the message, of a kind that is not known."""
    if not body.startswith(b"{"):
        event = b"event: something_new\ndata: %b\n\n" % orjson.dumps(UNKNOWN)
        end = b"\r\n\r\n" if b"\r\n\r\n" in body else b"\n\n"
        first, _, rest = body.partition(end)
        return b": a comment\n\n" + first + end + event + rest
    reply = orjson.loads(body)
    match api:
        case "chat":
            reply["choices"][0]["message"] |= {"something_new": UNKNOWN, "audio": None, "annotations": [UNKNOWN]}
        case "messages":
            reply["content"].insert(0, UNKNOWN)
        case "responses":
            reply["output"].insert(0, UNKNOWN)
        case _:
            reply["candidates"][0]["content"]["parts"].insert(0, {"somethingNew": UNKNOWN})
    return orjson.dumps({**reply, "something_new": UNKNOWN})


@each_way
@each_client
async def test_what_is_not_known_is_passed_over(stand_in: WireStandIn, way: str) -> None:
    odd = Changed(Turn("Hello.", calls=[("look", {"q": "a"})]), partial(add_unknown, stand_in.api))
    shown, completion = await reply_to(stand_in, way, odd)
    assert shown == completion.content == "Hello."
    assert [call["name"] for call in completion.calls] == ["look"]
    assert completion.input_tokens == 120


# ── usage ─────────────────────────────────────────────────────────────────────────────────────────────

USAGES: dict[str, Callable[[bytes], bytes]] = {
    "none": lambda body: body.replace(b'"usage":', b'"uses":').replace(b'"usageMetadata":', b'"uses":'),
    "texts": swap(b":120", b':"120"'),
    "floats": swap(b":120", b":120.5"),
    "negative": swap(b":120", b":-120"),
    "absurd": swap(b":120", b":12000000000000000000000"),
    "null": swap(b":120", b":null"),
}


@each_way
@pytest.mark.parametrize("odd", USAGES)
@each_client
async def test_a_count_that_cannot_be_one_is_estimated(stand_in: WireStandIn, odd: str, way: str) -> None:
    async with vendor(stand_in, Changed(Turn("Hello."), USAGES[odd])) as endpoint:
        output = await run_tools(endpoint, way)
    assert output.final_answer == "Hello."
    assert output.usage["estimated"]
    assert 0 < output.usage["input_tokens"] < 2000
    assert output.usage["output_tokens"] > 0


@each_way
@each_client
async def test_a_count_of_nothing_is_estimated(stand_in: WireStandIn, way: str) -> None:
    async with vendor(stand_in, Turn("Hello.", counts=Counts(0, 0))) as endpoint:
        output = await run_tools(endpoint, way)
    assert output.usage["estimated"]
    assert output.usage["input_tokens"] > 0
