"""Driving the loop of a workflow by hand: a definition, and the answers that a test gives to its visits."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from agent_core.effects import ToolReply, Visit, Visits
from engine_shim.flow.flow import flow
from support.by_hand import AT

ANY = {"type": "object", "additionalProperties": True}
READ = {"schema": ANY, "effect": "read", "idempotent": False, "within": 30.0}
TOOLS = {
    "work": READ,
    "pay": {**READ, "effect": "write"},
    "put": {**READ, "effect": "write", "idempotent": True},
    "agent": {**READ, "effect": "nested", "within": None},
}
Edge = tuple[Any, ...]
Answer = Callable[[Visit], Any]


def node(name: str, tool: str = "work", **keys: Any) -> dict[str, Any]:
    config = keys.pop("config", {})
    return {"id": name, "tool": tool, "config": config, **keys}


def definition(nodes: Sequence[Any], edges: Sequence[Edge] | None = None, **keys: Any) -> dict[str, Any]:
    """A definition; a node that is only named does `work`, an edge is (from, to) and its other keys."""
    whole = {"id": "w", "nodes": [node(each) if isinstance(each, str) else each for each in nodes], **keys}
    if edges is not None:
        whole["edges"] = [{"from": a, "to": b, **(rest[0] if rest else {})} for a, b, *rest in edges]
    return whole


class Run:
    """A workflow run by hand. `visits` are those that were asked for, in that order."""

    def __init__(self, whole: dict[str, Any], answer: Answer, *, order: random.Random | None = None, **keys: Any):
        self.visits: list[Visit] = []
        started = {"run": "r", "at": AT, "definition": whole, "external": {}, "env": {}, "tools": TOOLS}
        loop = flow({**started, "limits": {"seconds": whole.get("timeout")}, **keys})
        effect = next(loop)
        assert isinstance(effect, Visits)
        under_way = list(effect.first)
        while under_way:
            self.visits += [visit for visit in under_way if visit not in self.visits]
            visit = under_way.pop(order.randrange(len(under_way)) if order else 0)
            under_way += effect.more(visit, answer(visit), None)
        with pytest.raises(StopIteration) as ended:
            loop.send(())
        self.outcome = ended.value.value
        self.output = self.outcome.output

    def after(self) -> dict[Any, Any]:
        return {(visit.node, visit.n): visit.after for visit in self.visits}

    def calls(self, name: str) -> list[Any]:
        return [visit.call.config for visit in self.visits if visit.node == name]


def did(value: Any = None, seconds: float = 0.0) -> ToolReply:
    return ToolReply(True, value, None, AT, seconds)
