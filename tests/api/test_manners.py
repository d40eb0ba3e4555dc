"""How the server answers, whatever it answers: headers of each answer, origins that are none, times that overflow."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any
from urllib.parse import urljoin

import pytest

from support.optional import needs
from support.served_host import Served, served


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("host"), with_page=True, with_mcp=find_spec("mcp") is not None) as found:
        yield found


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("method", "path", "more"),
    [
        ("GET", "/workflows", {}),
        ("GET", "/health", {}),
        ("GET", "/metrics", {}),
        ("GET", "/openapi.json", {}),
        ("GET", "/nothing", {}),
        ("DELETE", "/runs", {}),
        ("GET", "/runs/nobody", {}),
        ("POST", "/workflows/desk/runs", {"content": b"{"}),
        ("POST", "/v1/chat/completions", {"json": {}}),
        ("GET", "/runs", {"headers": {"Host": "evil.example"}}),
        ("GET", "/runs", {"headers": {"Origin": "https://evil.example"}}),
        ("POST", "/drafts/check", {"content": b"x" * (5 * 2**20)}),
        ("POST", "/mcp", {"json": {}}),
    ],
)
def test_no_answer_is_guessed_at_or_kept(host: Served, method: str, path: str, more: dict[str, Any]) -> None:
    answer = host.client.request(method, path, **more)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "no-store" in answer.headers["cache-control"]
    assert len(answer.headers.get_list("cache-control")) == 1


def test_stream_is_not_kept_either(host: Served) -> None:
    run = host.submit("count", sum="1 + 1")["run_id"]
    with host.client.stream("GET", f"/runs/{run}/events") as answer:
        assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-store", "nosniff")


@pytest.mark.sampled
@pytest.mark.parametrize("path", ["/ui/", "/ui/runs", "/ui/app.js", "/ui/static/css/base.css"])
def test_page_is_alone_in_its_window(host: Served, path: str) -> None:
    answer = host.client.get(path)
    assert answer.status_code == 200
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"


@pytest.mark.sampled
@pytest.mark.parametrize(
    "origin",
    [
        *("http://localhost\\\\.evil.example", "http://evil.example\\@localhost", "http://localhost@evil.example"),
        *("http://user@localhost", "http://localhost/path", "http://localhost?x", "http://localhost#x", "//localhost"),
        *(
            "localhost",
            "null",
            "file://localhost",
            "http://localhost:x",
            "http://localhost:123456",
            "http://local host",
        ),
        *("http://[::1", "http://[::1]evil", "http://[localhost]", "javascript:localhost", "http://localhost:80:80"),
        *("http://localhost http://evil.example", "http://localhost,http://evil.example", "", "http://"),
    ],
)
def test_origin_that_is_none_is_refused(host: Served, origin: str) -> None:
    assert host.client.get("/runs", headers={"Origin": origin}).status_code == 403


@pytest.mark.sampled
@pytest.mark.parametrize(
    "origin", ["http://localhost", "http://LOCALHOST:8080", "https://127.0.0.1:1", "http://[::1]:80"]
)
def test_origin_of_this_host_may_call(host: Served, origin: str) -> None:
    assert host.client.get("/runs", headers={"Origin": origin}).status_code == 200


def test_browser_that_asks_before_a_page_may_read_is_told_which_option_allows_it(host: Served) -> None:
    origin = "http://localhost:3000"
    answer = host.client.options("/runs", headers={"Origin": origin, "Access-Control-Request-Method": "GET"})
    assert answer.status_code == 403
    assert (origin in answer.json()["detail"], "--allow-origin" in answer.json()["detail"]) == (True, True)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "time",
    [
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+23:59"),
        *("9999-12-31T24:00:00Z", "10000-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "-0001-01-01T00:00:00Z"),
        *("2026-02-30T00:00:00Z", "2026-01-01T00:00:00+99:99", "2026-01-01T00:00:00", "1e400", "9" * 30),
    ],
)
def test_time_that_overflows_is_told(host: Served, time: str) -> None:
    answer = host.client.get("/runs", params={"since": time})
    assert (answer.status_code, answer.json()["kind"]) == (422, "invalid")
    assert answer.json()["errors"][0]["where"] == "query/since"


@pytest.mark.sampled
@pytest.mark.parametrize("time", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-01-31T12:00:00+02:00"])
def test_time_at_the_ends_is_taken(host: Served, time: str) -> None:
    assert host.client.get("/runs", params={"since": time}).status_code == 200


@pytest.mark.parametrize(
    ("path", "found"),
    [("runs/?limit=1&limit=2", "runs?limit=1&limit=2"), ("v1/chat/completions/", "v1/chat/completions")],
)
def test_slash_too_many_leads_back_below_any_path_of_a_proxy(host: Served, path: str, found: str) -> None:
    answer = host.client.post(f"/{path}", json={}, follow_redirects=False)
    assert answer.status_code == 307
    assert (
        urljoin(f"https://proxy.example/agents/{path}", answer.headers["location"])
        == f"https://proxy.example/agents/{found}"
    )


def test_slash_behind_what_is_not_there_is_not_found(host: Served) -> None:
    for path in ("/nothing/", "/runs//"):
        assert host.client.get(path, follow_redirects=False).status_code == 404


@needs("mcp")
def test_mcp_is_served_with_a_slash_as_well(host: Served) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "server/discover"}
    answers = [host.client.post(path, json=ping, follow_redirects=False) for path in ("/mcp", "/mcp/")]
    assert [answer.status_code for answer in answers] == [answers[0].status_code] * 2 != [307] * 2


@pytest.mark.parametrize("path", ["/health", "/", "/ui/", "/ui/app.js"])
def test_what_monitors_ask_by_head_is_answered_as_by_get(host: Served, path: str) -> None:
    asked, told = (host.client.request(method, path, follow_redirects=False) for method in ("HEAD", "GET"))
    assert (asked.status_code, asked.content) == (told.status_code, b"")
    assert asked.headers["content-type" if told.content else "location"]
