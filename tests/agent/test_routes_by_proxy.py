"""Proxies between us and an endpoint: real ones on loopback, HTTP with CONNECT and SOCKS5, with both transports."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from agent_core.errors import DefinitionError
from agent_core.models import ModelError
from agent_core.models.endpoint.route import DIRECT, Route
from agent_core.models.providers import create_model
from support import asking
from support.asking import KEY, question
from support.loopback import chat, hang_up, http, serving, silence
from support.optional import needs
from support.proxies import http_proxy, socks_proxy

needs_socks = needs("socksio", extra="test")
leaves_open = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
"""httpx2 closes no connection to a SOCKS proxy that refuses: it is closed once it is collected."""
LOGIN, OTHER = "name:p@ss word", "name:other-password"
QUOTED, OTHER_QUOTED = "name:p%40ss%20word", OTHER
pytestmark = [pytest.mark.sampled, pytest.mark.usefixtures("each_transport")]


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No proxy and no certificates of the environment. What a test leaves open is reported in it."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    yield
    gc.collect()


@pytest.fixture
def authority(tmp_path: Any) -> Any:
    pytest.importorskip("cryptography")
    from support.certificates import Authority

    return Authority(tmp_path)


async def ask(url: str, route: Route = DIRECT) -> str:
    model = asking.client(url, KEY, route)
    try:
        return (await model.complete(question())).content
    finally:
        await model.close()


async def fail(url: str, route: Route) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(url, route)
    return caught.value


def named(url: str) -> str:
    """The same place by a name that only a proxy knows."""
    return url.replace("127.0.0.1", "model.test")


# ── HTTP ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_requests_go_through_the_proxy_of_the_route_to_this_machine_too() -> None:
    async with serving(chat("ok")) as server, http_proxy() as proxy:
        for url in (server.url, named(server.url)):
            assert await ask(url, Route(proxy=proxy.url)) == "ok"
        assert proxy.asked == [f"{each}/chat/completions" for each in (server.url, named(server.url))]
    assert [request.headers["authorization"] for request in server.requests] == [f"Bearer {KEY}"] * 2


async def test_a_name_and_a_password_are_told_to_the_proxy_and_not_to_the_endpoint() -> None:
    async with serving(chat("ok")) as server, http_proxy(LOGIN) as proxy:
        assert await ask(server.url, Route(proxy=proxy.url_with(QUOTED))) == "ok"
        assert (len(proxy.asked), proxy.refused) == (1, 0)
    assert [name for name in server.requests[0].headers if name.startswith("proxy")] == []


async def test_tls_goes_through_the_proxy_unread(authority: Any) -> None:
    async with serving(chat("ok"), tls=authority.serve()) as server, http_proxy(LOGIN) as proxy:
        route = Route(proxy=proxy.url_with(QUOTED), ca=authority.ca)
        assert await ask(named(server.url), route) == "ok"
        assert proxy.asked == [f"model.test:{server.port}"]
    assert [name for name in server.requests[0].headers if name.startswith("proxy")] == []


@pytest.mark.parametrize("login", ["", OTHER_QUOTED], ids=["none", "another"])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
async def test_a_login_that_the_proxy_does_not_take_is_not_tried_again(authority: Any, tls: bool, login: str) -> None:
    context = authority.serve() if tls else None
    async with serving(chat("ok"), tls=context) as server, http_proxy(LOGIN) as proxy:
        error = await fail(server.url, Route(proxy=proxy.url_with(login), ca=authority.ca))
        assert (error.requests, proxy.refused, server.requests) == (1, 1, [])
        assert f"the proxy {proxy.url_with('')} (proxy) does not take the name and password in its URL" in str(error)
    assert "other-password" not in str(error)


async def test_a_proxy_by_tls_is_judged_by_the_same_certificates(authority: Any) -> None:
    async with serving(chat("ok")) as server, http_proxy(tls=authority.serve()) as proxy:
        assert await ask(server.url, Route(proxy=proxy.url, ca=authority.ca)) == "ok"
        error = await fail(server.url, Route(proxy=proxy.url))
        assert f"through the proxy {proxy.url} (proxy): its certificate is not trusted" in str(error)
        assert (len(proxy.asked), len(server.requests)) == (1, 1)


@pytest.mark.parametrize("scheme", ["http", pytest.param("socks5", marks=needs_socks)])
@pytest.mark.parametrize("target", ["http", "https"])
async def test_a_proxy_where_nothing_listens_is_named_without_its_password(scheme: str, target: str) -> None:
    error = await fail(f"{target}://model.test/v1", Route(proxy=f"{scheme}://name:the-password@127.0.0.1:9"))
    assert str(error) == (
        f"model.test gave no answer through the proxy {scheme}://127.0.0.1:9 (proxy): Connection refused"
    )
    assert error.requests == 3


async def test_a_proxy_that_reaches_nothing_says_so() -> None:
    async with http_proxy() as proxy:
        error = await fail("https://127.0.0.1:9/v1", Route(proxy=proxy.url))
        assert str(error).endswith(f"through the proxy {proxy.url} (proxy): the proxy answered 502")
    assert error.requests == 3


async def test_what_is_no_proxy_is_named() -> None:
    async with serving(http(404, b"what?")) as server:
        error = await fail("https://model.test/v1", Route(proxy=f"http://127.0.0.1:{server.port}"))
        assert "the proxy answered 404" in str(error)
    async with serving(hang_up) as server:
        error = await fail("https://model.test/v1", Route(proxy=f"http://127.0.0.1:{server.port}"))
        assert f"through the proxy http://127.0.0.1:{server.port} (proxy): " in str(error)


@leaves_open
@pytest.mark.parametrize("scheme", ["http", pytest.param("socks5", marks=needs_socks)])
async def test_a_silent_proxy_is_given_up_in_the_time_for_a_connection(scheme: str) -> None:
    async with serving(silence) as server:
        route = Route(proxy=f"{scheme}://127.0.0.1:{server.port}", connect_timeout=0.1)
        error = await fail("https://model.test/v1", route)
    assert str(error).endswith("(proxy): no connection within 0.1 seconds (connect_timeout)")


# ── SOCKS ─────────────────────────────────────────────────────────────────────────────────────────────


@needs_socks
@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
@pytest.mark.parametrize("login", ["", QUOTED], ids=["open", "login"])
async def test_requests_go_through_a_socks_proxy(authority: Any, scheme: str, login: str) -> None:
    async with socks_proxy(LOGIN if login else "", scheme=scheme) as proxy:
        for context in (None, authority.serve()):
            async with serving(chat("ok"), tls=context) as server:
                route = Route(proxy=proxy.url_with(login), ca=authority.ca)
                assert await ask(named(server.url), route) == "ok"
                assert proxy.asked[-1] == f"model.test:{server.port}"
    assert len(proxy.asked) == 2


@needs_socks
@leaves_open
@pytest.mark.parametrize("login", ["", OTHER_QUOTED], ids=["none", "another"])
async def test_a_login_that_a_socks_proxy_does_not_take_is_not_tried_again(login: str) -> None:
    async with serving(chat("ok")) as server, socks_proxy(LOGIN) as proxy:
        error = await fail(server.url, Route(proxy=proxy.url_with(login)))
        assert (error.requests, proxy.refused, server.requests) == (1, 1, [])
        assert "does not take the name and password in its URL, socks5://NAME:PASSWORD@HOST:PORT" in str(error)


@needs_socks
@leaves_open
async def test_a_socks_proxy_that_reaches_nothing_says_so() -> None:
    async with socks_proxy() as proxy:
        error = await fail("http://127.0.0.1:9/v1", Route(proxy=proxy.url))
        assert f"through the proxy {proxy.url} (proxy): " in str(error)
        assert "Connection refused" in str(error)


def test_a_socks_proxy_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("utools.net.proxies.find_spec", lambda name: None)
    with pytest.raises(DefinitionError, match=r"^proxy: names a SOCKS proxy \(socks5://p:1\).*httpx2\[socks\]"):
        create_model("openai:m", api_key=KEY, proxy="socks5://name:secret@p:1")


# ── which proxy ───────────────────────────────────────────────────────────────────────────────────────


async def test_the_proxy_of_the_environment_is_for_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(chat("ok")) as server, http_proxy(LOGIN) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url_with(QUOTED))
        assert await ask(server.url) == "ok"
        assert proxy.asked == []
        assert await ask(named(server.url)) == "ok"
        assert len(proxy.asked) == 1


async def test_no_proxy_is_used_where_the_route_says_none(monkeypatch: pytest.MonkeyPatch) -> None:
    async with http_proxy() as proxy:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        for scheme in ("http", "https"):
            error = await fail(f"{scheme}://model.invalid:9/v1", Route(proxy="none"))
            assert "proxy" not in str(error)
        assert proxy.asked == []


async def test_a_host_that_is_excepted_is_asked_without(monkeypatch: pytest.MonkeyPatch) -> None:
    async with http_proxy() as proxy, serving(chat("ok")) as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.0/8,.invalid")
        error = await fail("http://model.invalid:9/v1", Route())
        assert "proxy" not in str(error)
        assert await ask(server.url, Route(proxy=proxy.url)) == "ok"  # NO_PROXY is not about the route's own
        assert len(proxy.asked) == 1


BAD = {
    "no scheme": ("127.0.0.1:8080", "http, https and socks5 are known"),
    "no host": ("http://", "it must be http://HOST:PORT"),
    "no host but a port": ("http://:8080", "it must be http://HOST:PORT"),
    "no number": ("http://name:secret@p:port", "it must be http://HOST:PORT"),
    "socks4": ("socks4://p:1080", "http, https and socks5 are known"),
}


@pytest.mark.parametrize(("url", "why"), BAD.values(), ids=BAD)
async def test_a_proxy_that_cannot_be_used_is_an_error_and_never_passed_over(
    url: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DefinitionError, match=r"^proxy: names a proxy that cannot be used") as caught:
        create_model("openai:m", api_key=KEY, proxy=url)
    assert (why in str(caught.value), "secret" in str(caught.value)) == (True, False)
    async with serving(chat("ok")) as server:
        error = await fail(server.url, Route(proxy=url))
        assert (why in str(error), server.requests, error.requests) == (True, [], 1)
        if "://" in url:  # the environment's may have no scheme
            monkeypatch.setenv("ALL_PROXY", url)
            error = await fail(named(server.url), Route())
            assert "could not be asked: ALL_PROXY names a proxy that cannot be used" in str(error)
            assert "secret" not in str(error)
