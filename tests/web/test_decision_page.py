"""The page of a decision link in a real browser: it decides by its form, without a script, on a phone as well."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.browser import NARROW, Tab, needs_browser, open_tab
from support.served_host import Served, served, write_host

pytestmark = needs_browser
URL = "https://agents.example.com"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("host")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LINK_KEY", "the key of the links")
        write_host(folder, decision_links={"public_url": URL, "secret_env": "LINK_KEY"})
        with served(folder, with_page=True) as found:
            yield found


def open_link(tab: Tab, host: Served, run: str) -> Any:
    link = host.client.post(f"/runs/{run}/links", json={}).json()
    tab.page.goto(host.url + link["url"].removeprefix(URL))
    return tab.page


@pytest.mark.parametrize(
    ("language", "scheme", "button", "decided"),
    [("en-GB", "light", "Approve", "Your decision is recorded"), ("zh-CN", "dark", "批准", "你的决定已记录")],
)
def test_call_is_approved_by_one_click(
    browser: Any, host: Served, language: str, scheme: str, button: str, decided: str
) -> None:
    run = host.submit("buy", article="<b>W-1</b>" + "long" * 100)["run_id"]
    with open_tab(browser, host.url, size=NARROW, scheme=scheme, language=language) as tab:
        page = open_link(tab, host, run)
        tab.check_accessible()
        tab.check_fits()
        assert page.locator("pre b").count() == 0
        page.get_by_role("button", name=button).click()
        page.get_by_role("heading", name=decided).wait_for()
        tab.check_accessible()
    host.await_status(run, "completed")


def test_call_is_denied_with_a_reason_and_its_page_says_so_later(browser: Any, host: Served) -> None:
    run = host.submit("buy", article="W-1")["run_id"]
    with open_tab(browser, host.url) as tab:
        page = open_link(tab, host, run)
        address = page.url
        page.get_by_label("why not?").fill("Not this month.")
        page.get_by_role("button", name="Deny").click()
        page.get_by_role("heading", name="Your decision is recorded").wait_for()
        page.goto(address)
        page.get_by_role("heading", name="This call waits no longer").wait_for()
        tab.errors.clear()  # the browser tells of the status 410
    assert "Not this month." in host.client.get(f"/runs/{run}/journal").text
