"""Shares: what one token or tenant takes of a server leaves the others theirs, over HTTP."""

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx2
import pytest

from engine_shim.service import workflow_files
from support.served_host import Served, served

MOST = 8
"""Of all; so 4 for a tenant, and 2 for a token."""
Header = dict[str, str]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Served]:
    own = {"acme": {"workflows": "acme", "agents": "none"}, "globex": {}}
    for name in ("acme", "none"):
        (tmp_path / name).mkdir()
    with served(tmp_path, is_open=False, with_mcp=find_spec("mcp") is not None, tenants=own) as found:
        flow = (tmp_path / "workflows" / "wait.json").read_text()
        (tmp_path / "acme" / "wait.json").write_text(flow)
        shares = found.service.shares
        for share in (shares.runs, shares.requests, shares.streams, shares.sessions):
            share.most = MOST
        yield found
        for name in ("go", "stay"):
            (tmp_path / name).touch()


@pytest.fixture
def tokens(host: Served) -> dict[str, Header]:
    """Two tokens of acme, one of globex."""
    tenants = {"ada": "acme", "bob": "acme", "eve": "globex"}
    return {name: host.issue(name, "admin", tenant=tenant) for name, tenant in tenants.items()}


def submit(host: Served, header: Header, until: str) -> httpx2.Response:
    body = {"external": {"until": until}}
    return host.client.post("/workflows/wait/runs?wait=false", json=body, headers=header)


def assert_over(answer: httpx2.Response, whose: str) -> None:
    assert answer.status_code == 429, answer.text
    assert int(answer.headers["retry-after"]) > 0
    assert answer.headers["content-type"] == "application/problem+json"
    assert whose in answer.json()["detail"]


def test_runs(host: Served, tokens: dict[str, Header]) -> None:
    assert [submit(host, tokens["ada"], "go").status_code for _ in range(2)] == [202, 202]
    assert_over(submit(host, tokens["ada"], "go"), "this token has 2 runs")
    assert [submit(host, tokens["bob"], "go").status_code for _ in range(2)] == [202, 202]
    third = host.issue("cal", "admin", tenant="acme")
    assert_over(submit(host, third, "go"), "this tenant has 4 runs")
    run = submit(host, tokens["eve"], "stay").json()["run_id"]
    (host.folder / "go").touch()
    while submit(host, tokens["ada"], "go").status_code != 202:
        pass
    assert host.client.get(f"/runs/{run}", headers=tokens["eve"]).json()["status"] in ("pending", "running")


def test_streams(host: Served, tokens: dict[str, Header]) -> None:
    host.service.shares.requests.most = 100  # a stream is a request as well
    runs = {name: submit(host, tokens[name], "go").json()["run_id"] for name in ("ada", "eve")}
    with ExitStack() as opened:
        client = opened.enter_context(httpx2.Client(base_url=host.url, timeout=30))

        def follow(who: str, run: str) -> httpx2.Response:
            path = f"/runs/{runs[run]}/events"
            return opened.enter_context(client.stream("GET", path, headers=tokens[who]))

        assert [follow("ada", "ada").status_code for _ in range(2)] == [200, 200]
        refused = follow("ada", "ada")
        refused.read()
        assert_over(refused, "this token has 2 streams")
        assert [follow("bob", "ada").status_code, follow("eve", "eve").status_code] == [200, 200]
    while (again := host.client.get("/runs", headers=tokens["ada"])).status_code != 200:
        assert again.status_code == 429
    with host.client.stream("GET", f"/runs/{runs['eve']}/events", headers=tokens["eve"]) as answer:
        assert answer.status_code == 200


def test_stream_of_an_answer_is_refused_before_its_run_begins(host: Served, tokens: dict[str, Header]) -> None:
    share, who = host.service.shares.streams, ("acme", _id(tokens["ada"]))
    asked = {"model": "workflow/wait", "messages": [{"role": "user", "content": "go"}], "stream": True}
    with share.take(*who), share.take(*who):
        answer = host.client.post("/v1/chat/completions", json=asked, headers=tokens["ada"])
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "over_share")
    assert host.client.get("/runs", headers=tokens["ada"]).json()["runs"] == []
    refused = host.client.post("/v1/chat/completions", json={**asked, "model": "none"}, headers=tokens["ada"])
    assert (refused.status_code, share._all) == (404, 0)


def test_requests(host: Served, tokens: dict[str, Header]) -> None:
    share = host.service.shares.requests
    with share.take("acme", _id(tokens["ada"])), share.take("acme", _id(tokens["ada"])):
        assert_over(host.client.get("/runs", headers=tokens["ada"]), "this token has 2 requests")
        assert host.client.get("/runs", headers=tokens["bob"]).status_code == 200
        with share.take("acme", "x"), share.take("acme", "y"):
            assert_over(host.client.get("/runs", headers=tokens["bob"]), "this tenant has 4 requests")
            assert host.client.get("/runs", headers=tokens["eve"]).status_code == 200
            assert host.client.get("/health").status_code == 200
    assert host.client.get("/runs", headers=tokens["ada"]).status_code == 200
    assert (share._all, dict(share._tokens)) == (0, {})


def _id(header: Header) -> str:
    return header["Authorization"].split("_")[1]


@pytest.mark.skipif(find_spec("mcp") is None, reason="needs mcp (extra `mcp`)")
def test_sessions(host: Served, tokens: dict[str, Header]) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}

    def call(who: str, method: str, session: str | None, **params: Any) -> httpx2.Response:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        accepted = {**tokens[who], "Accept": "application/json, text/event-stream"}
        headers = accepted if session is None else {**accepted, "Mcp-Session-Id": session}
        return host.client.post("/mcp", json=body, headers=headers)

    def begin(who: str) -> str:
        answer = call(who, "initialize", None, **hello)
        assert answer.status_code == 200, answer.text
        return answer.headers["mcp-session-id"]

    def lives(who: str, session: str) -> bool:
        return call(who, "ping", session).status_code != 404

    first, second, other = begin("ada"), begin("ada"), begin("eve")
    assert lives("ada", first)
    third = begin("ada")  # the one that was not used for longest gives way
    assert [lives("ada", each) for each in (first, second, third)] == [True, False, True]
    assert lives("eve", other)
    with ExitStack() as busy:
        for session in (first, third):
            headers = {**tokens["ada"], "Accept": "text/event-stream", "Mcp-Session-Id": session}
            stream = busy.enter_context(host.client.stream("GET", "/mcp", headers=headers))
            assert stream.status_code == 200
        assert_over(call("ada", "initialize", None, **hello), "this token has 2 sessions")
        assert lives("bob", begin("bob"))
    flood = [begin("eve") for _ in range(20)]
    assert [lives("eve", each) for each in flood[-2:]] == [True, True]
    assert lives("ada", first)


@pytest.mark.exhaustive
def test_stored_versions(host: Served, tokens: dict[str, Header], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each version has some 180 bytes: two fit into a token's share, and four into a tenant's."""
    monkeypatch.setattr(workflow_files, "MOST_STORED", 800)
    own = {**tokens, "cal": host.issue("cal", "admin", tenant="acme")}

    def save(who: str, version: int) -> httpx2.Response:
        flow = {"id": "own", "version": str(version), "nodes": [{"tool": "echo", "config": {"text": "x" * 100}}]}
        expects = None if version == 1 else str(version - 1)
        body = {"text": json.dumps(flow), "format": "json", "expects": expects}
        return host.client.put("/workflows/own", json=body, headers=own[who])

    assert [save("ada", version).status_code for version in (1, 2)] == [201, 201]
    assert_over(save("ada", 3), "this token may save versions of 400 bytes")
    assert not (host.folder / "acme" / "own@3.json").exists()
    assert [save("bob", version).status_code for version in (3, 4)] == [201, 201]
    assert_over(save("cal", 5), "this tenant may save versions of 800 bytes")
    (host.folder / "acme" / "own@1.json").unlink()
    assert save("ada", 5).status_code == 201
    assert_over(save("ada", 6), "this token may save versions of")


@pytest.mark.exhaustive
def test_faults_of_a_draft_are_told_up_to_fifty(host: Served, tokens: dict[str, Header]) -> None:
    flow = {"id": "x", "nodes": [{"tool": "echo", "config": {"text": "x"}}], **{f"nodez{n}": 1 for n in range(9000)}}
    body = {"text": json.dumps(flow), "format": "json"}
    problems = host.client.post("/drafts/check", json=body, headers=tokens["ada"]).json()["problems"]
    assert len(problems) == 51
    assert "did you mean nodes?" in problems[0]["message"]
    assert problems[-1]["message"] == "and 8,950 more"
    refused = host.client.post("/drafts/runs", json=body, headers=tokens["ada"]).json()
    assert len(refused["errors"]) == 51
    body = {"text": json.dumps([0] * 30_000), "format": "json"}
    (problem,) = host.client.post("/drafts/check", json=body, headers=tokens["ada"]).json()["problems"]
    assert "values, and a draft may have up to 20,000" in problem["message"]


def test_seconds_of_checks(host: Served, tokens: dict[str, Header]) -> None:
    """A check takes more than the microsecond that a token may have here, and two that a tenant may have."""
    now, spent = [100.0], host.service.checks
    spent.most, spent.clock = 4e-6, lambda: now[0]
    host.service.shares.requests.most = 100
    saved = json.dumps({"id": "own", "version": "1", "nodes": [{"tool": "echo", "config": {"text": "x"}}]})
    body = {"text": saved, "format": "json"}

    def check(who: str) -> httpx2.Response:
        return host.client.post("/drafts/check", json=body, headers=tokens[who])

    assert check("ada").status_code == 200
    assert_over(check("ada"), "this token has had its 1e-06 seconds of checks within a minute")
    assert_over(host.client.put("/workflows/own", json=body, headers=tokens["ada"]), "this token has had")
    assert_over(host.client.post("/drafts/runs", json=body, headers=tokens["ada"]), "this token has had")
    assert_over(check("bob"), "this tenant has had its 2e-06 seconds")
    assert_over(check("eve"), "this server has had its 4e-06 seconds")
    now[0] += 61
    assert check("eve").status_code == 200
    now[0] += 61
    with ThreadPoolExecutor(6) as many:
        found = Counter(answer.status_code for answer in many.map(check, ["ada"] * 6))
    assert found.keys() == {200, 429}, "who waits for a turn has his seconds counted when it comes"
    now[0] += 61
    assert check("bob").status_code == 200
    assert list(spent._tokens) == [("acme", _id(tokens["bob"]))]
