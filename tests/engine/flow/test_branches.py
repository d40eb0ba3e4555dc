"""Branches, loops, error edges, attempts and times of a workflow: the loop driven by hand, and against an oracle."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.effects import Cancelled, Failed, Suspended, ToolReply, Visit
from agent_core.rules import CURRENT
from engine_shim.definition.model import Node
from engine_shim.flow.branch import judged_part
from support.by_hand import AT
from support.flow_by_hand import TOOLS, Answer, Run, definition, did, node


def broke(message: str = "it broke", partial: Any = None, seconds: float = 0.0) -> ToolReply:
    return ToolReply(False, partial, message, AT, seconds)


def given_by(replies: dict[str, Any]) -> Answer:
    """Answers by node; a list has one for each time that the node is tried."""
    left = {name: list(each) if isinstance(each, list) else each for name, each in replies.items()}

    def answer(visit: Visit) -> Any:
        reply = left.get(visit.node, did(f"{visit.node} done"))
        return reply.pop(0) if isinstance(reply, list) else reply

    return answer


WHEN = {"when": "output.ok"}
ON_ERROR = {"on": "error"}


# ── conditions ───────────────────────────────────────────────────────────────────────────────────

CHOICE = [("a", "b", {"when": "output.n > `5`"}), ("a", "c", {"when": "output.n > `2`"}), ("a", "d")]
CHOICES = {"the first that holds": (9, "b"), "the second": (4, "c"), "the default": (1, "d")}


@pytest.mark.parametrize(("n", "taken"), CHOICES.values(), ids=CHOICES)
def test_first_edge_that_holds_wins_and_the_plain_one_is_the_default(n: int, taken: str) -> None:
    run = Run(definition("abcd", CHOICE), given_by({"a": did({"n": n})}))
    assert (run.output["status"], run.output["path"]) == ("completed", ["a", taken])


HOLDS = {
    "a number, even 0": (0, True),
    "a text": ("x", True),
    "nothing": (None, False),
    "false": (False, False),
    "an empty text": ("", False),
    "an empty list": ([], False),
    "an empty object": ({}, False),
}


@pytest.mark.parametrize(("value", "holds"), HOLDS.values(), ids=HOLDS)
def test_condition_holds_as_jmespath_has_it(value: Any, holds: bool) -> None:
    run = Run(definition("ab", [("a", "b", WHEN)], ends=["a", "b"]), given_by({"a": did({"ok": value})}))
    assert run.output["path"] == (["a", "b"] if holds else ["a"])
    assert run.output["status"] == "completed"


def test_condition_sees_the_output_the_nodes_before_and_the_inputs() -> None:
    when = {"when": "output.x == nodes.a.x && external.x == nodes.b.x"}
    whole = definition("abc", [("a", "b"), ("b", "c", when)], ends=["b", "c"])
    answer = given_by({"a": did({"x": 7}), "b": did({"x": 7})})
    assert Run(whole, answer, external={"x": 7}).output["path"] == ["a", "b", "c"]
    answer = given_by({"a": did({"x": 7}), "b": did({"x": 7})})
    assert Run(whole, answer, external={"x": 8}).output["path"] == ["a", "b"]


def test_where_no_edge_holds_the_node_must_be_an_end() -> None:
    run = Run(definition("ab", [("a", "b", WHEN)]), given_by({"a": did({})}))
    assert run.output["status"] == "failed"
    told = "no edge out of 'a' holds; give it a plain edge, or list it in `ends`"
    assert run.output["error"] == {"kind": "definition", "message": told, "where": "edges/0"}


def test_condition_that_cannot_be_judged_fails_the_run_with_its_place() -> None:
    run = Run(definition("ab", [("a", "b", {"when": "abs(output)"})], ends=["a"]), given_by({"a": did("x")}))
    assert run.output["error"]["where"] == "edges/0/when"
    assert run.output["error"]["message"].startswith("this condition cannot be judged: JMESPathTypeError")


def test_branch_not_taken_does_not_block_a_join_and_gives_null_behind_it() -> None:
    join = node("j", config={"b": "{{nodes.b?}}", "c": "{{nodes.c?}}", "text": "<{{nodes.c.x?}}>"})
    whole = definition([*"abc", join], [("a", "b", WHEN), ("a", "c"), ("b", "j"), ("c", "j")])
    run = Run(whole, given_by({"a": did({"ok": True})}))
    assert run.output["path"] == ["a", "b", "j"]
    assert run.calls("j") == [{"b": "b done", "c": None, "text": "<>"}]


# ── edges that ask ───────────────────────────────────────────────────────────────────────────────

ASKS = [("a", "b", {"ask": "It is a complaint."}), ("a", "c", {"ask": "It is praise."}), ("a", "d")]
ASKED = {
    "the first": ({"a>b": True}, ["a", "b"], ["a", "a>b", "b"]),
    "the second": ({"a>b": False, "a>c": True}, ["a", "c"], ["a", "a>b", "a>c", "c"]),
    "neither": ({"a>b": False, "a>c": False}, ["a", "d"], ["a", "a>b", "a>c", "d"]),
}


@pytest.mark.parametrize(("said", "path", "visits"), ASKED.values(), ids=ASKED)
def test_model_says_which_edge_is_taken(said: dict[str, bool], path: list[str], visits: list[str]) -> None:
    whole = definition("abcd", ASKS, model="m:judge")
    run = Run(whole, given_by({name: Ended("final", answer=answer) for name, answer in said.items()}))
    assert (run.output["status"], run.output["path"]) == ("completed", path)
    assert [visit.node for visit in run.visits] == visits
    assert run.visits[-1].after == (("a", 1), *((name, 1) for name in said))
    config = run.calls("a>b")[0]
    assert (config["model"], config["allowed_tools"], config["answer_schema"]) == ("m:judge", [], {"type": "boolean"})
    assert "It is a complaint." in config["prompt"]
    assert '"a done"' in config["prompt"]


def test_edge_that_cannot_be_judged_fails_the_run_with_its_place() -> None:
    run = Run(definition("abcd", ASKS, model="m"), given_by({"a>b": Ended("protocol_error")}))
    assert run.output["status"] == "failed"
    told = "'It is a complaint.' could not be judged: it ended"
    assert run.output["error"] == {"kind": "protocol_error", "message": told, "where": "edges/0"}


def test_edge_that_asks_may_lead_back_and_handle_errors() -> None:
    edges = [("a", "b"), ("b", "a", {"ask": "Once more?"}), ("b", "c"), ("b", "d", {"on": "error", "ask": "Bad?"})]
    answer = given_by({"b>a": [Ended("final", answer=True), Ended("final", answer=False)]})
    whole = definition("abcd", edges, model="m", entry="a")
    assert Run(whole, answer).output["path"] == ["a", "b", "a", "b", "c"]
    failing = {"b": broke(), "b!d": Ended("final", answer=True)}
    assert Run(whole, given_by(failing)).output["path"] == ["a", "b", "d"]
    failing["b!d"] = Ended("final", answer=False)
    assert Run(whole, given_by(failing)).output["error"]["message"] == "it broke"


def test_edges_that_ask_of_a_failure_and_of_what_came_of_it_are_judged_each() -> None:
    edges = [("a", "b", {"ask": "Bad?", "on": "error"}), ("a", "b", {"ask": "Useful?"}), ("a", "c")]
    whole = definition([node("a", on_error="continue"), "b", "c"], edges, model="m")
    answers = {"a": broke(), "a!b": Ended("final", answer=False), "a>b": Ended("final", answer=True)}
    run = Run(whole, given_by(answers))
    assert run.output["path"] == ["a", "b"]
    assert [visit.node for visit in run.visits] == ["a", "a!b", "a>b", "b"]


# ── errors ───────────────────────────────────────────────────────────────────────────────────────


def test_error_edge_gets_what_a_failed_node_gave() -> None:
    handler = node("h", config={"why": "{{nodes.a.error.message}}", "half": "{{nodes.a.output}}"})
    whole = definition(["a", "b", handler], [("a", "b"), ("a", "h", ON_ERROR)])
    run = Run(whole, given_by({"a": broke("it broke", {"half": 1})}))
    assert (run.output["status"], run.output["error"], run.output["path"]) == ("completed", None, ["a", "h"])
    assert run.calls("h") == [{"why": "it broke", "half": {"half": 1}}]
    assert run.output["outputs"]["a"] == {
        "error": {"kind": "tool_error", "message": "it broke"},
        "output": {"half": 1},
    }


def test_error_edge_is_dead_when_the_node_has_not_failed() -> None:
    whole = definition("abh", [("a", "b"), ("a", "h", ON_ERROR)])
    assert Run(whole, given_by({})).output["path"] == ["a", "b"]


def test_error_edges_may_have_conditions_and_a_failure_that_none_takes_fails_the_run() -> None:
    mine = {"on": "error", "when": "output.error.message == 'mine'"}
    whole = definition("abh", [("a", "b"), ("a", "h", mine)])
    assert Run(whole, given_by({"a": broke("mine")})).output["path"] == ["a", "h"]
    run = Run(whole, given_by({"a": broke("another")}))
    assert (run.output["status"], run.output["error"]["message"]) == ("failed", "another")


def test_node_that_fails_at_the_end_lets_the_run_go_on_and_fails_it() -> None:
    fails = node("a", on_error="fail_at_end")
    whole = definition([fails, node("b", config={"x": "{{nodes.a.error.kind?}}"}), "c"], [("a", "b"), ("b", "c")])
    run = Run(whole, given_by({"a": broke()}))
    assert (run.output["status"], run.output["path"]) == ("failed", ["a", "b", "c"])
    assert (run.output["error"]["where"], run.calls("b")) == ("a", [{"x": "tool_error"}])
    assert Run(whole, given_by({})).output["status"] == "completed"


def test_node_that_continues_on_error_goes_on_as_if_it_had_not_failed() -> None:
    whole = definition([node("a", on_error="continue"), node("b", config={"x": "{{nodes.a.output}}"})], [("a", "b")])
    run = Run(whole, given_by({"a": broke("it broke", 7)}))
    assert (run.output["status"], run.calls("b")) == ("completed", [{"x": 7}])
    assert run.output["outputs"]["a"]["error"]["message"] == "it broke"


def test_config_that_cannot_be_filled_is_a_failure_like_any_other() -> None:
    bad = node("b", config={"x": "{{nodes.a.missing}}"})
    whole = definition(["a", bad, "h"], [("a", "b"), ("b", "h", ON_ERROR)])
    run = Run(whole, given_by({}))
    assert (run.output["status"], run.output["path"]) == ("completed", ["a", "b", "h"])
    assert run.output["outputs"]["b"]["error"]["kind"] == "definition"


# ── loops ────────────────────────────────────────────────────────────────────────────────────────

LOOP = [("start", "work"), ("work", "check"), ("check", "work", {"when": "!(output.ok)"}), ("check", "done")]
ROUNDS = definition(
    ["start", node("work", config={"before": "{{nodes.check.note?}}"}), "check", "done"], LOOP, max_iterations=3
)


def test_loop_goes_round_until_its_condition_fails_and_sees_the_round_before() -> None:
    check = [did({"ok": False, "note": "longer"}), did({"ok": False, "note": "shorter"}), did({"ok": True})]
    run = Run(ROUNDS, given_by({"check": check}))
    assert run.output["path"] == ["start", *["work", "check"] * 3, "done"]
    assert run.calls("work") == [{"before": None}, {"before": "longer"}, {"before": "shorter"}]
    assert [(visit.node, visit.n) for visit in run.visits if visit.node == "check"] == [("check", n) for n in (1, 2, 3)]


def test_loop_that_does_not_end_fails_the_run_by_its_limit() -> None:
    run = Run(ROUNDS, given_by({"check": did({"ok": False})}))
    assert run.output["status"] == "failed"
    told = "the loop of 'work' was to go round again 4 times; max_iterations allows 3"
    assert run.output["error"] == {"kind": "max_iterations", "message": told, "where": "check"}
    assert Counter(run.output["path"]) == {"start": 1, "work": 4, "check": 4}


def test_error_edge_may_lead_back() -> None:
    whole = definition("ab", [("a", "b"), ("b", "a", ON_ERROR)], entry="a")
    run = Run(whole, given_by({"b": [broke(), broke(), did("well")]}))
    assert (run.output["status"], run.output["path"]) == ("completed", ["a", "b"] * 3)
    assert run.output["outputs"]["b"] == "well"


# ── attempts ─────────────────────────────────────────────────────────────────────────────────────


class Ended:
    """How a nested run came out."""

    def __init__(self, reason: str, *, answer: Any = 42, writes: int = 0, seconds: float = 0.0) -> None:
        self.finish_reason, self.waiting = reason, ()
        self.spent = {"steps": 2, "writes": writes}
        self.given = answer
        self.output = {
            "answer": answer,
            "error": None if reason == "final" else {"kind": reason, "message": "it ended"},
        }
        self.usage = {"requests": 1, "tool_calls": 0, "input_tokens": 5, "output_tokens": 5, "writes": writes}
        self.seconds = seconds

    def answer(self) -> ToolReply:
        success = self.finish_reason == "final"
        return ToolReply(success, self.given, None if success else "it ended", AT, self.seconds, usage=self.usage)


def retried(tool: str, replies: list[Any], **keys: Any) -> Run:
    retry = {"max_attempts": 3, "delay": 2, "backoff": 3}
    return Run(definition([node("a", tool, retry=retry, **keys)]), given_by({"a": replies}))


def test_node_is_tried_again_until_it_succeeds_each_time_after_a_longer_delay() -> None:
    run = retried("work", [broke(), broke(), did("well")])
    assert [(visit.attempt, visit.delay) for visit in run.visits] == [(0, 0.0), (1, 2.0), (2, 6.0)]
    assert (run.output["status"], run.output["path"]) == ("completed", ["a"])
    assert run.outcome.seconds == 8.0


def test_node_that_fails_each_time_has_failed() -> None:
    run = retried("work", [broke("one"), broke("two"), broke("three")])
    assert (run.output["status"], run.output["error"]["message"]) == ("failed", "three")


TRIES: dict[str, tuple[str, Any, int]] = {
    "a read that fails": ("work", broke(), 3),
    "a read that would fail again": ("work", broke()._replace(permanent=True), 1),
    "a read that gives no result": ("work", Failed("timeout", "too slow", AT, 0.0), 3),
    "a write that can be repeated": ("put", broke(), 3),
    "a write that cannot": ("pay", broke(), 1),
    "a config that is wrong": ("agent", Failed("definition", "bad", AT, 0.0), 1),
    "a model's error": ("agent", Ended("model_error"), 3),
    "a tool's error": ("agent", Ended("tool_error"), 3),
    "a model's error after a write": ("agent", Ended("model_error", writes=1), 1),
    "a limit": ("agent", Ended("max_steps"), 1),
    "a refusal": ("agent", Ended("policy_denied"), 1),
    "a cancellation": ("work", Cancelled(AT), 1),
    "a wait": ("work", Suspended("in_doubt", ({"reason": "in_doubt"},)), 1),
}


@pytest.mark.parametrize(("tool", "reply", "tries"), TRIES.values(), ids=TRIES)
def test_only_what_may_be_better_the_next_time_is_tried_again(tool: str, reply: Any, tries: int) -> None:
    assert len(retried(tool, [reply] * 3).visits) == tries


def test_next_attempt_starts_with_what_the_last_one_spent() -> None:
    run = retried("agent", [Ended("model_error"), Ended("final")])
    assert [visit.spent for visit in run.visits] == [None, {"steps": 2, "writes": 0}]


def test_what_an_attempt_spent_is_counted_once() -> None:
    def ended(reason: str, seconds: float, tokens: int) -> Ended:
        each = Ended(reason, seconds=seconds)  # of all attempts so far, as an agent tells it
        each.spent = {"steps": 2, "writes": 0, "seconds": seconds}
        each.usage = {**each.usage, "input_tokens": tokens, "output_tokens": 0}
        return each

    replies = [ended("model_error", 10.0, 30), ended("model_error", 15.0, 50), ended("final", 20.0, 60)]
    node_ = node("a", "agent", timeout=60, retry={"max_attempts": 3, "delay": 2, "backoff": 1})
    run = Run(definition([node_]), given_by({"a": replies}), limits={"tokens": 100})
    handed = [(visit.call.inherited["tokens"], visit.call.inherited["seconds"]) for visit in run.visits]
    assert handed == [(100, 60.0), (100, 58.0), (100, 56.0)]  # of which each starts with what was spent before it
    assert run.outcome.seconds == 24.0
    assert run.outcome.answer().usage["input_tokens"] == 60


# ── times ────────────────────────────────────────────────────────────────────────────────────────


def bounds(run: Run) -> dict[str, Any]:
    return {visit.node: visit.call.within for visit in run.visits}


def test_node_gets_the_smaller_of_its_own_time_and_what_is_left_of_the_run() -> None:
    nodes = [node("a"), node("b", timeout=50), node("c", timeout=3), node("d", timeout=0)]
    whole = definition(nodes, [("a", "b"), ("b", "c"), ("c", "d")], timeout=40)
    run = Run(whole, given_by({name: did(seconds=10.0) for name in "abc"}))
    assert bounds(run) == {"a": 30.0, "b": 30.0, "c": 3.0, "d": 10.0}


def test_branches_side_by_side_take_as_long_as_the_longest() -> None:
    whole = definition("abcd", [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")], timeout=100)
    run = Run(whole, given_by({"a": did(seconds=10.0), "b": did(seconds=20.0), "c": did(seconds=60.0)}))
    assert bounds(run) == {"a": 30.0, "b": 30.0, "c": 30.0, "d": 30.0}
    assert run.outcome.seconds == 70.0
    assert bounds(Run({**whole, "timeout": 80}, given_by({"c": did(seconds=60.0)})))["d"] == 20.0


def test_run_without_time_left_fails_before_its_next_node_and_says_so() -> None:
    whole = definition("ab", [("a", "b")], timeout=10)
    run = Run(whole, given_by({"a": did(seconds=10.0)}))
    assert run.output["error"] == {"kind": "timeout", "message": "no time was left to run it", "where": "b"}


def test_timeout_of_the_node_is_told_as_one_and_that_of_a_call_as_the_tools_error() -> None:
    late = Failed("timeout", "too slow", AT, 5.0)
    assert Run(definition([node("a", timeout=5)]), given_by({"a": late})).output["error"]["kind"] == "timeout"
    assert Run(definition(["a"]), given_by({"a": late})).output["error"]["kind"] == "tool_error"


def test_attempts_share_the_time_of_their_node() -> None:
    retry = {"max_attempts": 5, "delay": 1, "backoff": 1}
    run = Run(definition([node("a", timeout=10, retry=retry)]), given_by({"a": broke(seconds=3.0)}))
    assert [visit.call.within for visit in run.visits] == [10.0, 6.0, 2.0]


def test_nested_run_is_handed_the_time_that_is_left() -> None:
    whole = definition(["a", node("n", "agent", timeout=20)], [("a", "n")], timeout=25)
    run = Run(whole, given_by({"a": did(seconds=10.0), "n": Ended("final")}))
    assert run.visits[-1].call.inherited == {"seconds": 15.0}


def test_runs_under_a_parents_budget_take_turns_and_each_gets_what_is_left() -> None:
    limits = {"tokens": 25, "tool_calls": 4}
    run = Run(
        definition([node("x", "agent"), node("y", "agent"), "z"]),
        given_by({"x": Ended("final"), "y": Ended("final")}),
        limits=limits,
    )
    assert [(visit.node, visit.call.inherited.get("tokens")) for visit in run.visits] == [
        ("x", 25),
        ("z", None),
        ("y", 15),
    ]
    assert run.outcome.answer().usage["input_tokens"] == 10


@pytest.mark.parametrize("seed", range(8))
def test_what_a_run_under_a_budget_gets_does_not_depend_on_which_branch_ends_first(seed: int) -> None:
    edges = [("a", "x"), ("b", "y"), ("c", "d", {"ask": "Good?"}), ("c", "e"), ("f", "g", {"ask": "Bad?"}), ("f", "e")]
    whole = definition(
        [*"abcdefg", node("x", "agent"), node("y", "agent")], edges, model="m", ends=["x", "y", "d", "g"]
    )
    ended = {name: Ended("final", answer=True) for name in ("c>d", "f>g", "x", "y")}
    run = Run(whole, given_by(ended), order=random.Random(seed), limits={"tokens": 100})
    handed = {visit.node: visit.call.inherited["tokens"] for visit in run.visits if visit.node in ended}
    assert handed == {"c>d": 100, "f>g": 90, "x": 80, "y": 70}


# ── any order ────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Block:
    """A piece of a workflow with one way in and one way out, and what it does, told without any graph."""

    first: str
    last: str
    run: Callable[["Oracle"], bool]


class Oracle:
    """What each visit gives, from a seed; and how often each node was visited."""

    def __init__(self, seed: int) -> None:
        self.seed, self.visited, self.failed = seed, Counter[str](), False

    def value(self, name: str, n: int) -> int:
        return random.Random(f"{self.seed}/{name}/{n}").randrange(3)

    def breaks(self, name: str, n: int) -> bool:
        if name.startswith("e"):
            return self.value(name, n) == 0
        return random.Random(f"{self.seed}/{name}/{n}/broken").random() < 0.03

    def visit(self, name: str) -> int | None:
        """What a visit gives; None when it breaks."""
        self.visited[name] += 1
        n = self.visited[name]
        return None if self.breaks(name, n) else self.value(name, n)

    def plain(self, name: str) -> bool:
        self.failed = self.visit(name) is None or self.failed
        return not self.breaks(name, self.visited[name])


class Builder:
    """Random workflows of blocks in blocks."""

    def __init__(self, random_: random.Random) -> None:
        self.random, self.nodes, self.edges = random_, [], []

    def node(self, kind: str) -> str:
        name = f"{kind}{len(self.nodes)}"
        self.nodes.append(name)
        return name

    def edge(self, *edge: Any) -> None:
        self.edges.append(edge)

    def block(self, depth: int) -> Block:
        kinds = (
            [self.single]
            if depth == 0
            else [self.single, self.sequence, self.fork, self.choice, self.loop, self.handled]
        )
        return self.random.choice(kinds)(depth - 1)

    def single(self, depth: int) -> Block:
        name = self.node("n")
        return Block(name, name, lambda o: o.plain(name))

    def sequence(self, depth: int) -> Block:
        one, other = self.block(depth), self.block(depth)
        self.edge(one.last, other.first)
        return Block(one.first, other.last, lambda o: one.run(o) and other.run(o))

    def fork(self, depth: int) -> Block:
        top, branches, join = (
            self.node("n"),
            [self.block(depth) for _ in range(self.random.randint(2, 3))],
            self.node("n"),
        )
        for branch in branches:
            self.edge(top, branch.first)
            self.edge(branch.last, join)

        def run(o: Oracle) -> bool:
            if not o.plain(top):
                return False
            ended = [branch.run(o) for branch in branches]
            return all(ended) and o.plain(join)

        return Block(top, join, run)

    def choice(self, depth: int) -> Block:
        top, one, other, join = self.node("n"), self.block(depth), self.block(depth), self.node("n")
        self.edge(top, one.first, self.random.choice([{"when": "output.v == `1`"}, {"ask": "Is v 1?"}]))
        self.edge(top, other.first)
        self.edge(one.last, join)
        self.edge(other.last, join)

        def run(o: Oracle) -> bool:
            if not o.plain(top):
                return False
            return (one if o.value(top, o.visited[top]) == 1 else other).run(o) and o.plain(join)

        return Block(top, join, run)

    def loop(self, depth: int) -> Block:
        head, body, tail, after = self.node("n"), self.block(depth), self.node("n"), self.node("n")
        self.edge(head, body.first)
        self.edge(body.last, tail)
        self.edge(tail, head, {"when": "output.v == `1`"})
        self.edge(tail, after)

        def run(o: Oracle) -> bool:
            while o.plain(head) and body.run(o) and o.plain(tail):
                if o.value(tail, o.visited[tail]) != 1:
                    return o.plain(after)
            return False

        return Block(head, after, run)

    def handled(self, depth: int) -> Block:
        risky, handler, join = self.node("e"), self.block(depth), self.node("n")
        self.edge(risky, join)
        self.edge(risky, handler.first, {"on": "error"})
        self.edge(handler.last, join)
        return Block(risky, join, lambda o: (o.visit(risky) is not None or handler.run(o)) and o.plain(join))


def any_workflow(shape: int, seed: int) -> tuple[dict[str, Any], bool, "Oracle", Answer]:
    """A workflow of random blocks, whether it completes, and the answers to its visits."""
    builder = Builder(random.Random(shape))
    whole_block = builder.block(3)
    whole = definition(builder.nodes, builder.edges, entry=whole_block.first, model="m")
    oracle = Oracle(seed)
    completed = whole_block.run(oracle)

    def answer(visit: Visit) -> Any:
        if ">" in visit.node:
            return Ended("final", answer='"v":1' in visit.call.config["prompt"])
        value = {"v": oracle.value(visit.node, visit.n), "n": visit.n}
        return broke(partial=value) if oracle.breaks(visit.node, visit.n) else did(value)

    return whole, completed, oracle, answer


@given(st.integers(0, 2**32), st.integers(0, 2**32), st.integers(0, 2**32))
def test_any_workflow_does_what_its_blocks_say_in_whatever_order_branches_end(
    shape: int, seed: int, order: int
) -> None:
    whole, completed, oracle, answer = any_workflow(shape, seed)
    first, other = Run(whole, answer), Run(whole, answer, order=random.Random(order))
    assert first.output["status"] == ("completed" if completed else "failed")
    assert Counter(first.output["path"]) == oracle.visited
    assert first.output == other.output
    assert first.after() == other.after()


@given(st.integers(0, 2**32), st.integers(0, 2**32), st.integers(0, 2**32), st.integers(1, 20))
def test_which_visits_a_limit_leaves_does_not_depend_on_the_order_in_which_branches_end(
    shape: int, seed: int, order: int, most: int
) -> None:
    whole, _, _, answer = any_workflow(shape, seed)
    unlimited = Run(whole, answer)
    first = Run({**whole, "max_visits": most}, answer)
    other = Run({**whole, "max_visits": most}, answer, order=random.Random(order))
    assert first.output == other.output
    assert first.after() == other.after()
    assert len(first.output["path"]) == min(most, len(unlimited.output["path"]))
    if len(unlimited.output["path"]) <= most:
        assert first.output == unlimited.output


BOOKKEEPING = {"trace": [{"step": 1}], "usage": {"total_tokens": 7}, "messages_json": [], "run_id": "r"}
JUDGED = {
    "an answer": ("agent_core", {"finish_reason": "final", "final_answer": "Well.", "error": None}, "Well."),
    "an answer in fields": (
        "agent_core",
        {"finish_reason": "final", "final_answer": {"a": 1}, "error": None},
        {"a": 1},
    ),
    "a failed agent": (
        "agent_core",
        {"finish_reason": "max_steps", "final_answer": None, "error": {"kind": "max_steps"}},
        {"finish_reason": "max_steps", "error": {"kind": "max_steps"}},
    ),
    "a workflow": ("invoke_workflow", {"status": "completed", "outputs": {"answer": 1}, "error": None}, {"answer": 1}),
    "a failed workflow": (
        "invoke_workflow",
        {"status": "failed", "outputs": {}, "error": {"kind": "x"}},
        {"status": "failed", "outputs": {}, "error": {"kind": "x"}},
    ),
    "any other tool": ("echo", {"finish_reason": "final", "x": 1}, {"finish_reason": "final", "x": 1, **BOOKKEEPING}),
    "a failed node": ("agent_core", {"error": {"kind": "x"}, "output": None}, None),
}


@pytest.mark.parametrize(("tool", "output", "judged"), JUDGED.values(), ids=JUDGED)
def test_an_edge_is_judged_by_the_answer_and_not_by_all_bookkeeping(tool: str, output: Any, judged: Any) -> None:
    whole = {**output, **BOOKKEEPING}
    one = Node.model_validate({"id": "a", "tool": tool, "config": {}})
    assert judged_part(one, whole) == (whole if judged is None else judged)
    each = Node.model_validate({"id": "a", "tool": tool, "config": {}, "foreach": [1]})
    assert judged_part(each, {"results": [whole], "errors": []}) == {
        "results": [whole if judged is None else judged],
        "errors": [],
    }


@pytest.mark.parametrize(
    ("rules", "data"), [(CURRENT, '"Well."'), ({**CURRENT, "flow": 2}, '{"finish_reason":"final",')]
)
def test_a_run_under_earlier_rules_is_judged_by_all_of_it(rules: dict[str, int], data: str) -> None:
    whole = definition([{"id": "a", "tool": "agent_core", "config": {}}, "b", "c"], ASKS[:2], model="m:judge")
    output = {"finish_reason": "final", "final_answer": "Well."}
    answer = given_by({"a": Ended("final", answer=output), "a>b": Ended("final", answer=True)})
    assert (
        data in Run(whole, answer, rules=rules, tools={**TOOLS, "agent_core": TOOLS["agent"]}).calls("a>b")[0]["prompt"]
    )
