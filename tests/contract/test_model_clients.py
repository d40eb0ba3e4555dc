"""The contract of all clients of endpoints, at stand-ins that read and write by the types of each vendor's SDK."""

from typing import Any

import orjson
import pytest

from agent_core import MemoryJournal, replay, run_agent, verify
from agent_core.models import ModelError, Question, ScriptedModel
from agent_core.models.providers import Providers
from support.loopback import http
from support.wires import chat
from support.wires.clients import (
    CALL,
    CONFIG,
    QUESTION,
    SCRIPTS,
    THOUGHT,
    ask,
    client_of,
    each_client,
    each_native,
    each_way,
    lookup,
    question,
    replies_in,
    run,
)
from support.wires.serving import Broken, Refused, vendor
from support.wires.turn import KEY, Counts, Turn, WireStandIn
from utools import ToolRegistry

# ── whole runs ────────────────────────────────────────────────────────────────────────────────────────


@each_way
@pytest.mark.parametrize("protocol", SCRIPTS)
@each_client
async def test_a_run_ends_with_its_answer(stand_in: WireStandIn, protocol: str, way: str) -> None:
    script = SCRIPTS[protocol]
    async with vendor(stand_in, *script) as endpoint:
        output = await run(endpoint, way, protocol=protocol)
    assert (output.error, output.finish_reason, output.final_answer) == (None, "final", "A house.")
    assert len(endpoint.asked) == output.usage["requests"] == len(script)
    assert output.usage["input_tokens"] == 120 * len(script)
    assert not output.usage["estimated"]
    last = endpoint.asked[-1]
    assert (last.model, last.streams) == ("m1", way == "streamed")
    assert THOUGHT not in str(output.messages_json)
    if protocol == "tools":
        assert last.calls == [*CALL.calls, ("lookup", {"word": "Haus"})]
        assert last.results == ["casa means house", "maison means house", "Haus means house"]
        assert all(last.thoughts)
        assert len(last.thoughts) == (0 if stand_in.api == "chat" else 2)


@each_client
async def test_what_is_said_grows_at_its_end_alone(stand_in: WireStandIn) -> None:
    async with vendor(stand_in, *SCRIPTS["tools"]) as endpoint:
        await run(endpoint, protocol="tools")
    for before, after in zip(endpoint.asked, endpoint.asked[1:], strict=False):
        assert after.said[: len(before.said)] == before.said
        assert after.results[: len(before.results)] == before.results
        assert after.tools == before.tools == ["lookup"]


@each_native
async def test_what_only_the_vendor_understands_is_recorded_and_goes_back_after_a_crash(stand_in: WireStandIn) -> None:
    journal = MemoryJournal()
    async with vendor(stand_in, *SCRIPTS["tools"]) as endpoint:
        await run(endpoint, protocol="tools", journal=journal)
        rows, answers = journal.load("r")["agent"], replies_in(journal)
        assert answers[0]["echo"]["native"]["api"] == stand_in.api
        assert replay(journal, run_id="r").identical
        assert verify(journal, run_id="r").ok
        whole = endpoint.asked[-1]
        torn, last = (
            MemoryJournal(),
            max(row.n for row in rows if row.kind == "asked" and row.record()["ask"] == "model"),
        )
        tape = journal.load("r")
        torn.append("r", [row for name in tape for row in tape[name] if name != "agent" or row.n <= last])
        output = await run(endpoint, protocol="tools", journal=torn)
    assert output.final_answer == "A house."
    assert endpoint.asked[-1] == whole
    assert all(whole.thoughts)


@each_native
async def test_another_vendor_does_not_get_it_and_the_journal_says_so(
    stand_in: WireStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = MemoryJournal()
    providers = Providers()
    async with (
        vendor(stand_in, CALL, Refused(400, "no more"), monkeypatch=monkeypatch) as first,
        vendor(chat.STAND_IN, Turn("A house."), monkeypatch=monkeypatch) as second,
    ):
        monkeypatch.setenv(stand_in.url_env, first.url)
        config = {**CONFIG, "model": first.model, "api": "native", "base_url": first.url, "protocol": "tools"}
        fallbacks = ["openai:m1"] if stand_in.provider != "openai" else ["vllm:m1"]
        monkeypatch.setenv("OPENAI_BASE_URL", second.url)
        monkeypatch.setenv("VLLM_BASE_URL", second.url)
        given = {**config, "fallback_models": fallbacks}
        output = await run_agent(given, registry=ToolRegistry([lookup]), journal=journal, run_id="r")
    await providers.close()
    assert output.final_answer == "A house."
    assert b'"native"' not in second.requests[-1].body
    said = [
        row.record() for row in journal.load("r")["agent"] if row.kind == "answered" and row.record()["reply"] == "said"
    ]
    assert [answer.get("dropped") for answer in said] == [None, [stand_in.api]]
    assert replay(journal, run_id="r").identical


# ── replies ───────────────────────────────────────────────────────────────────────────────────────────


@each_way
@each_client
async def test_tokens_are_counted_apart(stand_in: WireStandIn, way: str) -> None:
    counts = Counts(input=1000, output=70, cached=600, written=100, reasoning=40)
    async with vendor(stand_in, Turn("yes", counts=counts)) as endpoint:
        model = client_of(endpoint)
        _, completion = await ask(model, question(), way)
        await model.close()
    assert (completion.input_tokens, completion.output_tokens, completion.cached_tokens) == (1000, 70, 600)
    assert not completion.estimated
    if stand_in.api != "gemini":
        assert completion.cache_write_tokens == 100
    assert completion.reasoning_tokens == 40


ENDS = {"length": "length", "content_filter": "content_filter"}


@each_way
@pytest.mark.parametrize("finish", ENDS)
@each_client
async def test_a_reply_that_was_cut_or_filtered_is_known_as_such(stand_in: WireStandIn, finish: Any, way: str) -> None:
    async with vendor(stand_in, Turn("half of", finish=finish)) as endpoint:
        output = await run(endpoint, way, max_repairs=0)
    assert output.finish_reason == {"length": "protocol_error"}.get(finish, finish)


@each_way
@each_client
async def test_texts_of_every_kind_arrive_as_they_are(stand_in: WireStandIn, way: str) -> None:
    text = 'Grüß dich 👋🏽, "zitiert"\n\\ \u2028 <b> </think> ```json {} ```' * 3
    async with vendor(stand_in, Turn(text)) as endpoint:
        model = client_of(endpoint)
        shown, completion = await ask(model, question(orjson.dumps({"role": "user", "content": text})), way)
        await model.close()
    assert shown == completion.content == text
    assert endpoint.asked[0].said == [text]


@each_way
@each_client
async def test_calls_beside_a_text_are_both_read(stand_in: WireStandIn, way: str) -> None:
    args = {"word": "casa", "deep": {"a": [1, None, "ü"]}}
    turn = Turn("I look it up.", calls=[("lookup", args)], thought=THOUGHT)
    tools = [{"type": "function", "function": {"name": "lookup", "description": "d", "parameters": {"type": "object"}}}]
    async with vendor(stand_in, turn) as endpoint:
        model = client_of(endpoint)
        shown, completion = await ask(model, question(tools=tools), way)
        await model.close()
    assert shown == completion.content == "I look it up."
    [call] = completion.calls
    assert (call["name"], orjson.loads(call["arguments"])) == (
        "lookup",
        {"word": "casa", "deep": {"a": [1, None, "ü"]}},
    )
    assert endpoint.asked[0].tools == ["lookup"]


# ── faults ────────────────────────────────────────────────────────────────────────────────────────────


@each_way
@each_client
async def test_transient_failures_are_tried_again_and_counted(stand_in: WireStandIn, way: str) -> None:
    soon = {"retry_after": "0.01"}
    steps = Refused(503, headers=soon), Refused(429, headers=soon), Turn("yes")
    async with vendor(stand_in, *steps) as endpoint:
        model = client_of(endpoint)
        _, completion = await ask(model, question(), way)
        await model.close()
    assert (completion.content, completion.requests, len(endpoint.asked)) == ("yes", 3, 3)


@each_way
@each_client
async def test_a_failure_that_stays_is_told_in_the_vendors_words(stand_in: WireStandIn, way: str) -> None:
    async with vendor(stand_in, Refused(500, f"broken for {KEY}", headers={"retry_after": "0.01"})) as endpoint:
        model = client_of(endpoint)
        with pytest.raises(ModelError, match="broken for \\*\\*\\*") as caught:
            await ask(model, question(), way)
        await model.close()
    assert (caught.value.requests, caught.value.kind) == (3, "model_error")


@pytest.mark.sampled
@each_way
@pytest.mark.parametrize("status", [400, 401, 403, 404])
@each_client
async def test_a_refusal_is_told_at_once(stand_in: WireStandIn, status: int, way: str) -> None:
    async with vendor(stand_in, Refused(status, "we do not want to")) as endpoint:
        model = client_of(endpoint)
        with pytest.raises(ModelError, match=f"{status}: we do not want to"):
            await ask(model, question(), way)
        await model.close()
    assert len(endpoint.asked) == 1


@each_way
@each_client
async def test_a_reply_that_breaks_off_is_asked_for_anew(stand_in: WireStandIn, way: str) -> None:
    text = "a text that is long enough to come in some pieces"
    async with vendor(stand_in, Broken(Turn(text), 3), Turn(text)) as endpoint:
        model = client_of(endpoint)
        shown, completion = await ask(model, question(), way)
        await model.close()
    assert (shown, completion.content, completion.requests) == (text, text, 2)


ODD = {
    "html": http(200, b"<html>Welcome</html>", content_type="text/html", connection="close"),
    "nothing": http(200, b"", connection="close"),
    "null": http(200, b"null", connection="close"),
    "list": http(200, b"[]", connection="close"),
    "empty": http(200, b"{}", connection="close"),
    "redirect": http(307, b"", location="http://127.0.0.1:9/elsewhere", connection="close"),
    "error in a 200": http(200, {"error": {"message": "not today"}}, connection="close"),
    "events of nothing": http(200, b"data: {}\n\n", content_type="text/event-stream", connection="close"),
    "a page as events": http(200, b"<html>", content_type="text/event-stream", connection="close"),
    "deep": http(200, b'{"a":' * 3000 + b"1" + b"}" * 3000, connection="close"),
}


@pytest.mark.sampled
@each_way
@pytest.mark.parametrize("odd", ODD)
@each_client
async def test_what_is_no_reply_is_a_model_error(stand_in: WireStandIn, odd: str, way: str) -> None:
    async with vendor(stand_in, ODD[odd]) as endpoint:
        model = client_of(endpoint)
        with pytest.raises(ModelError) as caught:
            await ask(model, Question("m1", QUESTION, {}, "agent", 0, within=0.4), way)
        await model.close()
    assert str(caught.value).startswith("127.0.0.1:")


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────────

AMBIENT = {
    "OPENAI_ORG_ID": "ambient-org",
    "OPENAI_CUSTOM_HEADERS": "X-Own: ambient-header",
    "ANTHROPIC_AUTH_TOKEN": "ambient-token",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Own: ambient-header",
    "GOOGLE_API_KEY": "ambient-google",
    "GEMINI_API_KEY": "ambient-gemini",
    "ANTHROPIC_API_KEY": "ambient-anthropic",
    "OPENAI_API_KEY": "ambient-openai",
    "GOOGLE_GENAI_USE_VERTEXAI": "true",
    "GOOGLE_CLOUD_PROJECT": "ambient-project",
}


@pytest.mark.parametrize("key", [KEY, None])
@each_client
async def test_an_endpoint_gets_its_own_key_and_nothing_of_the_environment(
    stand_in: WireStandIn, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in AMBIENT.items():
        monkeypatch.setenv(name, value)
    async with vendor(stand_in, Turn("yes")) as endpoint:
        api = "chat" if stand_in.api == "chat" else "native"
        if key is None:
            model = Providers(base_urls={endpoint.url: None})(endpoint.model, {"base_url": endpoint.url, "api": api})
        else:
            model = client_of(endpoint)
        for way in ("whole", "streamed"):
            await ask(model, question(), way)
        await model.close()
    assert endpoint.keys == [key, key]
    assert "ambient" not in str([request.headers for request in endpoint.requests]) + str(endpoint.requests[0].target)


@each_client
async def test_a_model_of_the_environment_is_asked_by_its_own_api(
    stand_in: WireStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`openai` is also the name for any other endpoint of chat completions."""
    journal = MemoryJournal()
    async with vendor(stand_in, *SCRIPTS["json"], monkeypatch=monkeypatch) as endpoint:
        chosen = {"api": "native"} if stand_in.api == "responses" else {}
        config = {**CONFIG, "model": endpoint.model, **chosen}
        output = await run_agent(config, registry=ToolRegistry([lookup]), journal=journal, run_id="r")
    assert output.final_answer == "A house."
    assert set(endpoint.keys) == {KEY}
    assert journal.load("r")["agent"][0].record()["api"] == stand_in.api


def test_a_model_without_an_endpoint_has_no_api() -> None:
    assert ScriptedModel(["x"]).info().api is None


TIERS = {"chat": "flex", "responses": "flex", "gemini": "flex", "messages": "standard_only"}
"""A class of service that each vendor has."""


@each_client
async def test_class_of_service_and_user_are_said_in_the_vendors_fields(stand_in: WireStandIn) -> None:
    tier = TIERS[stand_in.api]
    async with vendor(stand_in, Turn("yes")) as endpoint:
        model = client_of(endpoint)
        await ask(model, question(service_tier=tier, user_id="u-17"), "whole")
        await model.close()
    body = endpoint.requests[0].json()
    assert body.get("service_tier", body.get("serviceTier")) == tier
    users = [body.get("user"), body.get("safety_identifier"), body.get("metadata", {}).get("user_id")]
    assert users.count("u-17") == (0 if stand_in.api == "gemini" else 1)
