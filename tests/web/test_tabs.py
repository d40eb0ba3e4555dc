"""Many tabs on one server: one connection follows their runs, a hidden tab holds none, and every request has an end."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.browser import Tab, needs_browser, open_tab
from support.served_host import Served, served

pytestmark = needs_browser
MANY = 8
"""More than the six connections that a browser opens to a server."""
HIDE = """(isHidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("host"), with_page=True) as found:
        yield found


@pytest.fixture
def tab(browser: Any, host: Served) -> Iterator[Tab]:
    with open_tab(browser, host.url) as found:
        yield found


def open_beside(tab: Tab, run: str) -> Any:
    """One more tab of the same browser."""
    page = tab.page.context.new_page()
    page.set_default_timeout(10_000)
    page.goto(f"{tab.root}/ui/runs/{run}")
    return page


def is_followed(host: Served, run: str) -> bool:
    feed = host.service.tenants[None].runs.feeds.find(run)
    return feed is not None and feed.is_followed


def await_followed(host: Served, page: Any, run: str, expected: bool) -> None:
    for _ in range(200):
        if is_followed(host, run) is expected:
            return
        page.evaluate("new Promise((resolve) => setTimeout(resolve, 25))")  # Playwright works in this thread alone
    raise AssertionError(f"{run} is {'not ' if expected else ''}followed")


def test_many_waiting_runs_load_and_a_decision_in_one_tab_is_shown_in_the_others(host: Served, tab: Tab) -> None:
    runs = [host.submit("buy", article=f"M-{n}")["run_id"] for n in range(MANY)]
    pages = [open_beside(tab, run) for run in runs]
    for page in pages:
        page.get_by_role("button", name="Approve").wait_for()
    beside = open_beside(tab, runs[0])
    beside.get_by_role("button", name="Approve").click()
    for page in (beside, pages[0]):
        page.get_by_role("heading", name="Ends: completed").wait_for()
    host.client.post(f"/runs/{runs[-1]}/decide", json={"decision": "deny"})
    pages[-1].get_by_text("denied").first.wait_for()
    pages[0].close()
    host.client.post(f"/runs/{runs[1]}/decide", json={"decision": "approve"})
    pages[1].get_by_role("heading", name="Ends: completed").wait_for()


def test_hidden_tab_follows_nothing_and_catches_up_when_it_is_shown(host: Served, tab: Tab) -> None:
    run = host.submit("buy", article="H-1")["run_id"]
    page = tab.open(f"runs/{run}")
    page.get_by_role("button", name="Approve").wait_for()
    await_followed(host, page, run, expected=True)
    page.evaluate(HIDE, True)
    await_followed(host, page, run, expected=False)
    host.client.post(f"/runs/{run}/decide", json={"decision": "approve"})
    assert not is_followed(host, run)
    page.evaluate(HIDE, False)
    page.get_by_role("heading", name="Ends: completed").wait_for()


def test_run_is_followed_by_a_browser_without_shared_workers(host: Served, tab: Tab) -> None:
    run = host.submit("buy", article="W-1")["run_id"]
    tab.page.add_init_script("delete globalThis.SharedWorker")
    page = tab.open(f"runs/{run}")
    await_followed(host, page, run, expected=True)
    host.client.post(f"/runs/{run}/decide", json={"decision": "approve"})
    page.get_by_role("heading", name="Ends: completed").wait_for()


def test_turns_of_a_conversation_go_on_beside_many_runs(host: Served, tab: Tab) -> None:
    for n in range(MANY):
        open_beside(tab, host.submit("buy", article=f"T-{n}")["run_id"])
    page = tab.open("chat?agent=buyer")
    page.get_by_label("Message").fill("Order three A-17.")
    page.get_by_role("button", name="Send").click()
    page.get_by_role("button", name="Approve").click()
    page.get_by_text("It is ordered.").locator("visible=true").first.wait_for()


def test_request_that_is_not_answered_says_so_and_what_to_do(tab: Tab) -> None:
    page = tab.open("tools")
    page.get_by_role("heading", name="Tools", exact=True).wait_for()
    page.route("**/silent", lambda route: None)
    script = """async (method) => {
      const { ask } = await import(new URL("static/kit/api.js", document.baseURI));
      return ask("silent", { method, limit: 0.2 }).catch((error) => [error.status, error.kind, error.message]);
    }"""
    read, wrote = [page.evaluate(script, method) for method in ("GET", "POST")]
    assert read[:2] == wrote[:2] == [0, "timeout"]
    assert "try again" in read[2]
    assert "check before you ask again" in wrote[2]
    page.route("**/silent", lambda route: route.fulfill(body="<!doctype html>Sign in", content_type="text/html"))
    assert "Another program" in page.evaluate(script, "GET")[2]
    page.route("**/silent", lambda route: route.fulfill(status=502, body="<h1>Bad Gateway</h1>"))
    status, _, told = page.evaluate(script, "GET")
    assert (status, "Another program" in told) == (502, True)
    tab.errors.clear()  # what the browser says of the second


def test_page_that_loads_or_cannot_start_says_so(tab: Tab) -> None:
    """With little motion, too; one element may take the place of another meanwhile."""
    from playwright.sync_api import expect

    tab.page.route("**/app.js", lambda route: route.abort())
    unstarted = tab.open("tools").locator("p", has_text="The script of this page has not run")
    expect(unstarted).to_have_css("opacity", "1")
    tab.page.unroute("**/app.js")
    tab.page.route("**/tools", lambda route: None if "/ui/" not in route.request.url else route.continue_())
    expect(tab.open("tools").get_by_text("Loading…")).to_have_css("opacity", "1")
    expect(unstarted).to_have_count(0)
    tab.errors.clear()  # of the script that was not loaded


def test_refused_edit_is_told_as_it_is_and_keeps_what_was_written(host: Served, tab: Tab) -> None:
    page = tab.open(f"runs/{host.submit('buy', article='R-1')['run_id']}")
    waiting = page.get_by_role("region", name="Waiting for a decision")
    waiting.get_by_role("button", name="Edit…").click()
    written = json.dumps({"article": "R-1", "pieces": "many"})
    waiting.get_by_label("Arguments").fill(written)
    waiting.get_by_role("button", name="Approve as edited").click()
    waiting.get_by_role("alert").get_by_text("nothing was decided").wait_for()
    assert "Somebody else" not in waiting.inner_text()
    assert waiting.get_by_label("Arguments").input_value() == written
    waiting.get_by_label("Arguments").fill(json.dumps({"article": "R-1", "pieces": 2}))
    waiting.get_by_role("button", name="Approve as edited").click()
    page.get_by_role("heading", name="Ends: completed").wait_for()
    tab.errors[:] = [told for told in tab.errors if "409" not in told and "ERR_FAILED" not in told]


def test_decision_that_comes_too_late_says_that_somebody_else_has_decided(host: Served, tab: Tab) -> None:
    run = host.submit("buy", article="L-1")["run_id"]
    page = tab.open(f"runs/{run}?view=decisions")
    page.get_by_text("Nobody has decided anything.").wait_for()
    page.route("**/journal?*", lambda route: route.abort())  # it does not hear of the other decision
    waiting = host.await_status(run, "waiting")["waiting"][0]
    at = {key: waiting[key] for key in ("strand", "n")}
    host.client.post(f"/runs/{run}/decide", json={"decision": "approve", "at": at})
    host.await_status(run, "completed")
    page.get_by_role("button", name="Approve").click()
    page.get_by_text("Your decision about order does not count").wait_for()
    page.unroute("**/journal?*")
    page.get_by_role("row", name="approve").wait_for()
    page.get_by_text("Your decision about order does not count").wait_for()
    answer = host.client.post(f"/runs/{run}/decide", json={"decision": "deny", "at": at})
    assert (answer.status_code, answer.json()["kind"]) == (409, "already_decided")
    tab.errors[:] = [told for told in tab.errors if "409" not in told and "ERR_FAILED" not in told]
