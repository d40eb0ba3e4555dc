"""Links that decide about one waiting call: who can make them, what they show, that each decides once."""

import html
import json
import re
import time
from asyncio import to_thread
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent_core.models import ScriptedModel
from agent_core.node import NodeContext, execute
from engine_shim.cli.log import PACKAGES
from engine_shim.errors import DefinitionError
from engine_shim.service.link_token import LinkGrant, write_token
from support.by_hand import Q, action, final
from support.served_host import Served, served, write_host
from support.temporal_project import until
from utools import Tool

KEY, OLD = "the key of the links", "the key of last year"
URL = "https://agents.example.com"
LINKS = {"public_url": f"{URL}/", "secret_env": "LINK_KEY", "old_secret_env": "OLD_LINK_KEY", "lifetime": 3600}
HTML = {"Accept": "text/html,application/xhtml+xml"}
APPROVE = {"decision": "approve"}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("host")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LINK_KEY", KEY)
        patch.setenv("OLD_LINK_KEY", OLD)
        write_host(folder, decision_links=LINKS, tenants={"acme": {"workflows": "workflows"}, "globex": {}})
        with served(folder, is_open=False, with_page=True) as found:
            yield found


def submit(host: Served, article: str = "W-1", *, tenant: str | None = None) -> str:
    headers = host.issue("starter", "run", "read", tenant=tenant)
    answer = host.client.post("/workflows/buy/runs", json={"external": {"article": article}}, headers=headers)
    assert answer.json()["status"] == "waiting", answer.text
    return str(answer.json()["run_id"])


def make_link(host: Served, run: str, *, tenant: str | None = None, **body: Any) -> dict[str, Any]:
    answer = host.client.post(f"/runs/{run}/links", json=body, headers=host.issue("mailer", "decide", tenant=tenant))
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def path_of(link: dict[str, Any]) -> str:
    assert link["url"].startswith(f"{URL}/decide/")
    return str(link["url"].removeprefix(URL))


def token_of(run: str, *, key: str = KEY, expires: float = 2**33, n: int = 2, tenant: str | None = None) -> str:
    return write_token(LinkGrant(run, "flow/order.1", n, int(expires), "test", tenant), key.encode())


def place_of(host: Served, run: str) -> tuple[str, int]:
    (call,) = host.client.get(f"/runs/{run}", headers=host.issue("r", "read")).json()["waiting"]
    return call["strand"], call["n"]


def test_link_shows_its_call_and_decides_about_it_once(host: Served) -> None:
    run = submit(host)
    link = make_link(host, run, **{"for": "ada@example.com"}, expires_in=600)
    shown = host.client.get(path_of(link))
    assert shown.json() == {
        "tool": "order",
        "args": {"article": "W-1", "pieces": 3},
        "reason": "awaiting_approval",
        "message": shown.json()["message"],
        "decisions": ["approve", "deny"],
        "expires_at": link["expires_at"],
    }
    assert shown.headers["referrer-policy"] == "no-referrer"
    assert shown.headers["cache-control"] == "no-store"
    decided = host.client.post(path_of(link), json=APPROVE)
    assert (decided.json(), decided.headers["referrer-policy"]) == (APPROVE, "no-referrer")
    reader = host.issue("reader", "read")
    until(lambda: host.client.get(f"/runs/{run}", headers=reader).json()["status"] == "completed", "the run ends")
    journal = host.client.get(f"/runs/{run}/journal", headers=reader).text
    assert f'"by":"link:{link["id"]} for ada@example.com (made by mailer)"' in journal
    assert host.client.get(f"/runs/{run}/verify", headers=reader).json()["ok"]
    for again in (host.client.post(path_of(link), json=APPROVE), host.client.get(path_of(link))):
        assert (again.status_code, again.json()["kind"]) == (410, "link_used")


def test_no_look_at_a_link_decides(host: Served) -> None:
    run = submit(host)
    path = path_of(make_link(host, run))
    for headers in ({}, HTML, {"User-Agent": "scanner"}, {"Purpose": "prefetch"}):
        assert host.client.get(path, headers=headers).status_code == 200
        assert host.client.get(path, params={"decision": "approve"}, headers=headers).status_code in (200, 422)
        assert host.client.head(path, headers=headers).status_code == 405
    assert host.client.get(path).json()["decisions"] == ["approve", "deny"]


def test_page_of_a_link_decides_by_its_form(host: Served) -> None:
    run = submit(host)
    link = make_link(host, run)
    page = host.client.get(path_of(link), headers=HTML)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script" not in policy
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["cache-control"] == "no-store"
    (action,) = re.findall(r'action="([^"]+)"', page.text)
    sent = {"decision": "deny", "message": "Not this month."}
    decided = host.client.post(f"/decide/{action}", data=sent, headers={**HTML, "Origin": "null"})
    assert (decided.status_code, "Your decision is recorded" in decided.text) == (200, True)
    again = host.client.post(f"/decide/{action}", data=sent, headers=HTML)
    assert (again.status_code, "This call waits no longer" in again.text) == (410, True)
    assert "Not this month." in host.client.get(f"/runs/{run}/journal", headers=host.issue("r", "read")).text


def test_form_that_no_page_sends_decides_nothing(host: Served) -> None:
    action = f"{path_of(make_link(host, submit(host)))}/form"
    for form in ("decision=approve&decision=deny", "a=1&decision=approve&message=x", "decision=edit", ""):
        assert host.client.post(action, content=form, headers=HTML).status_code == 422, form
    assert host.client.post(action, content="decision=approve&message=", headers=HTML).status_code == 200
    unknown = host.client.post("/decide/nobody/form", content="&a=1" * 1000, headers=HTML)
    assert (unknown.status_code, "There is no such link" in unknown.text) == (404, True)  # before the form is read


@pytest.mark.exhaustive
def test_page_speaks_the_language_of_the_browser(host: Served) -> None:
    path = path_of(make_link(host, submit(host)))
    page = host.client.get(path, headers={**HTML, "Accept-Language": "zh-CN,zh;q=0.9,en;q=0.5"}).text
    assert ['<html lang="zh">' in page, "批准" in page, "否决" in page, "Approve" in page] == [True, True, True, False]
    assert "这个调用" not in host.client.get(path, headers={**HTML, "Accept-Language": "en-GB"}).text


def test_nothing_that_stands_in_a_call_is_markup_or_turns_the_page(host: Served) -> None:
    hostile = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;\u202eevil\u200b\x1b[31m"
    page = host.client.get(path_of(make_link(host, submit(host, hostile))), headers=HTML).text
    assert "<script" not in page
    assert "<img" not in page
    assert html.escape("</pre><script>alert(1)</script>") in page
    assert "\u202e" not in page
    assert "\\u{202e}" in page


@pytest.mark.exhaustive
def test_person_for_whom_a_link_is_cannot_forge_a_line(host: Served) -> None:
    run = submit(host)
    for name in ("Ada\r\nX: y", "", "a" * 101, "\x00"):
        answer = host.client.post(f"/runs/{run}/links", json={"for": name}, headers=host.issue("m", "decide"))
        assert answer.status_code == 422, name


@pytest.mark.exhaustive
@pytest.mark.parametrize("accept", ["application/json", "text/html"])
@pytest.mark.parametrize(
    "token",
    [
        "none",
        "a.b",
        "%0d%0aX-Injected:%20yes",
        "..%2f..%2fruns",
        "%00",
        "%ff",
        "A" * 5000,
        "eyJyIjoiIn0." + "A" * 43,
    ],
)
def test_what_is_no_link_is_not_found(host: Served, token: str, accept: str) -> None:
    for answer in (
        host.client.get(f"/decide/{token}", headers={"Accept": accept}),
        host.client.post(f"/decide/{token}", json=APPROVE, headers={"Accept": accept}),
    ):
        assert answer.status_code == 404
        assert "x-injected" not in answer.headers


def test_tampered_foreign_and_expired_links_are_refused(host: Served) -> None:
    run = submit(host)
    strand, n = place_of(host, run)
    assert strand == "flow/order.1"

    def ask(token: str) -> httpx2.Response:
        return host.client.post(f"/decide/{token}", json=APPROVE)

    refusals = {
        "another key": ask(token_of(run, n=n, key="the key of somebody else")),
        "no such tenant": ask(token_of(run, n=n, tenant="nobody")),
        "other tenant": ask(token_of(run, n=n, tenant="acme")),
        "another call": ask(token_of(run, n=n + 1)),
        "no such run": ask(token_of("gone", n=n)),
        "expired": ask(token_of(run, n=n, expires=time.time() - 1)),
    }
    assert {name: (each.status_code, each.json()["kind"]) for name, each in refusals.items()} == {
        "another key": (404, "not_found"),
        "no such tenant": (404, "not_found"),
        "other tenant": (410, "run_deleted"),
        "another call": (410, "link_used"),
        "no such run": (410, "run_deleted"),
        "expired": (410, "link_expired"),
    }
    assert ask(token_of(run, n=n, key=OLD)).status_code == 200  # the key of before the rotation


@pytest.mark.exhaustive
def test_link_of_a_deleted_run_and_of_a_cancelled_one_is_gone(host: Served) -> None:
    cancelled, deleted = submit(host), submit(host)
    paths = [path_of(make_link(host, run)) for run in (cancelled, deleted)]
    host.client.post(f"/runs/{cancelled}/cancel", headers=host.issue("s", "run"))
    host.store.forget(deleted)
    kinds = [host.client.post(path, json=APPROVE).json()["kind"] for path in paths]
    assert kinds == ["link_used", "run_deleted"]


@pytest.mark.exhaustive
def test_link_resumes_no_paused_run(host: Served) -> None:
    run = submit(host)
    path = path_of(make_link(host, run))
    host.client.post(f"/runs/{run}/pause", headers=host.issue("s", "run"))
    for answer in (host.client.get(path), host.client.post(path, json=APPROVE)):
        assert (answer.status_code, answer.json()["kind"]) == (409, "decision")
    assert host.client.get(f"/runs/{run}", headers=host.issue("r", "read")).json()["status"] == "paused"


def test_link_allows_only_what_it_shows(host: Served) -> None:
    run = submit(host)
    path = path_of(make_link(host, run))
    for body, status in (
        ({"decision": "retry"}, 409),
        ({"decision": "edit", "args": {"pieces": 9}}, 422),
        ({"decision": "done", "output": 1}, 422),
        ({"decision": "approve", "message": "x"}, 422),
        ({"decision": "approve", "at": "flow/order.1:2"}, 422),
        ({}, 422),
    ):
        assert host.client.post(path, json=body).status_code == status, body
    token = path.removeprefix("/decide/")
    for other in (f"/runs/{run}", f"/runs/{run}/journal", f"/runs/{run}/events", "/runs"):
        assert host.client.get(other, headers={"Authorization": f"Bearer {token}"}).status_code == 401


def test_of_many_who_decide_at_once_one_does(host: Served) -> None:
    size = 8
    run = submit(host)
    path = path_of(make_link(host, run))
    choices = ("approve", "deny")

    def decide(number: int) -> int:
        with httpx2.Client(base_url=host.url, timeout=30) as client:
            return client.post(path, json={"decision": choices[number % 2]}).status_code

    with ThreadPoolExecutor(size) as pool:
        statuses = sorted(pool.map(decide, range(size)))
    assert statuses == [200, *[410] * (size - 1)]
    journal = host.client.get(f"/runs/{run}/journal", headers=host.issue("r", "read")).text
    assert sum('"kind":"resolved"' in line and '"link:' in line for line in journal.splitlines()) == 1


@pytest.mark.exhaustive
def test_only_who_may_decide_makes_links_and_for_own_runs_alone(host: Served) -> None:
    run = submit(host, tenant="acme")
    for headers, status in (
        ({}, 401),
        (host.issue("a", "read", "run", tenant="acme"), 403),
        (host.issue("g", "decide", tenant="globex"), 404),
        (host.issue("h", "decide"), 404),
    ):
        assert host.client.post(f"/runs/{run}/links", json={}, headers=headers).status_code == status
    link = make_link(host, run, tenant="acme")
    assert host.client.get(path_of(link)).json()["tool"] == "order"
    assert host.client.post(path_of(link), json={"decision": "deny"}).status_code == 200


@pytest.mark.exhaustive
def test_run_comes_with_links_for_who_may_decide_alone(host: Served) -> None:
    run = submit(host)
    reader, both = host.issue("r", "read"), host.issue("b", "read", "decide")
    asked = {"links": True}
    assert host.client.get(f"/runs/{run}", params=asked, headers=reader).status_code == 403
    assert "link" not in host.client.get(f"/runs/{run}", headers=both).json()["waiting"][0]
    (call,) = host.client.get(f"/runs/{run}", params=asked, headers=both).json()["waiting"]
    assert host.client.post(path_of(call["link"]), json=APPROVE).status_code == 200


@pytest.mark.exhaustive
def test_link_holds_no_longer_than_the_host_allows(host: Served) -> None:
    run = submit(host)
    for asked, most in ((30 * 86_400, 3600), (60, 60)):
        expires = datetime.fromisoformat(make_link(host, run, expires_in=asked)["expires_at"])
        assert expires.timestamp() - time.time() <= most
    for wrong in (59, 30 * 86_400 + 1, -1, "1h"):
        answer = host.client.post(f"/runs/{run}/links", json={"expires_in": wrong}, headers=host.issue("m", "decide"))
        assert answer.status_code == 422


@pytest.mark.exhaustive
def test_link_is_made_for_a_waiting_call_alone(host: Served) -> None:
    run = submit(host)
    headers = host.issue("m", "decide")
    wrong = host.client.post(f"/runs/{run}/links", json={"at": "flow/order.1:99"}, headers=headers)
    assert (wrong.status_code, wrong.json()["errors"][0]["where"]) == (409, "body/at")
    strand, n = place_of(host, run)
    host.client.post(path_of(make_link(host, run, at=f"{strand}:{n}")), json={"decision": "deny"})
    late = host.client.post(f"/runs/{run}/links", json={}, headers=headers)
    assert (late.status_code, late.json()["kind"]) == (409, "decision")


@pytest.mark.exhaustive
def test_decision_of_a_page_of_another_origin_is_refused_elsewhere(host: Served) -> None:
    run = submit(host)
    headers = {**host.issue("d", "decide"), "Origin": "null"}
    assert host.client.post(f"/runs/{run}/decide", json=APPROVE, headers=headers).status_code == 403
    evil = {"Origin": "https://evil.example"}
    assert host.client.post(path_of(make_link(host, run)), json=APPROVE, headers=evil).status_code == 403


@pytest.mark.exhaustive
def test_call_too_long_to_be_shown_whole_is_not_approved_by_the_page(host: Served) -> None:
    path = path_of(make_link(host, submit(host, "x" * 150_000)))
    page = host.client.get(path, headers=HTML).text
    assert ['value="approve"' in page, 'value="deny"' in page] == [False, True]


@pytest.mark.exhaustive
def test_no_link_is_in_the_log(host: Served, caplog: pytest.LogCaptureFixture) -> None:
    for package in PACKAGES:
        caplog.set_level("DEBUG", package)
    link = make_link(host, submit(host))
    host.client.get(path_of(link))
    host.client.post(path_of(link), json=APPROVE)
    host.client.post(path_of(link), json=APPROVE)
    told = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith(PACKAGES))
    assert told
    assert path_of(link).removeprefix("/decide/") not in told


@pytest.mark.exhaustive
def test_host_without_links_makes_none(tmp_path: Path) -> None:
    with served(tmp_path) as host:
        run = host.submit("buy", article="W-1")["run_id"]
        answer = host.client.post(f"/runs/{run}/links", json={})
        assert (answer.status_code, answer.json()["kind"]) == (409, "no_links")
        assert host.client.get(f"/decide/{token_of(run)}").status_code == 404


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("keys", "where"),
    [
        ({"decision_links": {**LINKS, "secret_env": "SHORT_KEY"}}, "decision_links/secret_env"),
        ({"decision_links": {**LINKS, "old_secret_env": "SHORT_KEY"}}, "decision_links/old_secret_env"),
        ({"decision_links": {**LINKS, "secret_env": "UNSET_KEY"}}, "decision_links/secret_env"),
        ({"decision_links": {**LINKS, "public_url": "http://agents.example.com"}}, "decision_links/public_url"),
        ({"decision_links": {**LINKS, "public_url": "https://agents.example.com/?a"}}, "decision_links/public_url"),
        ({"decision_links": {**LINKS, "public_url": "https://a@b.example"}}, "decision_links/public_url"),
        ({"decision_links": {**LINKS, "lifetime": 59}}, "decision_links/lifetime"),
        (
            {"webhooks": [{"url": "https://a.example", "secret_env": "LINK_KEY", "decision_links": True}]},
            "webhooks/0/decision_links",
        ),
        (
            {"tenants": {"a": {"callbacks": {"allowed_domains": ["b.example"], "secret_env": "LINK_KEY"}}}},
            "",
        ),
    ],
)
def test_configuration_that_cannot_work_is_refused(
    keys: dict[str, Any], where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINK_KEY", KEY)
    monkeypatch.setenv("OLD_LINK_KEY", OLD)
    monkeypatch.setenv("SHORT_KEY", "fifteen letters")
    if not where:
        with served(tmp_path, **keys):
            return
    with pytest.raises(DefinitionError) as told, served(tmp_path, **keys):
        pass
    assert where in str(told.value)


@pytest.mark.exhaustive
def test_definitions_read_no_key_of_links(host: Served) -> None:
    config = host.service.tenants[None].config
    assert [config.is_own(name) for name in ("LINK_KEY", "OLD_LINK_KEY", "HOME")] == [True, True, False]
    assert host.service.tenants["acme"].config.is_own("LINK_KEY")


@pytest.mark.exhaustive
def test_document_says_that_links_need_no_token(host: Served) -> None:
    paths = host.client.get("/openapi.json").json()["paths"]
    operations = paths["/decide/{token}"]
    assert {name: each["security"] for name, each in operations.items()} == {"get": [], "post": []}
    assert json.dumps(operations["post"]["requestBody"]).count("LinkDecision") == 1


async def test_link_decides_in_an_agents_own_run_which_its_program_goes_on_with(host: Served) -> None:
    async def look(args: Any, context: Any) -> str:
        return "seen"

    tool, model = Tool("look", "Looks.", Q, look, effect="read"), ScriptedModel([action(), final("done")])
    allowed = [{"tool": "look", "approval": "always"}]
    config = {"model": "scripted", "max_steps": 3, "prompt": "Go.", "allowed_tools": allowed}
    context = NodeContext(run_id="mine", journal=host.store.journal, tools=[tool], model=model)
    assert (await execute(config, context)).status == "waiting"
    path = path_of(await to_thread(make_link, host, "mine"))
    decided = await to_thread(host.client.post, path, json=APPROVE)
    assert decided.status_code == 200, decided.text
    assert (await to_thread(host.client.post, path, json=APPROVE)).status_code == 410
    assert (await execute(config, context)).final_answer == "done"
