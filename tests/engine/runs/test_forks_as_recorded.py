"""A fork takes what was recorded as it was recorded, run ids inside it too: nothing that read them is done anew."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent_core import Approve, replay, verify
from agent_core.audit.fork import fork_rows
from agent_core.models import ModelError, ScriptedModel
from engine_shim import Engine, RunResult, SqliteRunStore
from engine_shim.runs.loops import LOOPS
from support.by_hand import action, final
from support.command import Write
from utools import Tool, ToolError, default_registry

ANY = {"type": "object", "additionalProperties": True}
AGENT = {"model": "m", "max_steps": 4, "prompt": "Go.", "allowed_tools": []}


class World:
    """A host that keeps what its tools were given; those in `broken` fail."""

    def __init__(self, root: Path) -> None:
        self.given: list[tuple[str, Any]] = []
        self.broken: set[str] = {"late"}
        self.asked = 0
        self.root, self.store = root, SqliteRunStore(root / "runs.db")

    def _tool(self, code: str, effect: Any) -> Tool:
        def act(args: Any, context: Any) -> Any:
            self.given.append((code, args))
            if code in self.broken:
                raise ToolError(f"{code} is broken")
            return args

        return Tool(code, "Acts.", ANY, act, effect=effect)

    def engine(self) -> Engine:
        registry = default_registry(self.root)
        for tool in (self._tool("early", "write"), self._tool("late", "read")):
            registry.register(tool)

        def answer(messages: Any) -> str:
            self.asked += 1
            if any("Ask another" in str(each) for each in messages) and self.asked == 1:
                return action("agent_core", prompt="Go.")
            return final(f"answer {self.asked}")

        return Engine(registry, store=self.store, model=ScriptedModel(answer))

    def run(self, first: Any, takes: Any, **keys: Any) -> RunResult:
        """A node, one that writes what it took of that, and one that reads and fails."""
        nodes = [
            {"id": "first", **first},
            {"id": "early", "tool": "early", "config": {"took": takes, "run": "{{run.id}}"}},
            {"id": "late", "tool": "late", "config": {"took": takes, "run": "{{run.id}}"}},
        ]
        edges = [{"from": "first", "to": "early"}, {"from": "early", "to": "late"}]
        result = self.engine().run_sync({"id": "w", "nodes": nodes, "edges": edges, **keys}, run_id="r")
        assert result.status == "failed"
        return result

    def retry(self, run: str, new: str) -> RunResult:
        self.given.clear()
        self.asked = 0
        result = asyncio.run(self.engine().retry_failed(run, new_id=new))
        self.check(result)
        return result

    def check(self, result: RunResult) -> None:
        run = result.run_id
        assert verify(self.store.journal, run_id=run, **result.journal).ok or result.status == "waiting"
        assert replay(self.store.journal, run_id=run, loops=LOOPS).identical
        again = self.engine().result(run)
        assert again is not None
        assert again.as_json() == result.as_json()


@pytest.fixture
def world(home: Path) -> World:
    return World(home)


NESTED = {**AGENT, "prompt": "Ask another.", "allowed_tools": [{"tool": "agent_core", "preset": AGENT}]}
NESTED["allowed_tools"] = [{"tool": "agent_core", "preset": {key: AGENT[key] for key in ("model", "max_steps")}}]
NESTED["allowed_tools"][0]["preset"]["allowed_tools"] = []
KINDS: dict[str, Any] = {
    "agent": {"tool": "agent_core", "config": AGENT},
    "agent that asks an agent": {"tool": "agent_core", "config": NESTED},
    "agent for each item": {"tool": "agent_core", "config": {**AGENT, "prompt": "{{item}}"}, "foreach": ["a", "b"]},
    "workflow": {"tool": "invoke_workflow", "config": {"workflow": "sub.json"}},
    "workflow for each item": {"tool": "invoke_workflow", "config": {"workflow": "sub.json"}, "foreach": [1, 2]},
}


@pytest.fixture
def sub(write: Write) -> None:
    say = {"id": "say", "tool": "echo", "config": {"text": "{{run.id}}"}}
    write("sub.json", {"id": "sub", "nodes": [{"tool": "agent_core", "config": AGENT}, say]})


@pytest.mark.sampled
@pytest.mark.usefixtures("sub")
@pytest.mark.parametrize("first", KINDS.values(), ids=KINDS)
def test_what_read_a_whole_output_is_not_done_again(world: World, first: Any) -> None:
    failed = world.run(first, "{{nodes.first}}")
    asked = world.asked
    assert asked >= 1
    assert '"r"' in json.dumps(failed.outputs["first"])
    world.broken.clear()
    done = world.retry("r", "again")
    assert (done.status, world.asked, [code for code, _ in world.given]) == ("completed", 0, ["late"])
    assert done.outputs["first"] == failed.outputs["first"]
    assert done.outputs["late"]["took"] == failed.outputs["first"]
    assert (done.run_id, done.outputs["early"]["run"], done.outputs["late"]["run"]) == ("again", "r", "again")


@pytest.mark.sampled
@pytest.mark.usefixtures("sub")
@pytest.mark.parametrize("first", KINDS.values(), ids=KINDS)
def test_fork_of_a_fork_keeps_what_each_of_them_recorded(world: World, first: Any) -> None:
    failed = world.run(first, "{{nodes.first}}")
    again = world.retry("r", "again")
    assert (again.status, again.outputs["first"]) == ("failed", failed.outputs["first"])
    world.broken.clear()
    third = world.retry("again", "third")
    assert (third.status, world.asked, [code for code, _ in world.given]) == ("completed", 0, ["late"])
    assert third.outputs["first"] == failed.outputs["first"]
    assert [third.outputs[each]["run"] for each in ("early", "late")] == ["r", "third"]
    fourth = asyncio.run(world.engine().fork("third", ("flow/early.1", 0), new_id="fourth", repeat_writes=True))
    world.check(fourth)
    assert [fourth.outputs[each]["run"] for each in ("early", "late")] == ["fourth", "fourth"]
    assert fourth.outputs["late"]["took"] == failed.outputs["first"]


def test_agent_that_went_on_in_a_fork_is_the_forks_own(world: World) -> None:
    world.broken.clear()
    nodes = [
        {"id": "a", "tool": "agent_core", "config": AGENT},
        {"id": "b", "tool": "agent_core", "config": {**AGENT, "messages_json": "{{nodes.a.messages_json}}"}},
        {"id": "early", "tool": "early", "config": {"a": "{{nodes.a}}", "b": "{{nodes.b.run_id}}"}},
    ]
    edges = [{"from": "a", "to": "b"}, {"from": "b", "to": "early"}]
    world.engine().run_sync({"id": "w", "nodes": nodes, "edges": edges}, run_id="r")
    asked = world.asked
    fork = world.engine().fork("r", ("flow/b.1", 1), new_id="again", repeat_writes=True)
    done = asyncio.run(fork)
    world.check(done)
    assert (done.status, world.asked - asked) == ("completed", 1)
    assert (done.outputs["early"]["a"]["run_id"], done.outputs["early"]["b"]) == ("r", "again")


def test_fork_that_waits_goes_on_from_its_own_records(world: World) -> None:
    world.broken.clear()
    nodes = [
        {"id": "a", "tool": "agent_core", "config": AGENT},
        {"id": "mid", "tool": "early", "config": {"took": "{{nodes.a}}", "run": "{{run.id}}"}},
        {"id": "end", "tool": "early", "config": {"took": "{{nodes.mid}}"}, "approval": "always"},
        {"id": "after", "tool": "late", "config": {"run": "{{run.id}}", "took": "{{nodes.a.journal}}"}},
    ]
    edges = [{"from": a, "to": b} for a, b in (("a", "mid"), ("mid", "end"), ("end", "after"))]
    first = world.engine().run_sync({"id": "w", "nodes": nodes, "edges": edges}, run_id="r")
    assert first.status == "waiting"
    fork = asyncio.run(world.engine().fork("r", ("flow/end.1", 0), new_id="again"))
    assert fork.status == "waiting"
    world.check(fork)
    decisions = {(fork.waiting[0]["strand"], fork.waiting[0]["n"]): Approve()}
    done = asyncio.run(world.engine().resume("again", decisions=decisions))
    world.check(done)
    assert (done.status, done.outputs["end"]["took"]["run"]) == ("completed", "r")
    assert done.outputs["after"] == {"run": "again", "took": first.outputs["a"]["journal"]}


def test_run_id_in_the_words_of_an_agent_is_the_one_it_was_asked_with(world: World) -> None:
    failed = world.run({"tool": "agent_core", "config": {**AGENT, "prompt": "This is run {{run.id}}."}}, "{{run.id}}")
    world.broken.clear()
    done = world.retry("r", "again")
    assert (done.status, world.asked) == ("completed", 0)
    assert done.outputs["first"]["messages_json"] == failed.outputs["first"]["messages_json"]


def test_turn_that_was_stored_is_not_stored_again(world: World) -> None:
    def persist(name: str) -> Any:
        config = {
            "op": "persist",
            "session_id": "s",
            "user_message": "Go.",
            "final_answer": "{{nodes.a.final_answer}}",
        }
        return {"id": name, "tool": "context_manager", "config": config}

    nodes = [
        {"id": "a", "tool": "agent_core", "config": AGENT},
        persist("store"),
        {"id": "late", "tool": "late", "config": {"took": "{{nodes.store}}", "a": "{{nodes.a}}"}},
        {"id": "read", "tool": "context_manager", "config": {"op": "load", "session_id": "s"}},
    ]
    edges = [{"from": a, "to": b} for a, b in (("a", "store"), ("store", "late"), ("late", "read"))]
    engine = world.engine()
    assert engine.run_sync({"id": "w", "nodes": nodes, "edges": edges}, run_id="r").status == "failed"
    world.broken.clear()
    again = asyncio.run(engine.retry_failed("r", new_id="again"))
    assert again.status == "completed", again.error
    stored = [each["content"] for each in again.outputs["read"]]
    assert stored == ["Go.", "answer 1"]
    assert again.outputs["store"]["turn_id"].startswith("r")


def test_fork_before_a_further_attempt_leaves_out_that_attempt_and_what_came_of_it(tmp_path: Path) -> None:
    store, asked = SqliteRunStore(tmp_path / "runs.db"), list[int]()

    def answer(messages: Any) -> str:
        asked.append(1)
        if len(asked) == 1:
            raise ModelError("away")
        return final("ok")

    engine = Engine(default_registry(tmp_path), store=store, model=ScriptedModel(answer))
    tried = {"id": "a", "tool": "agent_core", "config": AGENT, "retry": {"max_attempts": 2, "delay": 0}}
    nodes = [tried, {"id": "b", "tool": "echo", "config": {"text": "{{nodes.a.final_answer}}"}}]
    flow = {"id": "w", "nodes": nodes, "edges": [{"from": "a", "to": "b"}]}
    assert engine.run_sync(flow, run_id="r").status == "completed"
    tape = store.journal.load("r")
    first, second = len(tape["flow/a.1"]), len(tape["flow/a.1~1"])
    for place, left in (
        (("flow/a.1", first - 1), {"flow": 1, "flow/a.1": first}),
        (("flow/a.1~1", 1), {"flow": 1, "flow/a.1": first, "flow/a.1~1": 1}),
        (("flow/b.1", 1), {"flow": 1, "flow/a.1": first, "flow/a.1~1": second}),
    ):
        rows = fork_rows("r", tape, [place], "new", loops=LOOPS, at="2026-01-01T00:00:00Z")
        assert Counter(row.path for row in rows) == left, place
