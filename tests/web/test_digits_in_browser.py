"""Large and exact numbers in the page's forms, in a real browser: each typed digit reaches the run and is shown."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.browser import Tab, needs_browser, open_tab
from support.served_host import Served, served

pytestmark = needs_browser
BIG = 1234567890123456789
FIND = {
    "id": "find",
    "inputs": {
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 10},
            "rate": {"type": "number"},
            "more": {"type": "object"},
        },
        "required": ["id"],
    },
    "nodes": [
        {
            "id": "a",
            "tool": "json_transform",
            "config": {"data": ["{{external.id}}", "{{external.rate?}}", "{{external.more?}}"], "expression": "@"},
        }
    ],
}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("host")
    with served(folder, with_page=True) as found:
        (folder / "workflows" / "find.json").write_text(json.dumps(FIND))
        yield found


@pytest.fixture
def tab(browser: Any, host: Served) -> Iterator[Tab]:
    with open_tab(browser, host.url) as found:
        yield found


def run_of(page: Any) -> str:
    page.wait_for_url("**/ui/runs/*")
    return str(page.url.rsplit("/", 1)[1])


def test_run_form_sends_each_digit(host: Served, tab: Tab) -> None:
    page = tab.open("workflows/find?view=run")
    page.get_by_label("id").fill(str(BIG))
    page.get_by_label("rate").fill("1.0")
    page.get_by_label("more").fill(f'{{"account": {BIG}, "half": 0.50}}')
    page.locator("form.run-form button[type=submit]").click()
    found = host.await_status(run_of(page), "completed")["outputs"]["a"]
    assert json.dumps(found) == f'[{BIG}, 1.0, {{"account": {BIG}, "half": 0.5}}]'
    page.get_by_role("tab", name="Result").click()
    page.locator("pre").filter(has_text=f'"account": {BIG}').first.wait_for()
    assert '"rate": 1.0' in page.locator("main").inner_text()


@pytest.mark.parametrize(
    ("label", "text", "why"),
    [
        ("rate", "0.1000000000000000055", "it would be read as 0.1"),
        ("rate", "1e400", "larger than a number can be"),
        ("more", '{"deep": [12345678901234567890.5]}', "more digits"),
        ("more", '{"deep": [', "not JSON yet"),
    ],
)
def test_what_no_run_could_read_is_a_fault_at_its_field(tab: Tab, label: str, text: str, why: str) -> None:
    page = tab.open("workflows/find?view=run")
    page.get_by_label("id").fill("12")
    page.get_by_label(label).fill(text)
    page.locator(".fault").get_by_text(why).wait_for()
    run = "form.run-form button[type=submit]"
    page.locator(f"{run}:disabled").wait_for()
    page.get_by_label(label).fill("2.5" if label == "rate" else "{}")
    page.locator(".fault").wait_for(state="detached")
    page.locator(f"{run}:enabled").wait_for()


def test_limits_of_a_number_are_still_held(tab: Tab) -> None:
    page = tab.open("workflows/find?view=run")
    page.get_by_label("id").fill("9")
    page.locator("form.run-form button[type=submit]").click()
    page.get_by_role("alert").get_by_text("(422)").wait_for()
    tab.errors[:] = [told for told in tab.errors if "422" not in told]


def test_edited_arguments_keep_each_digit(host: Served, tab: Tab) -> None:
    page = tab.open(f"runs/{host.submit('buy', article='B-1')['run_id']}")
    waiting = page.get_by_role("region", name="Waiting for a decision")
    waiting.get_by_role("button", name="Edit…").click()
    waiting.get_by_label("Arguments").fill('{"article": "B-1", "pieces": 1.00000000000000000001}')
    waiting.get_by_role("button", name="Approve as edited").click()
    waiting.get_by_role("alert").get_by_text("more digits").wait_for()
    waiting.get_by_label("Arguments").fill(json.dumps({"article": "B-1", "pieces": BIG}))
    waiting.get_by_role("button", name="Approve as edited").click()
    page.get_by_role("heading", name="Ends: completed").wait_for()
    assert f"ordered {BIG} of B-1" in page.locator("main").inner_text()
    assert (host.folder / "orders.txt").read_text().splitlines()[-1] == f"B-1 {BIG}"


def test_arguments_of_a_waiting_call_come_into_the_dialog_with_each_digit(host: Served, tab: Tab) -> None:
    config = {"article": "B-2", "pieces": BIG}
    flow = {"id": "big", "nodes": [{"id": "o", "tool": "order", "config": config, "approval": "always"}]}
    (host.folder / "workflows" / "big.json").write_text(json.dumps(flow))
    page = tab.open(f"runs/{host.submit('big')['run_id']}")
    page.get_by_role("button", name="Edit…").click()
    assert json.loads(page.get_by_label("Arguments").input_value()) == config
    page.get_by_role("button", name="Approve as edited").click()
    page.get_by_role("heading", name="Ends: completed").wait_for()
    assert (host.folder / "orders.txt").read_text().splitlines()[-1] == f"B-2 {BIG}"


def test_tool_is_executed_with_each_digit(host: Served, tab: Tab) -> None:
    page = tab.open("tools/order")
    page.get_by_label("Arguments as JSON").fill(json.dumps({"article": "X-1", "pieces": BIG}))
    page.get_by_role("button", name="Execute").click()
    page.get_by_text(f"ordered {BIG} of X-1").wait_for()


def test_definition_is_edited_in_forms_and_texts_with_each_digit(host: Served, tab: Tab) -> None:
    text = f"id: digits\nnodes:\n  - {{id: o, tool: order, config: {{article: a, pieces: {BIG}}}}} # as it was\n"
    (host.folder / "workflows" / "digits.yaml").write_text(text)
    page = tab.open("workflows/digits?node=o")
    assert page.get_by_role("textbox", name="pieces").input_value() == str(BIG)
    page.get_by_role("textbox", name="article").fill("b")
    page.get_by_role("tab", name="JSON").click()
    area = page.get_by_role("textbox", name="The definition as JSON")
    assert f'"pieces": {BIG}' in area.input_value()
    area.fill(area.input_value().replace(str(BIG), f"{BIG}000"))
    page.get_by_role("tab", name="Form").click()
    assert page.get_by_role("textbox", name="pieces").input_value() == f"{BIG}000"
    page.get_by_role("textbox", name="pieces").fill(f"{BIG}001")
    page.get_by_role("tab", name="YAML").click()
    assert page.get_by_role("textbox", name="The definition as YAML").input_value() == text.replace(
        f"article: a, pieces: {BIG}", f"article: b, pieces: {BIG}001"
    )
