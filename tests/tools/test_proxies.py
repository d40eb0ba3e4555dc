"""Proxies of the environment: which is meant for a URL, and what is said of one that cannot be used."""

import asyncio

import pytest

from agent_core.models.client import ModelError, Question
from agent_core.models.openai.client import OpenAICompatible
from support.loopback import serving
from support.optional import needs
from utools import ToolError
from utools.net.guard import NetworkGuard
from utools.net.proxies import Proxy, explain_unusable, find_proxy
from utools.net.transport import fetch

QUESTION = Question("m", (b'{"role":"user","content":"x"}',), {}, "agent", 0, 15.0)


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP", "HTTPS", "ALL", "NO"):
        monkeypatch.delenv(f"{name}_PROXY", raising=False)
        monkeypatch.delenv(f"{name}_proxy".lower(), raising=False)


FOUND: dict[str, tuple[dict[str, str], str, Proxy | None]] = {
    "none": ({}, "http://far.test/", None),
    "of_the_scheme": (
        {"HTTPS_PROXY": "http://p:1", "HTTP_PROXY": "http://q:1"},
        "https://far.test/",
        Proxy("HTTPS_PROXY", "http://p:1"),
    ),
    "small": ({"http_proxy": "http://p:1"}, "http://far.test/", Proxy("http_proxy", "http://p:1")),
    "all": ({"ALL_PROXY": "socks5://p:1"}, "https://far.test/", Proxy("ALL_PROXY", "socks5://p:1")),
    "without_a_scheme": ({"HTTP_PROXY": "p:1"}, "http://far.test/", Proxy("HTTP_PROXY", "http://p:1")),
    "excepted": ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "far.test"}, "http://far.test/", None),
    "domain_above": ({"HTTP_PROXY": "http://p:1", "NO_PROXY": ".test"}, "http://a.far.test/", None),
    "star": ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "a.test, *"}, "http://far.test/", None),
    "network": ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, "http://10.2.3.4:80/", None),
    "port": ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "far.test:80"}, "http://far.test/", None),
    "another": (
        {"HTTP_PROXY": "http://p:1", "NO_PROXY": "ar.test,::1"},
        "http://far.test/",
        Proxy("HTTP_PROXY", "http://p:1"),
    ),
}


@pytest.mark.parametrize(("environment", "url", "proxy"), FOUND.values(), ids=FOUND)
def test_proxy_that_is_meant_for_a_url(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], url: str, proxy: Proxy | None
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert find_proxy(url) == proxy


KNOWN = "http, https and socks5 are known"
UNUSABLE = {
    "ftp://user:secret@p:1": f"HTTP_PROXY names a proxy that cannot be used (ftp://p:1): {KNOWN}",
    "socks4://p:1": f"HTTP_PROXY names a proxy that cannot be used (socks4://p:1): {KNOWN}",
}


@pytest.mark.parametrize(("url", "why"), UNUSABLE.items(), ids=["ftp", "socks4"])
def test_proxy_that_no_transport_can_use_is_named_without_its_password(url: str, why: str) -> None:
    assert explain_unusable(Proxy("HTTP_PROXY", url)) == why
    assert explain_unusable(Proxy("HTTP_PROXY", "https://user:secret@p:1")) == ""


@pytest.mark.parametrize("transport", ["httpx2", pytest.param("aiohttp", marks=needs("aiohttp"))])
async def test_socks_proxy_is_never_passed_over(monkeypatch: pytest.MonkeyPatch, transport: str) -> None:
    async with serving() as server:
        monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
        url = f"http://127.0.0.2:{server.port}/v1"
        model = OpenAICompatible("m", base_url=url, api_key=None, transport=transport, backoff=0.01)  # type: ignore[arg-type]
        with pytest.raises(ModelError, match=r"(?i)socks|refused"):
            await model.complete(QUESTION)
        await model.close()
        await asyncio.sleep(0)
    assert not server.requests


async def test_tool_that_cannot_reach_its_host_says_that_it_takes_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    guard = NetworkGuard.from_settings(allow_cidrs=["127.0.0.0/8"], allowed_ports=[9])
    with pytest.raises(ToolError, match=r"cannot be reached: .*; HTTP_PROXY names a proxy, which is not used for this"):
        await fetch(guard, "GET", "http://127.0.0.1:9/", limit=10)
