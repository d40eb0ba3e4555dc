"""Whether a workflow with a small model shows it how its tools are called."""

from pathlib import Path
from typing import Any

import pytest

from engine_shim.definition.load import Workflow
from engine_shim.definition.model import read_definition
from engine_shim.runs.small_models import find_missing_examples
from utools import ToolRegistry, tool


@tool(effect="read")
async def look(q: str) -> str:
    """Look something up."""
    return q


@tool(effect="read", examples=[{"user": "Where is A?", "args": {"q": "A"}, "output": "here", "answer": "Here."}])
async def shown(q: str) -> str:
    """Look something up, with an example."""
    return q


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "a small model": ({}, "look (`examples` of the tool)"),
    "by a glob": ({"allowed_tools": ["*"]}, "look (`examples` of the tool)"),
    "by an object": ({"allowed_tools": [{"tool": "look"}]}, "look (`examples` of the tool)"),
    "a large model": ({"model": "ollama:qwen2.5:72b"}, ""),
    "a model without a size": ({"model": "openai:gpt-4o"}, ""),
    "a model that is not known yet": ({"model": "{{external.model}}"}, ""),
    "a tool with an example": ({"allowed_tools": ["shown"]}, ""),
    "a tool that is denied": ({"deny_tools": ["lo*"]}, ""),
    "examples of the node": ({"examples": ["User: x"]}, ""),
    "native calls": ({"protocol": "tools"}, ""),
    "no tools": ({"allowed_tools": []}, ""),
}


@pytest.mark.parametrize(("given", "told"), CASES.values(), ids=CASES)
def test_small_model_wants_examples_of_its_tools(given: dict[str, Any], told: str) -> None:
    usual = {"model": "ollama:qwen2.5:0.5b", "max_steps": 3, "allowed_tools": ["look", "shown"], "prompt": "x"}
    node = {"id": "a", "tool": "agent_core", "config": {**usual, **given}}
    workflow = Workflow(read_definition({"id": "w", "nodes": [node]}), Path())
    found = list(find_missing_examples(workflow, ToolRegistry([look, shown])))
    assert [each.where for each in found] == (["nodes/0/config/allowed_tools"] if told else [])
    assert not told or found[0].message.endswith(told)
