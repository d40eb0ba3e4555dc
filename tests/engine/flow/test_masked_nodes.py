"""Workflows whose nodes are given something masked: values stay as they were, and no tool gets a mark for a value."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent_core import Edit
from agent_core.audit.replay import replay
from agent_core.errors import DecisionError
from agent_core.models import ScriptedModel
from agent_core.run.secrets import Secrets
from engine_shim import Engine, MemoryRunStore, load_workflow
from engine_shim.runs.loops import LOOPS
from support.by_hand import action, final
from utools import Tool, default_registry

SECRET = "sesame-open-2026"
MAIL = '{"text":"https://intranet","cc":"ada@example.com"}'


class Host:
    """An engine whose tool `send` writes, and keeps what it was given."""

    def __init__(self, root: Path, replies: Any = (), **secrets: Any) -> None:
        self.sent: list[Any] = []
        registry = default_registry(root=root)
        registry.register(Tool("send", "Sends.", {"type": "object"}, self._send, foreign=True))
        allowed = Secrets(["TOKEN"], env={"TOKEN": SECRET}, **secrets)
        model = ScriptedModel(list(replies))
        self.engine = Engine(registry, store=MemoryRunStore(), model=model, secrets=allowed)

    async def _send(self, args: dict[str, Any], context: Any) -> Any:
        self.sent.append(args)
        return "sent"

    def run(self, *nodes: Any, external: Any = None, **keys: Any) -> Any:
        result = self.engine.run_sync(load_workflow({"id": "w", "nodes": list(nodes), **keys}), external=external or {})
        assert replay(self.engine.store.journal, run_id=result.run_id, loops=LOOPS).identical
        return result


def send(text: Any, **keys: Any) -> dict[str, Any]:
    return {"tool": "send", "config": {"text": text}, **keys}


def test_what_a_file_and_an_input_hold_reaches_the_next_node_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mail.json").write_text(MAIL)
    host = Host(tmp_path)
    read = {"id": "read", "tool": "read_file", "config": {"path": "mail.json"}}
    result = host.run(read, send(["{{nodes.read.text}}", "{{external.mail}}"]), external={"mail": MAIL})
    assert result.status == "completed"
    assert host.sent == [{"text": [MAIL, MAIL]}]


GIVEN = {
    "an input": (send("{{external.x}}"), {"x": f"it is {SECRET}"}),
    "below": (send({"a": ["{{external.x}}"]}), {"x": {"deep": SECRET}}),
    "the definition itself": (send(f"it is {SECRET}"), {}),
    "an item": (send("{{item}}", foreach="{{external.x}}"), {"x": [SECRET]}),
}


@pytest.mark.parametrize(("node", "external"), GIVEN.values(), ids=GIVEN)
def test_a_node_with_something_masked_is_refused_and_told(tmp_path: Path, node: Any, external: Any) -> None:
    host = Host(tmp_path)
    result = host.run(node, external=external)
    assert (result.status, host.sent) == ("failed", [])
    assert result.error["kind"] == "policy_denied"
    assert "expected a value without [redacted:TOKEN]" in result.error["message"]
    assert SECRET not in str(result)


def test_tools_that_keep_a_text_in_the_run_may_have_a_mark(tmp_path: Path) -> None:
    host = Host(tmp_path)
    nodes = [
        {"tool": "echo", "config": {"text": "{{external.x}}"}},
        {"tool": "json_transform", "config": {"data": {"a": "{{nodes.echo}}"}, "expression": "a"}},
    ]
    result = host.run(*nodes, external={"x": f"it is {SECRET}"})
    assert result.status == "completed", result.error
    assert result.outputs["json_transform"] == "it is [redacted:TOKEN]"


def test_an_agent_reads_a_mark_in_its_prompt_and_cannot_send_it(tmp_path: Path) -> None:
    host = Host(tmp_path, [action("send", text="the key is [redacted:TOKEN]"), final("I cannot.")])
    config = {"model": "m", "max_steps": 4, "allowed_tools": ["send"], "prompt": "Send {{external.x}}"}
    result = host.run({"tool": "agent_core", "config": config}, external={"x": SECRET})
    assert result.outputs["agent_core"]["final_answer"] == "I cannot."
    assert host.sent == []


def test_a_person_that_edits_a_nodes_call_is_told(tmp_path: Path) -> None:
    host = Host(tmp_path)
    waits = host.engine.run_sync(load_workflow({"id": "w", "nodes": [send("x", approval="always")]}))
    place = waits.waiting[0]["strand"], waits.waiting[0]["n"]
    with pytest.raises(DecisionError, match=r"expected a value without \[redacted:TOKEN\]"):
        asyncio.run(host.engine.resume(waits.run_id, decisions={place: Edit({"text": SECRET})}))
    assert asyncio.run(host.engine.resume(waits.run_id, decisions={place: Edit({"text": "y"})})).status == "completed"
    assert host.sent == [{"text": "y"}]


def test_a_secret_that_the_author_names_is_filled_in_as_before(tmp_path: Path) -> None:
    host = Host(tmp_path)
    assert host.run(send("Bearer {{env.TOKEN}}"), env=["TOKEN"]).status == "completed"
    assert host.sent == [{"text": f"Bearer {SECRET}"}]


def test_a_body_that_is_json_keeps_its_keys_where_one_value_is_masked(tmp_path: Path) -> None:
    body = json.dumps({"n": 1.50, "a": [SECRET, {"https://intranet": "ada@example.com"}]})
    (tmp_path / "body.json").write_text(body)
    host = Host(tmp_path, mask={"amount": r"€ ?\d+"})
    result = host.run({"tool": "read_file", "config": {"path": "body.json"}})
    assert result.outputs["read_file"]["text"] == body.replace(SECRET, "[redacted:TOKEN]")
