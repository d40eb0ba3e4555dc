"""A workflow is checked once: its run starts from what the check has found."""

import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from engine_shim import DefinitionError, Engine, MemoryRunStore, load_workflow
from engine_shim.definition.graph import graph_of
from engine_shim.definition.model import read_parts
from engine_shim.definition.reachability import reachability_of
from engine_shim.definition.validate import check
from engine_shim.flow.state import read_compiled
from utools import default_registry

ECHO = {"id": "w", "nodes": [{"id": "a", "tool": "echo", "config": {"text": "{{external.text}}"}}]}
WORK = {each.__code__: each.__name__ for each in (graph_of, read_parts, reachability_of, read_compiled)}


async def calls_in_a_run(workflow: Any, **external: Any) -> Counter[str]:
    """How often each step of reading and checking is taken while a workflow runs."""
    engine, calls = Engine(store=MemoryRunStore()), Counter[str]()

    def count(frame: FrameType, event: str, argument: object) -> None:
        code: CodeType = frame.f_code
        if event == "call" and code in WORK:
            calls[WORK[code]] += 1

    sys.setprofile(count)
    try:
        result = await engine.run(workflow, external=external)
    finally:
        sys.setprofile(None)
    assert result.status == "completed", result.error
    return calls


async def test_run_of_a_workflow_reads_nothing_again_and_builds_its_graph_once() -> None:
    assert await calls_in_a_run(load_workflow(ECHO), text="x") == {"graph_of": 1, "reachability_of": 1}


async def test_invoked_workflow_is_read_and_built_once_as_well(tmp_path: Path) -> None:
    (tmp_path / "below.yaml").write_text("id: below\nnodes: [{id: b, tool: echo, config: {text: x}}]")
    (tmp_path / "above.yaml").write_text("id: above\nnodes: [{tool: invoke_workflow, config: {workflow: below.yaml}}]")
    calls = await calls_in_a_run(load_workflow(tmp_path / "above.yaml"))
    beforehand, invoked, own = 1, 1, 1  # a workflow that is named in the definition is checked before anything runs
    assert calls == {
        "graph_of": own + beforehand + invoked,
        "reachability_of": own + beforehand + invoked,
        "read_parts": beforehand + invoked,
    }


async def test_checked_workflow_is_not_checked_again_by_an_engine_with_its_registry() -> None:
    engine = Engine(store=MemoryRunStore())
    checked = check(load_workflow(ECHO), engine.registry)
    assert check(checked, engine.registry) is checked
    assert (await engine.run(checked, external={"text": "x"})).outputs == {"a": "x"}


def test_checked_workflow_is_checked_again_for_another_registry() -> None:
    checked = check(load_workflow(ECHO), default_registry())
    fewer = type(default_registry())([])
    with pytest.raises(DefinitionError, match="echo"):
        check(checked, fewer)
