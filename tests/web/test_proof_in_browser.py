"""What the page says of proof, of a run's results and of why a person is asked, in a real browser."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_core.encryption.operator_key import make_operator_file
from agent_core.journal.signature import VARIABLE
from engine_shim.store.erase import ErasureRequest, erase_runs
from engine_shim.web.run_page import write_run_page
from support.browser import Tab, needs_browser, open_tab
from support.by_hand import action, final
from support.optional import needs
from support.served_host import Served, served

pytestmark = needs_browser
ECHO = {"id": "a", "tool": "echo", "config": {"text": "inner"}}
ASKED = {
    "model": "scripted:asked.json",
    "max_steps": 4,
    "prompt": "Order.",
    "allowed_tools": ["stock", {"tool": "order", "provenance": {"article": "stock"}, "approval": "on_unproven"}],
}
FLOWS = {
    "plain.json": {"id": "plain", "nodes": [ECHO]},
    "told.json": {"id": "told", "nodes": [ECHO], "outputs": {"result": "outer {{nodes.a}}"}},
    "asked.json": [action("order", article="A-17", pieces=3), final("Done.")],
    "asks.json": {"id": "asks", "nodes": [{"id": "buyer", "tool": "agent_core", "config": ASKED}]},
}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv(VARIABLE, "k1:a-key-of-this-very-host")
    with served(tmp_path, with_page=True) as found:
        for name, content in FLOWS.items():
            (tmp_path / "workflows" / name).write_text(json.dumps(content))
        yield found


@pytest.fixture
def tab(browser: Any, host: Served) -> Iterator[Tab]:
    with open_tab(browser, host.url) as found:
        yield found


def verify(tab: Tab, run: str) -> str:
    page = tab.open(f"runs/{run}?view=proof")
    page.get_by_role("button", name="Verify").click()
    page.get_by_role("heading", name="Verified by the server").wait_for()
    text: str = page.locator(".proof").inner_text()
    return text


def test_seal_and_what_was_checked_of_it_are_told(
    host: Served, tab: Tab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = host.submit("plain")["run_id"]
    own, _, servers = verify(tab, run).partition("Verified by the server")
    assert "seal: sealed by k1, not checked: no key here" in own
    assert servers.strip().endswith("seal: sealed by k1")
    path = tmp_path / "run.html"
    path.write_text(write_run_page(run, host.client.get(f"/runs/{run}/journal").content), "utf-8")
    tab.page.goto(path.as_uri())
    tab.page.get_by_text("seal: sealed by k1, not checked: no key here").wait_for()
    tab.page.get_by_label("Language").select_option("zh")
    tab.page.get_by_text("由 k1 封印，未校验：此处没有密钥").wait_for()
    monkeypatch.setenv(VARIABLE, "k1:another-key-of-that-name")
    told = verify(tab, run)
    assert "The records are not proven." in told
    assert "sealed by k1, which does not hold" in told
    assert "its seal was not made with the key 'k1'" in told
    tab.open("audit").get_by_role("button", name="Verify and replay").click()
    tab.page.get_by_text("sealed by k1, which does not hold").first.wait_for()
    monkeypatch.delenv(VARIABLE)
    assert verify(tab, run).count("sealed by k1, not checked: no key here") == 2


@needs("cryptography")
def test_run_that_was_erased_is_proven_on_its_page(
    browser: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_operator_file(key := tmp_path / "store.key")
    monkeypatch.setenv("AGENT_CORE_ENCRYPTION_KEY", str(key))
    with served(tmp_path, with_page=True, encrypt=True) as host, open_tab(browser, host.url) as tab:
        run = host.submit("count", sum="1 + 1")["run_id"]
        erase_runs(host.store, [run], ErasureRequest("desk", "2026-11-29T12:00:00+00:00"), None)
        told = verify(tab, run)
        assert "The records are whole." in told
        assert "Its contents were erased." in told
        assert "it was erased" in tab.page.get_by_role("alert").inner_text()
        tab.errors.clear()  # what the browser says of the journal


def test_declared_outputs_are_the_result_and_those_of_nodes_stand_beside_them(host: Served, tab: Tab) -> None:
    for flow, outputs, has_nodes in (("told", '"result": "outer inner"', True), ("plain", '"a": "inner"', False)):
        page = tab.open(f"runs/{host.submit(flow)['run_id']}?view=result")
        page.get_by_role("heading", name="Outputs", exact=True).wait_for()
        section = page.locator("section", has=page.get_by_role("heading", name="Outputs", exact=True))
        assert outputs in section.inner_text()
        assert page.get_by_role("heading", name="Outputs of the nodes").count() == has_nodes


def test_person_reads_why_they_are_asked(host: Served, tab: Tab) -> None:
    run = host.submit("asks")["run_id"]
    waiting = host.await_status(run, "waiting")["waiting"][0]
    page = tab.open(f"runs/{run}")
    text = page.get_by_role("region", name="Waiting for a decision").inner_text()
    assert waiting["message"] in text
    told = next(event for event in host.client.get(f"/runs/{run}/journal").text.splitlines() if '"waiting"' in event)
    assert json.loads(told)["record"]["message"] == waiting["message"]
