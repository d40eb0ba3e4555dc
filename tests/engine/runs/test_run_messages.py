"""`{{run.messages}}`: what the agents before a node have added to the conversation."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from agent_core.audit.replay import replay
from agent_core.audit.verify import verify
from agent_core.models import ScriptedModel
from engine_shim import Engine, MemoryRunStore
from engine_shim.runs.loops import LOOPS
from utools import Tool

ANY = {"type": "object", "additionalProperties": True}
HELLO = {"role": "user", "content": "Hello."}


def speaker(name: str, **config: Any) -> dict[str, Any]:
    """An agent that reads the whole conversation."""
    usual = {"model": "m", "max_steps": 5, "allowed_tools": [], "system_prompt": f"You are {name}."}
    messages = [HELLO, "{{run.messages}}"] if "prompt" not in config else None
    return {"id": name, "tool": "agent_core", "config": {**usual, "messages_json": messages, **config}}


class Talk:
    """A workflow of agents. `heard` are the messages that each was sent, without the system message."""

    def __init__(self, nodes: Sequence[Any], edges: Sequence[Any], **keys: Any) -> None:
        self.heard: dict[str, list[list[str]]] = {}
        self.store = MemoryRunStore()
        tools = [
            Tool("look", "Looks.", ANY, lambda args, context: "seen", effect="read"),
            Tool("fetch", "Fetches.", ANY, lambda args, context: {"messages": [HELLO]}, effect="read"),
            Tool("pay", "Pays.", ANY, lambda args, context: "paid"),
        ]
        engine = Engine(tools, store=self.store, model=ScriptedModel(self._reply))
        data = {"id": "w", "nodes": nodes, "edges": [{"from": a, "to": b, **more} for a, b, more in edges], **keys}
        self.result = engine.run_sync(data, run_id="r")

    def _reply(self, messages: list[dict[str, Any]]) -> Any:
        system, *rest = messages
        name = system["content"].split("You are ")[1].split(".")[0]
        heard = self.heard.setdefault(name, [])
        heard.append([message["content"] for message in rest])
        if name == "looker" and not any("seen" in text for text in heard[-1]):
            return {"type": "action", "tool": "look", "args": {}}
        if name == "payer" and len(heard) == 1:
            return {"type": "action", "tool": "pay", "args": {}}
        return {"type": "final", "answer": f"{name} {len(heard)}"}

    def answers(self, name: str) -> list[list[str]]:
        """What was in the questions to an agent, in order; the dialect joins neighbours of one role."""
        return [re.findall(r"Hello\.|[a-d] \d", " ".join(each)) for each in self.heard[name]]

    def is_sound(self) -> bool:
        whole = replay(self.store.journal, run_id="r", loops=LOOPS).identical
        return whole and verify(self.store.journal, run_id="r", **self.result.journal).ok


def test_parallel_branches_have_a_copy_each_which_are_joined_in_the_order_of_the_edges() -> None:
    nodes = [speaker(name) for name in ("a", "b", "c", "d")]
    talk = Talk(nodes, [("a", "c", {}), ("a", "b", {}), ("c", "d", {}), ("b", "d", {})])
    assert talk.result.status == "completed", talk.result.error
    assert talk.answers("b") == talk.answers("c") == [["Hello.", "a 1"]]
    assert talk.answers("d") == [["Hello.", "a 1", "c 1", "b 1"]]
    assert talk.is_sound()


def test_a_loop_goes_on_with_what_was_said_in_the_round_before() -> None:
    nodes = [speaker("a"), speaker("b")]
    talk = Talk(nodes, [("a", "b", {}), ("b", "a", {"when": "output.final_answer == 'b 1'"})], entry="a", ends="b")
    assert talk.answers("a") == [["Hello."], ["Hello.", "a 1", "b 1"]]
    assert talk.answers("b")[1] == ["Hello.", "a 1", "b 1", "a 2"]
    assert talk.is_sound()


def test_calls_and_what_tools_answered_go_on_to_the_next_node() -> None:
    nodes = [speaker("looker", allowed_tools=["look"]), speaker("b")]
    talk = Talk(nodes, [("looker", "b", {})], outputs={"said": "{{run.messages}}"})
    assert [message["role"] for message in talk.result.outputs["said"]] == [
        "assistant",
        "tool",
        "assistant",
        "assistant",
    ]
    assert any("seen" in text for text in talk.heard["b"][0])
    assert talk.is_sound()


def test_what_a_branch_said_that_does_not_lead_here_is_left_out() -> None:
    nodes = [speaker(name) for name in ("a", "b", "c", "d")]
    edges = [("a", "b", {}), ("a", "c", {}), ("b", "d", {"when": "`false`"}), ("c", "d", {})]
    talk = Talk(nodes, edges, ends=["b", "d"])
    assert talk.answers("d") == [["Hello.", "a 1", "c 1"]]
    assert talk.is_sound()


def test_the_prompt_of_a_node_is_its_own_and_is_not_passed_on() -> None:
    talk = Talk([speaker("a", prompt="Only for a."), speaker("b")], [("a", "b", {})])
    assert talk.answers("b") == [["Hello.", "a 1"]]


PAYER = speaker("payer", allowed_tools=["pay"], after_untrusted="refuse", max_repairs=0)
BEFORE_PAYING: dict[str, tuple[Any, Any]] = {
    "only what agents said": (speaker("a"), PAYER["config"]["messages_json"]),
    "what a tool told an agent": (speaker("looker", allowed_tools=["look"]), PAYER["config"]["messages_json"]),
    "messages that a tool gave": ({"id": "fetch", "tool": "fetch"}, ["{{nodes.fetch.messages}}"]),
    "a text that a tool gave": (
        {"id": "fetch", "tool": "fetch"},
        [{"role": "user", "content": "Pay {{nodes.fetch.messages.0.content}}"}],
    ),
    "a part of a text that a tool gave": (
        {"id": "fetch", "tool": "fetch"},
        [{"role": "user", "content": [{"type": "text", "text": "Pay {{nodes.fetch.messages.0.content}}"}]}],
    ),
}


@pytest.mark.parametrize(("before", "messages"), BEFORE_PAYING.values(), ids=BEFORE_PAYING)
def test_what_tools_gave_stays_untrusted_for_the_nodes_that_come_after(before: Any, messages: Any) -> None:
    payer = {**PAYER, "config": {**PAYER["config"], "messages_json": messages}}
    talk = Talk([before, payer], [(before["id"], "payer", {})])
    reason = talk.result.outputs["payer"]["finish_reason"]
    assert reason == ("final" if before["id"] == "a" else "policy_denied")
