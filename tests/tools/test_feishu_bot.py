"""feishu_bot against a webhook on loopback, which checks the signature as Feishu does."""

import base64
import hashlib
import hmac
import sys
import time
from typing import Any

import pytest

from support.loopback import Loopback, http, serving
from utools import ToolContext, ToolRegistry, ToolResult
from utools.builtin.feishu_bot import feishu_bot, signature

SECRET, PATH = "signing-secret-of-the-bot", "/open-apis/bot/v2/hook/token-of-the-webhook"
OK = http(200, {"code": 0, "msg": "success", "data": {}})


async def sent(server: Loopback | str, *, signed: bool = True, **args: Any) -> ToolResult:
    url = server if isinstance(server, str) else f"http://127.0.0.1:{server.port}{PATH}"
    secrets = {"HOOK": url, "SIGN": SECRET}
    presets = {"webhook_env": "HOOK", "allow_cidrs": ["127.0.0.1/32"], **({"secret_env": "SIGN"} if signed else {})}
    context = ToolContext(secret=lambda name: secrets[name])
    return await ToolRegistry([feishu_bot()]).execute("feishu_bot", {**args, **presets}, context)


def test_the_signature_is_that_of_the_documentation() -> None:
    assert (
        signature("demo", 1599360473)
        == base64.b64encode(hmac.new(b"1599360473\ndemo", digestmod=hashlib.sha256).digest()).decode()
    )


async def test_a_message_is_signed_with_the_time() -> None:
    async with serving(OK) as server:
        assert (await sent(server, text="hello")).output == {"sent": True}
    (request,) = server.requests
    body = request.json()
    assert abs(int(body["timestamp"]) - time.time()) < 60
    key = f"{body['timestamp']}\n{SECRET}".encode()
    assert body["sign"] == base64.b64encode(hmac.new(key, digestmod="sha256").digest()).decode()
    assert (request.target, body["msg_type"], body["content"]) == (PATH, "text", {"text": "hello"})


async def test_a_bot_without_a_secret_is_not_signed() -> None:
    async with serving(OK) as server:
        await sent(server, signed=False, text="hello")
    assert server.requests[0].json().keys() == {"msg_type", "content"}


async def test_a_post_and_a_card_have_feishus_shape() -> None:
    post = {
        "title": "T",
        "paragraphs": [[{"text": "see "}, {"text": "this", "href": "https://x.example"}, {"at": "all"}]],
    }
    async with serving(OK) as server:
        await sent(server, post=post, language="en_us")
        await sent(server, card={"elements": []})
    first, second = [request.json() for request in server.requests]
    assert first["content"]["post"]["en_us"] == {
        "title": "T",
        "content": [
            [
                {"tag": "text", "text": "see "},
                {"tag": "a", "text": "this", "href": "https://x.example"},
                {"tag": "at", "user_id": "all"},
            ]
        ],
    }
    assert (second["msg_type"], second["card"]) == ("interactive", {"elements": []})


@pytest.mark.parametrize("code", [9499, 19021, 19024])
async def test_a_code_is_a_failure_though_the_status_is_200(code: int) -> None:
    async with serving(http(200, {"code": code, "msg": "sign match fail"})) as server:
        result = await sent(server, text="x")
    assert (result.success, len(server.requests)) == (False, 1)
    assert f"sign match fail (code {code})" in str(result.error)


async def test_a_bot_that_is_busy_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[signature.__module__], "PAUSES", (0.0, 0.0))
    busy = http(200, {"code": 11232, "msg": "frequency limited"})
    async with serving(busy, busy, OK) as server:
        assert (await sent(server, text="x")).success
    assert len(server.requests) == 3
    async with serving(busy) as server:
        assert "frequency limited" in str((await sent(server, text="x")).error)
    assert len(server.requests) == 3


async def test_a_message_that_is_too_long_is_not_sent() -> None:
    async with serving(OK) as server:
        result = await sent(server, text="雪" * 7000)
    assert (server.requests, "at most 20480" in str(result.error)) == ([], True)


@pytest.mark.parametrize("args", [{}, {"text": "a", "card": {}}])
async def test_there_is_one_message(args: Any) -> None:
    async with serving(OK) as server:
        assert "give one of" in str((await sent(server, **args)).error)
    assert server.requests == []


@pytest.mark.parametrize("name", ["HOOK", "SIGN"])
async def test_a_secret_with_a_line_break_is_told_by_its_name(name: str) -> None:
    secrets = {"HOOK": f"http://127.0.0.1:1{PATH}", "SIGN": SECRET}
    context = ToolContext(secret=lambda asked: secrets[asked] + "\n" * (asked == name))
    args = {"text": "x", "webhook_env": "HOOK", "secret_env": "SIGN"}
    result = await ToolRegistry([feishu_bot()]).execute("feishu_bot", args, context)
    assert f"the secret {name} cannot be used" in str(result.error)
    assert "holds a line break" in str(result.error)
    assert "token-of" not in str(result)
    assert SECRET not in str(result)


async def test_no_error_tells_the_webhook() -> None:
    for url in (f"http://10.0.0.1{PATH}", f"http://127.0.0.1:1{PATH}", f"no url{PATH}", f"https://me@127.0.0.1{PATH}"):
        result = await sent(url, text="x")
        assert not result.success
        assert "token-of-the-webhook" not in str(result)
    async with serving(http(200, b"<html>")) as server:
        assert "not JSON" in str((await sent(server, text="x")).error)


async def test_a_redirect_takes_the_message_nowhere() -> None:
    async with serving(OK) as second, serving(http(307, location=f"http://127.0.0.1:{second.port}/")) as first:
        assert not (await sent(first, text="x")).success
    assert second.requests == []
