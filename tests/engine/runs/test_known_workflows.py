"""A workflow file is loaded and checked once a version, and what changes is seen at the next run."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agent_core.models import ScriptedModel
from engine_shim import Engine, SqliteRunStore
from engine_shim.errors import DefinitionError
from engine_shim.runs import known_workflows
from utools import ToolRegistry, tool


@tool(effect="read", code="echo")
async def echo(text: str) -> str:
    """Give a text back."""
    return text


@tool(effect="read", code="shout")
async def shout(text: str) -> str:
    """Give a text back, loudly."""
    return text.upper()


def flow(*nodes: dict[str, Any]) -> str:
    return json.dumps({"id": "w", "nodes": list(nodes)})


def echoing(text: str, code: str = "echo") -> dict[str, Any]:
    return {"id": "say", "tool": code, "config": {"text": text}}


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the workflows that were checked."""
    seen: list[str] = []
    plain = known_workflows.check

    def check(workflow: Any, *given: Any, **more: Any) -> Any:
        seen.append(workflow.definition.id)
        return plain(workflow, *given, **more)

    monkeypatch.setattr(known_workflows, "check", check)
    return seen


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(ToolRegistry([echo]), store=SqliteRunStore(tmp_path / "runs.db"))


async def test_version_is_checked_once(engine: Engine, tmp_path: Path, checks: list[str]) -> None:
    path = tmp_path / "w.json"
    path.write_text(flow(echoing("one")))
    for _ in range(3):
        assert (await engine.run(path)).outputs["say"] == "one"
    assert len(checks) == 1
    await engine.close()


async def test_changed_file_is_seen_at_once(engine: Engine, tmp_path: Path, checks: list[str]) -> None:
    path = tmp_path / "w.json"
    said = []
    for text in ("one", "two", "one", "six"):
        path.write_text(flow(echoing(text)))
        os.utime(path, ns=(0, 0))  # by its bytes alone
        said.append((await engine.run(path)).outputs["say"])
    assert said == ["one", "two", "one", "six"]
    path.write_text(flow(echoing("one", "gone")))
    with pytest.raises(DefinitionError, match="gone"):
        await engine.run(path)
    path.unlink()
    with pytest.raises(DefinitionError, match="cannot be read"):
        await engine.run(path)
    await engine.close()


async def test_tool_that_comes_later_is_seen(tmp_path: Path) -> None:
    registry, path = ToolRegistry([echo]), tmp_path / "w.json"
    engine = Engine(registry, store=SqliteRunStore(tmp_path / "runs.db"))
    path.write_text(flow(echoing("one", "shout")))
    with pytest.raises(DefinitionError, match="shout"):
        await engine.run(path)
    registry.register(shout)
    assert (await engine.run(path)).outputs["say"] == "ONE"
    await engine.close()


async def test_files_of_one_name_are_told_apart(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "w.json").write_text(flow(echoing(name)))
        monkeypatch.chdir(tmp_path / name)
        said.append((await engine.run("w.json")).outputs["say"])
    assert said == ["a", "b"]
    await engine.close()


async def test_what_depends_on_other_files_is_checked_at_each_run(
    engine: Engine, tmp_path: Path, checks: list[str]
) -> None:
    path, child = tmp_path / "w.json", tmp_path / "child.json"
    path.write_text(flow({"id": "say", "tool": "invoke_workflow", "config": {"workflow": "child.json"}}))
    child.write_text(flow(echoing("one")))
    assert (await engine.run(path)).status == "completed"
    child.write_text(flow(echoing("one", "gone")))
    with pytest.raises(DefinitionError, match="gone"):
        await engine.run(path)
    assert len(checks) == 2
    await engine.close()


async def test_template_in_a_file_is_read_at_each_run(tmp_path: Path) -> None:
    path, prompt = tmp_path / "w.json", tmp_path / "system.md"
    config = {"model": "scripted", "max_steps": 1, "allowed_tools": [], "prompt": "Hi."}
    path.write_text(flow({"tool": "agent_core", "config": {**config, "prompts": {"system": "system.md"}}}))
    prompt.write_text("You are kind. $tool_definitions")
    model = ScriptedModel(['{"type":"final","answer":"Hello."}'] * 2)
    engine = Engine(ToolRegistry([]), store=SqliteRunStore(tmp_path / "runs.db"), model=model)
    assert (await engine.run(path)).status == "completed"
    prompt.unlink()
    with pytest.raises(DefinitionError, match=r"system\.md"):
        await engine.run(path)
    await engine.close()


async def test_only_so_many_files_are_kept(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_workflows, "MOST", 2)
    for name in ("a", "b", "c", "a"):
        path = tmp_path / f"{name}.json"
        path.write_text(flow(echoing(name)))
        assert (await engine.run(path)).outputs["say"] == name
    assert len(engine._starter._known._by_path) == 2
    await engine.close()
