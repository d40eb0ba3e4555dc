"""OpenAICompatible against an endpoint on loopback: what it sends, tries again, and when it lets go."""

import asyncio
import gc
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from agent_core import MemoryJournal, run_agent
from agent_core.errors import DefinitionError
from agent_core.models import Completion, ModelError
from agent_core.models.openai.client import OpenAICompatible
from agent_core.models.openai.head import write_head
from support.asking import KEY, MESSAGES, SCHEMA, client, endpoint, failed, question
from support.loopback import Reply, chat, half, hang_up, http, serving, silence
from support.programs import environment
from utools import ToolRegistry, tool

pytestmark = pytest.mark.usefixtures("each_transport")
REFUSED = {"error": {"message": "response_format json_schema is not supported", "code": None}}


# ── what is sent ──────────────────────────────────────────────────────────────────────────────────────


async def test_the_request_is_the_messages_bytes_between_model_and_options() -> None:
    async with endpoint(chat("ok")) as (model, server):
        await model.complete(question(temperature=0, top_p=0.5, seed=7, stop=["END"], max_output_tokens=9))
    (request,) = server.requests
    options = b'"temperature":0,"top_p":0.5,"seed":7,"stop":["END"],"max_tokens":9'
    assert request.body == b'{"model":"m1","messages":[' + b",".join(MESSAGES) + b"]," + options + b"}"
    assert request.target == "/v1/chat/completions"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["authorization"] == f"Bearer {KEY}"


async def test_a_question_without_options_is_sent_without_any() -> None:
    async with endpoint(chat("ok")) as (model, server):
        await model.complete(question())
    assert list(server.requests[0].json()) == ["model", "messages"]


async def test_a_long_conversation_is_sent_whole() -> None:
    long = replace(question(), messages=(orjson.dumps({"role": "user", "content": "x" * 3 * 2**20}),))
    async with endpoint(http(503, b""), chat("ok")) as (model, server):
        assert (await model.complete(long)).requests == 2
    for request in server.requests:
        assert request.body == b'{"model":"m1","messages":[' + long.messages[0] + b"]}"
        assert request.headers["content-length"] == str(len(request.body))
        assert "transfer-encoding" not in request.headers


FORMATS: dict[str, Any] = {
    "text": None,
    "json_object": {"type": "json_object"},
    "json_schema": {"type": "json_schema", "json_schema": {"name": "step", "schema": SCHEMA}},
    "auto": {"type": "json_schema", "json_schema": {"name": "step", "schema": SCHEMA}},
}


@pytest.mark.parametrize("name", FORMATS)
async def test_the_response_format_is_sent_in_the_vendors_words(name: str) -> None:
    async with endpoint(chat("{}")) as (model, server):
        await model.complete(question(response_format=name, step_schema=SCHEMA))
    assert server.requests[0].json().get("response_format") == FORMATS[name]


async def test_nothing_of_the_environment_reaches_a_strangers_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID")
    for name in names:
        monkeypatch.setenv(f"OPENAI_{name}", "ambient-value")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Ambient: ambient-value")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with endpoint(chat("ok"), api_key=None) as (model, server):
        await model.complete(question())
    headers = server.requests[0].headers
    assert "authorization" not in headers
    assert "ambient-value" not in str(headers)


OWN = ["https://api.openai.com/v1", "https://API.openai.com/v1", "https://api.openai.com:443/v1"]
STRANGERS = ["http://api.openai.com/v1", "https://api.openai.com:444/v1", "http://api.openai.com:443/v1"]
STRANGERS += ["https://api.openai.com.evil.example/v1", "https://evil.example/api.openai.com"]


@pytest.mark.parametrize("url", [*OWN, *STRANGERS])
def test_what_the_environment_says_of_the_vendor_goes_to_its_own_https_port_alone(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ORG_ID", "PROJECT_ID"):
        monkeypatch.setenv(f"OPENAI_{name}", "ambient-value")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway-Token: ambient-value")
    head = write_head("/chat/completions", url, KEY)
    assert str(head.headers).count("ambient-value") == (3 if url in OWN else 0)
    assert dict(head.headers)["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("host", ["127.0.0.1", "model.example"])
async def test_the_proxy_of_the_environment_is_taken_except_for_loopback(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(chat("by proxy")) as proxy, serving(chat("direct")) as server:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        model = client(f"http://{host}:{server.port}/v1")
        completion = await model.complete(question())
        await model.close()
    assert completion.content == ("direct" if host == "127.0.0.1" else "by proxy")
    assert not proxy.requests or proxy.requests[0].target == f"http://{host}:{server.port}/v1/chat/completions"


# ── what an endpoint does not take ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [400, 404, 422, 501])
async def test_auto_falls_to_what_the_endpoint_takes_and_remembers_it(status: int) -> None:
    async with endpoint(http(status, REFUSED), http(status, REFUSED), chat("ok")) as (model, server):
        options = {"response_format": "auto", "step_schema": SCHEMA}
        first = await model.complete(question(**options))
        second = await model.complete(question(**options))
        assert model.info().json_schema is False
    types = [request.json().get("response_format", {}).get("type") for request in server.requests]
    assert types == ["json_schema", "json_object", None, None]
    assert (first.requests, second.requests) == (3, 1)


async def test_a_format_that_was_named_is_not_given_up() -> None:
    error = await failed(http(400, REFUSED), response_format="json_schema", step_schema=SCHEMA)
    assert error.requests == 1


async def test_a_question_that_fails_in_every_format_teaches_nothing() -> None:
    async with endpoint(http(400, REFUSED), http(400, REFUSED), http(400, REFUSED), chat("ok")) as (model, server):
        with pytest.raises(ModelError) as caught:
            await model.complete(question(response_format="auto", step_schema=SCHEMA))
        await model.complete(question(response_format="auto", step_schema=SCHEMA))
    assert caught.value.requests == 3
    assert server.requests[-1].json()["response_format"]["type"] == "json_schema"


VAGUE: dict[str, Reply] = {
    "one bad sample": http(400, {"error": {"message": "Failed to generate JSON.", "code": "json_validate_failed"}}),
    "a page": http(404, b"<html>404 no such route</html>", content_type="text/html"),
    "a page of a gateway": http(501, b"<html>not ready</html>", content_type="text/html"),
    "no reason": http(400, {"error": {"message": "Bad Request"}}),
}


@pytest.mark.parametrize("vague", VAGUE.values(), ids=VAGUE)
async def test_a_milder_format_that_was_only_tried_is_not_remembered(vague: Reply) -> None:
    options = {"response_format": "auto", "step_schema": SCHEMA}
    async with endpoint(vague, chat("{}")) as (model, server):
        assert (await model.complete(question(**options))).requests == 2
        await model.complete(question(**options))
    types = [request.json().get("response_format", {}).get("type") for request in server.requests]
    assert types == ["json_schema", None, "json_schema"]


async def test_what_one_question_learnt_is_not_unlearnt_by_another_that_began_before() -> None:
    refusal = {"error": {"message": "no", "param": "temperature", "code": "unsupported_parameter"}}
    answer = asyncio.Event()

    async def slowly(writer: asyncio.StreamWriter) -> None:
        await answer.wait()
        writer.write(chat("ok"))
        await writer.drain()

    async with endpoint(slowly, http(400, refusal), chat("ok")) as (model, server):
        slow = asyncio.create_task(model.complete(question(seed=1)))
        await _until(lambda: server.requests)
        await model.complete(question(temperature=0.5))
        answer.set()
        await slow
        await model.complete(question(temperature=0.5))
    assert ["temperature" in request.json() for request in server.requests] == [False, True, False, False]


async def test_max_tokens_gives_way_once_to_max_completion_tokens() -> None:
    told = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    refusal = {"error": {"message": told, "param": "max_tokens", "code": "unsupported_parameter"}}
    async with endpoint(http(400, refusal), chat("ok")) as (model, server):
        first = await model.complete(question(max_output_tokens=9))
        second = await model.complete(question(max_output_tokens=9))
    sent = [{name for name in request.json() if name.startswith("max_")} for request in server.requests]
    assert sent == [{"max_tokens"}, {"max_completion_tokens"}, {"max_completion_tokens"}]
    assert (first.requests, second.requests) == (2, 1)


async def test_a_sampling_option_that_the_model_does_not_support_is_left_out() -> None:
    refusal = {"error": {"message": "only 1 is supported", "param": "temperature", "code": "unsupported_value"}}
    async with endpoint(http(400, refusal), chat("ok")) as (model, server):
        await model.complete(question(temperature=0.7, seed=1))
        await model.complete(question(temperature=0.7, seed=1))
    assert ["temperature" in request.json() for request in server.requests] == [True, False, False]
    assert all(request.json()["seed"] == 1 for request in server.requests)


async def test_a_wrong_value_is_an_error_not_left_out() -> None:
    refusal = {"error": {"message": "must be at most 2", "param": "temperature", "code": "invalid_value"}}
    error = await failed(http(400, refusal), temperature=3)
    assert "must be at most 2" in str(error)
    assert error.requests == 1


async def test_answer_that_comes_as_a_thought_is_told(caplog: pytest.LogCaptureFixture) -> None:
    message = {"role": "assistant", "content": "", "reasoning_content": "The answer is 12."}
    reply = http(200, {"choices": [{"message": message, "finish_reason": "stop"}]})
    cut = http(200, {"choices": [{"message": message, "finish_reason": "length"}]})
    async with endpoint(reply, cut) as (model, _):
        assert (await model.complete(question())).content == ""
        assert "has no text, and 17 characters of reasoning" in caplog.text
        caplog.clear()
        await model.complete(question())
    assert caplog.text == ""


# ── what is tried again ───────────────────────────────────────────────────────────────────────────────

PASSING: dict[str, Reply] = {str(status): http(status, {"error": "busy"}) for status in (408, 409, 429, 500, 503, 529)}
PASSING |= {
    "429 in a 200": http(200, {"error": {"message": "Provider returned error", "code": 429}}),
    "502 in a 200 as text": http(200, {"error": {"message": "Bad gateway", "http_code": "502"}}),
    "a kind in a 200": http(200, {"error": {"message": "Sorry about that!", "type": "server_error", "code": None}}),
    "a code of MiniMax": http(200, {"base_resp": {"status_code": 1002, "status_msg": "rate limit exceeded(RPM)"}}),
}
PASSING |= {
    "a code of Baidu's": http(200, {"code": 336501, "msg": "Rate limit reached for RPM"}),
    "a word of Baidu's": http(200, {"code": "tpm_rate_limit_exceeded", "msg": "Rate limit reached for TPM"}),
    "an older code of Baidu's": http(200, {"error_code": 18, "error_msg": "Open api qps request limit reached"}),
    "Tencent's": http(200, {"Response": {"Error": {"Code": "RequestLimitExceeded", "Message": "busy"}}}),
}
PASSING["a lost connection"] = hang_up
PASSING["half a body"] = half


@pytest.mark.parametrize("passing", PASSING.values(), ids=PASSING)
async def test_what_may_pass_is_tried_again_and_counted(passing: Reply) -> None:
    async with endpoint(passing, passing, chat("ok")) as (model, server):
        completion = await model.complete(question())
    assert completion == Completion("ok", "stop", 12, 3, requests=3)
    assert len({request.body for request in server.requests}) == 1


@pytest.mark.parametrize("passing", PASSING.values(), ids=PASSING)
async def test_what_does_not_pass_is_an_error_after_three_attempts(passing: Reply) -> None:
    async with endpoint(passing) as (model, server):
        with pytest.raises(ModelError) as caught:
            await model.complete(question())
    assert caught.value.requests == len(server.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_what_will_not_pass_is_not_tried_again(status: int) -> None:
    assert (await failed(http(status, {"error": "no"}))).requests == 1


def _date(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


SHORT = {
    "milliseconds": {"retry_after_ms": "40"},
    "seconds": {"retry_after": "0.04"},
    "milliseconds before seconds": {"retry_after_ms": "40", "retry_after": "3000"},
}


@pytest.mark.parametrize("headers", SHORT.values(), ids=SHORT)
async def test_the_endpoint_says_how_long_to_wait(headers: dict[str, str]) -> None:
    async with endpoint(http(429, b"", **headers), chat("ok")) as (model, _):
        start = asyncio.get_running_loop().time()
        await model.complete(question())
        assert asyncio.get_running_loop().time() - start >= 0.04


PAST = "Mon, 01 Jan 2024 00:00:00 GMT"
UNREADABLE = (PAST.replace("01", "99"), PAST.replace("2024", "9" * 14), PAST.replace("GMT", f"+{'9' * 17}"))


@pytest.mark.parametrize("after", [PAST, *UNREADABLE, "soon", "-5", "nan", ""])
async def test_a_wait_that_is_past_or_unreadable_is_ours_to_choose(after: str) -> None:
    async with endpoint(http(429, b"", retry_after=after), chat("ok")) as (model, _):
        assert (await model.complete(question())).requests == 2


@pytest.mark.parametrize("after", ["3600", _date(3600)], ids=["seconds", "date"])
async def test_a_wait_past_a_minute_is_an_error_that_says_so(after: str) -> None:
    error = await failed(http(429, {"error": "slow down"}, retry_after=after))
    assert "slow down (it asks to wait 3" in str(error)
    assert error.requests == 1


async def test_a_wait_that_is_longer_than_the_caller_has_time_is_an_error_in_the_vendors_words() -> None:
    refused = http(429, {"error": {"message": "slow down"}}, retry_after="5")
    async with endpoint(refused) as (model, server):
        with pytest.raises(ModelError, match=r"slow down.*asks to wait 5 seconds"):
            await model.complete(replace(question(), within=2.0))
    assert len(server.requests) == 1


@pytest.mark.exhaustive
@pytest.mark.sampled
async def test_requests_for_a_reply_that_never_comes_are_counted() -> None:
    async with endpoint(http(503), http(503), silence) as (model, server):
        config = {"model": "m1", "max_steps": 1, "allowed_tools": [], "prompt": "Hi.", "single_call_timeout": 2}
        output = await run_agent(config, registry=ToolRegistry(), model=model)
    assert output.finish_reason == "model_error"
    assert output.usage["requests"] == len(server.requests) == 3


async def test_an_endpoint_that_is_not_there_is_named_without_the_key() -> None:
    async with serving() as server:
        port = server.port
    model = client(f"http://127.0.0.1:{port}/v1")
    with pytest.raises(ModelError) as caught:
        await model.complete(question())
    await model.close()
    assert str(caught.value) == f"127.0.0.1:{port} gave no answer: Connection refused"
    assert caught.value.requests == 3


# ── what cannot be asked ──────────────────────────────────────────────────────────────────────────────

BAD_URLS = ["", "localhost:11434", "ftp://host/v1", "http://", "http://h:port/v1", "http://[::1/v1", "http://h/v1?k=1"]


@pytest.mark.parametrize("url", BAD_URLS)
def test_what_is_no_base_url_is_refused_when_the_client_is_made(url: str) -> None:
    with pytest.raises(DefinitionError, match="base_url"):
        OpenAICompatible("m1", base_url=url, api_key=None)


def test_a_password_in_the_base_url_is_refused_and_not_shown() -> None:
    with pytest.raises(DefinitionError) as caught:
        OpenAICompatible("m1", base_url="https://me:hunter2@host/v1", api_key=None)
    assert "hunter2" not in str(caught.value)


def test_a_host_that_no_name_can_be_is_refused() -> None:
    with pytest.raises(DefinitionError, match="base_url"):
        OpenAICompatible("m1", base_url="http://\u2603.example/v1", api_key=None)


@pytest.mark.parametrize("key", ["sk-\n-inner", "sk-…", "sk-\x00"])
def test_a_key_that_no_header_may_hold_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        OpenAICompatible("m1", base_url="http://host/v1", api_key=key)
    assert "sk-" not in str(caught.value)


# ── connections ───────────────────────────────────────────────────────────────────────────────────────


async def _until(holds: Callable[[], object]) -> None:
    """Wait, for 5 seconds at the most, until something holds."""
    async with asyncio.timeout(5):
        while not holds():
            await asyncio.sleep(0.002)


async def test_cancellation_closes_the_connection() -> None:
    async with endpoint(silence) as (model, server):
        asking = asyncio.create_task(model.complete(question()))
        await _until(lambda: server.requests)
        asking.cancel()
        await asyncio.wait({asking})
        assert asking.cancelled()
        await _until(lambda: server.left)
        assert server.left == 1


async def test_a_silent_model_does_not_delay_another() -> None:
    async with endpoint(silence) as (hung, _), endpoint(chat("ok")) as (model, _):
        waiting = asyncio.create_task(hung.complete(question()))
        assert all([(await model.complete(question())).content == "ok" for _ in range(20)])
        assert not waiting.done()
        waiting.cancel()
        await asyncio.wait({waiting})


async def test_questions_one_after_another_share_a_connection() -> None:
    async with endpoint(chat("ok")) as (model, server):
        for _ in range(3):
            await model.complete(question())
    assert server.connections == 1


async def test_a_closed_client_may_be_closed_and_asked_again() -> None:
    async with endpoint(chat("ok")) as (model, server):
        await model.close()
        await model.complete(question())
        await model.close()
        await model.close()
        await model.complete(question())
    assert server.connections == 2


def test_a_client_serves_one_event_loop_after_another() -> None:
    async def served(port: int) -> int:
        async with serving(chat("ok"), port=port) as server:
            model = models.setdefault("m1", client(server.url))
            assert (await model.complete(question())).content == "ok"
            await model.close()
        return server.port

    models: dict[str, OpenAICompatible] = {}
    port = asyncio.run(served(0))
    assert asyncio.run(served(port)) == port


@pytest.mark.exhaustive
async def test_nothing_is_left_open_by_a_closed_client() -> None:
    async with endpoint(chat("ok"), silence) as (model, _):
        await model.complete(question())
        waiting = asyncio.create_task(model.complete(question()))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.wait({waiting})
    gc.collect()  # a socket left open would warn here, and a warning is an error


@pytest.mark.exhaustive
async def test_what_was_under_way_when_a_client_was_closed_leaves_nothing_open() -> None:
    async with endpoint(silence) as (model, server):
        waiting = asyncio.create_task(model.complete(question()))
        await _until(lambda: server.requests)
        await model.close()
        waiting.cancel()
        await asyncio.wait({waiting})
        await _until(lambda: server.left)
    gc.collect()


@pytest.mark.exhaustive
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "dropped"])
def test_a_client_that_nobody_closes_is_closed_with_its_event_loop(kept: bool, each_transport: str) -> None:
    code = (
        "import asyncio, sys; from support import asking; from support.loopback import chat, serving\n"
        "asking.transport = sys.argv[1]\n"
        "clients = []\n"
        "async def ask():\n"
        "    async with serving(chat('ok')) as server:\n"
        "        client = asking.client(server.url)\n"
        "        if sys.argv[2] == 'True': clients.append(client)\n"
        "        await client.complete(asking.question())\n"
        "asyncio.run(ask())"
    )
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", code, each_transport, str(kept)],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""


def test_making_a_client_imports_neither_sdk_nor_http() -> None:
    code = (
        "import sys; from agent_core.models.openai.client import OpenAICompatible as C;"
        "C('m', base_url='https://h/v1', api_key='k');"
        "print(sorted({'openai', 'httpx2', 'anyio', 'aiohttp'} & set(sys.modules)))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ── a whole run ───────────────────────────────────────────────────────────────────────────────────────


async def test_an_endpoint_drives_an_agent_to_its_answer() -> None:
    @tool(effect="read")
    async def lookup(word: str) -> str:
        """Look a word up."""
        return f"{word} means house"

    action = {"type": "action", "tool": "lookup", "args": {"word": "casa"}}
    final = {"type": "final", "answer": "A house."}
    replies = (http(503, b""), chat(orjson.dumps(action).decode()), chat(orjson.dumps(final).decode()))
    config = {
        "model": "openai:m1",
        "max_steps": 5,
        "allowed_tools": ["lookup"],
        "prompt": "What is a casa?",
        "examples": [],
    }
    async with endpoint(*replies) as (model, server):
        output = await run_agent(config, registry=ToolRegistry([lookup]), model=model, journal=MemoryJournal())
    assert (output.final_answer, output.finish_reason, output.error) == ("A house.", "final", None)
    assert output.usage["requests"] == 3
    assert output.usage["input_tokens"] == 24
    roles = [message["role"] for message in server.requests[-1].json()["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert "casa means house" in server.requests[-1].json()["messages"][-1]["content"]


async def test_a_refusal_ends_a_run_as_a_model_error() -> None:
    config = {"model": "openai:m1", "max_steps": 5, "allowed_tools": [], "prompt": "Hello"}
    async with endpoint(http(401, {"error": {"message": "no such key"}})) as (model, _):
        output = await run_agent(config, registry=ToolRegistry(), model=model)
    assert output.finish_reason == "model_error"
    assert output.error is not None
    assert "no such key" in output.error["message"]
