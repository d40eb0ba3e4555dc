"""`max_visits`: how many visits the nodes of a workflow may have in all, whichever of its branches is faster."""

import random
from typing import Any

import pytest

from agent_core.decisions import Approve
from agent_core.effects import Visit
from engine_shim import DefinitionError
from engine_shim.definition.model import read_definition
from engine_shim.definition.validate import BESIDE_GRAPH
from support.flow_by_hand import Run, definition, did
from support.gated import Host, played
from support.gated import node as working

CIRCLE = definition(["a", "b"], [("a", "b"), ("b", "a")], entry="a", max_iterations=100)
SPLIT = definition(["a", "b", "c", "d"], [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
TWO_LOOPS = definition(
    ["start", "left", "more", "right"],
    [("start", "left"), ("left", "more"), ("more", "left"), ("start", "right"), ("right", "right")],
    max_iterations=100,
)
"""Two branches without an end: one goes round in two visits, the other in one."""

LEFT_EARLY = definition(
    ["start", "head", "leave", "one", "two", "three", "join", "out", "on", "end", *(f"y{i}" for i in range(1, 19))],
    [
        ("start", "head"),
        *[("head", "leave"), ("head", "one"), ("one", "two"), ("two", "three"), ("three", "join"), ("leave", "join")],
        *[("leave", "out", {"when": "output > `1`"}), ("join", "head", {"when": "output < `3`"}), ("join", "end")],
        *[("out", "on"), ("start", "y1"), *((f"y{i}", f"y{i + 1}") for i in range(1, 18))],
    ],
    entry="start",
    ends=["on", "end", "y18"],
)
"""A loop that one of its branches leaves while another one has far to go, beside a chain as long."""


def answer(visit: Visit) -> Any:
    return did(visit.n)


@pytest.mark.parametrize("most", [1, 2, 5, 8])
def test_a_run_without_an_end_has_exactly_as_many_visits_as_it_may_have(most: int) -> None:
    run = Run({**CIRCLE, "max_visits": most}, answer)
    assert (len(run.visits), run.output["status"]) == (most, "failed")
    name = "ab"[most % 2]
    told = f"'{name}' was to run next, and the run has had {most} node visits, which is all that max_visits allows"
    assert run.output["error"] == {"kind": "max_visits", "message": told, "where": name}


@pytest.mark.parametrize(("most", "status"), [(3, "failed"), (4, "completed")])
def test_a_run_that_needs_no_more_completes(most: int, status: str) -> None:
    run = Run({**SPLIT, "max_visits": most}, answer)
    assert (run.output["status"], len(run.visits)) == (status, most)


def test_parallel_branches_still_run_side_by_side() -> None:
    run = Run({**SPLIT, "max_visits": 3}, answer)
    assert [visit.node for visit in run.visits] == ["a", "b", "c"]
    assert run.after()["b", 1] == run.after()["c", 1] == (("a", 1),)


@pytest.mark.parametrize("most", [1, 2, 3, 4, 7, 12, 30])
def test_which_visits_there_are_does_not_depend_on_which_branch_is_faster(most: int) -> None:
    runs = [Run({**TWO_LOOPS, "max_visits": most}, answer, order=random.Random(seed)) for seed in range(20)]
    first = {(visit.node, visit.n) for visit in runs[0].visits}
    assert len(first) == most
    for run in runs:
        assert {(visit.node, visit.n) for visit in run.visits} == first
        assert run.output == runs[0].output


@pytest.mark.sampled
@pytest.mark.parametrize("most", range(26, 42))
def test_what_waits_for_the_end_of_a_loop_counts_after_it(most: int) -> None:
    runs = [Run({**LEFT_EARLY, "max_visits": most}, answer, order=random.Random(seed)) for seed in range(10)]
    assert {len(run.output["path"]) for run in runs} == {min(most, 40)}
    assert [run.output for run in runs] == [runs[0].output] * len(runs)


def test_the_limit_holds_over_waiting_and_resuming_and_in_a_replay() -> None:
    async def play() -> None:
        host = Host()
        pay = {"id": "pay", "tool": "pay", "approval": "always", "config": {"amount": 1}}
        nodes, edges = [pay, working("x"), working("y")], [("pay", "x"), ("x", "pay"), ("y", "y")]
        keys = {"edges": [{"from": a, "to": b} for a, b in edges], "entry": ["pay", "y"], "max_visits": 6}
        result = await host.start(nodes, **keys)
        while result.status == "waiting":
            (call,) = result.waiting
            result = await host.engine.resume("r", decisions={(call["strand"], call["n"]): Approve()})
        assert (result.status, result.error["kind"], len(result.path)) == ("failed", "max_visits", 6)
        assert sorted(result.path) == ["pay", "pay", "x", "y", "y", "y"]
        assert host.sound(result)

    played(play)


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(DefinitionError, match="max_visits"):
        read_definition({**SPLIT, "max_visits": 0})
    assert "max_visits" in BESIDE_GRAPH
