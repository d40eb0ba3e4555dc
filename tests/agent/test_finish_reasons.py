"""Why a reply ended: each vendor's word in ours, and what becomes of a reply that was cut, filtered or odd."""

import logging
from typing import Any

import pytest

from agent_core import MemoryJournal, replay, run_agent
from agent_core.models import ScriptedModel
from agent_core.models.finish_reasons import KNOWN, read_finish_reason
from support.asking import client
from support.by_hand import Hand, calls, final, look, said
from support.loopback import chat, events, http, piece, serving
from utools import ToolRegistry, tool

NATIVE: dict[str, Any] = {"protocol": "tools"}

READ = {
    "stop": [
        "stop", "STOP", "end_turn", "eos_token", "eosFound", "COMPLETE", "stop_sequence", "tool_calls", "TOOL_CALL",
        "FinishReason.STOP", "REASON_STOP", "", None, 7, {"type": "stop", "matched": 2},
    ],
    "length": [
        "length", "max_tokens", "MAX_TOKENS", "model_length", "FinishReason.MAX_TOKENS", "maxPredictedTokensReached",
        "model_context_window_exceeded", "insufficient_system_resource", "network_error", "ERROR_LIMIT", "load",
        "pause_turn", "REASON_MAX_LEN", "abort", {"type": "length", "length": 16},
    ],
    "content_filter": [
        "content_filter", "content_filter: SAFETY", "SAFETY", "RECITATION", "refusal", "sensitive", "ERROR_TOXIC",
        "guardrail_intervened", "content_filtered", "PROHIBITED_CONTENT", "ContentFilter", "Content-Filter",
    ],
    "malformed_call": [
        "MALFORMED_FUNCTION_CALL", "function_call_filter: MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL",
        "malformed_tool_use", "content_filter: MALFORMED_FUNCTION_CALL",
    ],
    "whatever": ["whatever", " whatever "],
}  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize(("given", "word"), [(given, word) for word, words in READ.items() for given in words])
def test_a_vendors_word_is_one_of_ours(given: Any, word: str) -> None:
    assert read_finish_reason(given) == word
    assert read_finish_reason(word) == word


@pytest.mark.sampled
@pytest.mark.parametrize("given", KNOWN)
def test_a_word_means_the_same_however_it_is_written(given: str) -> None:
    camel = given.split("_")[0] + "".join(part.title() for part in given.split("_")[1:])
    for form in (given.upper(), given.replace("_", "-"), given.replace("_", " "), camel, f"FINISH_REASON_{given}"):
        assert read_finish_reason(form) == KNOWN[given], form


@pytest.mark.parametrize(
    ("given", "native", "word"),
    [
        ("stop", "MAX_TOKENS", "length"),
        ("stop", "SAFETY", "content_filter"),
        ("stop", "end_turn", "stop"),
        ("stop", "whatever", "stop"),
        ("whatever", "STOP", "stop"),
        ("length", None, "length"),
    ],
)
def test_the_vendor_behind_a_gateway_is_heard(given: str, native: str | None, word: str) -> None:
    assert read_finish_reason(given, native) == word


# ── a whole run ───────────────────────────────────────────────────────────────────────────────────


@tool(effect="read")
async def find(q: str) -> str:
    """Find it."""
    return q


async def run(reply: bytes, *more: bytes, protocol: str = "tools", streamed: bool = False, **config: Any) -> Any:
    listen: Any = {"on_event": lambda event: None} if streamed else {}
    async with serving(reply, *more) as server:
        given = {"model": "m", "max_steps": 4, "prompt": "Go.", "allowed_tools": ["find"], "protocol": protocol}
        journal = MemoryJournal()
        model = client(server.url)
        output = await run_agent(
            {**given, **config}, registry=ToolRegistry([find]), model=model, journal=journal, run_id="r", **listen
        )
        await model.close()
    assert replay(journal, run_id="r").identical
    return output, [row.record() for row in journal.load("r")["agent"]], server.requests


STREAMED = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


def ended(text: str, reason: Any, *, streamed: bool) -> bytes:
    if not streamed:
        return chat(text, finish_reason=reason)
    return events(piece(text), piece(finish_reason=reason))


@pytest.mark.sampled
@STREAMED
@pytest.mark.parametrize("reason", ["max_tokens", "MAX_TOKENS", "model_length", "insufficient_system_resource"])
@pytest.mark.parametrize("protocol", ["json", "tools"])
async def test_a_reply_that_was_cut_is_no_answer(reason: str, protocol: str, streamed: bool) -> None:
    cut, whole = (final(text) if protocol == "json" else text for text in ("Twel", "Twelve."))
    replies = [ended(cut, reason, streamed=streamed), ended(whole, "stop", streamed=streamed)]
    output, records, _ = await run(*replies, protocol=protocol, streamed=streamed)
    assert output.final_answer == "Twelve."
    assert [record["unreadable"]["kind"] for record in records if "unreadable" in record] == ["truncated"]


@STREAMED
@pytest.mark.parametrize("reason", ["content_filter: SAFETY", "RECITATION", "refusal", "sensitive"])
async def test_a_reply_that_was_filtered_ends_the_run(reason: str, streamed: bool) -> None:
    output, *_ = await run(ended("It is", reason, streamed=streamed), streamed=streamed)
    assert output.finish_reason == "content_filter"


async def test_a_filtered_choice_may_have_no_message() -> None:
    body = {"choices": [{"index": 0, "finish_reason": "SAFETY"}]}
    output, *_ = await run(http(200, body))
    assert output.finish_reason == "content_filter"


@STREAMED
@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "function_call_filter: MALFORMED_FUNCTION_CALL"])
@pytest.mark.parametrize("protocol", ["json", "tools"])
async def test_a_malformed_call_is_told(reason: str, protocol: str, streamed: bool) -> None:
    whole = final("Twelve.") if protocol == "json" else "Twelve."
    replies = [ended("", reason, streamed=streamed), ended(whole, "stop", streamed=streamed)]
    output, _, requests = await run(*replies, protocol=protocol, streamed=streamed)
    assert output.final_answer == "Twelve."
    assert "nothing was run" in requests[1].json()["messages"][-1]["content"]


async def test_an_unknown_word_is_in_the_journal_and_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "agent_core"):
        output, records, _ = await run(chat("Twelve.", finish_reason="moonset"))
    assert output.final_answer == "Twelve."
    assert [record["finish_reason"] for record in records if record.get("reply") == "said"] == ["moonset"]
    assert "moonset" in caplog.text


async def test_a_script_ends_its_replies_in_any_vendors_words() -> None:
    model = ScriptedModel([{"content": final("Twel"), "finish_reason": "MAX_TOKENS"}, final("Twelve.")])
    config = {"model": "m", "max_steps": 3, "prompt": "Go.", "allowed_tools": []}
    assert (await run_agent(config, registry=ToolRegistry([]), model=model)).final_answer == "Twelve."


# ── a word that nobody knows ──────────────────────────────────────────────────────────────────────

NOT_WHOLE = ["", "  ", "I call <tool_call>", '{"name": "look", "arguments": {"q"', "Now [TOOL_CALLS] it"]


@pytest.mark.parametrize("text", NOT_WHOLE)
def test_under_an_unknown_word_a_text_with_the_mark_of_a_call_is_cut(text: str) -> None:
    run = Hand([said(text)._replace(finish_reason="moonset"), said("Right.")], **NATIVE)
    assert run.decided[0]["unreadable"]["kind"] == "truncated"
    assert "moonset" in run.last_heard
    assert run.output["final_answer"] == "Right."


def test_under_an_unknown_word_whole_calls_are_made_and_others_are_cut() -> None:
    whole = calls(("look", {"q": "x"}))._replace(finish_reason="moonset")
    assert Hand([whole, said("Right.")], **NATIVE).output["used_tools"]["look"]["count"] == 1
    cut = whole._replace(calls=[{"name": "look", "arguments": '{"q":'}])
    assert Hand([cut, said("Right.")], **NATIVE).decided[0]["unreadable"]["kind"] == "truncated"


def test_under_an_unknown_word_a_whole_step_is_taken_and_another_text_is_cut() -> None:
    whole = said(final("Right."))._replace(finish_reason="moonset")
    assert Hand([whole]).output["final_answer"] == "Right."
    for text in ("Right.", final("Right.")[:-3]):
        run = Hand([said(text)._replace(finish_reason="moon{set"), final("Right.")], tools=[look()])
        assert run.decided[0]["unreadable"]["kind"] == "truncated"
        assert "{" not in run.decided[0]["unreadable"]["message"]
