"""How an endpoint is reached, at real servers on loopback: certificates, headers, times, limits, one's own client."""

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent_core.errors import DefinitionError
from agent_core.models import ModelError, Question
from agent_core.models.endpoint.route import Route, usual_tls
from agent_core.models.endpoint.unreached import explain_unreached
from agent_core.models.openai.client import OpenAICompatible
from agent_core.models.providers import create_model
from support import asking
from support.asking import KEY, question
from support.loopback import Loopback, chat, http, serving, silence, streamed, then
from support.optional import needs
from support.wires.turn import Turn

pytestmark = pytest.mark.sampled

with_certificates = needs("cryptography")
VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No proxy and no certificates of the environment; none of a test's are kept."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    usual_tls.cache_clear()
    yield
    usual_tls.cache_clear()


async def ask(url: str, route: Route, key: str | None = KEY) -> str:
    """The text of the reply."""
    model = asking.client(url, key, route)
    try:
        return (await model.complete(question())).content
    finally:
        await model.close()


async def fail(url: str, route: Route) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(url, route)
    return caught.value


# ── certificates ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def authority(tmp_path: Path) -> Any:
    pytest.importorskip("cryptography")
    from support.certificates import Authority

    return Authority(tmp_path)


@pytest.fixture
def stranger(tmp_path: Path, authority: Any) -> Any:
    return type(authority)(tmp_path, "theirs")


@pytest.fixture
async def secure(authority: Any) -> AsyncIterator[Loopback]:
    """An endpoint by TLS, with a certificate that no system trusts."""
    async with serving(chat("ok"), tls=authority.serve()) as server:
        yield server


@pytest.mark.usefixtures("each_transport")
class TestCertificates:
    async def test_the_endpoint_is_trusted_by_the_authority_that_is_named(self, secure: Any, authority: Any) -> None:
        assert await ask(secure.url, Route(ca=authority.ca)) == "ok"

    async def test_without_it_the_error_says_how_to_name_it(self, secure: Any) -> None:
        error = await fail(secure.url, Route())
        assert "its certificate is not trusted: unable to get local issuer certificate; name the file" in str(error)
        assert str(error).endswith("as ca of the endpoint, or by SSL_CERT_FILE")
        assert (error.requests, secure.requests) == (1, [])

    async def test_another_authority_is_named_in_the_error(self, secure: Any, stranger: Any) -> None:
        error = await fail(secure.url, Route(ca=stranger.ca))
        assert f"only certificates signed by those in {stranger.ca} (ca of the endpoint) are trusted" in str(error)
        assert error.requests == 1

    async def test_the_file_of_the_environment_is_trusted_and_named(
        self, secure: Any, authority: Any, stranger: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca))
        assert await ask(secure.url, Route()) == "ok"
        monkeypatch.setenv("SSL_CERT_FILE", str(stranger.ca))
        usual_tls.cache_clear()
        error = await fail(secure.url, Route())
        assert f"the certificates that SSL_CERT_FILE names are trusted: {stranger.ca}" in str(error)

    @pytest.mark.parametrize(("content", "why"), [(None, "cannot be read: No such file"), ("junk", "does not hold")])
    async def test_a_file_of_the_environment_that_cannot_be_used_is_named_with_its_variable(
        self, secure: Any, content: str | None, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "trusted.pem"
        if content is not None:
            path.write_text(content)
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        error = await fail(secure.url, Route())
        assert f"could not be asked: SSL_CERT_FILE: {why}" in str(error)
        assert str(path) in str(error)
        assert error.requests == 1

    async def test_a_certificate_for_another_name_is_not_blamed_on_the_authority(
        self, secure: Any, authority: Any
    ) -> None:
        error = await fail(secure.url.replace("127.0.0.1", "localhost"), Route(ca=authority.ca))
        assert "certificate is not valid for 'localhost'" in str(error)
        assert (str(authority.ca) in str(error), error.requests) == (False, 1)

    async def test_our_certificate_is_shown(self, authority: Any, each_transport: str) -> None:
        from support.strict_server import strict_server

        ours = authority.issue("client")
        with strict_server(authority.serve(clients=authority), chat("ok")) as server:
            route = Route(ca=authority.ca, client_cert=ours.cert, client_key=ours.key)
            assert await asyncio.wait_for(ask(server.url, route), 20) == "ok"
        assert len(server.requests) == 1

    async def test_without_it_the_error_names_the_key_to_set_and_nothing_is_retried(self, authority: Any) -> None:
        from support.strict_server import strict_server

        with strict_server(authority.serve(clients=authority), chat("ok")) as server:
            error = await fail(server.url, Route(ca=authority.ca))
        assert "it wants a certificate of ours: client_cert of the endpoint" in str(error)
        assert (error.requests, server.handshakes, server.requests) == (1, 1, [])

    async def test_a_certificate_that_is_not_taken_is_named(self, authority: Any, stranger: Any) -> None:
        from support.strict_server import strict_server

        other = stranger.issue("other")
        with strict_server(authority.serve(clients=authority), chat("ok")) as server:
            error = await fail(server.url, Route(ca=authority.ca, client_cert=other.cert, client_key=other.key))
        assert f"it does not take the certificate in {other.cert} (client_cert of the endpoint)" in str(error)
        assert (error.requests, server.requests) == (1, [])


def test_in_the_event_loop_of_a_server_that_is_busy_the_error_names_the_key_to_set(authority: Any) -> None:
    """There the connection is closed before it says why."""
    import uvloop

    from support.strict_server import strict_server

    async def be_busy() -> None:
        while True:
            time.sleep(0.003)  # noqa: ASYNC251
            await asyncio.sleep(0)

    async def ask_without_a_certificate() -> None:
        busy = asyncio.create_task(be_busy())
        for _ in range(4):
            with strict_server(authority.serve(clients=authority), chat("ok")) as server:
                error = await fail(server.url, Route(ca=authority.ca))
            assert "it wants a certificate of ours: client_cert of the endpoint" in str(error)
            assert (error.requests, server.handshakes) == (1, 1)
        busy.cancel()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(ask_without_a_certificate())


def test_form_of_a_certificate_that_newer_pythons_refuse_is_said_to_be_one() -> None:
    refused = ssl.SSLCertVerificationError(1, "certificate verify failed")
    refused.verify_code, refused.verify_message = 92, "CA cert does not include key usage extension"
    said = explain_unreached(refused, Route(ca=Path("corp-ca.pem")), None).message
    assert "CA cert does not include key usage extension; this Python takes only certificates by RFC 5280" in said


FILES: dict[str, tuple[dict[str, str], str]] = {
    "no ca": ({"ca": "nothing.pem"}, r"^ca: cannot be read: No such file or directory \(got '.*nothing\.pem'\)"),
    "ca is a directory": ({"ca": "."}, r"^ca: "),
    "ca is no PEM": ({"ca": "junk.pem"}, r"^ca: does not hold certificates in PEM: .*junk\.pem"),
    "no certificate": ({"client_cert": "nothing.pem"}, r"^client_cert: there is no such file .*nothing\.pem"),
    "certificate is no PEM": ({"client_cert": "junk.pem"}, r"^client_cert: does not hold a certificate with its key"),
    "certificate without key": ({"client_cert": "me.pem"}, r"^client_cert: does not hold a certificate with its key"),
    "no key": ({"client_cert": "me.pem", "client_key": "none.pem"}, r"^client_key: there is no such file .*none\.pem"),
    "another key": (
        {"client_cert": "me.pem", "client_key": "you-key.pem"},
        r"^client_cert: does not hold the certificate of the key in .*you-key\.pem.*me\.pem",
    ),
    "encrypted key": (
        {"client_cert": "hidden.pem", "client_key": "hidden-key.pem"},
        r"^client_key: the key is encrypted; give one without a password .*hidden-key\.pem",
    ),
    "key alone": ({"client_key": "me-key.pem"}, r"^client_key: is the key of no certificate; give client_cert too"),
}


@with_certificates
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_used_is_found_before_anything_is_asked(
    name: str, tmp_path: Path, authority: Any
) -> None:
    given, message = FILES[name]
    for each in ("me", "you"):
        authority.issue(each)
    authority.issue("hidden", password="secret of the key")
    (tmp_path / "junk.pem").write_text("junk")
    files: dict[str, Any] = {key: tmp_path / file for key, file in given.items()}
    with pytest.raises(DefinitionError, match=message):
        create_model("openai:m", base_url="https://x.test/v1", api_key=KEY, **files)


# ── headers, query, key ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("each_transport")
async def test_headers_and_query_go_with_each_request() -> None:
    secret = "value-of-a-secret-header"
    route = Route((("X-Team", "docs"),), (("X-Token", secret),), query=(("region", "eu north"), ("v", "2")))
    async with serving(chat("ok"), streamed("ok")) as server:
        assert await ask(server.url, route) == "ok"
        model = asking.client(server.url, KEY, route)
        async with aclosing(model.stream(question())) as pieces:
            assert [each async for each in pieces]
        await model.close()
    for request in server.requests:
        assert request.target == "/v1/chat/completions?region=eu+north&v=2"
        names = ("x-team", "x-token", "authorization")
        assert [request.headers[name] for name in names] == ["docs", secret, f"Bearer {KEY}"]


@pytest.mark.usefixtures("each_transport")
async def test_no_secret_of_a_route_is_in_a_message() -> None:
    secret, password = "value-of-a-secret-header", "the p@ssword"
    said = {"error": {"message": f"no: {secret}, the%20p%40ssword, {password}, {KEY}"}}
    proxy = "http://name:the%20p%40ssword@127.0.0.1:{}"
    async with serving(http(400, said)) as server:
        error = await fail(server.url, Route((), (("X-Token", secret),), proxy=proxy.format(server.port)))
    assert [each for each in (secret, password, KEY, "ssword") if each in str(error)] == []
    assert "no: ***" in str(error)


@pytest.mark.usefixtures("each_transport")
@pytest.mark.parametrize(("header", "sent"), [("api-key", KEY), ("Authorization", KEY), ("X-Api-Key", KEY)])
async def test_the_key_is_sent_in_the_header_that_is_named_and_in_no_other(header: str, sent: str) -> None:
    async with serving(chat("ok")) as server:
        await ask(server.url, Route(key_header=header))
        await ask(server.url, Route(key_header=header), key=None)
    first, second = (request.headers for request in server.requests)
    assert first[header.lower()] == sent
    assert str(first).count(KEY) == 1
    assert header.lower() not in second


async def test_the_query_leaves_what_an_api_says_in_it_itself() -> None:
    pytest.importorskip("google.genai")
    from support.wires import gemini

    pieces = b"".join(gemini.STAND_IN.events(Turn("ok"), 1))
    replies = http(200, pieces, content_type="text/event-stream"), http(200, gemini.STAND_IN.whole(Turn("ok"), 2))
    async with serving(*replies) as endpoint:
        url = f"http://127.0.0.1:{endpoint.port}"
        model = create_model("gemini:m1", base_url=url, api_key=KEY, api="native", query={"team": "docs"})
        asked = Question("m1", (b'{"role":"user","content":"x"}',), {}, "agent", 0, within=20.0)
        async with aclosing(model.stream(asked)) as said:
            assert [each async for each in said]
        await model.complete(asked)
        await model.close()
    streamed_at, whole_at = (request.target.partition("?")[2] for request in endpoint.requests)
    assert sorted(streamed_at.split("&")) == ["alt=sse", "team=docs"]
    assert whole_at == "team=docs"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"headers": {"X-Token": "a\nb"}}, "headers/X-Token: must be printable ASCII"),
        ({"headers": {"X Token": "a"}}, "headers/X Token: is no name of a header"),
        ({"headers": {"Host": "x.test"}}, "headers/Host: is a header of the connection"),
        ({"proxy": "ftp://p:1"}, "proxy: names a proxy that cannot be used"),
        ({"connect_timeout": 0}, "connect_timeout: must be more than 0"),
        ({"read_timeout": -1.0}, "read_timeout: must be more than 0"),
        ({"max_connections": 0}, "max_connections: must be more than 0"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else None,
)
def test_what_cannot_be_sent_is_named_with_its_place(given: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=f"^{message}"):
        create_model("openai:m", base_url="https://x.test/v1", api_key=KEY, **given)


# ── times and limits ──────────────────────────────────────────────────────────────────────────────────


@contextmanager
def accepting_nothing() -> Iterator[int]:
    """The port of a server whose backlog is full: a connection to it is never made."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@pytest.mark.usefixtures("each_transport")
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_connection_that_is_not_made_in_time_is_tried_again_and_then_an_error(scheme: str) -> None:
    with accepting_nothing() as port:
        error = await fail(f"{scheme}://127.0.0.1:{port}/v1", Route(connect_timeout=0.1))
    assert str(error) == f"127.0.0.1:{port} gave no answer: no connection within 0.1 seconds (connect_timeout)"
    assert error.requests == 3


@pytest.mark.usefixtures("each_transport")
async def test_a_silent_endpoint_is_asked_again_and_then_an_error() -> None:
    async with serving(silence) as server:
        error = await fail(server.url, Route(read_timeout=0.1))
    assert f"{server.port} gave no answer: nothing came within 0.1 seconds (read_timeout)" in str(error)
    assert (error.requests, len(server.requests)) == (3, 3)


@pytest.mark.usefixtures("each_transport")
async def test_an_answer_that_falls_silent_is_asked_for_again() -> None:
    half = then(chat("ok")[:-9], silence)
    async with serving(half, chat("whole")) as server:
        assert await ask(server.url, Route(read_timeout=0.2)) == "whole"
    assert len(server.requests) == 2


@asynccontextmanager
async def counting() -> AsyncIterator[tuple[Loopback, list[int], asyncio.Event]]:
    """An endpoint that answers once the event is set, and how many requests were there at each request."""
    there, counts, opened = 0, list[int](), asyncio.Event()

    async def answer(writer: asyncio.StreamWriter) -> None:
        nonlocal there
        there += 1
        counts.append(there)
        try:
            await opened.wait()
            writer.write(chat("ok"))
            await writer.drain()
        finally:
            there -= 1

    async with serving(answer) as server:
        yield server, counts, opened


async def until(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


@pytest.mark.usefixtures("each_transport")
async def test_no_more_requests_are_at_an_endpoint_than_it_may_have_whatever_their_models() -> None:
    async with counting() as (server, counts, opened):
        models = [
            OpenAICompatible(
                name, base_url=server.url, api_key=None, transport=asking.transport, route=Route(max_connections=2)
            )
            for name in ("m1", "m2")
        ]
        questions = [asyncio.ensure_future(models[at % 2].complete(question())) for at in range(8)]
        await until(lambda: len(counts) == 2)
        opened.set()
        assert {each.content for each in await asyncio.gather(*questions)} == {"ok"}
        for model in models:
            await model.close()
    assert (len(counts), max(counts)) == (8, 2)


@pytest.mark.usefixtures("each_transport")
async def test_questions_that_are_cancelled_give_their_places_back() -> None:
    async with counting() as (server, counts, opened):
        model = asking.client(server.url, None, Route(max_connections=1))
        for _ in range(3):
            asked = [asyncio.ensure_future(model.complete(question())) for _ in range(2)]  # one asks, one waits
            await until(lambda: len(counts) and server.left != len(counts))
            for each in reversed(asked):
                each.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
            await until(lambda: server.left == len(counts))
        opened.set()
        assert (await asyncio.wait_for(model.complete(question()), 20)).content == "ok"
        await model.close()
    assert max(counts) == 1


@pytest.mark.usefixtures("each_transport")
async def test_a_place_is_given_back_after_a_refusal() -> None:
    async with serving(http(500, {}), http(400, {}), chat("ok")) as server:
        model = asking.client(server.url, None, Route(max_connections=1))
        with pytest.raises(ModelError):
            await asyncio.wait_for(model.complete(question()), 20)
        assert (await asyncio.wait_for(model.complete(question()), 20)).content == "ok"
        await model.close()


# ── an HTTP client of one's own ───────────────────────────────────────────────────────────────────────


async def test_a_client_of_ones_own_is_used_and_not_closed() -> None:
    seen: list[str] = []

    async def note(request: httpx2.Request) -> None:
        seen.append(request.headers["x-own"])

    own = httpx2.AsyncClient(headers={"X-Own": "mine"}, params={"team": "docs"}, event_hooks={"request": [note]})
    async with own, serving(chat("ok")) as server:
        for _ in range(2):
            model = create_model("openai:m", base_url=server.url, api_key=KEY, http_client=own)
            assert (await model.complete(question())).content == "ok"
            await model.close()
        assert not own.is_closed
        assert (await own.get(server.url)).status_code == 200
    assert [request.target for request in server.requests[:2]] == ["/v1/chat/completions?team=docs"] * 2
    assert [request.headers["authorization"] for request in server.requests[:2]] == [f"Bearer {KEY}"] * 2
    assert seen == ["mine"] * 3


async def test_a_client_that_was_closed_is_an_error_that_says_so() -> None:
    own = httpx2.AsyncClient()
    await own.aclose()
    model = create_model("openai:m", base_url="http://127.0.0.1:9/v1", api_key=KEY, http_client=own)
    with pytest.raises(ModelError, match="http_client: is closed") as caught:
        await model.complete(question())
    assert caught.value.requests == 1


@pytest.mark.exhaustive
async def test_the_times_of_a_client_of_ones_own_hold_unless_they_are_the_librarys_own() -> None:
    async with serving(silence) as server, httpx2.AsyncClient(timeout=0.1) as own:
        model = create_model("openai:m", base_url=server.url, api_key=KEY, http_client=own)
        with pytest.raises(ModelError, match="nothing came in the time that http_client allows"):
            await model.complete(question())
    async with serving(chat("ok")) as server, httpx2.AsyncClient() as own:
        model = create_model("openai:m", base_url=server.url, api_key=KEY, http_client=own)
        times: list[Any] = []

        async def note(request: httpx2.Request) -> None:
            times.append(request.extensions["timeout"])

        own.event_hooks = {"request": [note], "response": []}
        await model.complete(question())
        assert (times[0]["read"], times[0]["connect"]) == (None, 10.0)


def test_a_client_of_another_event_loop_is_an_error_that_says_so() -> None:
    own = httpx2.AsyncClient()

    async def once() -> str:
        async with serving(chat("ok")) as server:
            model = create_model("openai:m", base_url=server.url, api_key=KEY, http_client=own)
            return (await model.complete(question())).content

    assert asyncio.run(once()) == "ok"
    with pytest.raises(ModelError, match="http_client: is of another event loop"):
        asyncio.run(once())


@pytest.mark.parametrize("name", ["proxy", "ca", "client_cert", "connect_timeout", "read_timeout"])
async def test_what_a_client_of_ones_own_would_pass_over_is_refused(name: str) -> None:
    value: Any = 3.0 if name.endswith("timeout") else "none"
    async with httpx2.AsyncClient() as own:
        with pytest.raises(DefinitionError, match=f"^{name}: is a matter of http_client"):
            create_model("openai:m", api_key=KEY, http_client=own, **{name: value})


def test_a_client_of_another_library_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"^http_client: must be an httpx2\.AsyncClient \(got 'builtins\.dict'\)"):
        create_model("openai:m", api_key=KEY, http_client={})  # type: ignore[arg-type]
