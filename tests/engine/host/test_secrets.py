"""Secret variables: only the tool itself gets the value; definitions, records, prompts and outputs have the name."""

import asyncio
from typing import Any

import pytest

from agent_core import Approve
from agent_core.audit.replay import replay
from agent_core.models import ScriptedModel
from agent_core.run.secrets import Secrets
from engine_shim import DefinitionError, Engine, MemoryRunStore, load_workflow
from engine_shim.runs.loops import LOOPS
from support.by_hand import action, final
from utools import Tool, default_registry

VALUE = "s3cr3t-0123456789"
SEND = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "pattern": "^https://", "x-author": True},
        "token": {"type": "string", "minLength": 8},
        "text": {"type": "string"},
    },
}


class Host:
    """An engine whose tool `send` keeps what it was given, and gives it back."""

    def __init__(self, replies: Any = (), *, value: str = VALUE, allowed: tuple[str, ...] = ("TOKEN",)) -> None:
        self.got: list[Any] = []
        self.asked: list[Any] = []
        registry = default_registry()
        registry.register(Tool("send", "Sends.", SEND, self._send))
        left = list(replies)

        def said(messages: Any) -> str:
            self.asked.append(messages)
            return left.pop(0)

        secrets = Secrets(allowed, env={"TOKEN": value})
        self.engine = Engine(registry, store=MemoryRunStore(), model=ScriptedModel(said), secrets=secrets)

    async def _send(self, args: dict[str, Any], context: Any) -> Any:
        self.got.append(args)
        return {"sent": args}

    def run(self, *nodes: Any, external: Any = None, **keys: Any) -> Any:
        definition = {"id": "w", "env": ["TOKEN"], "nodes": list(nodes), **keys}
        return self.engine.run_sync(load_workflow(definition), external=external or {})

    def written(self, run: str) -> bytes:
        tape = self.engine.store.journal.load(run)
        return b"".join(row.data for rows in tape.values() for row in rows)


def send(**config: Any) -> dict[str, Any]:
    return {"tool": "send", "config": config}


def agent(**preset: Any) -> dict[str, Any]:
    return called("send", **preset)


def called(tool: str, **preset: Any) -> dict[str, Any]:
    """An agent that may call a tool, with what is preset of it."""
    allowed = [{"tool": tool, "preset": preset}]
    return {"tool": "agent_core", "config": {"model": "m", "max_steps": 3, "prompt": "Go.", "allowed_tools": allowed}}


def test_tool_gets_the_value_and_nothing_else_does() -> None:
    host = Host()
    result = host.run(send(token="Bearer {{env.TOKEN}}", text="{{env.TOKEN}}{{run.id}}"))
    assert host.got == [{"token": f"Bearer {VALUE}", "text": f"{VALUE}{result.run_id}"}]
    assert result.outputs["send"]["sent"]["token"] == "Bearer [redacted:TOKEN]"
    assert VALUE.encode() not in host.written(result.run_id)
    assert b"Bearer {{env.TOKEN}}" in host.written(result.run_id)
    assert replay(host.engine.store.journal, run_id=result.run_id, loops=LOOPS).identical


def test_text_that_looks_like_the_placeholder_gets_no_secret() -> None:
    host = Host()
    host.run(send(token="{{env.TOKEN}}", text="{{external.x}}"), external={"x": "{{env.TOKEN}}"})
    host.run(send(token="{{env.TOKEN}} {{external.x}}"), external={"x": "{{env.TOKEN}}"})
    assert host.got == [{"token": VALUE, "text": "{{env.TOKEN}}"}, {"token": f"{VALUE} {{{{env.TOKEN}}}}"}]


def test_agents_tool_gets_the_value_of_its_preset_and_its_model_sees_neither() -> None:
    host = Host([action("send", text="{{env.TOKEN}}"), final("done")])
    result = host.run(agent(token="Bearer {{env.TOKEN}}", url="https://x"))
    assert host.got == [{"token": f"Bearer {VALUE}", "url": "https://x", "text": "{{env.TOKEN}}"}]
    assert VALUE not in str(host.asked)
    assert VALUE.encode() not in host.written(result.run_id)
    assert replay(host.engine.store.journal, run_id=result.run_id, loops=LOOPS).identical


def test_value_is_checked_when_it_is_known_and_the_placeholder_is_not() -> None:
    host = Host([action("send", text="x"), final("done")])
    assert (
        host.run(send(url="{{env.TOKEN}}"), agent(url="{{env.TOKEN}}")).outputs["send"]["error"]["kind"] == "tool_error"
    )
    assert host.got == []
    right = Host([action("send", text="x"), final("done")], value="https://0123456789")
    assert right.run(send(url="{{env.TOKEN}}"), agent(url="{{env.TOKEN}}")).status == "completed"
    assert [args["url"] for args in right.got] == ["https://0123456789"] * 2


def test_run_that_goes_on_elsewhere_gets_the_value_there() -> None:
    host = Host([action("send", text="x"), final("done")])
    node = agent(token="{{env.TOKEN}}")
    node["config"]["approval"] = "always"
    waits = host.run(node)
    assert (waits.status, host.got) == ("waiting", [])
    place = (waits.waiting[0]["strand"], waits.waiting[0]["n"])
    assert asyncio.run(host.engine.resume(waits.run_id, decisions={place: Approve()})).status == "completed"
    assert host.got == [{"token": VALUE, "text": "x"}]


EXPOSED = {
    "in a prompt": (
        {
            "tool": "agent_core",
            "config": {"model": "m", "max_steps": 1, "allowed_tools": [], "prompt": "{{env.TOKEN}}"},
        },
        {},
        "nodes/0/config/prompt",
    ),
    "in a conversation": (
        {"tool": "context_manager", "config": {"op": "prepare", "session_id": "s", "user_message": "{{env.TOKEN}}"}},
        {},
        "nodes/0/config/user_message",
    ),
    "in an output": (send(text="x"), {"outputs": {"o": "{{env.TOKEN}}"}}, "outputs/o"),
    "handed to another workflow": (
        {"tool": "invoke_workflow", "config": {"workflow": "w.json", "inputs": {"t": "{{env.TOKEN}}"}}},
        {},
        "nodes/0/config/inputs/t",
    ),
    "in the prompt of an agent's agent": (
        called("agent_core", model="m", max_steps=1, allowed_tools=[], system_prompt="{{env.TOKEN}}"),
        {},
        "nodes/0/config/allowed_tools/0/preset/system_prompt",
    ),
    "in a conversation of an agent": (
        called("context_*", op="prepare", user_message="{{env.TOKEN}}"),
        {},
        "nodes/0/config/allowed_tools/0/preset/user_message",
    ),
    "handed to a workflow by an agent": (
        called("invoke_workflow", workflow="w.json", inputs={"t": "{{env.TOKEN}}"}),
        {},
        "nodes/0/config/allowed_tools/0/preset/inputs/t",
    ),
}


@pytest.mark.parametrize(("node", "keys", "where"), EXPOSED.values(), ids=EXPOSED)
def test_secret_where_others_would_read_it_is_refused(node: Any, keys: Any, where: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        Host().run(node, **keys)
    assert f"{where}: {{{{env.TOKEN}}}} is secret" in str(refused.value)


def test_secret_that_is_not_allowed_or_not_set_is_refused_before_anything_starts() -> None:
    with pytest.raises(DefinitionError, match="env/0: the secret TOKEN is not allowed"):
        Host(allowed=()).run(send(text="x"))
    with pytest.raises(DefinitionError, match="env/0: the secret TOKEN is not set"):
        Host(value="").run(send(text="x"))


def test_nothing_is_below_a_variable_and_a_run_id() -> None:
    for taken in ("env.TOKEN.length", "run.id.x"):
        with pytest.raises(DefinitionError, match="is a text, and nothing is below it"):
            Host().run(send(text=f"{{{{{taken}}}}}"))


@pytest.mark.parametrize("given", [None, Secrets(["TOKEN"])], ids=["no_secrets", "secrets"])
def test_the_key_of_an_endpoint_is_told_nowhere(monkeypatch: pytest.MonkeyPatch, given: Secrets | None) -> None:
    monkeypatch.setenv("GATEWAY_TOKEN", VALUE)
    urls = {"https://gateway.example/v1": "GATEWAY_TOKEN"}
    engine = Engine(default_registry(), store=MemoryRunStore(), secrets=given, base_urls=urls)
    nodes = [{"tool": "echo", "config": {"text": f"it is {VALUE}"}}]
    result = engine.run_sync(load_workflow({"id": "w", "nodes": nodes}))
    assert "it is [redacted:GATEWAY_TOKEN]" in str(result.outputs["echo"])
    assert VALUE not in str(result.outputs)
