"""run_agent takes what a program naturally has at hand, and refuses anything else by its name."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent_core import (
    Approve,
    DecisionError,
    DefinitionError,
    MemoryJournal,
    agent_tool,
    replay,
    run_agent,
    run_agent_sync,
    verify,
)
from agent_core.models import ScriptedModel
from agent_core.run.arguments import open_journal
from support.by_hand import action, final
from support.optional import needs
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


@pytest.mark.sampled
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
    "no journal": (
        {"journal": 5},
        "journal: must be a Journal, the path of its file, or the URL of a PostgreSQL database (got 5)",
    ),
    "no model": (
        {"model": 5},
        "model: must be a model's name as text, such as openai:gpt-4o-mini, or a ModelClient",
    ),
    "a function for a model": ({"model": plain}, "goes into ScriptedModel of agent_core.models (got 'plain')"),
    "a list of replies": ({"model": ["Hello."]}, "a list of replies, or a function of the messages"),
    "a class of models": ({"model": ScriptedModel}, "model: is a class; give an instance: ScriptedModel(…)"),
    "a number for an id": ({"run_id": 5}, "run_id: 1 to 128 letters"),
    "a list of secrets": (
        {"secrets": ["A"]},
        "secrets: must be Secrets of agent_core, such as Secrets(['SHOP_TOKEN'])",
    ),
    "an async callback": ({"on_event": asyncio.sleep}, "on_event: must be a function that takes an event, and is not"),
    "an unknown provider": ({"model": "opnai:x"}, "model: no such provider: opnai"),
}


@pytest.mark.parametrize(("change", "told"), REFUSED.values(), ids=REFUSED)
async def test_what_is_neither_is_refused_by_its_name(change: dict[str, Any], told: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        await run_agent(CONFIG, **{"registry": ToolRegistry([look]), "journal": MemoryJournal(), **change})
    assert told in str(refused.value)


CONFIGS: dict[str, tuple[Any, str]] = {
    "none": (None, "config: must be an object with model, max_steps, allowed_tools (got None)"),
    "a tool for its code": (
        {**CONFIG, "allowed_tools": [look]},
        "config/allowed_tools/0: is a Tool; write its code, 'look', and give the Tool in registry=",
    ),
    "a type for its schema": (
        {**CONFIG, "answer_schema": dict},
        "config/answer_schema: is a type; give it to the call, as answer_schema=, which then gives an object",
    ),
    "a narrowing of no argument": (
        {**CONFIG, "allowed_tools": [{"tool": "look", "args": {"properties": {"qq": {"maxLength": 3}}}}]},
        "config/allowed_tools/0/args/properties/qq: the tool has no such argument; did you mean q?",
    ),
}


@pytest.mark.parametrize(("config", "told"), CONFIGS.values(), ids=CONFIGS)
async def test_a_config_of_another_form_is_told_what_to_write(config: Any, told: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        await run_agent(config, registry=[look], model=SCRIPT)
    assert told in str(refused.value)


async def test_decisions_need_the_journal_of_their_run(tmp_path: Path) -> None:
    with pytest.raises(DecisionError, match="has no records here, so nothing waits in it: give the journal"):
        await run_agent(CONFIG, registry=[look], model=SCRIPT, decisions={("agent", 4): Approve()})
    journal = tmp_path / "run.jsonl"
    await run_agent(CONFIG, registry=[look], model=SCRIPT, journal=journal)
    listed: Any = [Approve()]
    with pytest.raises(DecisionError, match="decisions are a mapping such as"):
        await run_agent(CONFIG, registry=[look], model=SCRIPT, journal=journal, decisions=listed)
    with pytest.raises(DefinitionError, match="a new run has another run_id"):
        await run_agent({**CONFIG, "prompt": "Stop."}, registry=[look], model=SCRIPT, journal=journal)


def test_a_registry_of_a_registry_is_the_same() -> None:
    registry = ToolRegistry([look])
    assert ToolRegistry.from_tools(registry) is registry


async def test_a_call_within_a_running_loop_is_made_in_another(tmp_path: Path) -> None:
    assert run_agent_sync(CONFIG, registry=[look], model=SCRIPT).final_answer == "done"


def test_an_error_brings_no_other_error_along() -> None:
    with pytest.raises(DefinitionError) as refused:
        run_agent_sync({**CONFIG, "max_steps": "x"}, registry=[look], model=SCRIPT)
    assert (refused.value.__cause__, refused.value.__suppress_context__) == (None, True)
    with pytest.raises(DefinitionError) as refused:
        run_agent_sync(CONFIG, registry=[look], model=plain)
    assert refused.value.__context__ is None


@pytest.mark.parametrize("script", ["Hello.", [{"foo": 1}], {"a": "Hello."}], ids=str)
def test_a_script_of_another_shape_is_refused_where_it_is_made(script: Any) -> None:
    with pytest.raises(DefinitionError, match="scripted: "):
        ScriptedModel(script)


async def test_a_scripts_function_that_returns_no_reply_is_told(tmp_path: Path) -> None:
    output = await run_agent(CONFIG, registry=[look], model=ScriptedModel(lambda messages: 3))
    assert output.error is not None
    assert output.error["message"].startswith("what the script's function returned must be a text, a step such as")


@needs("psycopg")
def test_journal_may_be_the_url_of_a_database() -> None:
    from agent_core.journal.postgres import PostgresJournal

    with open_journal("postgresql://127.0.0.1:1/runs") as journal:
        assert isinstance(journal, PostgresJournal)
    with pytest.raises(DefinitionError, match="journal"), open_journal("mysql://localhost/runs"):
        pass
