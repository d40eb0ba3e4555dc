"""Small workflows, one for each thing that a run can be in the middle of.

None takes a whole agent's output, in which its run id stands: it could not be forked.
"""

import json
from pathlib import Path
from typing import Any

from engine_shim import Workflow, load_workflow

STEPS, CALLS, ROUNDS = 4, 2, 2
"""What each agent may ask its model and its tools, and how often a loop may be gone round again."""


def _node(name: str, tool: str, *after: str, **more: Any) -> dict[str, Any]:
    config = {"name": name, "takes": [f"{{{{nodes.{each}}}}}" for each in after]}
    return {"id": name, "tool": tool, "config": config, **more}


def _agent(name: str, *tools: Any, prompt: str = "Go.", **more: Any) -> dict[str, Any]:
    limits = {"max_steps": STEPS, "max_tool_calls": CALLS, "repair_scope": "unreadable"}
    config = {"model": "m", "prompt": prompt, "allowed_tools": list(tools), **limits}
    return {"id": name, "tool": "agent_core", "config": config, **more}


def _edge(source: str, target: str, **more: Any) -> dict[str, Any]:
    return {"from": source, "to": target, **more}


_ASKS = {"tool": "pay", "approval": "on_write"}
_EXPERT = {
    "tool": "agent_core",
    "preset": {"model": "m", "max_steps": STEPS, "max_tool_calls": 1, "allowed_tools": [_ASKS, "look"]},
}
_INNER = {"id": "inner", "nodes": [_node("get", "look"), _agent("think", _ASKS, prompt="{{nodes.get}}")]}
_RETRY = {"max_attempts": 3, "delay": 1, "backoff": 2}

WORKFLOWS: dict[str, dict[str, Any]] = {
    "chain": {"nodes": [_node("get", "look"), _node("buy", "pay", "get")]},
    "approval": {"nodes": [_agent("clerk", _ASKS, "look", "note"), _node("tell", "note", "clerk.final_answer")]},
    "branches": {
        "nodes": [
            _node("a", "look"),
            _node("b", "pay"),
            _agent("c", _ASKS, "look"),
            _node("join", "pay", "a", "b", "c.final_answer"),
        ]
    },
    "loop": {
        "nodes": [_node("work", "look"), _node("send", "pay"), _node("end", "note")],
        "edges": [
            _edge("work", "send"),
            _edge("send", "work", when="output.more"),
            _edge("send", "end"),
        ],
        "entry": "work",
        "max_iterations": ROUNDS,
    },
    "error": {
        "nodes": [_node("try", "pay"), _node("well", "look"), _node("fix", "pay")],
        "edges": [_edge("try", "well"), _edge("try", "fix", on="error")],
    },
    "retry": {
        "nodes": [_node("get", "look", retry=_RETRY), _agent("clerk", "pay", "look", "note", retry=_RETRY)],
    },
    "nested": {"nodes": [_agent("boss", _EXPERT, "note"), _node("after", "look", "boss.final_answer")]},
    "invoked": {
        "nodes": [
            {"id": "below", "tool": "invoke_workflow", "config": {"workflow": "inner.json"}},
            _node("beside", "pay"),
            _node("after", "look", "below.outputs.get"),
        ]
    },
}


def workflows(base: Path) -> list[Workflow]:
    """All of them, with the file that one of them invokes."""
    (base / "inner.json").write_text(json.dumps(_INNER))
    return [load_workflow({"id": name, **each}, base=base) for name, each in WORKFLOWS.items()]
