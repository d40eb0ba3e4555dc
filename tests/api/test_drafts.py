"""Drafts over HTTP: checked as `agent-core validate` does, drawn, and run before anybody saves them."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from engine_shim.cli.host.describe import validate_definitions
from support.served_host import WORKFLOWS, Served, served

SOUND = """\
id: shop
version: "3"
inputs: {type: object, properties: {article: {type: string}, pieces: {type: integer}}, required: [article]}
env: [{name: HOME, plain: true}]
nodes:
  - {id: stock, tool: stock, config: {article: "{{external.article}}"}}
  - {id: say, tool: echo, config: {text: "{{nodes.stock.pieces}} left"}}
  - {id: again, tool: echo, config: {text: "once more"}}
  - {id: sorry, tool: echo, config: {text: "nothing left"}}
edges:
  - {from: stock, to: say}
  - {from: say, to: again, when: "output == 'x'"}
  - {from: again, to: say}
  - {from: stock, to: sorry, on: error}
"""
FAULTY = """\
id: shop
nodes:
  - id: stock
    tool: stock
    config:
      article: "{{external.article}}"
      articel: x
  - {id: say, tool: ecko, config: {text: x}}
outputs: {left: "{{nodes.stok}}"}
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("host")) as found:
        yield found


def check(host: Served, text: str, form: str = "yaml") -> Any:
    answer = host.client.post("/drafts/check", json={"text": text, "format": form})
    assert answer.status_code == 200, answer.text
    return answer.json()


def messages(found: Any) -> list[str]:
    return [each["message"] for each in found["problems"]]


def test_sound_draft_has_its_graph_with_levels_and_loops(host: Served) -> None:
    found = check(host, SOUND)
    assert found["problems"] == []
    assert (found["id"], found["version"]) == ("shop", "3")
    nodes = {each["id"]: each for each in found["graph"]["nodes"]}
    assert {name: each["level"] for name, each in nodes.items()} == {"stock": 0, "say": 1, "again": 2, "sorry": 1}
    assert [name for name, each in nodes.items() if each["entry"]] == ["stock"]
    assert nodes["say"]["tool"] == "echo"
    edges = found["graph"]["edges"]
    assert edges[0] == {"from": "stock", "to": "say", "when": None, "ask": None, "on": None, "back": False}
    assert [(each["from"], each["to"]) for each in edges if each["back"]] == [("again", "say")]
    assert edges[3]["on"] == "error"


def test_variables_are_listed_two_keys_deep(host: Served) -> None:
    deep: Any = {"type": "object", "properties": {"b": {"type": "object", "properties": {"c": {"type": "integer"}}}}}
    flow = {"id": "w", "inputs": {"properties": {"a": deep}}, "nodes": [{"tool": "echo", "config": {"text": "x"}}]}
    paths = [each["path"] for each in check(host, json.dumps(flow), "json")["variables"]]
    assert [each for each in paths if each.startswith("external")] == ["external.a", "external.a.b"]


def test_variables_are_what_the_nodes_really_give(host: Served) -> None:
    text = json.dumps(WORKFLOWS["desk-2.json"])
    found = {each["path"]: each for each in check(host, text, "json")["variables"]}
    assert found["external.message"] == {"node": "", "path": "external.message", "type": "string", "certain": True}
    assert found["nodes.agent_core.final_answer"]["type"] == "string|null"
    assert found["nodes.agent_core.usage.total_tokens"]["type"] == "integer"
    assert found["nodes.end"]["node"] == "end"
    assert {"run.id", "run.messages"} <= found.keys()
    assert "nodes.agent_core.plan" not in found
    more = {each["path"]: each for each in check(host, SOUND)["variables"]}
    assert (more["external.article"]["certain"], more["external.pieces"]["certain"]) == (True, False)
    assert more["env.HOME"]["type"] == "string"


def test_faults_are_those_of_validate_each_at_its_place(host: Served, capsys: pytest.CaptureFixture[str]) -> None:
    found = check(host, FAULTY)
    file = host.folder / "faulty.yaml"
    file.write_text(FAULTY)
    validate_definitions([file], None, host.folder / "agent-core.yaml", as_json=True, show_prompt=False)
    expected = [(each["message"], each["line"]) for each in json.loads(capsys.readouterr().out)["problems"]]
    assert [(each["message"], each["line"]) for each in found["problems"]] == expected
    paths = [each["path"] for each in found["problems"]]
    assert ["nodes", 0, "config", "articel"] in paths
    assert ["nodes", 1, "tool"] in paths
    assert ["outputs", "left"] in paths
    assert found["problems"][0]["node"] == "stock"


def test_warnings_are_those_of_validate(host: Served) -> None:
    text = "id: open\nnodes:\n  - {tool: http_request, config: {url: '{{external.url}}'}}\n"
    (warning,) = check(host, text)["warnings"]
    assert warning["path"][:3] == ["nodes", 0, "config"]
    assert "every public host" in warning["message"]
    assert warning["line"] == 3


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("text", "form", "line"),
    [
        ("id: shop\nnodes: [", "yaml", 2),
        ("id: shop\n\tnodes: x", "yaml", 2),
        ('{"id": "shop",\n "nodes": [}', "json", 2),
        ("id: {{external.x}}", "yaml", 1),
        ("", "yaml", None),
        ("[]", "json", None),
        ("id: a\nid: b", "yaml", 2),
        ("&a [*a]", "yaml", None),
        ("a: &a [1,1]\nb: &b [*a,*a]\n" + "\n".join(f"c{i}: &c{i} [*b,*b]" for i in range(3)), "yaml", None),
        ("\x00", "yaml", None),
        ("[" * 500, "yaml", None),
        ("[" * 500, "json", None),
        ("- " * 5_000, "yaml", None),
        ("id: \U0001f600\nnodes: 3", "yaml", 1),
        ("!!python/object/apply:os.system ['true']", "yaml", 1),
    ],
    ids=range(15),
)
def test_text_that_is_no_definition_is_a_problem_and_no_error(
    host: Served, text: str, form: str, line: int | None
) -> None:
    body = json.dumps({"text": text, "format": form})
    answer = host.client.post("/drafts/check", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["problems"]
    assert str(host.folder) not in answer.text
    assert line is None or found["problems"][0]["line"] == line


def test_bomb_of_aliases_is_refused_at_once(host: Served) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    begun = time.monotonic()
    assert "aliases" in messages(check(host, "\n".join(lines)))[0]
    assert time.monotonic() - begun < 10


@pytest.mark.exhaustive
def test_draft_of_too_many_parts_is_not_looked_into(host: Served) -> None:
    nodes = [{"id": f"n{number}", "tool": f"nothing-{number}"} for number in range(1001)]
    (problem,) = check(host, json.dumps({"id": "x", "nodes": nodes}), "json")["problems"]
    assert problem["path"] == ["nodes"]
    assert "1,001" in problem["message"]
    edges = [{"from": "a", "to": "b", "when": f"`{number}`"} for number in range(2001)]
    few = [{"id": "a", "tool": "echo"}, {"id": "b", "tool": "echo"}]
    assert check(host, json.dumps({"id": "x", "nodes": few, "edges": edges}), "json")["problems"][0]["path"] == [
        "edges"
    ]


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", ["yaml", "json"])
def test_text_of_a_megabyte_is_checked_while_others_are_served(host: Served, form: str) -> None:
    nodes = [{"id": f"n{i}", "tool": "echo", "config": {"text": "x" * 900}} for i in range(1000)]
    text = json.dumps({"id": "large", "nodes": nodes})
    begun = time.monotonic()
    assert check(host, text, form)["problems"] == []
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize(
    "body",
    [
        {"text": "id: x"},
        {"text": "id: x", "format": "toml"},
        {"text": 3, "format": "yaml"},
        {"text": "x" * 1_000_001, "format": "yaml"},
        {"text": "id: x", "format": "yaml", "more": 1},
        [],
    ],
)
def test_request_that_is_none_is_refused(host: Served, body: Any) -> None:
    answer = host.client.post("/drafts/check", json=body)
    assert (answer.status_code, answer.json()["kind"]) == (422, "invalid")


@pytest.mark.parametrize("written", [b"\xff", rb"\ud800"], ids=["bytes", "surrogate"])
def test_request_that_is_no_utf_8_is_refused(host: Served, written: bytes) -> None:
    headers = {"content-type": "application/json"}
    content = b'{"text": "%b", "format": "yaml"}' % written
    answer = host.client.post("/drafts/check", content=content, headers=headers)
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("file", ["../secret.yaml", "/etc/passwd.yaml", "sub/../../secret.yaml", "../agent-core.yaml"])
@pytest.mark.parametrize("route", ["check", "runs"])
def test_file_outside_the_directory_is_not_read(host: Served, file: str, route: str) -> None:
    (host.folder / "secret.yaml").write_text("password: [hunter2")
    text = f"id: peek\nnodes:\n  - {{tool: invoke_workflow, config: {{workflow: {file}}}}}\n"
    answer = host.client.post(f"/drafts/{route}", json={"text": text, "format": "yaml"})
    assert "is not below the directory" in answer.text
    assert "hunter2" not in answer.text
    assert str(host.folder) not in answer.text


def test_link_to_a_file_outside_is_not_followed(host: Served) -> None:
    (host.folder / "other.yaml").write_text("password: [hunter3")
    link = host.folder / "workflows" / "link.txt.json"
    link.symlink_to(host.folder / "other.yaml")
    try:
        model = "scripted:link.txt.json"
        node = {"tool": "agent_core", "config": {"model": model, "max_steps": 1, "allowed_tools": [], "prompt": "x"}}
        found = check(host, json.dumps({"id": "peek", "nodes": [node]}), "json")
        assert "the operator lists what it may in model_files" in messages(found)[0]
    finally:
        link.unlink()


def test_files_beside_the_draft_are_read(host: Served) -> None:
    text = "id: outer\nnodes:\n  - {tool: invoke_workflow, config: {workflow: count.json, inputs: {sum: 1}}}\n"
    assert "sum" in messages(check(host, text))[0]
    ok = check(host, text.replace("sum: 1", "sum: '1'"))
    assert ok["problems"] == []
    assert "nodes.invoke_workflow.outputs.calculator" in [each["path"] for each in ok["variables"]]


def test_draft_with_faults_still_has_its_graph_where_no_edge_is_at_fault(host: Served) -> None:
    found = check(host, SOUND.replace('article: "{{external.article}}"', "articel: x"))
    assert found["problems"]
    assert len(found["graph"]["edges"]) == 4
    assert check(host, SOUND.replace("to: say}", "to: sya}"))["graph"] is None


def test_draft_runs_as_it_stands_and_is_not_saved(host: Served) -> None:
    before = sorted((host.folder / "workflows").iterdir())
    body = {"text": "id: hello\nnodes: [{tool: echo, config: {text: '{{external.who}}'}}]", "format": "yaml"}
    run = host.client.post("/drafts/runs", json={**body, "external": {"who": "Ann"}}).json()
    assert (run["status"], run["outputs"], run["workflow"]) == ("completed", {"echo": "Ann"}, "hello")
    assert sorted((host.folder / "workflows").iterdir()) == before
    assert host.client.get("/workflows/hello").status_code == 404


def test_draft_with_faults_is_refused_at_their_fields(host: Served) -> None:
    answer = host.client.post("/drafts/runs", json={"text": FAULTY, "format": "yaml"})
    assert (answer.status_code, answer.json()["kind"]) == (422, "invalid")
    assert "nodes/1/tool" in [each["where"] for each in answer.json()["errors"]]


def test_draft_answers_at_once_and_its_key_names_its_run(host: Served) -> None:
    text = json.dumps(WORKFLOWS["wait.json"])

    def begin(until: str = "draft-later", text: str = text) -> httpx2.Response:
        body = {"text": text, "format": "json", "external": {"until": until}}
        return host.client.post("/drafts/runs?wait=false", json=body, headers={"Idempotency-Key": "one"})

    first = begin()
    assert first.status_code == 202
    assert begin().json()["run_id"] == first.json()["run_id"]
    assert begin("other").json()["kind"] == "key_reused"
    other = begin(text=text.replace("wait", "waits")).json()["run_id"]
    assert other != first.json()["run_id"]
    saved = host.client.post(
        "/workflows/wait/runs?wait=false",
        json={"external": {"until": "draft-later"}},
        headers={"Idempotency-Key": "one"},
    )
    assert saved.json()["run_id"] not in (other, first.json()["run_id"])
    (host.folder / "draft-later").touch()
    assert host.await_status(first.json()["run_id"], "completed")["workflow"] == "wait"


def test_keys_of_the_environment_are_masked(host: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "k" * 30)
    found = check(host, f"id: x\nnodes: [{{tool: {'k' * 30}, config: {{}}}}]")
    assert found["problems"]
    assert "k" * 30 not in found["problems"][0]["message"]


@pytest.mark.exhaustive
def test_draft_is_checked_where_there_is_no_directory_of_workflows(tmp_path: Path) -> None:
    with served(tmp_path) as host:
        for each in (tmp_path / "workflows").iterdir():
            each.unlink()
        (tmp_path / "workflows").rmdir()
        assert check(host, "id: x\nnodes: [{tool: echo, config: {text: x}}]")["problems"] == []
