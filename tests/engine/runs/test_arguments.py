"""The engine takes what a program naturally has at hand, and refuses anything else by its name."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from agent_core.models import ScriptedModel
from engine_shim import DefinitionError, Engine, MemoryRunStore, SqliteRunStore, load_workflow
from utools import tool

FLOW = {"id": "greeting", "nodes": [{"tool": "hello", "config": {"name": "{{external.name}}"}}]}


@tool(effect="read")
def hello(name: str) -> str:
    """Greets."""
    return f"Hello, {name}."


def plain(name: str) -> str:
    return name


@pytest.mark.parametrize("kind", [str, Path])
async def test_a_store_may_be_a_path(kind: type, tmp_path: Path) -> None:
    file = kind(tmp_path / "runs.db")
    engine = Engine([hello], store=file)
    result = await engine.run(FLOW, external={"name": "Ada"})
    await engine.close()
    store = SqliteRunStore(file)
    assert [entry.run for entry in store.entries()] == [result.run_id]
    store.close()


async def test_a_workflow_may_be_a_mapping_or_a_path(tmp_path: Path) -> None:
    engine, file = Engine([hello], store=MemoryRunStore()), tmp_path / "flow.yaml"
    file.write_text(yaml.safe_dump(FLOW))
    for workflow in (FLOW, file, str(file), load_workflow(str(file), base=str(tmp_path))):
        result = await engine.run(workflow, external={"name": "Ada"})
        assert result.outputs["hello"] == "Hello, Ada."


def test_the_sync_twin_takes_the_same() -> None:
    engine = Engine([hello], store=MemoryRunStore())
    assert engine.run_sync(FLOW, external={"name": "Ada"}).status == "completed"


async def test_scripts_may_be_named_as_text(tmp_path: Path) -> None:
    file = tmp_path / "replies.json"
    file.write_text('["{\\"type\\":\\"final\\",\\"answer\\":\\"done\\"}"]')
    config = {"model": "m", "max_steps": 3, "allowed_tools": [], "prompt": "Go."}
    flow = {"id": "agent", "nodes": [{"tool": "agent_core", "config": config}]}
    for model in (f"scripted:{file}", ScriptedModel.from_file(str(file))):
        result = await Engine([], store=MemoryRunStore(), model=model).run(flow)
        assert result.outputs["agent_core"]["final_answer"] == "done"


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a function": ({"registry": [plain]}, "tools/0: plain is a function: write @tool from utools above it"),
    "no model": (
        {"model": 5},
        "model: must be a model's name as text, such as openai:gpt-4o-mini, or a ModelClient",
    ),
    "no store": ({"store": 5}, "store: must be a RunStore, the path of its file, or a URL (got 5)"),
    "no place for a run": ({"max_running": 0}, "max_running: must be 1 or more (got 0)"),
}


@pytest.mark.parametrize(("options", "told"), REFUSED.values(), ids=REFUSED)
def test_what_is_neither_is_refused_by_its_name(options: dict[str, Any], told: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        Engine(**{"store": MemoryRunStore(), **options})
    assert told in str(refused.value)


async def test_a_callback_that_has_to_be_awaited_is_refused_before_anything_is_written() -> None:
    async def show(event: Any) -> None: ...

    store, awaited = MemoryRunStore(), dict[str, Any](on_event=show)
    engine = Engine([hello], store=store)
    with pytest.raises(DefinitionError, match="on_event: must be a function that takes an event, and is not async"):
        await engine.run(FLOW, external={"name": "Ada"}, **awaited)
    assert [*store.entries()] == []


async def test_what_is_no_workflow_is_refused() -> None:
    engine = Engine([hello], store=MemoryRunStore())
    with pytest.raises(DefinitionError, match=r"workflow: must be a Workflow, a definition, or the path of its file"):
        await engine.run(5)  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match=r"external: must be an object, such as \{\"message\": …\} \(got 'Ada'\)"):
        await engine.run(FLOW, external="Ada")  # type: ignore[arg-type]
