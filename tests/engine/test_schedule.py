"""Which nodes may start: a function of the definition and the set of finished ones."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_shim.errors import DefinitionError
from engine_shim.graph.definition import load_workflow
from engine_shim.graph.schedule import Graph, graph_of, schedule

DIAMOND = Graph(
    ("join", "right", "left", "top"),
    {"top": frozenset(), "left": frozenset({"top"}), "right": frozenset({"top"}), "join": frozenset({"left", "right"})},
)

READY = {
    "nothing finished": (set(), ["top"]),
    "a fork starts all branches, in the definition's order": ({"top"}, ["right", "left"]),
    "a join waits for all": ({"top", "left"}, ["right"]),
    "a join starts when all are there": ({"top", "left", "right"}, ["join"]),
    "all finished": ({"top", "left", "right", "join"}, []),
}


def graph(nodes: dict[str, str], edges: list[tuple[str, str]] | None = None) -> Graph:
    """The graph of nodes by id, each an echo of a text."""
    definition: dict[str, Any] = {"id": "w", "nodes": [echo(name, text) for name, text in nodes.items()]}
    if edges is not None:
        definition["edges"] = [{"from": source, "to": target} for source, target in edges]
    return graph_of(load_workflow(definition).definition)


def echo(name: str, text: str) -> dict[str, Any]:
    return {"id": name, "tool": "echo", "config": {"text": text}}


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A graph without circles: each node waits for some of those before it, and the order is any."""
    count = draw(st.integers(1, 7))
    before = {
        f"n{i}": frozenset(draw(st.sets(st.sampled_from([f"n{j}" for j in range(i)])) if i else st.just(set())))
        for i in range(count)
    }
    return Graph(tuple(draw(st.permutations(sorted(before)))), before)


@pytest.mark.parametrize(("finished", "expected"), READY.values(), ids=READY)
def test_ready_are_those_whose_every_predecessor_has_finished(finished: set[str], expected: list[str]) -> None:
    assert schedule(DIAMOND, finished) == expected


@given(graphs(), st.data())
def test_every_node_runs_once_after_all_it_waits_for_whichever_branch_ends_first(g: Graph, data: st.DataObject) -> None:
    finished: list[str] = []
    while ready := schedule(g, set(finished)):
        assert all(g.before[name] <= set(finished) for name in ready)
        finished.append(data.draw(st.sampled_from(ready)))
    assert sorted(finished) == sorted(g.order)


@given(graphs())
def test_ranks_put_every_node_behind_those_it_waits_for(g: Graph) -> None:
    ranks = g.ranks()
    assert all(ranks[other] < ranks[name] for name in g.order for other in g.before[name])


def test_without_edges_the_order_follows_from_the_placeholders() -> None:
    found = graph({"c": "{{nodes.b}}{{nodes.a.x}}", "b": "{{nodes.a}}", "a": "start"})
    assert found.before == {"a": frozenset(), "b": {"a"}, "c": {"a", "b"}}


def test_given_edges_alone_make_the_order() -> None:
    found = graph({"a": "x", "b": "y", "c": "z"}, [("c", "a")])
    assert found.before == {"a": {"c"}, "b": frozenset(), "c": frozenset()}


def test_no_edges_at_all_is_not_the_same_as_an_empty_list() -> None:
    assert graph({"a": "x", "b": "y"}, []).before == {"a": frozenset(), "b": frozenset()}
    with pytest.raises(DefinitionError, match="add an edge"):
        graph({"a": "x", "b": "{{nodes.a}}"}, [])


def test_placeholder_may_name_any_ancestor() -> None:
    assert graph({"a": "x", "b": "y", "c": "{{nodes.a}}"}, [("a", "b"), ("b", "c")])


def test_circle_is_named_without_those_that_only_wait_for_it() -> None:
    with pytest.raises(DefinitionError) as refused:
        graph({"after": "{{nodes.b}}", "a": "{{nodes.b}}", "b": "{{nodes.a}}", "free": "x"})
    assert str(refused.value).endswith("loops are not built yet: b → a → b")


def test_edge_to_itself_is_a_circle() -> None:
    with pytest.raises(DefinitionError, match="a → a"):
        graph({"a": "x"}, [("a", "a")])
