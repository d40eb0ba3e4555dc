"""The editor of workflows in a real browser: configured by forms, drawn, checked as it is typed, saved, run."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from engine_shim.definition.load import load_workflow
from support.browser import NARROW, Tab, needs_browser, open_tab
from support.served_host import Served, served
from utools.document import read_document

pytestmark = needs_browser
EVIL = "<img src=x onerror=alert(1)>\u202etxet"
SLOGAN = """\
# Writes slogans until one is good.
id: slogan
version: "1"
inputs:
  type: object
  properties:
    article: {type: string, description: Which article}
    tries: {type: integer, default: 3}
  required: [article]
entry: [look, write]
nodes:
  - id: look            # the warehouse
    tool: stock
    config: {article: "{{external.article}}"}
  - id: write
    tool: agent_core
    config:
      model: scripted:desk-replies.json
      max_steps: 3
      allowed_tools:
        - order
      # what was said before
      prompt: "Write of {{external.article}}. Said of the last one: {{nodes.check.final_answer?}}"
  - id: check
    tool: agent_core
    config:
      model: scripted:desk-replies.json
      max_steps: 2
      allowed_tools: [stock]
      prompt: "Say 'good', or what is wrong with {{nodes.write.final_answer}}"
  - {id: done, tool: echo, config: {text: "{{nodes.write.final_answer}}"}}
edges:
  - {from: write, to: check}
  - {from: check, to: write, when: "output.final_answer != 'There are 12.'"}
  - {from: check, to: done}
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("host"), with_page=True) as found:
        yield found


@pytest.fixture
def flow(host: Served, request: pytest.FixtureRequest) -> str:
    """A workflow that only this test changes, by its id."""
    name = re.sub(r"\W+", "_", request.node.name)[:60]
    (host.folder / f"workflows/{name}.yaml").write_text(SLOGAN.replace("id: slogan", f"id: {name}"))
    return name


@pytest.fixture
def tab(browser: Any, host: Served) -> Iterator[Tab]:
    with open_tab(browser, host.url) as found:
        yield found


def at(page: Any, path: str) -> Any:
    """The control of a place in the definition."""
    return page.locator(f'[data-path="{path}"]')


def read_text(page: Any, view: str = "YAML") -> str:
    """The text of a view."""
    page.get_by_role("tab", name=view).click()
    text: str = page.get_by_label(f"The definition as {view}").input_value()
    page.get_by_role("tab", name="Form").click()
    return text


def parse(text: str) -> Any:
    """A YAML text as the product reads it."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "flow.yaml").write_text(text)
        return read_document(Path(folder) / "flow.yaml", "it").data


def await_badge(page: Any, text: str) -> None:
    page.locator(".edit-head").get_by_role("status").filter(has_text=re.compile(f"^{text}$")).wait_for()


def test_an_agent_is_configured_by_its_form(tab: Tab, flow: str) -> None:
    page = tab.open(f"workflows/{flow}?node=write")
    at(page, "nodes/1/config/model").fill("")
    page.locator(".slot", has=at(page, "nodes/1/config/model")).locator(".fault").wait_for()
    at(page, "nodes/1/config/model").fill("scripted:desk-replies.json")
    at(page, "nodes/1/config/temperature").fill("0.2")
    at(page, "nodes/1/config/prompt").fill("Write of {{external.article}}.")
    at(page, "nodes/1/config/max_steps").fill("7")
    at(page, "nodes/1/config/system_prompt").fill("You write.\nBriefly.")
    page.get_by_label("timeout: none (null)").first.check()
    page.get_by_role("searchbox", name="Search the tools").fill("how many pieces")
    page.get_by_role("checkbox", name=re.compile("^stock")).check()
    page.locator(".allowed-tool summary", has_text="order").first.click()
    order = page.locator(".allowed-tool", has_text="order")
    order.get_by_label("approval").select_option(label="on_write")
    order.get_by_label("max_calls").fill("2")
    order.get_by_text("Preset: values").click()
    at(page, "nodes/1/config/allowed_tools/0/preset/pieces").fill("3")
    order.get_by_text("Narrowing: what").click()
    order.get_by_role("combobox", name="article").select_option(label="one of these values")
    order.get_by_label("Values of article, one a line").fill("A-17\nB-4")
    order.get_by_text("Provenance: where").click()
    order.get_by_label("article").last.fill("user, stock")
    assert at(page, "nodes/1/config/primary_output").input_value() == "{{nodes.write.final_answer}}"
    assert not at(page, "nodes/1/config/primary_output").is_editable()
    await_badge(page, "No faults")
    tab.check_accessible()
    text = read_text(page)
    assert "# what was said before" in text
    assert "# the warehouse" in text
    config = parse(text)["nodes"][1]["config"]
    assert config["temperature"] == 0.2
    assert (config["max_steps"], config["timeout"]) == (7, None)
    assert config["system_prompt"].strip() == "You write.\nBriefly."
    assert config["allowed_tools"] == [
        {
            "tool": "order",
            "approval": "on_write",
            "max_calls": 2,
            "preset": {"pieces": 3},
            "args": {"properties": {"article": {"enum": ["A-17", "B-4"]}}},
            "provenance": {"article": ["user", "stock"]},
        },
        "stock",
    ]
    page.get_by_role("tab", name="Changes").click()
    assert "# the warehouse" not in "".join(page.locator(".diff .new, .diff .gone").all_inner_texts())
    for _ in range(40):
        if page.get_by_role("button", name="Undo").is_disabled():
            break
        page.get_by_role("button", name="Undo").click()
    page.get_by_text("Nothing has changed.").wait_for()


def test_variables_are_found_and_put_in(tab: Tab, flow: str) -> None:
    page = tab.open(f"workflows/{flow}?node=done")
    await_badge(page, "No faults")
    field = at(page, "nodes/3/config/text")
    field.fill("")
    field.press_sequentially("Say {{final")
    options = page.locator(".var-option")
    options.first.wait_for()
    assert {"nodes.write.final_answer", "nodes.check.final_answer"} <= {
        each.split("\n")[0] for each in options.all_inner_texts()
    }
    tab.check_accessible()
    field.press_sequentially("_answer")
    page.locator(".var-option", has_text="write.final").wait_for()
    while "write.final" not in page.locator('[aria-selected="true"][role="option"]').inner_text():
        field.press("ArrowDown")
    field.press("Enter")
    assert field.input_value() == "Say {{nodes.write.final_answer}}"
    field.press_sequentially(" of ")
    field.press("Control+Space")
    search = page.get_by_role("combobox", name="Search the variables")
    search.fill("article")
    assert page.locator(".var-option").count() >= 1
    search.press("Enter")
    assert field.input_value() == "Say {{nodes.write.final_answer}} of {{external.article}}"
    page.get_by_role("button", name="Insert a variable into text").click()
    search.press("Escape")
    assert page.get_by_role("listbox").count() == 0
    assert page.evaluate("document.activeElement.dataset.path") == "nodes/3/config/text"
    page.get_by_role("button", name=re.compile("^look, stock")).click()
    at(page, "nodes/0/config/article").fill("{{nodes.")
    at(page, "nodes/0/config/article").press_sequentially("w")
    assert page.locator(".var-option").count() == 0  # nothing comes before it


def test_faults_stand_where_they_are(tab: Tab, flow: str) -> None:
    page = tab.open(f"workflows/{flow}?node=write")
    at(page, "nodes/1/config/prompt").fill("{{nodes.look.peces}}")
    at(page, "nodes/1/config/max_steps").fill("many")
    await_badge(page, "[23] faults")
    fault = page.locator(".slot", has=at(page, "nodes/1/config/max_steps")).locator(".fault")
    fault.wait_for()
    assert at(page, "nodes/1/config/max_steps").get_attribute("aria-invalid") == "true"
    assert page.get_by_role("button", name=re.compile("^write, agent_core, [23] faults")).is_visible()
    told = page.get_by_role("list", name="Faults").get_by_role("button")
    assert fault.inner_text() in "\n".join(told.all_inner_texts())
    tab.check_accessible()
    page.get_by_role("button", name=re.compile("^done, echo")).click()
    told.filter(has_text="max_steps").click()
    page.locator('[data-path="nodes/1/config/max_steps"]:focus').wait_for()
    page.get_by_role("tab", name="YAML").click()
    assert page.locator(".gutter-line.bad").count() >= 2
    area = page.get_by_label("The definition as YAML")
    area.fill(area.input_value().replace("max_steps: many", "max_steps: [1"))
    page.get_by_role("tab", name="Form").click()
    page.get_by_text("The text cannot be read, so there is no form of it.").wait_for()
    page.get_by_role("button", name="Mend it in the text").click()
    area.fill(area.input_value().replace("max_steps: [1", "max_steps: 3").replace("{{nodes.look.peces}}", "x"))
    await_badge(page, "No faults")


def test_the_graph_is_drawn_and_edited(tab: Tab, flow: str) -> None:
    page = tab.open(f"workflows/{flow}")
    page.get_by_role("button", name="Add a node…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("searchbox").fill("unchanged")
    dialog.get_by_role("radio", name=re.compile("^echo")).check()
    dialog.get_by_label("Id").fill("sorry")
    tab.check_accessible()
    dialog.get_by_label("Comes after").select_option("write")
    dialog.get_by_role("button", name="Add", exact=True).click()
    at(page, "nodes/4/config/text").fill("Sorry.")
    page.get_by_role("button", name=re.compile("^write, agent_core")).click()
    page.get_by_label("When the edge to sorry is taken").select_option(label="when the node has failed")
    await_badge(page, "No faults")
    foot = page.locator('[data-node="look"] + .graph-foot').bounding_box()
    target = page.locator('[data-node="done"]').bounding_box()
    page.mouse.move(foot["x"] + 10, foot["y"] + 7)
    page.mouse.down()
    page.mouse.move(target["x"] + 30, target["y"] + 20, steps=4)
    page.mouse.up()
    page.get_by_label("When the edge to done is taken").select_option(label="when a condition holds")
    page.get_by_label("when", exact=True).fill("output.pieces > `3`")
    page.get_by_label("Add an edge to").select_option("sorry")
    page.get_by_role("button", name="Connect").click()
    page.get_by_role("button", name="Remove the edge to sorry").click()
    page.get_by_role("button", name=re.compile("^check, agent_core")).click()
    page.get_by_label("max_iterations").fill("4")
    page.get_by_role("button", name="Rename").click()
    dialog.get_by_label("Id").fill("critic")
    dialog.get_by_role("button", name="Rename").click()
    data = parse(read_text(page))
    assert data["edges"] == [
        {"from": "write", "to": "critic"},
        {"from": "critic", "to": "write", "when": "output.final_answer != 'There are 12.'"},
        {"from": "critic", "to": "done"},
        {"from": "write", "to": "sorry", "on": "error"},
        {"from": "look", "to": "done", "when": "output.pieces > `3`"},
    ]
    assert data["max_iterations"] == 4
    assert "{{nodes.critic.final_answer?}}" in data["nodes"][1]["config"]["prompt"]
    page.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    assert [node["id"] for node in parse(read_text(page))["nodes"]] == ["look", "write", "done", "sorry"]
    page.get_by_role("heading", name="The workflow").click()
    page.keyboard.press("Control+z")
    page.get_by_role("button", name=re.compile("^critic, agent_core")).wait_for()


def test_a_version_is_saved_after_its_changes_were_shown(tab: Tab, host: Served, flow: str) -> None:
    page = tab.open(f"workflows/{flow}?view=json")
    area = page.get_by_label("The definition as JSON")
    area.fill(area.input_value().replace('"default": 3', '"default": 5'))
    await_badge(page, "No faults")
    mine = (host.folder / f"workflows/{flow}.yaml").read_text().replace('version: "1"', 'version: "2"')
    theirs = {"text": mine, "format": "yaml", "expects": "1"}
    assert host.client.put(f"/workflows/{flow}", json=theirs).status_code == 201
    page.get_by_role("button", name="Save…").click()
    dialog = page.get_by_role("dialog")
    assert dialog.get_by_label("Version").input_value() == "2"
    assert "default: 5" in dialog.get_by_role("region", name="Changes").inner_text()
    tab.check_accessible()
    dialog.get_by_role("button", name="Save version 2").click()
    dialog.get_by_text("Somebody has saved this workflow meanwhile.").wait_for()
    tab.errors.clear()  # the browser tells of the refused request
    dialog.get_by_role("button", name="Compare with the newest version").click()
    dialog.get_by_role("button", name="Save version 3").click()
    page.locator(".dirty-mark", has_text=re.compile("^saved$")).wait_for()
    saved = (host.folder / f"workflows/{flow}@3.yaml").read_text()
    assert saved == SLOGAN.replace("id: slogan", f"id: {flow}").replace('"1"', '"3"').replace(
        "default: 3", "default: 5"
    )
    assert load_workflow(host.folder / f"workflows/{flow}@3.yaml").definition.version == "3"
    page.get_by_label("Version").select_option("1")
    page.wait_for_url(f"**/workflows/{flow}%401")
    assert "default: 3" in read_text(page)


def test_a_draft_and_a_version_run_with_inputs(tab: Tab, flow: str) -> None:
    page = tab.open(f"workflows/{flow}?view=run")
    page.get_by_role("heading", name="Run version 1").wait_for()
    page.get_by_label("article").fill("A-17")
    page.locator(".run-form").get_by_role("button", name="Run").click()
    page.wait_for_url("**/runs/*")
    page = tab.open(f"workflows/{flow}?node=done")
    at(page, "nodes/3/config/text").fill("by the draft")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("heading", name="Run the draft").wait_for()
    page.get_by_label("article").fill("A-17")
    tab.check_accessible()
    page.locator(".run-form").get_by_role("button", name="Run").click()
    page.wait_for_url("**/runs/*")
    page.get_by_text("by the draft").first.wait_for()
    page.go_back()
    page.get_by_text("Your unsaved work from before is here again.").wait_for()


def test_unsaved_work_is_kept_and_files_come_and_go(tab: Tab, flow: str, tmp_path: Path) -> None:
    page = tab.open(f"workflows/{flow}?node=done")
    at(page, "nodes/3/config/text").fill("kept")
    told: list[str] = []
    page.once("dialog", lambda dialog: (told.append(dialog.message), dialog.dismiss()))
    page.get_by_role("navigation").get_by_role("link", name="Runs").click()
    assert told
    assert page.url.endswith(f"workflows/{flow}?node=done")
    page.on("dialog", lambda dialog: dialog.accept())
    page.reload()
    page.get_by_text("Your unsaved work from before is here again.").wait_for()
    assert at(page, "nodes/3/config/text").input_value() == "kept"
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    assert download.value.suggested_filename == f"{flow}@1.yaml"
    page.get_by_role("button", name="Discard it").click()
    assert at(page, "nodes/3/config/text").input_value() == "{{nodes.write.final_answer}}"
    given = tmp_path / "given.json"
    given.write_text(json.dumps({"id": "given", "nodes": [{"id": EVIL, "tool": "echo", "config": {"text": EVIL}}]}))
    page.get_by_role("navigation").get_by_role("link", name="Workflows").click()
    page.locator('input[type="file"]').set_input_files(given)
    page.wait_for_url("**/workflows/new")
    page.locator(".graph-node").click()
    await_badge(page, r"\d faults?")
    tab.check_accessible()


def test_an_entry_that_is_there_is_not_written_over_by_a_new_one_of_its_name(tab: Tab, host: Served) -> None:
    config = {"method": "GET", "url": "https://example.com", "headers": {"Accept": "text/plain"}}
    definition = {"id": "get", "nodes": [{"id": "get", "tool": "http_request", "config": config}]}
    (host.folder / "workflows/get.json").write_text(json.dumps(definition))
    page = tab.open("workflows/get?node=get")
    name = page.get_by_label("Name of a new entry of headers")
    name.fill("Accept")
    name.press("Enter")
    assert parse(read_text(page))["nodes"][0]["config"] == config
    name.fill("Range")
    name.press("Enter")
    assert parse(read_text(page))["nodes"][0]["config"]["headers"] == {"Accept": "text/plain", "Range": ""}


def test_the_editor_fits_and_can_be_read_in_the_dark(browser: Any, host: Served, flow: str) -> None:
    with open_tab(browser, host.url, size=NARROW, scheme="dark", language="zh-CN") as tab:
        for place in ("workflows", f"workflows/{flow}?node=write", f"workflows/{flow}?view=yaml", "workflows/new"):
            page = tab.open(place)
            page.get_by_role("heading", level=1).wait_for()
            page.locator(".edit-head, .workflow-list").first.wait_for()
            tab.check_fits()
            tab.check_accessible()


def test_what_a_token_may_not_do_says_why(browser: Any, tmp_path: Path) -> None:
    with served(tmp_path, with_page=True, is_open=False) as closed, open_tab(browser, closed.url) as tab:
        token = closed.issue("reader", "read")["Authorization"].removeprefix("Bearer ")
        tab.page.add_init_script(f'sessionStorage.setItem("agent-core.token", {json.dumps(token)})')
        page = tab.open("workflows/desk@1?node=agent_core")
        at(page, "nodes/0/config/prompt").fill("changed")
        await_badge(page, "No faults")
        page.get_by_role("button", name="Save…").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_text("Your token lacks the scope admin.").wait_for()
        assert dialog.get_by_role("button", name="Save version 3").is_disabled()
        dialog.get_by_role("button", name="Cancel").click()
        page.get_by_role("tab", name="Run").click()
        page.get_by_text("Your token lacks the scope admin.").wait_for()
        assert page.locator(".run-form").get_by_role("button", name="Run").is_disabled()


def test_any_text_can_be_looked_at(tab: Tab, flow: str) -> None:
    """Half-written definitions are what an editor mostly sees."""
    page = tab.open(f"workflows/{flow}?view=yaml")
    agent = "nodes: [{tool: agent_core, config: {prompt: [1], model: '', max_steps: {}, stop: x, allowed_tools: "
    bounds = "[null, 5, {}, stock, stock, {tool: stock, preset: 3, args: 5, provenance: 7}, {tool: order, args: x}]"
    texts = [
        "",
        "just a text",
        "- a\n- list",
        "nodes: 5\nedges: 3\ninputs: no\noutputs: [1]\nenv: {a: 1}\nentry: 7",
        "nodes: [null, 5, {}, {id: 3}, {id: a, tool: [x]}, {id: a, tool: echo, config: text}, {tool: echo, config: }]",
        "nodes: [{id: a, tool: echo}]\nedges: [null, {}, {from: a, to: a, when: 5}, {from: b, to: [a], ask: {}}]",
        f"{agent}{bounds}}}}}]",
        f"{agent}'{{{{external.tools}}}}', messages_json: 5}}}}]",
        "nodes: [{tool: http_request, config: {method: 5, query: [1], headers: {a: {b: 1}}, json: [], form: x}}]",
        "a: &x [1]\nnodes: *x",
        "inputs: {properties: {a: 5, b: {type: [x]}}, required: {a: 1}}\nnodes: [{id: constructor, tool: __proto__}]",
        f"nodes: [{{id: {json.dumps(EVIL)}, tool: {json.dumps(EVIL)}}}]",
    ]
    for text in texts:
        page.get_by_role("tab", name="YAML").click()
        page.get_by_label("The definition as YAML").fill(text)
        for view in ("JSON", "Changes", "Run", "Graph", "Form"):
            page.get_by_role("tab", name=view).click()
        for number in range(page.locator(".graph-node").count()):
            page.locator(".graph-node").nth(number).click()
            page.evaluate("for (const each of document.querySelectorAll('.panel details')) each.open = true")
        assert page.locator(".panel, .notice").count() > 0, text
        assert not tab.errors, (text, tab.errors)
