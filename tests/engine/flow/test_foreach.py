"""Nodes that call their tool for each item of a list: by hand where the order matters, else through the Engine."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core import Approve, Deny, Skip
from agent_core.audit.replay import replay
from agent_core.audit.verify import verify
from agent_core.effects import Cancelled, Failed, Items, Suspended, ToolReply, Visits
from agent_core.models import ScriptedModel
from agent_core.rules import CURRENT
from engine_shim import DefinitionError, Engine, MemoryRunStore, RunResult, load_workflow
from engine_shim.flow.flow import flow
from engine_shim.runs.loops import LOOPS
from support.by_hand import AT, action, final
from utools import Tool, ToolContext, ToolError, ToolResult, default_registry

ANY = {"type": "object", "additionalProperties": True}
LIST = {"type": "object", "properties": {"found": {"type": "array"}}, "required": ["found"]}


def each(tool: str = "look", of: Any = "{{external.list}}", **keys: Any) -> dict[str, Any]:
    return {"id": "each", "tool": tool, "foreach": of, "config": {"q": "{{item}}", "at": "{{index}}"}, **keys}


class World:
    """An engine whose tools note their arguments. `look` fails for negative numbers, `flaky` for each item at first."""

    def __init__(self, *nodes: Any, script: Any = (), base: Path = Path(), **keys: Any) -> None:
        self.made: list[Any] = []
        self.store = MemoryRunStore()
        registry = default_registry(base)
        for code, act, effect in (
            ("look", self._look, "read"),
            ("flaky", self._flaky, "read"),
            ("pay", self._look, "write"),
            ("lost", self._lost, "write"),
        ):
            registry.register(Tool(code, "Works.", ANY, act, effect=effect))  # type: ignore[arg-type]
        self.engine = Engine(registry, store=self.store, model=ScriptedModel(script))
        self.workflow = load_workflow({"id": "w", "nodes": list(nodes), **keys}, base=base)

    def _look(self, args: Any, context: ToolContext) -> Any:
        self.made.append(args["q"])
        if isinstance(args["q"], int) and args["q"] < 0:
            raise ToolError(f"there is no {args['q']}")
        return {"seen": args["q"]}

    def _flaky(self, args: Any, context: ToolContext) -> Any:
        self.made.append(args["q"])
        if self.made.count(args["q"]) == 1:
            raise ToolError("not yet")
        return {"seen": args["q"]}

    def _lost(self, args: Any, context: ToolContext) -> Any:
        self.made.append(args["q"])
        return ToolResult(False, error="the line went dead", metadata={"cut_off": True})

    def run(self, items: Any = (), **inputs: Any) -> RunResult:
        external = {"list": list(items) if isinstance(items, range | tuple) else items, **inputs}
        return asyncio.run(self.engine.run(self.workflow, external=external, run_id="r"))

    def decide(self, result: RunResult, decide: Callable[[Any], Any]) -> RunResult:
        decisions = {(entry["strand"], entry["n"]): decide(entry["args"]) for entry in result.waiting}
        return asyncio.run(self.engine.resume("r", decisions=decisions))

    def strands(self) -> list[str]:
        return sorted(path for path in self.store.journal.load("r") if path.startswith("flow/each"))

    def check(self) -> None:
        """The run is whole, and replays to the same."""
        assert verify(self.store.journal, run_id="r").ok
        assert replay(self.store.journal, run_id="r", loops=LOOPS).identical


# ── results ──────────────────────────────────────────────────────────────────────────────────────


def test_each_item_is_a_call_and_the_results_are_in_its_order() -> None:
    world = World(each(), {"tool": "echo", "config": {"text": "item {{nodes.each.results.2.seen}}"}})
    done = world.run(range(6))
    assert done.outputs["each"] == {"results": [{"seen": n} for n in range(6)], "errors": []}
    assert (done.outputs["echo"], sorted(world.made)) == ("item 2", list(range(6)))
    assert world.strands() == ["flow/each.1", *(f"flow/each.1/0.{n}" for n in range(6))]
    world.check()


def test_the_list_may_be_another_nodes_output_or_written_out() -> None:
    search = {"id": "search", "tool": "look", "config": {"q": ["a", "b"]}}
    for of in ("{{nodes.search.seen}}", ["{{nodes.search.seen.0}}", "b"]):
        world = World(search, each(of=of))
        assert world.run().outputs["each"]["results"] == [{"seen": "a"}, {"seen": "b"}]
        world.check()


def test_parts_of_an_item_and_its_index_are_filled_in() -> None:
    world = World(each(config={"q": "{{item.name}} {{index}} {{item.gone?}}."}))
    assert world.run(({"name": "x"}, {"name": "y"})).outputs["each"]["results"] == [
        {"seen": "x 0 ."},
        {"seen": "y 1 ."},
    ]


def test_no_items_are_no_calls() -> None:
    world = World(each(), {"tool": "echo", "config": {"text": "none: {{nodes.each.results}}"}})
    done = world.run()
    assert (done.status, done.outputs["each"], world.made) == ("completed", {"results": [], "errors": []}, [])
    assert done.outputs["echo"] == "none: []"
    world.check()


NO_LISTS = {
    "an object": ({"a": 1}, "foreach needs a list, and got an object with a"),
    "a text": ("a, b", "foreach needs a list, and got a text"),
    "null": (None, "foreach needs a list, and got null"),
    "too long": (range(1001), "foreach was given 1,001 items, and takes 1,000; work on them in parts"),
}


@pytest.mark.parametrize(("items", "told"), NO_LISTS.values(), ids=NO_LISTS)
def test_what_is_no_list_fails_the_node_and_says_what_it_is(items: Any, told: str) -> None:
    world = World(each())
    done = world.run(items)
    assert done.error == {"kind": "definition", "message": told, "where": "each"}
    assert world.made == []
    world.check()


# ── failures ─────────────────────────────────────────────────────────────────────────────────────


def test_one_item_that_fails_loses_no_other_result_where_the_author_says_so() -> None:
    world = World(each(on_item_error="continue"))
    done = world.run((1, -2, 3))
    errors = [{"index": 1, "kind": "tool_error", "message": "there is no -2"}]
    assert done.outputs["each"] == {"results": [{"seen": 1}, None, {"seen": 3}], "errors": errors}
    assert done.status == "completed"
    world.check()


def test_an_item_that_fails_fails_the_node_and_few_more_are_begun() -> None:
    sorry = {"id": "sorry", "tool": "echo", "config": {"text": "{{nodes.each.error.message}}"}}
    world = World(each(max_parallel=2), sorry, edges=[{"from": "each", "to": "sorry", "on": "error"}])
    done = world.run((1, -2, 3, 4, 5, 6))
    assert done.outputs["sorry"] == "item 1: there is no -2"
    assert done.outputs["each"]["output"]["results"][0] == {"seen": 1}
    assert set(world.made) == {1, -2, 3}
    world.check()


def test_an_item_whose_config_cannot_be_filled_is_no_call_and_fails_like_any_other() -> None:
    config = {"q": "{{item.name}}"}
    items = ({"name": "x"}, {})
    strict, other = World(each(config=config)), World(each(config=config, on_item_error="continue"))
    assert "item 1: there is no 'name' in item" in str(strict.run(items).error)
    assert strict.made == []
    assert other.run(items).outputs["each"]["results"] == [{"seen": "x"}, None]
    other.check()


def test_items_that_failed_are_tried_again_and_no_others() -> None:
    world = World(each("flaky", retry={"max_attempts": 2}))
    assert world.run((1, 2)).outputs["each"]["results"] == [{"seen": 1}, {"seen": 2}]
    assert sorted(world.made) == [1, 1, 2, 2]
    assert world.strands() == ["flow/each.1", *(f"flow/each.1/{n}.{k}" for n in (0, 2) for k in (0, 1))]
    world.check()
    failing = World(each(on_item_error="continue", retry={"max_attempts": 3}))
    assert failing.run((1, -2)).outputs["each"]["results"] == [{"seen": 1}, None]
    assert sorted(failing.made) == [-2, -2, -2, 1]
    failing.check()


def test_an_item_in_doubt_waits_for_a_person_and_is_not_made_twice() -> None:
    world = World(each("lost", on_item_error="continue"))
    waits = world.run((1, 2))
    assert [(entry["strand"], entry["reason"]) for entry in waits.waiting] == [
        ("flow/each.1/0.0", "in_doubt"),
        ("flow/each.1/0.1", "in_doubt"),
    ]
    done = world.decide(waits, lambda args: Skip())
    assert (done.status, sorted(world.made)) == ("completed", [1, 2])
    world.check()


def test_a_failed_item_is_tried_again_by_retry_failed() -> None:
    world = World(each(max_parallel=1))
    failed = world.run((1, -2, 3))
    assert failed.status == "failed"
    again = asyncio.run(world.engine.retry_failed("r"))
    assert (again.status, world.made) == ("failed", [1, -2, -2])


def test_a_fork_at_an_item_makes_that_one_again_and_keeps_the_others() -> None:
    world = World(each(), {"tool": "echo", "config": {"text": "last: {{nodes.each.results.2.seen}}"}})
    world.run((1, 2, 3))
    forked = asyncio.run(world.engine.fork("r", ("flow/each.1/0.1", 0)))
    assert (forked.status, world.made[3:]) == ("completed", [2])
    assert forked.outputs["echo"] == "last: 3"


# ── approval ─────────────────────────────────────────────────────────────────────────────────────


def test_calls_that_need_a_person_wait_together_and_are_decided_one_by_one() -> None:
    world = World(each("pay", approval="on_write", on_item_error="continue"))
    waits = world.run((1, 2, 3))
    assert ([entry["args"]["q"] for entry in waits.waiting], world.made) == ([1, 2, 3], [])
    done = world.decide(waits, lambda args: Deny("No.") if args["q"] == 2 else Approve())
    assert (done.outputs["each"]["results"], sorted(world.made)) == ([{"seen": 1}, None, {"seen": 3}], [1, 3])
    assert done.outputs["each"]["errors"][0]["message"] == "a person refused the call of pay: No."
    world.check()


def test_refused_item_fails_its_node_and_keeps_no_approved_one_from_being_called() -> None:
    world = World(each("pay", approval="always"))
    done = world.decide(world.run((1, 2)), lambda args: Deny("No.") if args["q"] == 1 else Approve())
    assert (done.status, world.made) == ("failed", [2])
    world.check()


def test_calls_that_wait_are_withdrawn_with_the_run() -> None:
    world = World(each("pay", approval="always"))
    world.run((1, 2))
    asyncio.run(world.engine.cancel("r"))
    assert (world.store.entry("r").status, world.made) == ("cancelled", [])  # type: ignore[union-attr]
    world.check()


# ── nested runs ──────────────────────────────────────────────────────────────────────────────────


def agent(*tools: Any, **config: Any) -> dict[str, Any]:
    given = {"model": "m", "max_steps": 3, "allowed_tools": list(tools), "prompt": "About {{item}}.", **config}
    return {"id": "each", "tool": "agent_core", "foreach": "{{external.list}}", "config": given}


def test_an_agent_runs_for_each_item_and_its_outputs_are_the_results() -> None:
    script = {r"flow/each.1/0.0": [final("A")], r"flow/each.1/0.1": [action("look", q=1), final("B")]}
    world = World(agent("look"), script=script, outputs={"said": "{{nodes.each.results.1.final_answer}}"})
    done = world.run(("a", "b"))
    assert (done.status, done.outputs["said"]) == ("completed", "B")
    assert [each["final_answer"] for each in done.outputs["each"]["results"]] == ["A", "B"]
    world.check()


def test_a_part_of_an_item_comes_from_the_node_that_gave_the_list_with_its_place_in_the_item() -> None:
    search = {"id": "search", "tool": "look", "config": {"q": [{"iban": "DE1"}]}}
    paying = agent("look", prompt="Pay {{item.iban}}.")
    world = World(search, {**paying, "foreach": "{{nodes.search.seen}}"}, script=[action("look", q="DE1"), final("A")])
    trace = world.run().outputs["each"]["results"][0]["trace"]
    assert trace[0]["origins"] == {"/q": "nodes.search /iban"}


def test_an_agents_call_waits_in_its_item_and_the_other_items_go_on() -> None:
    script = {
        r"flow/each.1/0.0": [action("pay", q=7), final("A")],
        r"flow/each.1/0.1": [final("B")],
    }
    world = World(agent({"tool": "pay", "approval": "always"}), script=script)
    waits = world.run(("a", "b"))
    assert [entry["strand"] for entry in waits.waiting] == ["flow/each.1/0.0"]
    done = world.decide(waits, lambda args: Approve())
    assert (done.status, world.made) == ("completed", [7])
    world.check()


def test_a_sub_workflow_runs_for_each_item(tmp_path: Path) -> None:
    below = {"id": "below", "nodes": [{"tool": "look", "config": {"q": "{{external.q}}"}}]}
    (tmp_path / "below.json").write_bytes(orjson.dumps(below))
    node = each("invoke_workflow", config={"workflow": "below.json", "inputs": {"q": "{{item}}"}})
    world = World(node, base=tmp_path)
    done = world.run((1, 2))
    assert [result["outputs"]["look"] for result in done.outputs["each"]["results"]] == [{"seen": 1}, {"seen": 2}]
    world.check()


@pytest.mark.parametrize(("tool", "made"), [("look", [-1, -1]), ("pay", [-1])])
def test_a_sub_workflow_that_failed_is_run_again_unless_one_of_its_items_has_written(
    tmp_path: Path, tool: str, made: list[int]
) -> None:
    (tmp_path / "below.json").write_bytes(orjson.dumps({"id": "below", "nodes": [each(tool)]}))
    config = {"workflow": "below.json", "inputs": {"list": [-1]}}
    world = World({"tool": "invoke_workflow", "config": config, "retry": {"max_attempts": 2}}, base=tmp_path)
    assert (world.run().status, world.made) == ("failed", made)


# ── faults of a definition ───────────────────────────────────────────────────────────────────────

FAULTS: dict[str, tuple[list[Any], str]] = {
    "item without foreach": (
        [{"tool": "look", "config": {"q": "{{item}}"}}],
        "nodes/0/config/q: {{item}}: only the config of a node with foreach has an item",
    ),
    "item in its own list": (
        [each(of="{{item}}")],
        "nodes/0/foreach: {{item}}: only the config of a node with foreach",
    ),
    "below the index": (
        [each(config={"q": "{{index.x}}"})],
        "nodes/0/config/q: {{index.x}}: index is a number, and nothing is below it",
    ),
    "no placeholder": ([each(of="a, b")], "nodes/0/foreach: give a list, or one placeholder that gives it"),
    "unknown node": ([each(of="{{nodes.gone}}")], "nodes/0/foreach: {{nodes.gone}}: there is no 'gone' in nodes here"),
    "max_parallel alone": (
        [{"tool": "look", "max_parallel": 2}],
        "nodes/0/max_parallel: max_parallel needs foreach, the list whose items it is about",
    ),
    "what results cannot have": (
        [each("echo", config={"text": "{{item}}"}), {"tool": "look", "config": {"q": "{{nodes.each.text}}"}}],
        "nodes/1/config/q: {{nodes.each.text}}: there is no 'text' in nodes.each; there are errors, results",
    ),
    "an output that is no list": (
        [{"tool": "echo", "config": {"text": "a"}}, each(of="{{nodes.echo}}")],
        "nodes/1/foreach: {{nodes.echo}} gives no list: it is a text",
    ),
    "text that nobody vouched for": (
        [
            {"id": "search", "tool": "look", "config": {}},
            {**agent({"tool": "pay", "provenance": {"q": "trusted"}}), "foreach": "{{nodes.search.found}}"},
        ],
        "nodes/1/config/prompt: takes the output of 'search', so list in trusted_text",
    ),
}


@pytest.mark.parametrize(("nodes", "told"), FAULTS.values(), ids=FAULTS)
def test_what_is_wrong_with_a_list_is_told_before_the_run(nodes: list[Any], told: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        World(*nodes).run()
    assert told in str(refused.value)


def test_a_jinja_template_keeps_its_own_item() -> None:
    template = {"template": "{% for item in rows %}{{ item }};{% endfor %}", "data": {"rows": ["{{item}}", 2]}}
    node = {"id": "each", "tool": "formatter", "foreach": [1, 5], "config": template}
    pytest.importorskip("jinja2")
    done = World(node).run()
    assert (done.status, done.outputs["each"]["results"]) == ("completed", ["1;2;", "5;2;"]), done.error


# ── by hand ──────────────────────────────────────────────────────────────────────────────────────


def driven(replies: list[Any], pick: Callable[[list[Any]], int], **keys: Any) -> tuple[Any, list[int]]:
    """The outcome of a foreach over the replies' numbers, whose calls end in the order of `pick`; and what began."""
    tools = {"look": {"schema": ANY, "effect": "read", "idempotent": False, "within": 30.0}}
    definition = {"id": "w", "nodes": [each(of=list(range(len(replies))), **keys)]}
    started = {"run": "r", "at": AT, "definition": definition, "external": {}, "env": {}, "tools": tools}
    loop = flow({**started, "rules": CURRENT})
    visits = next(loop)
    assert isinstance(visits, Visits)
    (visit,) = visits.first
    assert visit.loop is not None
    inner, reply, begun = visit.loop(), None, list[int]()
    while True:
        try:
            effect = inner.send(reply)
        except StopIteration as stop:
            visits.more(visit, stop.value, None)
            break
        assert isinstance(effect, Items)
        under_way = list(effect.first)
        while under_way:
            assert len(under_way) <= keys.get("max_parallel", 4)
            made = under_way.pop(pick(under_way))
            begun.append(made.n)
            under_way += effect.more(made, replies[made.n], None)
    with pytest.raises(StopIteration) as ended:
        loop.send(())
    return ended.value.value, sorted(begun)


REPLIES = st.sampled_from(
    [
        ToolReply(True, "well", None, AT, 1.0),
        ToolReply(True, "slow", None, AT, 2.5),
        ToolReply(False, None, "it broke", AT, 0.5),
        ToolReply(False, None, "gone", AT, 0.5, permanent=True),
        Failed("timeout", "too slow", AT, 30.0),
        Cancelled(AT),
        Suspended("in_doubt", ({"strand": "s", "n": 1, "tool": "look", "args": {}, "reason": "in_doubt"},)),
    ]
)
KEYS = st.fixed_dictionaries(
    {"max_parallel": st.integers(1, 4), "on_item_error": st.sampled_from(["fail", "continue"])},
    optional={"retry": st.just({"max_attempts": 2}), "timeout": st.just(40)},
)


@given(st.data(), st.lists(REPLIES, min_size=1, max_size=9), KEYS)
def test_the_result_is_the_same_whichever_item_ends_first(data: st.DataObject, replies: list[Any], keys: Any) -> None:
    def pick(under_way: list[Any]) -> int:
        return data.draw(st.integers(0, len(under_way) - 1))

    assert driven(replies, pick, **keys) == driven(replies, lambda _: 0, **keys)


@dataclass
class NestedEnd:
    """How a nested run came out that spent 10 tokens."""

    finish_reason: str = "final"
    waiting: tuple[Any, ...] = ()
    output: Any = None
    spent: Any = None

    def __post_init__(self) -> None:
        self.output, self.spent = {"final_answer": "A"}, {"writes": 0, "seconds": 1.0}

    def answer(self) -> ToolReply:
        usage = {"requests": 1, "tool_calls": 0, "input_tokens": 5, "output_tokens": 5, "writes": 0}
        return ToolReply(True, "A", None, AT, 1.0, usage=usage)


def test_nested_runs_under_a_budget_run_one_after_another_and_get_what_is_left() -> None:
    tools = {"look": {"schema": ANY, "effect": "nested", "idempotent": False, "within": None}}
    definition = {"id": "w", "nodes": [each(of=[1, 2, 3])]}
    started = {"run": "r", "at": AT, "definition": definition, "external": {}, "env": {}, "tools": tools}
    loop = flow({**started, "rules": CURRENT, "limits": {"tokens": 100, "seconds": None}})
    (visit,) = next(loop).first  # type: ignore[union-attr]
    assert visit.loop is not None
    effect = next(visit.loop())
    assert isinstance(effect, Items)
    left, under_way = [], list(effect.first)
    while under_way:
        (made,) = under_way
        left.append(made.call.inherited["tokens"])
        under_way = list(effect.more(made, NestedEnd(), None))
    assert left == [100, 90, 80]


def test_items_take_the_time_of_the_longest_of_those_side_by_side() -> None:
    times = [1.0, 3.0, 1.0, 1.0]
    replies = [ToolReply(True, None, None, AT, seconds) for seconds in times]
    assert driven(replies, lambda _: 0, max_parallel=2)[0].seconds == 4.0
    assert driven(replies, lambda _: 0, max_parallel=1)[0].seconds == 6.0
