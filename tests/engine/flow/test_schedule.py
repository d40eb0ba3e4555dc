"""The shape of a graph, and which nodes may start: a function of the definition and the set of finished visits."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_shim.definition.graph import Graph, graph_of
from engine_shim.definition.load import load_workflow
from engine_shim.definition.model import Definition
from engine_shim.definition.reachability import Reachability, reachability_of
from engine_shim.definition.validate import validate
from engine_shim.errors import DefinitionError
from engine_shim.flow.schedule import Schedule
from utools import ToolRegistry, default_registry

Edges = list[tuple[Any, ...]]


def graph(nodes: dict[str, str], edges: Edges | None = None, **more: Any) -> Graph:
    """The graph of nodes by id, each an echo of a text."""
    return graph_of(defined(nodes, edges, **more))


def defined(nodes: dict[str, str], edges: Edges | None = None, **more: Any) -> Definition:
    definition: dict[str, Any] = {"id": "w", "nodes": [echo(name, text) for name, text in nodes.items()], **more}
    if edges is not None:
        definition["edges"] = [{"from": a, "to": b, **(rest[0] if rest else {})} for a, b, *rest in edges]
    return load_workflow(definition).definition


def joined(*edges: Any, **more: Any) -> Graph:
    """The graph of these edges, its nodes in the order in which the edges name them."""
    return graph(dict.fromkeys((name for edge in edges for name in edge[:2]), "x"), list(edges), **more)


def echo(name: str, text: str) -> dict[str, Any]:
    return {"id": name, "tool": "echo", "config": {"text": text}}


def run(g: Graph, **takes: Any) -> list[str]:
    """The nodes as they run one by one; `takes` has the targets that a node's visits choose, in order of visits."""
    schedule, ran = Schedule(g), []
    while name := schedule.first():
        schedule.begin(name)
        ran.append(name)
        chosen = takes[name].pop(0) if takes.get(name) else None
        links = [link for link in g.outgoing[name] if (link.when is None if chosen is None else link.target in chosen)]
        schedule.finish(name, links)
    return ran


WHEN = {"when": "output"}
LOOP = [("start", "draft"), ("draft", "check"), ("check", "draft", WHEN), ("check", "done")]


# ── the shape ────────────────────────────────────────────────────────────────────────────────────


@st.composite
def forward(draw: st.DrawFn) -> Graph:
    """A graph without loops: each node waits for some of those before it, and the definition's order is any."""
    count = draw(st.integers(1, 7))
    names = draw(st.permutations([f"n{i}" for i in range(count)]))
    edges = [
        (f"n{j}", f"n{i}") for i in range(count) for j in draw(st.sets(st.integers(0, i - 1)) if i else st.just(set()))
    ]
    return graph(dict.fromkeys(names, "x"), edges)


@given(forward(), st.data())
def test_every_node_runs_once_after_all_it_waits_for_whichever_branch_ends_first(g: Graph, data: st.DataObject) -> None:
    schedule, finished = Schedule(g), []
    under_way: list[str] = []
    while ready := schedule.ready() + under_way:
        for name in set(ready) - set(under_way):
            schedule.begin(name)
        name = data.draw(st.sampled_from(ready))
        under_way = [other for other in ready if other != name]
        assert {link.source for link in g.incoming[name]} <= set(finished)
        finished.append(name)
        schedule.finish(name, g.outgoing[name])
    assert sorted(finished) == sorted(g.order)


@given(forward())
def test_levels_put_every_node_behind_those_it_waits_for(g: Graph) -> None:
    place = {name: index for index, name in enumerate(g.levels)}
    assert all(place[link.source] < place[name] for name in g.order for link in g.incoming[name])


def before(g: Graph) -> dict[str, set[str]]:
    return {name: {link.source for link in g.incoming[name]} for name in g.order}


def test_without_edges_the_order_follows_from_the_placeholders() -> None:
    found = graph({"c": "{{nodes.b}}{{nodes.a.x}}", "b": "{{nodes.a}}", "a": "start"})
    assert before(found) == {"a": set(), "b": {"a"}, "c": {"a", "b"}}


def test_given_edges_alone_make_the_order() -> None:
    assert before(graph({"a": "x", "b": "y", "c": "z"}, [("c", "a")])) == {"a": {"c"}, "b": set(), "c": set()}


def test_no_edges_at_all_is_not_the_same_as_an_empty_list() -> None:
    assert before(graph({"a": "x", "b": "{{nodes.a}}"}, [])) == {"a": set(), "b": set()}


def test_circle_of_placeholders_is_named_without_those_that_only_wait_for_it() -> None:
    with pytest.raises(DefinitionError) as refused:
        graph({"after": "{{nodes.b}}", "a": "{{nodes.b}}", "b": "{{nodes.a}}", "free": "x"})
    assert str(refused.value) == "nodes: these nodes wait for one another: b → a → b; a loop needs edges and an entry"


def test_edge_that_leads_back_closes_a_loop_of_all_between_its_ends() -> None:
    (loop,) = joined(*LOOP).loops.values()
    assert (loop.head, loop.edge.source, loop.body) == ("draft", "check", {"draft", "check"})


def test_edge_to_itself_is_a_loop() -> None:
    (loop,) = joined(("a", "b"), ("b", "b", WHEN)).loops.values()
    assert loop.body == {"b"}


WRONG: dict[str, tuple[Edges, dict[str, Any], str]] = {
    "nowhere to start": ([("a", "b"), ("b", "a")], {}, "entry: every node has an edge that leads to it"),
    "unreachable": (
        [("a", "b"), ("c", "d"), ("d", "c")],
        {},
        "nodes/2: no path of edges leads from an entry to 'c'",
    ),
    "unreachable from the entry": ([("a", "b"), ("c", "b")], {"entry": "a"}, "nodes/2: no path of edges leads"),
    "loop entered beside its head": (
        [*LOOP, ("start", "check")],
        {},
        "edges/4: enters the loop of 'draft' and 'check' elsewhere than at its head 'draft'; let it lead to 'draft'",
    ),
    "entry inside a loop": ([*LOOP], {"entry": ["start", "check"]}, "entry/1: 'check' enters the loop of 'draft'"),
    "fork across a loop's border": (
        [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")],
        {},
        "edges/3: leaves the loop of 'b' while another edge without a condition stays in it",
    ),
    "fork across the border in the middle": (
        [("a", "b"), ("b", "c"), ("c", "b", WHEN), ("b", "d")],
        {},
        "edges/3: leaves the loop of 'b' while another edge without a condition stays in it",
    ),
}


@pytest.mark.parametrize(("edges", "more", "message"), WRONG.values(), ids=WRONG)
def test_graph_that_cannot_run_well_is_refused_with_its_place(edges: Edges, more: Any, message: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        joined(*edges, **more)
    assert message in str(refused.value)


# ── what may start ───────────────────────────────────────────────────────────────────────────────

DIAMOND = [("top", "left"), ("top", "right"), ("left", "join"), ("right", "join")]
CHOICE = [("a", "b", WHEN), ("a", "c"), ("b", "d"), ("c", "d")]
NESTED = [("a", "b"), ("b", "c"), ("c", "b", WHEN), ("c", "d"), ("d", "a", WHEN), ("d", "e")]
PARALLEL = [("h", "p"), ("h", "q"), ("p", "s"), ("q", "s"), ("s", "h", WHEN), ("s", "z")]
RUNS: dict[str, tuple[Edges, dict[str, Any], dict[str, Any], list[str]]] = {
    "fork and join": (DIAMOND, {}, {}, ["top", "left", "right", "join"]),
    "the default": (CHOICE, {}, {}, ["a", "c", "d"]),
    "the other branch is dead and does not block": (CHOICE, {}, {"a": [["b"]]}, ["a", "b", "d"]),
    "a dead branch dies to its end": (
        [("a", "b", WHEN), ("a", "x"), ("x", "y"), ("y", "z"), ("b", "z")],
        {},
        {"a": [["b"]]},
        ["a", "b", "z"],
    ),
    "nothing holds": ([("a", "b", WHEN), ("b", "c")], {"ends": ["a", "c"]}, {"a": [[]]}, ["a"]),
    "once through a loop": (LOOP, {}, {}, ["start", "draft", "check", "done"]),
    "round again": (LOOP, {}, {"check": [["draft"]] * 2}, ["start", *["draft", "check"] * 3, "done"]),
    "a loop in a loop": (
        NESTED,
        {"entry": "a"},
        {"c": [["b"], ["d"], ["d"]], "d": [["a"], ["e"]]},
        ["a", "b", "c", "b", "c", "d", "a", "b", "c", "d", "e"],
    ),
    "branches side by side in a loop": (
        PARALLEL,
        {"entry": "h"},
        {"s": [["h"], ["z"]]},
        ["h", "p", "q", "s", "h", "p", "q", "s", "z"],
    ),
    "a branch that leaves a loop which goes on": (
        [("h", "p"), ("h", "q"), ("p", "out", WHEN), ("p", "s"), ("q", "s"), ("s", "h", WHEN), ("s", "z")],
        {"entry": "h"},
        {"p": [["out"], ["s"]], "s": [["h"], ["z"]]},
        ["h", "p", "q", "s", "h", "p", "q", "s", "z"],
    ),
    "a branch that leaves a loop which ends": (
        [("h", "p"), ("h", "q"), ("p", "out", WHEN), ("p", "s"), ("q", "s"), ("s", "h", WHEN), ("s", "z")],
        {"entry": "h"},
        {"p": [["out"]], "s": [["z"]]},
        ["h", "p", "q", "s", "out", "z"],
    ),
}


@pytest.mark.parametrize(("edges", "more", "takes", "ran"), RUNS.values(), ids=RUNS)
def test_nodes_run_as_their_edges_say(edges: Edges, more: Any, takes: dict[str, Any], ran: list[str]) -> None:
    assert run(joined(*edges, **more), **{name: list(each) for name, each in takes.items()}) == ran


# ── what is certain ──────────────────────────────────────────────────────────────────────────────

SURE: dict[str, tuple[Edges, dict[str, Any], str, set[str]]] = {
    "all before a join": (DIAMOND, {}, "join", {"top", "left", "right"}),
    "neither branch of a choice": (CHOICE, {}, "d", {"a"}),
    "on a branch": (CHOICE, {}, "b", {"a"}),
    "behind a choice that met again": ([*CHOICE, ("d", "e")], {}, "e", {"a", "d"}),
    "beside a choice that met again": (
        [*CHOICE, ("s", "a"), ("s", "x"), ("x", "j"), ("d", "j")],
        {},
        "j",
        {"s", "a", "x", "d"},
    ),
    "a join of a sure edge and an unsure one": (
        [("s", "a"), ("s", "x"), ("a", "b", WHEN), ("a", "c"), ("b", "j"), ("x", "j")],
        {},
        "j",
        {"s", "a", "x"},
    ),
    "what may lead on or not": ([("a", "b", WHEN), ("a", "c"), ("x", "b")], {}, "b", {"a", "x"}),
    "before an entry": ([("a", "b", WHEN), ("a", "c")], {"entry": ["a", "b"]}, "b", {"a"}),
    "a choice on one side of a choice": (
        [
            *(("a", "l", WHEN), ("a", "r"), ("l", "p"), ("l", "q"), ("p", "b", WHEN), ("p", "c")),
            *(("q", "b", WHEN), ("q", "c"), ("l", "d"), ("b", "d"), ("d", "j"), ("r", "j"), ("j", "k")),
        ],
        {},
        "k",
        {"a", "j"},
    ),
    "two branches under one choice": (
        [("a", "b", WHEN), ("a", "c"), ("b", "p"), ("b", "q"), ("p", "j"), ("q", "j")],
        {},
        "j",
        {"a", "b", "p", "q"},
    ),
    "the head of a loop, of nothing in it": (LOOP, {}, "draft", {"start"}),
    "behind a loop": (LOOP, {}, "done", {"start", "draft", "check"}),
    "behind an error edge": (
        [("a", "b"), ("a", "c", {"on": "error"}), ("b", "d"), ("c", "d")],
        {},
        "d",
        {"a"},
    ),
    "behind a node that may fail": ([("a", "b"), ("b", "x", {"on": "error"}), ("b", "c")], {}, "c", {"a", "b"}),
}


@pytest.mark.parametrize(("edges", "more", "name", "sure"), SURE.values(), ids=SURE)
def test_nodes_that_have_run_for_reachability_of(edges: Edges, more: Any, name: str, sure: set[str]) -> None:
    assert run_before(name, joined(*edges, **more)) == sure


def run_before(name: str, g: Graph, known: Reachability | None = None) -> set[str]:
    """The nodes that have certainly run when this one starts."""
    known = known or reachability_of(g)
    return {other for other in g.order if known.has_run(other, before=name)}


ENDS: dict[str, tuple[Edges, set[str]]] = {
    "all": (DIAMOND, {"top", "left", "right", "join"}),
    "a choice": (CHOICE, {"a", "d"}),
    "a loop": (LOOP, {"start", "draft", "check", "done"}),
    "an error edge": ([("a", "b"), ("a", "c", {"on": "error"})], {"a"}),
    "an error edge alone": ([("a", "c", {"on": "error"})], {"a"}),
}


@pytest.mark.parametrize(("edges", "sure"), ENDS.values(), ids=ENDS)
def test_nodes_that_have_run_at_the_end_for_reachability_of(edges: Edges, sure: set[str]) -> None:
    assert reachability_of(joined(*edges)).at_the_end == sure


@st.composite
def chosen_graphs(draw: st.DrawFn) -> tuple[Graph, dict[str, Any]]:
    """A graph without loops in which some edges have conditions, and for each node the targets it takes."""
    count = draw(st.integers(2, 7))
    edges: Edges = []
    takes: dict[str, Any] = {}
    for i in range(count - 1):
        targets = sorted(draw(st.sets(st.integers(i + 1, count - 1), max_size=3)))
        conditional = draw(st.sets(st.sampled_from(targets))) if targets else set()
        edges += [(f"n{i}", f"n{j}", WHEN if j in conditional else {}) for j in targets]
        plain = [f"n{j}" for j in targets if j not in conditional]
        options = [[f"n{j}"] for j in sorted(conditional)] + ([plain] if plain else [])
        takes[f"n{i}"] = [draw(st.sampled_from(options))] if options else []
    names = [f"n{i}" for i in range(count)]
    return graph(dict.fromkeys(names, "x"), edges), takes


@given(chosen_graphs())
def test_what_is_certain_has_run_whatever_is_chosen(drawn: tuple[Graph, dict[str, Any]]) -> None:
    g, takes = drawn
    known, ran = reachability_of(g), run(g, **takes)
    for index, name in enumerate(ran):
        assert run_before(name, g, known) <= set(ran[:index])
    assert known.at_the_end <= set(ran)


def test_choices_one_behind_the_other_are_told_at_once() -> None:
    names = [f"n{i}" for i in range(300)]
    skips = [(name, "n299", WHEN) for name in names[:-2]]
    chain = [(one, other) for one, other in pairwise(names)]
    assert reachability_of(graph(dict.fromkeys(names, "x"), [*skips, *chain])).at_the_end == {"n0", "n299"}


# ── placeholders ─────────────────────────────────────────────────────────────────────────────────

REGISTRY: ToolRegistry = default_registry()
EARLY: dict[str, tuple[dict[str, str], Edges, list[str]]] = {
    "an ancestor": ({"a": "x", "b": "y", "c": "{{nodes.a}}"}, [("a", "b"), ("b", "c")], []),
    "no path": (
        {"a": "x", "b": "{{nodes.a}}"},
        [],
        ["nodes/1/config/text: {{nodes.a}}: no path of edges leads from 'a' to 'b'; add an edge"],
    ),
    "no path, and optional": (
        {"a": "x", "b": "{{nodes.a?}}"},
        [],
        ["nodes/1/config/text: {{nodes.a?}}: no path of edges leads from 'a' to 'b'; add an edge"],
    ),
    "a branch that may not be taken": (
        {"a": "x", "b": "y", "c": "z", "d": "{{nodes.b}}"},
        CHOICE,
        ["nodes/3/config/text: {{nodes.b}}: 'b' may not have run when 'd' starts; write {{nodes.b?}} to get null then"],
    ),
    "the same, with a quoted key": (
        {"a": "x", "b": "y", "c": "z", "d": "{{nodes.b['Exchange Rate']}}"},
        CHOICE,
        [
            "nodes/3/config/text: {{nodes.b[\"Exchange Rate\"]}}: there is no 'Exchange Rate' in nodes.b: it is a text",
            "nodes/3/config/text: {{nodes.b[\"Exchange Rate\"]}}: 'b' may not have run when 'd' starts; "
            'write {{nodes.b["Exchange Rate"]?}} to get null then',
        ],
    ),
    "the same, optional": ({"a": "x", "b": "y", "c": "z", "d": "{{nodes.b?}}"}, CHOICE, []),
    "the round before": (
        {"start": "x", "draft": "{{nodes.check?}}", "check": "{{nodes.draft}}", "done": "z"},
        LOOP,
        [],
    ),
    "its own round before": ({"start": "x", "draft": "{{nodes.draft?}}", "check": "y", "done": "z"}, LOOP, []),
    "its own output": (
        {"a": "{{nodes.a}}"},
        [],
        ["nodes/0/config/text: {{nodes.a}}: there is no 'a' in nodes here; there are none"],
    ),
}


@pytest.mark.parametrize(("nodes", "edges", "problems"), EARLY.values(), ids=EARLY)
def test_placeholder_may_only_name_what_has_run(nodes: dict[str, str], edges: Edges, problems: list[str]) -> None:
    definition = defined(nodes, edges).model_dump(by_alias=True, exclude_unset=True)
    assert [str(problem) for problem in validate(load_workflow(definition), REGISTRY)] == problems


def test_output_may_only_name_what_has_run_at_the_end() -> None:
    outputs = {"sure": "{{nodes.d}}", "not": "{{nodes.b}}", "optional": "{{nodes.b?}}"}
    definition = defined(dict.fromkeys("abcd", "x"), CHOICE, outputs=outputs)
    problems = validate(load_workflow(definition.model_dump(by_alias=True, exclude_unset=True)), REGISTRY)
    assert [problem.where for problem in problems] == ["outputs/not"]
