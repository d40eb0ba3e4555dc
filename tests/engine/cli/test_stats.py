"""agent-core stats: what many runs did, from their journals, without all of them in memory at once."""

import re
from dataclasses import replace
from typing import Any

import pytest

from agent_core.models import Completion, Question, ScriptedModel
from engine_shim import Engine, load_workflow
from engine_shim.store.run_store import SqliteRunStore
from support.by_hand import action
from support.command import Cli
from utools import Tool, ToolContext, ToolError, default_registry

ANY = {"type": "object", "additionalProperties": True}
FINAL = '{"type":"final","answer":"done"}'


@pytest.fixture
def recorded(home: Any) -> None:
    """Three runs of `works`, with an agent, of which one fails; one of `waits`."""

    def look(args: Any, context: ToolContext) -> str:
        if args.get("q") == "none":
            raise ToolError("nothing there")
        return "seen"

    registry = default_registry()
    registry.register(Tool("look", "Looks.", ANY, look, effect="read"))
    agent = {"model": "m", "max_steps": 3, "allowed_tools": ["look"], "prompt": "Go."}
    works = {
        "id": "works",
        "nodes": [{"tool": "look", "config": {"q": "{{external.q}}"}}, {"tool": "agent_core", "config": agent}],
        "edges": [{"from": "look", "to": "agent_core"}],
    }
    waits = {"id": "waits", "nodes": [{"tool": "look", "config": {}, "approval": "always"}]}
    reply = {"content": FINAL, "usage": {"input_tokens": 10, "output_tokens": 2, "cost": 0.5}}
    script = [action("look", q="x"), reply]
    store = SqliteRunStore(home / "runs.db")
    for q in ("a", "b", "none"):
        engine = Engine(registry, store=store, model=ScriptedModel(list(script)))
        engine.run_sync(load_workflow(works), external={"q": q})
    Engine(registry, store=store).run_sync(load_workflow(waits))
    store.close()


@pytest.mark.usefixtures("recorded")
def test_runs_tools_and_models_are_counted(cli: Cli) -> None:
    told = cli("stats", "--store", "runs.db", "--json").json
    assert told["workflows"] == {
        "works": {
            "runs": 3,
            "statuses": {"completed": 2, "failed": 1},
            "errors": {"tool_error": 1},
            "failure_rate": 1 / 3,
        },
        "waits": {"runs": 1, "statuses": {"waiting": 1}, "errors": {}, "failure_rate": None},
    }
    look = told["tools"]["look"]
    assert (look["calls"], look["failed"], look["average_seconds"] >= 0) == (5, 1, True)
    (agent,) = told["agents"].items()
    assert agent[1].pop("average_seconds") >= 0
    tokens = sum(told["models"]["tokens"].values())
    counted = {"runs": 2, "finish_reasons": {"final": 2}, "steps": 4, "tool_calls": 2, "tokens": tokens, "cost": 1.0}
    assert agent == ("agent_core", counted)
    assert (told["models"]["replies"], told["models"]["cost"], told["unreadable"]) == (4, 1.0, [])
    (model,) = told["models"]["by_model"].values()
    assert model == {key: each for key, each in told["models"].items() if key != "by_model"}


@pytest.mark.usefixtures("recorded")
def test_a_person_reads_tables_and_may_choose_a_workflow_and_a_time(cli: Cli) -> None:
    lines = cli("stats", "--store", "runs.db").out.splitlines()
    assert lines[0].split() == ["workflow", "runs", "failure", "rate", "statuses", "errors"]
    assert lines[1].split(maxsplit=3) == ["works", "3", "33.3%", "2 completed, 1 failed  1 tool_error"]
    at = next(n for n, line in enumerate(lines) if line.split()[:2] == ["agent", "runs"])
    assert re.fullmatch(r"agent_core +2 +2 final +4 +2 +[\d,]+ +1\.0000 USD +\d\.\d{3} s", lines[at + 1])
    at = next(
        n for n, line in enumerate(lines) if line.split() == ["model", "replies", "tokens", "of", "these", "cost"]
    )
    assert re.fullmatch(r"m +4 +[\d,]+ \+ \d+ +- +1\.0000 USD", lines[at + 1])
    assert any(
        line.startswith("models: 4 replies, ") and line.endswith("1.0000 USD for the 2 with a price") for line in lines
    )
    only = cli("stats", "--store", "runs.db", "--workflow", "waits", "--json").json
    assert list(only["workflows"]) == ["waits"]
    assert cli("stats", "--store", "runs.db", "--since", "2100-01-01").out == "no runs\n"


class CachedModel(ScriptedModel):
    """A model that thinks, and whose vendor has read half of each question from a cache."""

    async def complete(self, question: Question) -> Completion:
        counts = {"cached_tokens": 500, "cache_write_tokens": 400, "reasoning_tokens": 20}
        return replace(await super().complete(question), input_tokens=1000, output_tokens=30, **counts)


def test_tokens_that_are_counted_apart_are_shown(cli: Cli, home: Any) -> None:
    agent = {"model": "m", "max_steps": 1, "allowed_tools": [], "prompt": "Go."}
    engine = Engine(default_registry(), store=home / "runs.db", model=CachedModel([FINAL]))
    engine.run_sync(load_workflow({"id": "thinks", "nodes": [{"tool": "agent_core", "config": agent}]}))
    lines = cli("stats", "--store", "runs.db").out.splitlines()
    assert "m      1        1,000 + 30  500 cached, 400 written to a cache, 20 thought  -" in lines
    tokens = cli("stats", "--store", "runs.db", "--json").json["models"]["tokens"]
    assert tokens == {"input": 1000, "output": 30, "cached": 500, "cache_write": 400, "reasoning": 20}


@pytest.mark.usefixtures("recorded")
def test_a_damaged_run_is_named_and_the_others_are_counted(cli: Cli, home: Any) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(home / "runs.db", isolation_level=None)) as db:
        db.execute(
            "UPDATE rows SET data = ? WHERE run = (SELECT min(run) FROM rows WHERE n = 1) AND n = 1",
            (b'{"kind":"asked"',),
        )
    told = cli("stats", "--store", "runs.db", "--json").json
    assert (len(told["unreadable"]), sum(each["runs"] for each in told["workflows"].values())) == (1, 3)
