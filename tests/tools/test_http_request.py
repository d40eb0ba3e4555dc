"""http_request against a server on loopback, which an author has allowed: what it sends, reads and refuses."""

import asyncio
import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.loopback import Loopback, endless, half, hang_up, http, serving
from utools import ToolContext, ToolRegistry, ToolResult
from utools.builtin import http_request
from utools.errors import NetworkError, ToolError
from utools.net.decompress import PIECE
from utools.net.guard import NetworkGuard
from utools.net.transport import _redirect_request, _ssl_context, fetch

REGISTRY = ToolRegistry([http_request()])
LOOPBACK: Mapping[str, Any] = {"allow_cidrs": ["127.0.0.1/32"]}
TOKEN = "token-of-the-operator-1234"


async def asked(server: Loopback | str, method: str = "GET", **args: Any) -> ToolResult:
    url = server if isinstance(server, str) else f"http://127.0.0.1:{server.port}{args.pop('path', '/')}"
    context = ToolContext(idempotency_key="run/agent/4", secret=lambda name: TOKEN)
    return await REGISTRY.execute("http_request", {"method": method, "url": url, **LOOPBACK, **args}, context)


# ── what is sent ──────────────────────────────────────────────────────────────────────────────────


async def test_a_get_sends_its_query_and_headers_and_gives_json_parsed() -> None:
    async with serving(http(200, {"found": [1, 2]})) as server:
        result = await asked(server, path="/a?b=1", query={"q": "x y&z"}, headers={"X-One": "1"})
    (request,) = server.requests
    assert request.target == "/a?b=1&q=x+y%26z"
    assert request.headers["x-one"] == "1"
    assert "idempotency-key" not in request.headers
    assert (result.success, result.output["status"], result.output["body"]) == (True, 200, {"found": [1, 2]})


BODIES: dict[str, tuple[dict[str, Any], bytes, str]] = {
    "json": ({"json": {"a": "é"}}, '{"a": "é"}'.encode(), "application/json"),
    "json_null": ({"json": None}, b"null", "application/json"),
    "form": ({"form": {"a": "1 2"}}, b"a=1+2", "application/x-www-form-urlencoded"),
    "raw": ({"body": "plain"}, b"plain", "text/plain; charset=utf-8"),
    "own_type": ({"body": "<a/>", "headers": {"Content-Type": "text/xml"}}, b"<a/>", "text/xml"),
}


@pytest.mark.parametrize(("args", "body", "kind"), BODIES.values(), ids=BODIES)
async def test_a_write_sends_its_body_and_a_key_by_which_it_is_known(args: Any, body: bytes, kind: str) -> None:
    async with serving(http(201)) as server:
        result = await asked(server, "POST", **args)
    (request,) = server.requests
    assert (request.body, request.headers["content-type"]) == (body, kind)
    assert request.headers["idempotency-key"] == "run/agent/4"
    assert result.output["status"] == 201


async def test_a_token_goes_only_to_the_domains_that_may_have_it() -> None:
    async with serving(http(200)) as server:
        sent = await asked(server, token_env="API_TOKEN", allowed_domains=["127.0.0.1"])
        kept = await asked(server, token_env="API_TOKEN")
    assert server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert (sent.success, kept.success, len(server.requests)) == (True, False, 1)
    assert "allowed_domains" in str(kept.error)


NO_PLACE_FOR_A_TOKEN: dict[str, tuple[str, dict[str, Any]]] = {
    "http": ("http://api.example.com/", {}),
    "http_at_a_named_port": ("http://api.example.com:8080/", {"allowed_ports": [8080]}),
    "another_port": ("https://api.example.com:8443/", {}),
    "a_port_not_named": ("https://api.example.com:9443/", {"allowed_ports": [8443]}),
    "another_host": ("https://evil.example.com/", {}),
}


@pytest.mark.parametrize(("url", "args"), NO_PLACE_FOR_A_TOKEN.values(), ids=NO_PLACE_FOR_A_TOKEN)
async def test_a_token_is_not_sent_where_it_could_be_read_or_to_another_service(url: str, args: Any) -> None:
    asked_for: list[str] = []

    def secret(name: str) -> str:
        asked_for.append(name)
        return TOKEN

    given = {"method": "GET", "url": url, "token_env": "T", "allowed_domains": ["api.example.com"], **args}
    result = await REGISTRY.execute("http_request", given, ToolContext(secret=secret))
    assert not result.success
    assert asked_for == []
    assert "https" in str(result.error) or "is not" in str(result.error)


async def test_a_token_goes_over_http_to_the_networks_that_the_author_names_and_nowhere_else() -> None:
    async with serving(http(200)) as server:
        result = await asked(server, token_env="T", allowed_domains=["127.0.0.1"], allow_cidrs=["10.0.0.0/8"])
        assert (result.success, server.requests) == (False, [])

    async def public(host: str, port: int) -> Sequence[str]:
        return ["93.184.216.34"]

    guard = NetworkGuard.from_settings(allowed_domains=["a.example"], allow_cidrs=["10.0.0.0/8"], resolve=public)
    with pytest.raises(NetworkError, match=r"outside of allow_cidrs: a request with a token goes over https"):
        await guard.for_token("http://a.example/").addresses("a.example", 80)
    assert await guard.for_token("https://a.example/").addresses("a.example", 443) == ["93.184.216.34"]


UNSENDABLE = {
    "line_break": ("abc-123-secret\n", "holds a line break"),
    "header": ("abc-123-secret\r\nX-Two: 2", "holds a line break"),
    "space": (" abc-123-secret", "begins or ends with white space"),
    "not_ascii": ("abc-123-secretß", "not ASCII"),
    "control": ("abc-123-secret\x00", "control character"),
}


@pytest.mark.parametrize(("value", "told"), UNSENDABLE.values(), ids=UNSENDABLE)
async def test_a_token_that_no_header_can_carry_is_told_by_its_name(value: str, told: str) -> None:
    async with serving(http(200)) as server:
        url = f"http://127.0.0.1:{server.port}/"
        args = {"method": "GET", "url": url, "token_env": "API_TOKEN", "allowed_domains": ["127.0.0.1"], **LOOPBACK}
        result = await REGISTRY.execute("http_request", args, ToolContext(secret=lambda name: value))
    assert server.requests == []
    assert "API_TOKEN" in str(result.error)
    assert told in str(result.error)
    assert "secret API_TOKEN" in str(result.error)
    assert "abc-123" not in str(result)


REFUSED: dict[str, dict[str, Any]] = {
    "host_header": {"headers": {"Host": "evil.example"}},
    "length_header": {"headers": {"content-LENGTH": "0"}},
    "chunked": {"headers": {"Transfer-Encoding": "chunked"}},
    "line_break": {"headers": {"X-One": "1\r\nX-Two: 2"}},
    "no_name": {"headers": {"": "x"}},
    "name_with_colon": {"headers": {"X: y": "x"}},
    "value_of_blanks": {"method": "POST", "headers": {"X-One": " "}},
    "two_bodies": {"method": "POST", "json": 1, "body": "1"},
    "method": {"method": "POST", "allowed_methods": ["GET"]},
    "port": {"allowed_ports": [443]},
    "domain": {"allowed_domains": ["example.com"]},
    "path_with_line_break": {"path": "/a\r\nX-Two: 2"},
    "user": {"url": "http://me@127.0.0.1/"},
    "not_allowed": {"url": "http://127.0.0.2/"},
    "metadata": {"url": "http://169.254.169.254/latest/meta-data"},
    "mapped": {"url": "http://[::ffff:169.254.169.254]/"},
    "name_of_this_machine": {"url": "http://localhost/", "allow_cidrs": []},
}


@pytest.mark.parametrize("args", REFUSED.values(), ids=REFUSED)
async def test_what_is_refused_is_never_sent(args: dict[str, Any]) -> None:
    async with serving(http(200)) as server:
        given = {"method": "GET", **args}
        result = await asked(given.pop("url", server), given.pop("method"), **given)
    assert not result.success
    assert result.error
    assert server.requests == []
    assert not {"transient", "cut_off"} & result.metadata.keys()


async def test_the_environments_proxies_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    async with serving(http(200, b"direct", content_type="text/plain")) as server:
        assert (await asked(server)).output["body"] == "direct"


def test_the_environment_names_no_authority_to_trust(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    trusted = _ssl_context.__wrapped__().get_ca_certs()
    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.delenv("SSL_CERT_DIR")
    assert trusted == _ssl_context.__wrapped__().get_ca_certs()


async def test_a_host_is_reached_by_its_name() -> None:
    async with serving(http(200, {"here": True})) as server:
        found = await asked(f"http://localhost:{server.port}/", allow_cidrs=["127.0.0.0/8", "::1/128"])
    assert (found.success, found.output["body"]) == (True, {"here": True}), found.error


# ── redirects ─────────────────────────────────────────────────────────────────────────────────────


def leads_to(url: str, status: int = 302) -> bytes:
    return http(status, location=url)


async def test_a_redirect_is_followed_to_where_may_be_gone() -> None:
    async with serving(leads_to("/there"), http(200, {"here": True})) as server:
        result = await asked(server)
    assert [request.target for request in server.requests] == ["/", "/there"]
    assert result.output["body"] == {"here": True}


ELSEWHERE = [
    "http://127.0.0.2/",
    "http://169.254.169.254/",
    "file:///etc/passwd",
    "http://localhost:1@127.0.0.2/",
    "//[::1]/",
]


@pytest.mark.parametrize("place", ELSEWHERE)
async def test_a_redirect_to_elsewhere_is_refused(place: str) -> None:
    async with serving(leads_to(place)) as server:
        result = await asked(server, "POST", json={"secret": 1})
    assert (result.success, len(server.requests)) == (False, 1)


async def test_a_redirect_to_another_host_carries_no_secret_of_the_first() -> None:
    async with serving(http(200)) as second, serving(leads_to(f"http://127.0.0.1:{second.port}/", 307)) as first:
        headers = {"X-Api-Key": "k", "Cookie": "c", "Accept": "text/plain"}
        await asked(first, "POST", headers=headers, body="x", token_env="T", allowed_domains=["127.0.0.1"])
    assert {"x-api-key", "cookie", "authorization", "idempotency-key"} <= first.requests[0].headers.keys()
    assert not {"x-api-key", "cookie", "authorization", "idempotency-key"} & second.requests[0].headers.keys()
    assert second.requests[0].headers["accept"] == "text/plain"
    assert second.requests[0].headers["host"] == f"127.0.0.1:{second.port}"


async def test_a_redirect_within_one_origin_keeps_the_token_and_one_to_another_port_and_back_loses_it() -> None:
    async with serving(b"", b"") as first, serving(leads_to(f"http://127.0.0.1:{first.port}/back")) as second:
        first.replies = (leads_to("/same"), leads_to(f"http://127.0.0.1:{second.port}/"), http(200))
        assert (await asked(first, token_env="T", allowed_domains=["127.0.0.1"])).success
    assert ["authorization" in each.headers for each in first.requests] == [True, True, False]
    assert ["authorization" in each.headers for each in second.requests] == [False]


@pytest.mark.parametrize("place", ["https://a.example/", "http://a.example:81/", "http://b.a.example/", "/same"])
async def test_a_redirect_to_another_origin_carries_no_token(place: str) -> None:
    async with httpx2.AsyncClient() as client:
        first = client.build_request("GET", "http://a.example/", headers={"authorization": "Bearer t"})
        answer = httpx2.Response(302, headers={"location": place})
        following = client._build_redirect_request(first, answer)
        sent = _redirect_request(NetworkGuard(), first, following)
    assert ("authorization" in sent.headers) == (place == "/same")


async def test_a_write_that_was_answered_may_have_been_made_wherever_its_redirect_leads() -> None:
    for place in ("http://127.0.0.1:1/", "http://127.0.0.2/", "/again"):
        async with serving(leads_to(place, 307)) as server:
            assert (await asked(server, "POST", json=1)).metadata.get("cut_off")


async def test_redirects_in_a_circle_end() -> None:
    async with serving(leads_to("/again")) as server:
        result = await asked(server)
    assert (result.success, len(server.requests)) == (False, 6)
    assert "redirects" in str(result.error)


# ── rebinding ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_name_is_resolved_once_for_each_connection_and_that_answer_is_used() -> None:
    answers = [["127.0.0.1"], ["10.0.0.1"]]

    async def rebinding(host: str, port: int) -> Sequence[str]:
        return answers.pop(0)

    async with serving(leads_to("http://other.example/")) as server:
        guard = NetworkGuard.from_settings(allow_cidrs=["127.0.0.1/32"], resolve=rebinding)
        with pytest.raises(NetworkError, match=r"10\.0\.0\.1"):
            await fetch(guard, "GET", f"http://name.example:{server.port}/", limit=100)
    assert server.requests[0].headers["host"] == f"name.example:{server.port}"
    assert answers == []


# ── what comes back ───────────────────────────────────────────────────────────────────────────────

COMING: dict[str, tuple[bytes, Any]] = {
    "text": (http(200, b"caf\xc3\xa9", content_type="text/plain"), "café"),
    "latin": (http(200, b"caf\xe9", content_type="text/plain; charset=latin-1"), "café"),
    "slow_charset": (http(200, b"x", content_type="text/plain; charset=punycode"), "x"),
    "charset_that_fails": (http(200, b"x", content_type="text/plain; charset=undefined"), "x"),
    "no_json_of_ours": (http(200, b'{"n":NaN}', content_type="application/json"), '{"n":NaN}'),
    "half_a_character": (http(200, b'{"s":"\\ud800"}', content_type="application/json"), '{"s":"\\ud800"}'),
    "charset_in_capitals": (http(200, b"caf\xe9", content_type="Text/Plain; Charset=ISO-8859-1; x=y"), "café"),
    "utf_16": (http(200, "café".encode("utf-16"), content_type="text/plain; charset=utf-16"), "café"),
    "json_in_capitals": (http(200, b'{"a": 1}', content_type="Application/JSON"), {"a": 1}),
    "json_in_a_charset": (
        http(200, b'{"a": "caf\xe9"}', content_type="application/json; charset=latin-1"),
        {"a": "café"},
    ),
    "odd_charset": (http(200, b"x", content_type="text/plain; charset=klingon"), "x"),
    "not_json_after_all": (http(200, b"<html>", content_type="application/json"), "<html>"),
    "problem_json": (http(404, b'{"title":"gone"}', content_type="application/problem+json"), {"title": "gone"}),
    "empty": (http(204, b""), ""),
    "binary": (http(200, b"\x89PNG\x00\x01", content_type="image/png"), "(6 bytes that are no text)"),
    "deep": (http(200, b"[" * 100_000, content_type="application/json"), "[" * 100_000),
    "packed": (http(200, gzip.compress(b'{"a":1}'), content_encoding="gzip"), {"a": 1}),
    "deflated": (http(200, zlib.compress(b'{"a":1}'), content_encoding="Deflate"), {"a": 1}),
    "deflated_bare": (http(200, zlib.compress(b'{"a":1}', wbits=-15), content_encoding="deflate"), {"a": 1}),
    "packed_in_parts": (http(200, gzip.compress(b'{"a"') + gzip.compress(b":1}"), content_encoding="gzip"), {"a": 1}),
    "packed_with_zeros": (http(200, gzip.compress(b'{"a":1}') + bytes(9), content_encoding="gzip"), {"a": 1}),
    "packed_and_large": (
        http(200, gzip.compress(b"x" * 300_000), content_encoding="gzip", content_type="text/plain"),
        "x" * 300_000,
    ),
    "not_packed_after_all": (http(200, b"abc", content_encoding="utf-8", content_type="text/plain"), "abc"),
}


@pytest.mark.parametrize(("answer", "body"), COMING.values(), ids=COMING)
async def test_a_body_is_read_as_what_it_is(answer: bytes, body: Any) -> None:
    async with serving(answer) as server:
        result = await asked(server)
    assert (result.success, result.output["body"]) == (True, body)


async def test_a_large_body_is_cut_and_says_so() -> None:
    bomb = gzip.compress(b"x" * 50_000_000)
    plain = {"content_type": "text/plain"}
    for answer in (http(200, b"x" * 5000, **plain), http(200, bomb, **plain, content_encoding="gzip")):
        async with serving(answer) as server:
            result = await asked(server, max_bytes=1000)
        assert (len(result.output["body"]), "1000 bytes" in result.output["truncated"]) == (1000, True)


PACKED = gzip.compress(json.dumps(list(range(2000))).encode())
EARLY = "damaged: it ends too early"
DAMAGED: dict[str, tuple[Any, str]] = {
    "no_gzip": (http(200, b"no gzip", content_encoding="gzip"), "damaged"),
    "wrong_sum": (http(200, PACKED[:-8] + b"12345678", content_encoding="gzip"), "damaged"),
    "packed_half": (http(200, PACKED[:1000], content_encoding="gzip"), EARLY),
    "deflated_half": (http(200, zlib.compress(b"x" * 999)[:9], content_encoding="deflate"), EARLY),
    "packed_half_after_a_whole": (http(200, PACKED + PACKED[:1000], content_encoding="gzip"), EARLY),
    "goes_on": (http(200, PACKED + b"more", content_encoding="gzip"), "damaged"),
    "packed_twice": (http(200, gzip.compress(PACKED), content_encoding="gzip, identity, gzip"), "packed 2 times"),
    "packed_as_nobody_asked": (http(200, b"abc", content_encoding="br"), "packed as br, which is not read here"),
    "packed_again_and_again": (http(200, b"x", content_encoding="gzip, " * 9 + "gzip"), "packed 10 times"),
    "half": (half, "broke off its answer"),
}


@pytest.mark.parametrize(("answer", "told"), DAMAGED.values(), ids=DAMAGED)
async def test_a_damaged_answer_is_an_error_and_leaves_a_write_in_doubt(answer: Any, told: str) -> None:
    async with serving(answer) as server:
        read, written = await asked(server), await asked(server, "POST")
    assert (read.success, written.success, len(server.requests)) == (False, False, 2)
    assert told in str(read.error)
    assert told in str(written.error)
    assert written.metadata.get("cut_off")


@pytest.mark.parametrize("more", [b"\n", b"\r\n", b"\0"], ids=repr)
async def test_padding_behind_a_packed_body_is_passed_over(more: bytes) -> None:
    async with serving(http(200, PACKED + more, content_encoding="gzip")) as server:
        assert (await asked(server)).output["body"] == list(range(2000))


@pytest.mark.parametrize("encoding", ["gzip", "br", "gzip, gzip"])
async def test_an_answer_without_a_body_is_not_damaged(encoding: str) -> None:
    async with serving(http(204, b"", content_encoding=encoding)) as server:
        assert (await asked(server)).success


EMPTY_BLOCKS = b"\x00\x00\x00\xff\xff" * 10_000


async def test_a_body_that_holds_nothing_and_never_ends_is_left() -> None:
    head = b"HTTP/1.1 200 Told\r\ncontent-encoding: gzip\r\n\r\n" + gzip.compress(b"")[:10]
    async with serving(endless(head, EMPTY_BLOCKS)) as server, asyncio.timeout(30):
        result = await asked(server, max_bytes=1000)
    assert (result.output["body"], "1000 bytes" in result.output["truncated"]) == ("", True)


async def test_others_have_their_turn_between_the_pieces_of_a_body() -> None:
    size, turns = 100 * PIECE, 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with serving(http(200, gzip.compress(bytes(size)), content_encoding="gzip")) as server:
        others = asyncio.create_task(turn())
        guard = NetworkGuard.from_settings(allow_cidrs=["127.0.0.1/32"])
        answer = await fetch(guard, "GET", f"http://127.0.0.1:{server.port}/", limit=size)
        others.cancel()
    assert (len(answer.body), turns >= 100) == (size, True)


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_status_is_a_success_and_a_read_that_may_do_better_says_so(status: int) -> None:
    async with serving(http(status, b"")) as server:
        read, written = await asked(server), await asked(server, "POST")
    assert (read.success, read.output["status"], read.metadata) == (True, status, {"transient": True})
    assert (written.success, written.output["status"], written.metadata) == (True, status, {})


async def test_a_model_reads_the_status_and_the_body_before_the_few_headers_that_lead_on() -> None:
    headers = {"server": "x" * 300, "link": "</2>; rel=next", "retry_after": "7", "etag": '"1"', "x_request_id": "8"}
    async with serving(http(200, {"found": [1, 2]}, **headers)) as server:
        few, every = await asked(server), await asked(server, all_headers=True)
    assert list(few.output) == ["status", "body", "headers"]
    assert few.output["headers"].keys() == {"content-type", "link", "retry-after", "etag"}
    assert every.output["headers"].keys() > {"server", "x-request-id", "link"}


REFUSALS = {
    400: {"permanent": True},
    404: {"permanent": True},
    408: {"transient": True},
    425: {"transient": True},
    429: {"transient": True},
    500: {"transient": True},
}


@pytest.mark.parametrize(("status", "marks"), REFUSALS.items(), ids=str)
async def test_a_status_of_failure_fails_the_call_where_the_author_says_so(status: int, marks: dict[str, bool]) -> None:
    async with serving(http(status, {"why": "no such thing"})) as server:
        read, written = await asked(server, fail_on_status=True), await asked(server, "POST", fail_on_status=True)
    assert (read.success, read.metadata) == (False, marks)
    assert read.error == f'the server answered {status}: {{"why": "no such thing"}}'
    assert (read.output["status"], read.output["body"]) == (status, {"why": "no such thing"})
    assert (written.success, "transient" in written.metadata) == (False, False)


async def test_a_status_below_400_fails_no_call() -> None:
    async with serving(http(204, b"")) as server:
        assert (await asked(server, fail_on_status=True)).success


async def test_a_connection_that_is_refused_was_not_heard_one_that_breaks_may_have_been() -> None:
    async with serving(hang_up) as server:
        broken = await asked(server, "POST")
    refused = await asked(f"http://127.0.0.1:{server.port}/", "POST")
    assert (broken.success, broken.metadata.get("cut_off")) == (False, True)
    assert (refused.success, refused.metadata) == (False, {"transient": True})
    async with serving(half) as server:
        assert (await asked(server, "POST")).metadata.get("cut_off")


ODD = st.text(alphabet=st.sampled_from("htps:/@.[]%01279abcdefx\\#? \r\n\u3002\uff11é-_&="), max_size=30)


@given(ODD, ODD)
async def test_no_url_raises_anything_but_the_tools_own_error(text: str, query: str) -> None:
    async def nowhere(host: str, port: int) -> Sequence[str]:
        return ["10.0.0.1"]

    for url in (text, f"http://{text}", f"http://name.example/{text}?{query}"):
        with pytest.raises(ToolError):
            await fetch(NetworkGuard(resolve=nowhere), "GET", url, limit=10)


def test_what_a_model_sees_is_none_of_the_authors_guards() -> None:
    (definition,) = REGISTRY.definitions()
    shown = json.dumps(definition)
    assert "allow_cidrs" not in shown
    assert "token_env" not in shown
    assert {"method", "url", "query", "headers", "json", "form", "body"} == set(
        definition["function"]["parameters"]["properties"]
    )


# ── without a method ──────────────────────────────────────────────────────────────────────────────


async def test_a_request_without_a_method_is_a_get_that_reads() -> None:
    async with serving(http(200, {"found": 1})) as server:
        args = {"url": f"http://127.0.0.1:{server.port}/", **LOOPBACK}
        assert REGISTRY.validate("http_request", args) == []
        result = await REGISTRY.execute("http_request", args, ToolContext(idempotency_key="run/agent/4"))
    (request,) = server.requests
    assert (result.output["status"], request.method, "idempotency-key" in request.headers) == (200, "GET", False)
    tool = REGISTRY.get("http_request")
    assert [tool.effect_of({"url": "x", **more}) for more in ({}, {"method": "HEAD"}, {"method": "POST"})] == [
        *("read", "read", "write")
    ]


async def test_a_body_needs_its_method_and_a_narrowed_method_is_not_left_out() -> None:
    context = ToolContext()
    for more, told in (
        ({"json": {"a": 1}}, "needs its method: POST, PUT or PATCH"),
        ({"allowed_methods": ["POST"]}, "the method GET is not allowed here"),
    ):
        args = {"url": "http://127.0.0.1:1/", **LOOPBACK, **more}
        refused = await REGISTRY.execute("http_request", args, context)
        assert (refused.success, told in str(refused.error)) == (False, True)
