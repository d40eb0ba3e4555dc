"""The first look of a new user: the demo on the page, configured, run, approved, proved, and taken along."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browser import needs_browser, open_tab

pytestmark = needs_browser


@pytest.fixture
def page_of_demo(tmp_path: Path) -> Iterator[str]:
    """Where the demo is served: started by its command, in an empty directory."""
    command = [sys.executable, "-c", "from engine_shim.cli.main import main; main()", "demo", "--serve", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            told = ""
            while not (found := re.search(r"its page: (http://\S+)/ui/", told)):
                line = process.stderr.readline()
                assert line, told
                told += line
            yield found[1]
        finally:
            process.terminate()


def test_demo_is_configured_run_approved_proved_and_taken_along(
    page_of_demo: str, browser: Any, tmp_path: Path
) -> None:
    with open_tab(browser, page_of_demo) as tab:
        page = tab.open("")
        page.get_by_role("navigation", name="Main").get_by_role("link", name="Workflows").click()
        page.get_by_role("link", name="trip_costs").first.click()
        page.get_by_role("button", name="agent_core").first.click()
        page.locator("select:visible", has_text="on_unproven").first.select_option("always")
        page.get_by_role("button", name="Save…").click()
        page.get_by_role("button", name="Save version 2").click()
        page.get_by_text("saved", exact=True).wait_for()
        page.get_by_role("tab", name="Run").click()
        page.get_by_label("message").fill("What did the trip to Lisbon cost in all?")
        page.get_by_role("main").get_by_role("button", name="Run", exact=True).last.click()
        page.wait_for_url("**/ui/runs/*")
        waiting = page.get_by_role("region", name="Waiting for a decision")
        for tool in ("file_search", "read_file", "calculator"):
            waiting.get_by_role("region", name=tool).get_by_role("button", name="Approve").click()
        page.get_by_role("heading", name="Ends: completed").wait_for()
        page.get_by_role("tab", name="Proof").click()
        page.get_by_role("button", name="Verify").click()
        page.get_by_text("The records are whole.").wait_for()
        page.get_by_role("button", name="Replay").click()
        page.get_by_text("The replay is identical").wait_for()
        with page.expect_download() as told:
            page.get_by_role("button", name="Export as HTML").click()
        told.value.save_as(tmp_path / "run.html")
    with open_tab(browser, "") as alone:
        alone.page.goto((tmp_path / "run.html").as_uri())
        alone.page.get_by_text("Whole: each of").wait_for()
        alone.page.get_by_role("tab", name="Decisions").click()
        assert alone.page.get_by_role("row", name="approve").count() == 3
