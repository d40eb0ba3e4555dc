"""Patterns of a stranger: none of them stops the server, whatever schema it is in, nor after a restart."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.by_hand import action, final
from support.served_host import Served, served

EVIL = "(a+)+$"
TEXT = "a" * 40 + "!"
LONG = "a" * 100_000 + "!"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("host")
    with served(folder) as found:
        replies = {"orders": [action("stock", article=TEXT), final("done")], "answer": [final(TEXT)]}
        for name, script in replies.items():
            (folder / "workflows" / f"{name}.json").write_text(json.dumps(script))
        yield found


def ask(host: Served, path: str, definition: Any, external: Any = None) -> Any:
    body = {"text": json.dumps(definition), "format": "json"}
    return host.client.post(path, json=body if external is None else {**body, "external": external})


def agent(script: str, **config: Any) -> dict[str, Any]:
    own = {"model": f"scripted:{script}.json", "max_steps": 3, "allowed_tools": ["stock"], "prompt": "x"}
    return {"id": "evil", "nodes": [{"tool": "agent_core", "config": {**own, **config}}]}


@pytest.mark.sampled
@pytest.mark.parametrize("schema", [{"pattern": EVIL}, {"patternProperties": {EVIL: {"type": "null"}}}])
@pytest.mark.parametrize("text", [TEXT, LONG])
def test_inputs(host: Served, schema: dict[str, Any], text: str) -> None:
    inputs = {"type": "object", "properties": {"x": schema}}
    flow = {"id": "evil", "inputs": inputs, "nodes": [{"tool": "echo", "config": {"text": "{{external.x}}"}}]}
    refused = ask(host, "/drafts/runs", flow, {"x": text if "pattern" in schema else {text: 1}})
    assert refused.status_code == (422 if "pattern" in schema else 200)


def test_narrowing(host: Served) -> None:
    narrowed = {"tool": "stock", "args": {"properties": {"article": {"pattern": EVIL}}}}
    answer = ask(host, "/drafts/runs", agent("orders", allowed_tools=[narrowed]), {})
    assert answer.json()["status"] == "completed"
    assert "were refused, nothing was run" in answer.text


def test_answer(host: Served) -> None:
    answer = ask(host, "/drafts/runs", agent("answer", answer_schema={"type": "string", "pattern": EVIL}), {})
    assert answer.json()["status"] == "failed"


@pytest.mark.parametrize("pattern", [r"(a+)\1+$", r"^(.*)\1$"])
def test_pattern_that_cannot_be_followed_is_refused_with_its_place(host: Served, pattern: str) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}}
    narrowed = {"tool": "stock", "args": {"properties": {"article": {"pattern": pattern}}}}
    for definition, place in (
        ({**agent("answer"), "inputs": schema}, ["inputs", "properties", "x", "pattern"]),
        (agent("answer", answer_schema=schema), ["answer_schema"]),
        (agent("answer", allowed_tools=[narrowed]), ["allowed_tools", 0, "args"]),
    ):
        (problem,) = ask(host, "/drafts/check", definition).json()["problems"]
        assert "may take for ever" in problem["message"]
        assert repr(pattern) in problem["message"]
        assert " ".join(map(str, place)) in " ".join(map(str, problem["path"]))
        assert ask(host, "/drafts/runs", definition, {}).status_code == 422


def test_server_goes_on(host: Served) -> None:
    assert host.client.get("/health").json()["status"] == "ok"
