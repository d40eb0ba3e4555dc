"""run_agent takes what a program naturally has at hand, and refuses anything else by its name."""

from pathlib import Path
from typing import Any

import pytest

from agent_core import DefinitionError, MemoryJournal, agent_tool, replay, run_agent, run_agent_sync, verify
from agent_core.models import ScriptedModel
from support.by_hand import action, final
from utools import ToolRegistry, tool


@tool(effect="read")
def look(q: str) -> str:
    """Looks."""
    return "seen"


def plain(q: str) -> str:
    """Looks."""
    return "seen"


CONFIG = {"model": "scripted", "max_steps": 5, "allowed_tools": ["look"], "prompt": "Go."}
SCRIPT = ScriptedModel([action(), final()])


@pytest.mark.parametrize("name", ["run.jsonl", "runs.db", "runs.sqlite", "runs.sqlite3"])
@pytest.mark.parametrize("kind", [str, Path])
async def test_a_journal_may_be_a_path(name: str, kind: type, tmp_path: Path) -> None:
    file = kind(tmp_path / name)
    output = await run_agent(CONFIG, registry=[look], model=SCRIPT, journal=file)
    assert verify(file, run_id=output.run_id).ok
    assert replay(file, run_id=output.run_id).identical


async def test_tools_may_be_a_list() -> None:
    output = await run_agent(CONFIG, registry=[look], model=SCRIPT)
    assert (output.finish_reason, output.used_tools["look"]["count"]) == ("final", 1)


def test_the_sync_twin_takes_the_same(tmp_path: Path) -> None:
    output = run_agent_sync(CONFIG, registry=[look], model=SCRIPT, journal=str(tmp_path / "run.jsonl"))
    assert verify(tmp_path / "run.jsonl", run_id=output.run_id).ok


def test_an_agent_as_a_tool_takes_the_same() -> None:
    assert agent_tool([look], model=SCRIPT).code == "agent_core"


async def test_a_model_may_be_its_name(tmp_path: Path) -> None:
    (tmp_path / "replies.json").write_text('["{\\"type\\":\\"final\\",\\"answer\\":\\"done\\"}"]')
    name = f"scripted:{tmp_path / 'replies.json'}"
    assert (await run_agent({**CONFIG, "allowed_tools": []}, registry=[], model=name)).final_answer == "done"


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a function": ({"registry": [plain]}, "tools/0: plain is a function: write @tool from utools above it"),
    "a method": ({"registry": [[].append]}, "tools/0: must be a Tool (got <built-in method append"),
    "a code": ({"registry": ["echo"]}, "tools/0: must be a Tool (got 'echo')"),
    "one tool": ({"registry": look}, "registry: must be a ToolRegistry, or a list of tools: write [look]"),
    "a text for tools": ({"registry": "echo"}, "registry: must be a ToolRegistry, or a list of tools (got 'echo')"),
    "another file": ({"journal": "run.txt"}, "journal: must end in .jsonl, or for SQLite in .db, .sqlite, .sqlite3"),
    "no journal": ({"journal": 5}, "journal: must be a Journal, or the path of its file (got 5)"),
    "no model": ({"model": 5}, "model: must be a ModelClient, or a model's name as text (got 5)"),
    "an unknown provider": ({"model": "opnai:x"}, "model: no such provider: opnai"),
}


@pytest.mark.parametrize(("change", "told"), REFUSED.values(), ids=REFUSED)
async def test_what_is_neither_is_refused_by_its_name(change: dict[str, Any], told: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        await run_agent(CONFIG, **{"registry": ToolRegistry([look]), "journal": MemoryJournal(), **change})
    assert told in str(refused.value)


def test_a_registry_of_a_registry_is_the_same() -> None:
    registry = ToolRegistry([look])
    assert ToolRegistry.of(registry) is registry
