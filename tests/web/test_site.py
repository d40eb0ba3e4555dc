"""The page's files as a server gives them: what a browser may do with them, and how they are sent."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest

from support.served_host import Served, served


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("host"), with_page=True, is_open=False) as found:
        yield found


def test_page_needs_no_token_and_may_run_its_own_scripts_alone(host: Served) -> None:
    for path in ("/ui/", "/ui/runs/x?at=flow:1", "/ui/app.js", "/ui/static/css/base.css"):
        answer = host.client.get(path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["", "ui", "ui/", "ui/runs", "ui/runs/x?at=flow:1", "ui/workflows/a%2Fb", "ui/a/b%2fc/d"]
)
def test_page_is_found_below_any_path_of_a_proxy(host: Served, path: str) -> None:
    answer = host.client.get(f"/{path}", follow_redirects=False)
    address = f"https://proxy.example/agents/{path}"
    if answer.is_redirect:
        assert urljoin(address, answer.headers["location"]) == "https://proxy.example/agents/ui/"
    else:
        base = re.search('<base href="([^"]*)">', answer.text)
        assert base
        assert urljoin(address, base[1]) == "https://proxy.example/agents/ui/"


def test_script_is_sent_packed_and_once(host: Served) -> None:
    first = host.client.get("/ui/app.js")
    assert (first.headers["content-encoding"], first.headers["vary"]) == ("gzip", "Accept-Encoding")
    again = host.client.get("/ui/app.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    weakened = f'"other", W/{first.headers["etag"]}'  # by a proxy, and what else a cache has
    assert host.client.get("/ui/app.js", headers={"If-None-Match": weakened}).status_code == 304
    plain = host.client.get("/ui/app.js", headers={"Accept-Encoding": "identity"})
    assert plain.text == first.text


@pytest.mark.parametrize("wanted", ["bytes=9000000-", "bytes=x"])
def test_file_of_the_page_is_sent_as_a_whole(host: Served, wanted: str) -> None:
    answer = host.client.get("/ui/static/index.html", headers={"Range": wanted})
    assert (answer.status_code, answer.headers["accept-ranges"]) == (200, "none")
    assert answer.text.endswith("</html>\n")


def test_path_below_mcp_is_no_reason_to_install_it(host: Served) -> None:
    assert "pip install" not in host.client.get("/mcp/none").text


@pytest.mark.sampled
@pytest.mark.parametrize("path", ["../site.py", "%2e%2e/site.py", "..%2fsite.py", "css/../../site.py", "//etc/passwd"])
def test_no_file_beside_those_of_the_page_is_served(host: Served, path: str) -> None:
    assert "serve_page" not in host.client.get(f"/ui/static/{path}").text
    assert host.client.get("/ui/static/css").status_code == 404


def test_run_as_a_file_is_an_attachment_and_asks_for_a_token(host: Served, tmp_path: Path) -> None:
    assert host.client.get("/runs/x/page").status_code == 401
    reader = host.issue("reader", "read")
    assert host.client.get("/runs/x/page", headers=reader).status_code == 404
    run = host.client.post("/workflows/count/runs", json={"external": {"sum": "1+1"}}, headers=host.issue("r", "run"))
    answer = host.client.get(f"/runs/{run.json()['run_id']}/page", headers=reader)
    assert answer.headers["content-disposition"].startswith("attachment; filename")
    assert '"journal"' in answer.text


def test_several_runs_are_followed_by_one_connection(host: Served) -> None:
    reader = host.issue("many", "read", "run")
    first, second = (
        host.client.post("/workflows/count/runs", json={"external": {"sum": text}}, headers=reader).json()["run_id"]
        for text in ("1+1", "2+2")
    )
    asked = {"run": [first, "none", second, second], "after": ["", "", "", "999.1"]}
    assert host.client.get("/events", params=asked).status_code == 401
    told: dict[str, list[str]] = {"0": [], "1": [], "2": [], "3": []}
    for frame in host.client.get("/events", params=asked, headers=reader).text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in frame.splitlines() if not line.startswith(":"))
        if lines:
            told[lines["of"]].append(lines["event"])
    assert told["0"] == told["2"]
    assert told["0"][-2:] == ["finished", "over"]
    assert (told["1"], told["3"]) == (["missing"], ["over"])
